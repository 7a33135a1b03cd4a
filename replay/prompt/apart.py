"""How far two moments of something that was kept are apart: jobs, hosts, demand and money, one line for each thing that differs."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.provisioning.request import OPEN
from xce.replay.prompt.answers import number
from xce.replay.prompt.info import spent
from xce.replay.prompt.walk import Walk

#: What a moment amounts to, by name.
Figures = dict[str, str]


def measures(walk: Walk) -> dict[str, Decimal | None]:
    """Return what can be counted where a walk stands; None: unknown."""
    found: dict[str, Decimal | None] = {}
    if walk.kept.has_sessions:
        result = walk.seen.result
        starting = () if result is None else result.allocations
        found["waiting"] = Decimal(len(walk.pending) - len(starting))
        found["running"] = Decimal(len(walk.running) + len(starting))
        wanted = () if result is None else result.demand.hosts
        found["wanted"] = Decimal(sum(one.count for one in wanted))
    found["events"] = Decimal(len(walk.events))
    if walk.no_books is None:
        view = walk.projections.inventory.view()
        found["requests"] = Decimal(len(walk.history.requests))
        found["open-requests"] = Decimal(sum(1 for one in view.requests if one.state in OPEN))
        found["owned"] = Decimal(len(view.instances))
        found["cost"] = spent(walk)
    return found


def figures(walk: Walk) -> Figures:
    """Return the measures as texts."""
    return {name: number(value) for name, value in measures(walk).items()}


@dataclass(frozen=True, slots=True)
class State:
    """What two moments are compared by: what there is, and what is so of it."""

    figures: Figures
    things: dict[str, str]


def state_of(walk: Walk) -> State:
    """Return the state where a walk stands."""
    things: dict[str, str] = {}
    if walk.seen.snapshot is not None and walk.seen.result is not None:
        things = dict(_things(walk.seen.snapshot, walk.seen.result))
    if walk.no_books is None:
        things |= dict(_books(walk))
    return State(figures(walk), things)


def differing(one: State, other: State) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield what is not the same, and what is so of it in each; None: it is not there."""
    for name in (*one.things, *(name for name in other.things if name not in one.things)):
        mine, theirs = one.things.get(name), other.things.get(name)
        if mine != theirs:
            yield name, mine, theirs


def _things(snapshot: Snapshot, result: SessionResult) -> Iterator[tuple[str, str]]:
    starting = {one.job: " ".join(use.name for use in one.hosts) for one in result.allocations}
    said = {one.job: one for one in result.pending}
    for running in snapshot.running:
        yield f"job {running.id}", f"runs on {' '.join(use.name for use in running.hosts)}".rstrip()
    for waiting in snapshot.pending:
        line = said.get(waiting.id)
        if waiting.id in starting:
            yield f"job {waiting.id}", f"starts on {starting[waiting.id]}".rstrip()
        else:
            yield f"job {waiting.id}", f"waits: {'?' if line is None else line.reason.value}"
    for host in snapshot.hosts:
        yield f"host {host.name}", host.state.value
    for shared in snapshot.shared:
        yield f"shared {shared.name}", f"{shared.total}, of it borrowed {shared.borrowed}"
    for wanted in result.demand.hosts:
        yield f"demand {wanted.template}", f"{wanted.count} wanted"
    for amount in result.demand.countable:
        yield f"demand {amount.name}", f"{amount.amount} wanted"
    for idle in result.idle.hosts:
        yield f"idle {idle.host}", f"since {idle.idle_since:%Y-%m-%d %H:%M:%S}"


def _books(walk: Walk) -> Iterator[tuple[str, str]]:
    view = walk.projections.inventory.view()
    for request in view.requests:
        yield f"request {request.id}", f"{request.state.value}, {request.granted} came"
    for instance in view.instances:
        yield f"instance {instance.id}", instance.state.value
    for grant in view.grants:
        yield f"grant {grant.id}", f"{grant.amount} of {grant.resource}, {grant.state.value}"
    for row in walk.projections.totals.all():
        yield f"total {row.name}", f"{row.total}, of it borrowed {row.borrowed}"

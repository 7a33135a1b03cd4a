"""Placing whole jobs: task counts, alternatives and parts, and committing what was placed."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.limits import Share
from xce.domain.cluster.state import State
from xce.domain.scheduling.allocation import Code, allocate
from xce.domain.scheduling.allocators import chosen
from xce.domain.scheduling.attempt import Attempt, Claim, Context
from xce.domain.scheduling.classes import Alternative, JobClass, Part
from xce.domain.scheduling.explain import Failure, PendRecord, failure_of

_NOTHING_METERED: Final[Mapping[int, int]] = MappingProxyType({})


class OnHost(NamedTuple):
    """What a job is given on one host."""

    place: int
    tasks: int
    uses: dict[str, int]


class Placed:
    """What a job is given.

    Attributes:
        alternative: which one worked.
        claims: in the order claimed; parts of a COMPOUND may claim the same host.
        metered: amounts by meter.
    """

    __slots__ = ("alternative", "claims", "job", "metered", "tasks")

    def __init__(
        self, job: JobClass, alternative: Alternative, tasks: int, context: Context
    ) -> None:
        self.job = job
        self.alternative = alternative
        self.tasks = tasks
        self.claims: Sequence[Claim] = context.claims
        self.metered = context.uncommitted

    @classmethod
    def of_one_task_each(
        cls, job: JobClass, places: Sequence[int], metered: Mapping[int, int]
    ) -> "Placed":
        """Return the placement of a job of one part that has one task on each of these hosts."""
        made = cls.__new__(cls)
        made.job, made.alternative, made.tasks = job, job.alternatives[0], len(places)
        bucket = made.alternative.parts[0].request.bucket
        claims: tuple[Claim, ...] = (Claim(places[0], 1, bucket(1, first=True), (), (), ()),)
        if len(places) > 1:
            amounts = bucket(1, first=False)
            claims += tuple([Claim(place, 1, amounts, (), (), ()) for place in places[1:]])
        made.claims = claims
        made.metered = metered
        return made

    def moved(self, gone: int) -> "Placed":
        """Return the same placement where one host, which it does not use, is not there."""
        claims = self.claims
        if all(claim.place < gone for claim in claims):
            return self
        moved = [
            Claim(claim.place - 1, *claim[1:]) if claim.place > gone else claim for claim in claims
        ]
        made = Placed.__new__(Placed)
        made.job, made.alternative, made.tasks = self.job, self.alternative, self.tasks
        made.metered = self.metered
        made.claims = moved
        return made

    def hosts(self) -> list[OnHost]:
        """Return what it is given, one entry a host, in the order first claimed."""
        if len(self.claims) == 1:
            claim = self.claims[0]
            return [OnHost(claim.place, claim.tasks, dict(claim.amounts))]
        merged: dict[int, OnHost] = {}
        for claim in self.claims:
            known = merged.get(claim.place)
            if known is None:
                merged[claim.place] = OnHost(claim.place, claim.tasks, dict(claim.amounts))
                continue
            for name, amount in claim.amounts:
                known.uses[name] = known.uses.get(name, 0) + amount
            merged[claim.place] = known._replace(tasks=known.tasks + claim.tasks)
        return list(merged.values())

    def shared(self, core: State) -> dict[str, int]:
        """Return what it is given of shared resources by name, amounts above 0."""
        if not self.metered:
            return {}
        meters = core.ground.meters.all
        amounts = {
            meters[number].name: amount
            for number, amount in self.metered.items()
            if meters[number].rule is None and amount > 0
        }
        if len(amounts) < 2:
            return amounts
        return {name: amounts[name] for name in sorted(amounts, key=key_of_name)}


def try_alternative(
    core: State,
    job: JobClass,
    alternative: Alternative,
    tasks: int,
    records: list[PendRecord] | None,
) -> Placed | None:
    """Place all parts of an alternative, one after the other, or nothing.

    ``records`` gets the pend-reason record of the part that failed.
    """
    context = Context(job)
    try:
        for part in alternative.parts:
            count = part.tasks or tasks
            attempt = Attempt(part, count, context)
            code = allocate(core, chosen(part, count), attempt)
            if code <= Code.PENDING:
                assert code == Code.PENDING, "the attempt has its input"
                assert attempt.record is not None, "the guard was asked before"
                undo(core, context)
                if records is not None:
                    records.append(attempt.record)
                return None
        return Placed(job, alternative, tasks, context)
    except BaseException:
        undo(core, context)
        raise


def undo(core: State, context: Context) -> None:
    """Give back what the parts that were placed took from hosts."""
    while context.claims:
        claim = context.claims.pop()
        core.restore(claim.place, claim.amounts, claim.before)


def undo_placed(core: State, placed: Placed) -> None:
    """Give back what a placement that was not committed took from hosts."""
    for claim in reversed(placed.claims):
        core.restore(claim.place, claim.amounts, claim.before)


def place(
    core: State, job: JobClass, tasks: int, records: list[PendRecord] | None = None
) -> Placed | None:
    """Return what the first alternative that works gives for a task count; the amounts are taken from hosts."""
    for alternative in job.alternatives:
        placed = try_alternative(core, job, alternative, tasks, records)
        if placed is not None:
            return placed
    return None


def start(core: State, job: JobClass) -> Placed | Failure:
    """Place a job with as many tasks as fit and commit it, or say why it waits."""
    least = job.least
    if job.most == 1:
        placed = _start_one_task(core, job)
        if placed is not None:
            return placed
    records: list[PendRecord] = []
    if job.most > least:
        for tasks in range(min(job.most, _most_tasks(core, job)), least, -1):
            placed = place(core, job, tasks)
            if placed is not None:
                commit(core, placed)
                return placed
    placed = place(core, job, least, records)
    if placed is None:
        return failure_of(core, job, records)
    commit(core, placed)
    return placed


def _start_one_task(core: State, job: JobClass) -> Placed | None:
    """Start a job of one task that only room can stop; None if it has none, or if more than room decides."""
    if len(job.alternatives) != 1 or len(job.alternatives[0].parts) != 1:
        return None
    (part,) = job.alternatives[0].parts
    request = part.request
    if not part.is_free or part.fixed or request.selector.same or core.ground.guarantees:
        return None
    amounts = request.bucket(1, first=True)
    view = core.view(part.scope)
    start = view.cursors.get(amounts, 0)
    at = core.first_fit_of(view.whole, start, amounts, core.shut)
    if at < 0:
        return None
    view.remember(amounts, at)
    place = view.hosts[at]
    core.debit(place, amounts)
    core.busy.add(place)
    return Placed.of_one_task_each(job, (place,), _NOTHING_METERED)


def commit(core: State, placed: Placed) -> None:
    """Make a placement final: meters, hosts in use, placed limits, guarantees."""
    left = core.left
    for number, amount in placed.metered.items():
        left[number] -= amount
    core.occupy([claim.place for claim in placed.claims], exclusive=placed.alternative.is_exclusive)
    job = placed.job
    ground = core.ground
    if job.placed or ground.guarantees:
        shares: list[Share] = [(claim.place, dict(claim.amounts)) for claim in placed.claims]
        shared = placed.shared(core)
        if job.placed:
            core.placed.add(job.placed, shares, shared, core.names)
        if ground.guarantees:
            core.use_by_group(job.user, shares, shared)


def _most_tasks(core: State, job: JobClass) -> int:
    """Return a task count above which no alternative can work, by room and meters alone."""
    return max(
        (_most_of(core, job, a.parts[0]) for a in job.alternatives if len(a.parts) == 1),
        default=job.least,
    )


def _most_of(core: State, job: JobClass, part: Part) -> int:
    most = job.most
    for number, a_task, once in part.fixed:
        if a_task > 0:
            most = min(most, max(0, core.left[number] - once) // a_task)
    if most <= job.least:
        return job.least
    attempt = Attempt(part, most, Context(job))
    rooms = [
        room
        for group in core.view(part.scope).groups
        for room in attempt.rooms(core, group.hosts, first=False)
    ]
    if part.allocator is not None:
        return min(most, sum(rooms))
    span = part.request.span
    if span.one_host:
        return min(most, max(rooms, default=0))
    if span.one_task_a_host:
        return min(most, sum(1 for room in rooms if room > 0))
    if span.ptile is not None:
        rooms = [min(room, span.ptile) for room in rooms]
    return min(most, sum(rooms))

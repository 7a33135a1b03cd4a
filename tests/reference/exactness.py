"""D6 and what goes with it: whether the demand of a result is exact, judged by the reference allocator alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from tests.reference.idle import reference_idle
from tests.reference.plain import Outcome, phase_one
from tests.reference.runs import Runs
from tests.reference.supply import (
    Supply,
    left_out_at_once,
    possible_at_all,
    s_prime,
    supply_of,
)
from tests.reference.world import Holding, PlainJob, World, world_of
from xce.domain.formats.session_result import (
    CountDemand,
    HostDemand,
    JobAmount,
    JobHosts,
    Provisioning,
    ReasonKind,
    SessionResult,
    Tightness,
)
from xce.domain.formats.snapshot import OrderMode, Snapshot, Template
from xce.domain.values import natural_key


@dataclass(frozen=True)
class Case:
    """A snapshot, a result, and what the reference makes of them."""

    snapshot: Snapshot
    result: SessionResult
    outcome: Outcome
    supply: Supply
    counted: tuple[PlainJob, ...]
    examined: tuple[PlainJob, ...]
    placed: Outcome

    @property
    def order(self) -> list[str]:
        return [name for name, many in self.result.demand.order for _ in range(many)]

    @property
    def judged(self) -> tuple[PlainJob, ...]:
        """Return the examined jobs up to the one that, in strict order, keeps those behind it from counting."""
        if self.snapshot.settings.order is not OrderMode.STRICT:
            return self.examined
        counted = {job.id for job in self.counted}
        places = [place for place, job in enumerate(self.examined) if job.id not in counted]
        return self.examined[: places[0] + 1] if places else self.examined

    @property
    def at_once(self) -> dict[str, str]:
        """Return the judged jobs that are not counted whatever the catalog has, with the reason."""
        return left_out_at_once(self.snapshot, self.judged, self.outcome.on_resources)

    @property
    def amounts(self) -> dict[str, int]:
        return {demand.name: demand.amount for demand in self.result.demand.countable}

    def with_demand(self, order: Sequence[str], amounts: dict[str, int]) -> World:
        return s_prime(self.outcome, self.supply, self.counted, order, amounts)


def case_of(snapshot: Snapshot, result: SessionResult) -> Case:
    """Return the case: phase 1 by the reference, and the counted jobs placed on S'."""
    outcome = phase_one(world_of(snapshot))
    supply = supply_of(snapshot)
    demand = result.demand
    left_out = {job.job for job in (*demand.impossible, *demand.not_counted)} | set(
        demand.not_examined
    )
    counted = tuple(job for job, _ in outcome.pending if job.id not in left_out)
    order = [name for name, many in demand.order for _ in range(many)]
    amounts = {count.name: count.amount for count in demand.countable}
    return Case(
        snapshot=snapshot,
        result=result,
        outcome=outcome,
        supply=supply,
        counted=counted,
        examined=outcome.on_resources[: snapshot.settings.catalog_pass_cap],
        placed=phase_one(s_prime(outcome, supply, counted, order, amounts)),
    )


def violations(snapshot: Snapshot, result: SessionResult, *, runs_budget: int = 1000) -> list[str]:
    """Return what is wrong with the demand and the idle supply of a result; nothing if they are exact."""
    case = case_of(snapshot, result)
    found = [*_lists(case), *_sound(case)]
    if found:
        return found  # the rest is about placements on S', which say nothing then
    found += [*_tight(case), *_within_room(case), *_numbers(case), *_provisioning(case)]
    found += [*_impossible(case), *_complete(case, runs_budget), *_best_host(case), *_idle(case)]
    return found


def _lists(case: Case) -> Iterator[str]:
    """Every job is in one list; what was not examined is not judged; reasons that the page fixes are there."""
    demand, outcome = case.result.demand, case.outcome
    listed = [job.job for job in (*demand.impossible, *demand.not_counted)] + list(
        demand.not_examined
    )
    if twice := [job for job, many in Counter(listed).items() if many > 1]:
        yield f"in more than one list: {twice}"
    waiting = [job.id for job, _ in outcome.pending]
    if strangers := [job for job in listed if job not in waiting]:
        yield f"listed, and not waiting: {strangers}"
    past_cap = [job.id for job in outcome.on_resources[len(case.examined) :]]
    if list(demand.not_examined) != past_cap:
        yield f"not_examined is {demand.not_examined}, wanted {past_cap}"
    examined = {job.id for job in case.examined}
    if odd := [job.id for job in case.counted if job.id not in examined]:
        yield f"counted, and not examined: {odd}"
    judged = {job.id for job in case.judged}
    if odd := [job.id for job in case.counted if job.id not in judged]:
        yield f"counted behind a job that is not counted, in strict order: {odd}"
    if odd := [job.job for job in demand.impossible if job.job not in examined]:
        yield f"impossible, and not examined: {odd}"
    for jobs in (demand.impossible, demand.not_counted):
        places = [waiting.index(job.job) for job in jobs if job.job in waiting]
        if places != sorted(places):
            yield f"not in job order: {[job.job for job in jobs]}"
    why = {job.job: job.why for job in demand.not_counted}
    for job, reason in _fixed_reasons(case).items():
        if job not in why:
            yield f"job {job} is not in not_counted, wanted {reason!r}"
        elif not why[job].startswith(reason):
            yield f"job {job} is not counted because {why[job]!r}, wanted {reason!r}"
    if empty := [
        job.job for job in (*demand.impossible, *demand.not_counted) if not job.why.strip()
    ]:
        yield f"without a reason: {empty}"


def _fixed_reasons(case: Case) -> dict[str, str]:
    """Return how the reason of a job that is not counted starts, where the page says how."""
    fixed: dict[str, str] = {}
    on_resources = {job.id for job in case.outcome.on_resources}
    for job, found in case.outcome.pending:
        if job.id in on_resources:
            continue
        match found[0].kind:
            case ReasonKind.HELD | ReasonKind.DEPENDENCY:
                fixed[job.id] = found[0].kind.value
            case ReasonKind.UNIT_UNKNOWN:
                fixed[job.id] = f"unit unknown: {found[0].name}"
            case _:
                fixed[job.id] = f"limit {found[0].name}"
    return fixed | case.at_once


def _sound(case: Case) -> Iterator[str]:
    wanted = [job.id for job in case.counted]
    if case.placed.started_ids != wanted:
        yield f"not sound: of {wanted} only {case.placed.started_ids} start in S'"


def _all_start(case: Case, world: World) -> bool:
    return len(phase_one(world).started) == len(case.counted)


def _tight(case: Case) -> Iterator[str]:
    if case.result.demand.tight is not Tightness.PROVED:
        return
    start = 0
    for template, many in case.result.demand.order:
        order = [*case.order[:start], *case.order[start + 1 :]]  # all hosts of a run are alike
        if _all_start(case, case.with_demand(order, case.amounts)):
            yield f"not tight: all start without host {start + 1} of the order, of {template}"
        start += many
    for name, amount in case.amounts.items():
        less = {**case.amounts, name: amount - 1}
        if amount > 0 and _all_start(case, case.with_demand(case.order, less)):
            yield f"not tight: all start with {amount - 1} of {name}"


def _within_room(case: Case) -> Iterator[str]:
    for template, many in Counter(case.order).items():
        if many > case.supply.room.get(template, 0):
            yield f"{many} hosts of {template}, and room for {case.supply.room.get(template, 0)}"
    if not case.supply.hold(case.order):
        yield f"no room for all of {case.result.demand.order} one after the other: {case.supply.capacities}"
    for name, amount in case.amounts.items():
        if amount > case.supply.headroom.get(name, 0):
            yield f"{amount} of {name}, and headroom {case.supply.headroom.get(name, 0)}"


@dataclass(frozen=True)
class _Shares:
    """What one counted job uses of what is not there yet."""

    templates: dict[str, int]
    flying_hosts: list[str]
    flying_counts: list[str]
    new_counts: dict[str, int]
    shortfall: dict[str, int]


def _shares(case: Case) -> list[tuple[PlainJob, _Shares]]:
    """Return the parts of all counted jobs, placed on S' in job order: what is there first, in flight, new."""
    taken: Counter[str] = Counter()
    shares: list[tuple[PlainJob, _Shares]] = []
    world = case.placed.world
    for job, holding in case.placed.started:
        hosts = [world.host(key) for key in holding.hosts()]
        flying, new, short = _count_shares(case, holding, taken)
        shares.append(
            (
                job,
                _Shares(
                    templates=dict(Counter(h.template or "" for h in hosts if h.kind == "new")),
                    flying_hosts=[h.key.removeprefix("\0") for h in hosts if h.kind == "in_flight"],
                    flying_counts=flying,
                    new_counts=new,
                    shortfall=short,
                ),
            )
        )
    return shares


def _count_shares(
    case: Case, holding: Holding, taken: Counter[str]
) -> tuple[list[str], dict[str, int], dict[str, int]]:
    flying: list[str] = []
    new: dict[str, int] = {}
    short: dict[str, int] = {}
    for name, amount in holding.shared.items():
        if amount == 0:
            continue
        free = case.outcome.world.balance(name)
        coming = free + case.supply.in_flight_counts.get(name, 0)
        before, after = taken[name], taken[name] + amount
        taken[name] = after
        # What jobs use beyond the total is made good with the first amount that is taken.
        beyond_free = max(0, after - free) - (max(0, before - free) if before else 0)
        beyond_flight = max(0, after - coming) - (max(0, before - coming) if before else 0)
        if beyond_free > beyond_flight:
            flying.append(name)
        if beyond_flight:
            new[name] = beyond_flight
        if beyond_free:
            short[name] = beyond_free
    return flying, new, short


def host_demand(case: Case) -> tuple[HostDemand, ...]:
    """Return the demand for hosts by template that goes with ``demand.order``."""
    shares = _shares(case)
    counts = sorted(Counter(case.order).items(), key=lambda pair: natural_key(pair[0]))
    return tuple(
        HostDemand(
            template=template,
            count=many,
            jobs=tuple(
                JobHosts(job=job.id, order=place, hosts=share.templates[template])
                for place, (job, share) in enumerate(shares, start=1)
                if template in share.templates
            ),
        )
        for template, many in counts
    )


def count_demand(case: Case) -> tuple[CountDemand, ...]:
    """Return the amounts that the counted jobs want beyond what is there, net and gross."""
    shares = _shares(case)
    wanted = Counter[str]()
    for _, share in shares:
        wanted.update(share.shortfall)
    return tuple(
        CountDemand(
            name=name,
            amount=max(0, gross - case.supply.in_flight_counts.get(name, 0)),
            wanted=gross,
            jobs=tuple(
                JobAmount(job=job.id, order=place, amount=share.new_counts[name])
                for place, (job, share) in enumerate(shares, start=1)
                if name in share.new_counts
            ),
        )
        for name, gross in sorted(wanted.items(), key=lambda pair: natural_key(pair[0]))
    )


def provisioning(case: Case) -> dict[str, Provisioning]:
    """Return what each counted job waits for."""
    return {
        job.id: Provisioning(
            templates=share.templates,
            countable=share.new_counts,
            in_flight=(*share.flying_hosts, *share.flying_counts),
        )
        for job, share in _shares(case)
    }


def _numbers(case: Case) -> Iterator[str]:
    """Counts per template and resource, net and gross, and the jobs that need them."""
    demand = case.result.demand
    if demand.hosts != host_demand(case):
        yield f"demand.hosts is {demand.hosts}, wanted {host_demand(case)}"
    if demand.countable != count_demand(case):
        yield f"demand.countable is {demand.countable}, wanted {count_demand(case)}"
    projects: dict[str, tuple[str, ...]] = {}
    for job, _ in _shares(case):
        if (project := job.pending.project) != "default":
            projects[project] = (*projects.get(project, ()), job.id)
    if demand.projects != projects:
        yield f"demand.projects is {demand.projects}, wanted {projects}"
    runs = demand.order
    if any(many < 1 for _, many in runs) or any(a[0] == b[0] for a, b in pairwise(runs)):
        yield f"demand.order is not in runs: {runs}"


def _provisioning(case: Case) -> Iterator[str]:
    wanted = provisioning(case)
    for pending in case.result.pending:
        said = pending.provisioning
        if pending.job not in wanted:
            if said is not None:
                yield f"job {pending.job} is not counted and has provisioning {said}"
            continue
        said, want = said or Provisioning(), wanted[pending.job]
        if (said.templates, said.countable) != (want.templates, want.countable) or (
            set(said.in_flight) != set(want.in_flight)
        ):
            yield f"provisioning of job {pending.job} is {said}, wanted {want}"


def _impossible(case: Case) -> Iterator[str]:
    said = {job.job for job in case.result.demand.impossible}
    for job in case.examined:
        if job.id in case.at_once:
            continue
        possible = possible_at_all(case.snapshot, case.outcome, case.supply, job)
        if possible and job.id in said:
            yield f"job {job.id} is called impossible and can run in an empty cluster"
        if not possible and job.id not in said and job in case.judged and job not in case.counted:
            yield f"job {job.id} cannot run even in an empty cluster and is not called impossible"


def _complete(case: Case, budget: int) -> Iterator[str]:
    candidates = [job for job in case.judged if job.id not in case.at_once]
    counted = {job.id for job in case.counted}
    if Runs(case.outcome, case.supply, budget).can_count(candidates, counted) is False:
        yield (
            f"not complete: no run of the catalog pass counts exactly {sorted(counted)} "
            f"of {[job.id for job in candidates]}"
        )


def _best_host(case: Case) -> Iterator[str]:
    """Where one new host serves all counted jobs, it is the best that does (F12)."""
    if len(case.order) != 1 or any(len(job.requirement.alternatives) > 1 for job in case.counted):
        return
    by_id = {template.id: template for template in case.supply.templates}
    chosen = case.order[0]
    for other, template in by_id.items():
        better = _merit(template) < _merit(by_id[chosen]) and case.supply.hold([other])
        if better and _all_start(case, case.with_demand([other], case.amounts)):
            yield f"one host of {other} serves all as well as one of {chosen}, and comes first"


def _merit(template: Template) -> tuple[int, bool, Decimal, tuple[tuple[int, int, str], ...]]:
    price = template.price_per_hour
    return (-template.priority, price is None, price or Decimal(0), natural_key(template.id))


def _idle(case: Case) -> Iterator[str]:
    started = [holding for _, holding in case.outcome.started]
    placed = [holding for _, holding in case.placed.started]
    wanted = reference_idle(case.snapshot, started, placed)
    if case.result.idle != wanted:
        yield f"idle is {case.result.idle}, wanted {wanted}"

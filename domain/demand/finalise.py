"""The end of a session: the demand of all counted jobs together, and why the others are not counted."""

from collections.abc import Iterable, Mapping, Sequence

from xce.domain.cluster.hosts import key_of_name
from xce.domain.demand.impossible import Judge
from xce.domain.demand.solution import Solution, Solver
from xce.domain.demand.sorting_out import Waiting, sort_out
from xce.domain.demand.supply import Supply, add_in_flight
from xce.domain.formats.session_result import (
    CountDemand,
    Demand,
    HostDemand,
    JobAmount,
    JobHosts,
    JobWhy,
    Provisioning,
    Tightness,
)
from xce.domain.formats.snapshot import OrderMode
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.placement import Placed

_NOTHING = Demand()


class Finalised:
    """What the catalog pass came to.

    Attributes:
        provisioning: what each counted job waits for, by id.
        placed: where the counted jobs are placed on what is demanded.
    """

    __slots__ = ("demand", "placed", "provisioning")

    def __init__(
        self, demand: Demand, provisioning: dict[str, Provisioning], placed: Sequence[Placed]
    ) -> None:
        self.demand = demand
        self.provisioning = provisioning
        self.placed = placed


def finalise(compiled: Compiled, waiting: Sequence[Waiting]) -> Finalised:
    """Return the demand of a session whose phase 1 is over; its state is used up."""
    if not waiting:
        return Finalised(_NOTHING, {}, ())
    listed = sort_out(compiled.snapshot, waiting)
    supply = Supply(compiled)
    base = compiled.core
    add_in_flight(base, compiled, supply)
    is_strict = compiled.snapshot.settings.order is OrderMode.STRICT

    solver = Solver(
        base,
        supply,
        listed.candidates,
        strict=is_strict,
        budget=compiled.snapshot.settings.tightness_budget,
    )
    found = solver.solve()
    judge = Judge(compiled, supply)
    impossible: list[tuple[int, str]] = []
    not_counted = listed.not_counted
    for candidate, why in found.left_out:
        if candidate.left_out is None and (never := judge.why_never(candidate.job_class)):
            impossible.append((candidate.place, never))
        else:
            not_counted.append(
                (candidate.place, why or judge.why_not(found.catalog, candidate.job_class))
            )
    not_counted.sort()
    return _write(
        compiled, waiting, supply, found,
        impossible=impossible, not_counted=not_counted, not_examined=listed.not_examined,
        base_left=base.left, first_new=base.count,
    )  # fmt: skip


def _write(
    compiled: Compiled,
    waiting: Sequence[Waiting],
    supply: Supply,
    found: Solution,
    *,
    impossible: Iterable[tuple[int, str]],
    not_counted: Iterable[tuple[int, str]],
    not_examined: Iterable[int],
    base_left: Sequence[int],
    first_new: int,
) -> Finalised:
    """Return the demand in the format of the result."""
    jobs, run, order = found.jobs, found.run, found.order
    meters = compiled.core.ground.meters.all
    real = len(compiled.core.ground.hosts.hosts)
    flying = sorted(compiled.in_flight, key=lambda host: key_of_name(host.id))
    host_jobs: dict[str, list[JobHosts]] = {}
    count_jobs: dict[str, list[JobAmount]] = {}
    wanted: dict[str, int] = {}
    amount_of: dict[str, int] = {}
    taken: dict[int, int] = {}
    provisioning: dict[str, Provisioning] = {}
    for place_in_order, (candidate, placed) in enumerate(
        zip(jobs, run.placements, strict=True), start=1
    ):
        templates: dict[str, int] = {}
        in_flight: set[int] = set()
        for place in dict.fromkeys([claim.place for claim in placed.claims]):
            if place >= first_new:
                name = order[place - first_new].template.id
                templates[name] = templates.get(name, 0) + 1
            elif place >= real:
                in_flight.add(place - real)
        countable: dict[str, int] = {}
        flying_counts: list[str] = []
        for number, amount in placed.metered.items():
            meter = meters[number]
            if meter.rule is not None or amount <= 0:
                continue
            coming = base_left[number]
            there = coming - supply.in_flight.get(number, 0)
            before = taken.get(number, 0)
            after = taken[number] = before + amount
            short = max(0, after - there) - max(0, before - there)
            new = max(0, after - coming) - max(0, before - coming)
            if before == 0 and there < 0 and amount > 0:
                short, new = after - there, max(0, after - coming)
            if short > 0:
                wanted[meter.name] = wanted.get(meter.name, 0) + short
            if short > new:
                flying_counts.append(meter.name)
            if new > 0:
                countable[meter.name] = new
                amount_of[meter.name] = amount_of.get(meter.name, 0) + new
        templates = _by_name(templates)
        countable = _by_name(countable)
        job = candidate.job.id
        for name, count in templates.items():
            host_jobs.setdefault(name, []).append(
                JobHosts.model_construct(job=job, order=place_in_order, hosts=count)
            )
        for name, amount in countable.items():
            count_jobs.setdefault(name, []).append(
                JobAmount.model_construct(job=job, order=place_in_order, amount=amount)
            )
        provisioning[job] = Provisioning.model_construct(
            templates=templates,
            countable=countable,
            in_flight=(
                *[flying[number].id for number in sorted(in_flight)],
                *sorted(flying_counts, key=key_of_name),
            ),
        )
    totals: dict[str, int] = {}
    runs: list[tuple[str, int]] = []
    for offer in order:
        name = offer.template.id
        totals[name] = totals.get(name, 0) + 1
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    demand = Demand.model_construct(
        hosts=tuple(
            HostDemand.model_construct(
                template=name, count=count, jobs=tuple(host_jobs.get(name, ()))
            )
            for name, count in _by_name(totals).items()
        ),
        order=tuple(runs),
        tight=Tightness.PROVED if found.is_tight else Tightness.BUDGET,
        countable=tuple(
            CountDemand.model_construct(
                name=name,
                amount=amount_of.get(name, 0),
                wanted=amount,
                jobs=tuple(count_jobs.get(name, ())),
            )
            for name, amount in _by_name(wanted).items()
        ),
        impossible=_whys(waiting, impossible),
        not_counted=_whys(waiting, not_counted),
        not_examined=tuple(waiting[place][0].id for place in not_examined),
    )
    return Finalised(demand, provisioning, run.placements)


def _whys(waiting: Sequence[Waiting], listed: Iterable[tuple[int, str]]) -> tuple[JobWhy, ...]:
    return tuple(
        [JobWhy.model_construct(job=waiting[place][0].id, why=why) for place, why in listed]
    )


def _by_name(amounts: Mapping[str, int]) -> dict[str, int]:
    if len(amounts) < 2:
        return dict(amounts)
    return {name: amounts[name] for name in sorted(amounts, key=key_of_name)}

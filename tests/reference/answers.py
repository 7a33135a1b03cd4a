"""A session result around a demand that a test states: all else in it is what the reference says."""

from collections.abc import Mapping, Sequence

from tests.reference.exactness import case_of, count_demand, host_demand, provisioning
from tests.reference.idle import reference_idle
from tests.reference.plain import reference_phase1
from xce.domain.formats.session_result import CountDemand, Demand, JobWhy, SessionResult
from xce.domain.formats.snapshot import Snapshot


def answer(
    snapshot: Snapshot,
    order: Sequence[tuple[str, int]],
    amounts: Mapping[str, int],
    impossible: Mapping[str, str],
    not_counted: Mapping[str, str],
) -> SessionResult:
    """Return the result of this demand. Every other waiting job is counted, or past the cap."""
    phase = reference_phase1(snapshot)
    cap = snapshot.settings.catalog_pass_cap
    in_order = [pending.job for pending in phase.pending]
    sketch = SessionResult(
        position=snapshot.position,
        allocations=phase.allocations,
        pending=phase.pending,
        demand=Demand(
            order=tuple(order),
            countable=tuple(
                CountDemand(name=name, amount=amount, wanted=amount, jobs=())
                for name, amount in amounts.items()
            ),
            impossible=tuple(
                JobWhy(job=job, why=impossible[job]) for job in in_order if job in impossible
            ),
            not_counted=tuple(
                JobWhy(job=job, why=not_counted[job]) for job in in_order if job in not_counted
            ),
        ),
    )
    past_cap = tuple(
        job.id
        for job in case_of(snapshot, sketch).outcome.on_resources[cap:]
        if job.id not in not_counted and job.id not in impossible
    )
    sketch = sketch.model_copy(
        update={"demand": sketch.demand.model_copy(update={"not_examined": past_cap})}
    )
    case = case_of(snapshot, sketch)
    parts = provisioning(case)
    counts = {count.name: count for count in count_demand(case)}
    stated = tuple(
        counts[name].model_copy(update={"amount": amount})
        if name in counts
        else CountDemand(name=name, amount=amount, wanted=amount, jobs=())
        for name, amount in sorted({**dict.fromkeys(counts, 0), **amounts}.items())
    )
    return sketch.model_copy(
        update={
            "pending": tuple(
                pending.model_copy(update={"provisioning": parts.get(pending.job)})
                for pending in phase.pending
            ),
            "demand": sketch.demand.model_copy(
                update={"hosts": host_demand(case), "countable": stated}
            ),
            "idle": reference_idle(
                snapshot,
                [holding for _, holding in case.outcome.started],
                [holding for _, holding in case.placed.started],
            ),
        }
    )

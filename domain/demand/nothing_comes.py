"""The catalog pass where nothing can come: every class is looked at once, however many jobs of it wait."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xce.domain.demand.catalog_pass import Pass
from xce.domain.demand.impossible import Impossible
from xce.domain.demand.sorting_out import OPTED_OUT, why_not_examined
from xce.domain.demand.supply import Supply
from xce.domain.demand.why_not import WhyNot
from xce.domain.formats.snapshot import OrderMode, Snapshot
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.groups import Stretch


class Told(NamedTuple):
    """Why the jobs of a stretch are not counted."""

    stretch: Stretch
    text: str
    is_impossible: bool


def told_of_all(
    compiled: Compiled, supply: Supply, never: Impossible, waiting: Sequence[Stretch]
) -> list[Told] | None:
    """Return why no job is counted; None if some may be, or if more than the class of a job decides.

    Where nothing can come, a job finds what it found in phase 1. So the first of a class answers for all, and the state
    stays as it is.
    """
    snapshot = compiled.snapshot
    candidates = [each for each in waiting if each.failure.on_resources or each.failure.is_behind]
    if supply.has_any or not _is_by_class(snapshot, candidates):
        return None
    told = [
        Told(each, why_not_examined(each.failure), is_impossible=False)
        for each in waiting
        if not (each.failure.on_resources or each.failure.is_behind)
    ]
    is_strict = snapshot.settings.order is OrderMode.STRICT
    catalog = Pass(compiled.core, supply)
    not_now = WhyNot(catalog, supply)
    blocker: str | None = None
    for each in candidates:
        job_class, first = each.group.job_class, each.places[0].job
        lacking = never.why(job_class) if first.provision else None
        if lacking is not None:
            text = lacking
        elif blocker is not None:
            text = f"behind job {blocker}"
        elif not first.provision:
            text = OPTED_OUT
        else:
            catalog.give_up(job_class)
            text = not_now.why(job_class)
        told.append(Told(each, text, is_impossible=lacking is not None))
        if is_strict and blocker is None:
            blocker = first.id
    return told


def _is_by_class(snapshot: Snapshot, candidates: Iterable[Stretch]) -> bool:
    """Return whether neither how long jobs have waited nor how many they are decides, and none would do with less."""
    jobs = 0
    for each in candidates:
        job_class = each.group.job_class
        if job_class.most > job_class.least or job_class.outside:
            return False
        jobs += each.end - each.start
    return jobs <= snapshot.settings.catalog_pass_cap and not any(
        queue.demand_threshold for queue in snapshot.queues
    )

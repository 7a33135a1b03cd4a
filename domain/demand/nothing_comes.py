"""The catalog pass where nothing can come: every class is looked at once, however many jobs of it wait."""

from collections.abc import Sequence
from typing import NamedTuple

from xce.domain.demand.catalog_pass import Pass
from xce.domain.demand.impossible import Impossible
from xce.domain.demand.sorting_out import OPTED_OUT, why_not_examined
from xce.domain.demand.supply import Supply
from xce.domain.demand.why_not import WhyNot
from xce.domain.formats.snapshot import OrderMode
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.groups import Stretch


class Told(NamedTuple):
    """Why the jobs of a stretch are not counted."""

    text: str
    is_impossible: bool = False


def told_of_all(
    compiled: Compiled, supply: Supply, never: Impossible, waiting: Sequence[Stretch]
) -> list[Told] | None:
    """Return why no job is counted, by stretch; None if some may be, or if more than the class of a job decides.

    Where nothing can come, a job finds what it found in phase 1. So the first of a class answers for all, and the state
    stays as it is.
    """
    snapshot = compiled.snapshot
    if supply.has_any or any(queue.demand_threshold for queue in snapshot.queues):
        return None
    is_strict = snapshot.settings.order is OrderMode.STRICT
    catalog: Pass | None = None
    not_now: WhyNot | None = None
    behind: Told | None = None
    candidates = 0
    told: list[Told] = []
    for group, start, end, failure, _ in waiting:
        if not (failure.on_resources or failure.is_behind):
            told.append(Told(why_not_examined(failure)))
            continue
        job_class = group.job_class
        if job_class.most > job_class.least or job_class.outside:
            return None
        candidates += end - start
        lacking = never.why(job_class) if group.is_for_sale else None
        if lacking is not None:
            told.append(Told(lacking, is_impossible=True))
        elif behind is not None:
            told.append(behind)
        elif not group.is_for_sale:
            told.append(Told(OPTED_OUT))
        else:
            if catalog is None or not_now is None:
                catalog = Pass(compiled.core, supply)
                not_now = WhyNot(catalog, supply)
            catalog.give_up(job_class)
            told.append(Told(not_now.why(job_class)))
        if is_strict and behind is None:
            behind = Told(f"behind job {group.places[start].job.id}")
    return None if candidates > snapshot.settings.catalog_pass_cap else told

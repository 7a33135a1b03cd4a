"""The catalog pass where nothing can come: every class is looked at once, however many jobs of it wait."""

from collections.abc import Sequence
from typing import NamedTuple

from xce.domain.demand.catalog_pass import Pass
from xce.domain.demand.impossible import Impossible
from xce.domain.demand.sorting_out import OPTED_OUT, why_not_examined
from xce.domain.demand.supply import Supply
from xce.domain.demand.why_not import NO_TEMPLATE, WhyNot
from xce.domain.formats.snapshot import OrderMode
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.groups import Group, Stretch


class Told(NamedTuple):
    """Why the jobs of a stretch are not counted."""

    text: str
    is_impossible: bool = False


class Now:
    """Says why jobs are not counted that could run some day, where nothing can come."""

    def __init__(self, compiled: Compiled, supply: Supply) -> None:
        self._compiled = compiled
        self._supply = supply
        self._asked: tuple[Pass, WhyNot] | None = None

    def why(self, group: Group) -> str:
        """Return why the first job of a group that failed on resources is not counted."""
        job_class = group.job_class
        if not group.is_for_sale:
            return OPTED_OUT
        if not self._supply.offers and job_class.least_amounts() is not None:
            return NO_TEMPLATE  # only hosts have a say, and there are no templates
        if self._asked is None:
            catalog = Pass(self._compiled.core, self._supply)
            self._asked = catalog, WhyNot(catalog, self._supply)
        catalog, not_now = self._asked
        catalog.give_up(job_class)
        return not_now.why(job_class)


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
    now = Now(compiled, supply)
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
        else:
            told.append(Told(now.why(group)))
        if is_strict and behind is None:
            behind = Told(f"behind job {group.places[start].job.id}")
    return None if candidates > snapshot.settings.catalog_pass_cap else told

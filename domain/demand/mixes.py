"""Mixes of new hosts in an order of their own, for jobs that do not go on all hosts of all templates as they come.

The parts of a COMPOUND go to hosts one after the other, and each takes the first that will do. So an early part
can take the very host that a later one needs; with the hosts in another order both have a place.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Final

from xce.domain.demand.offer import Offer
from xce.domain.demand.rooms import Rooms
from xce.domain.scheduling.classes import JobClass

#: Mixes of one job that are tried at most.
_MIXES_MAX: Final = 300


def order_matters(job: JobClass) -> bool:
    """Return whether the order of new hosts can decide if a job has a place on them."""
    return any(
        len(alternative.parts) > 1
        or any(part.request.job or part.placed or part.claimed for part in alternative.parts)
        for alternative in job.alternatives
    )


def small_mixes(
    job: JobClass,
    offers: Sequence[Offer],
    rooms: Rooms,
    used_of: Callable[[Sequence[Offer]], Sequence[Offer] | None],
) -> Iterator[list[Offer]]:
    """Yield the mixes of the fewest hosts, in order of preference, on which a job has a place and uses all.

    ``used_of`` returns those of some new hosts that the job takes, None if it has no place on them.
    """
    tries = _MIXES_MAX
    for hosts in range(2, job.least + 1):
        has_found = False
        for mix in product(offers, repeat=hosts):
            tries -= 1
            if tries < 0:
                return
            if not rooms.hold(mix):
                continue
            used = used_of(mix)
            if used is not None and len(used) == hosts:
                has_found = True
                yield list(mix)
        if has_found:
            return

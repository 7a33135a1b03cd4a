"""The order in which pending jobs are tried."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.formats.snapshot import PendingJob, Queue

#: Returns the places of the pending jobs in the order in which they are tried.
Picker = Callable[[Sequence[PendingJob], Sequence[Queue]], list[int]]

_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)
_WITHOUT_ID: Final = itemgetter(0, 1, 2)


def in_job_order(pending: Sequence[PendingJob], queues: Sequence[Queue]) -> list[int]:
    """Return jobs by queue priority, job priority, submit time and id (digits as numbers)."""
    priority = {queue.name: -queue.priority for queue in queues}
    keys = [
        (priority.get(job.queue, 0), -job.priority, job.submitted or _BEFORE_ALL, place)
        for place, job in enumerate(pending)
    ]
    keys.sort(key=_WITHOUT_ID)
    places = [key[3] for key in keys]
    # Ids are looked at only where all else is equal: taking names apart costs more than all the rest.
    start = 0
    for end in range(1, len(keys) + 1):
        if end < len(keys) and _WITHOUT_ID(keys[end]) == _WITHOUT_ID(keys[start]):
            continue
        if end - start > 1:
            places[start:end] = sorted(
                places[start:end], key=lambda place: key_of_name(pending[place].id)
            )
        start = end
    return places

"""Sessions of somebody who has whole snapshots, one after the other: only what differs from the one before is worked on."""

from collections.abc import Iterable

from xce.domain.formats.delta import difference
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.plans import Allocator


class Series:
    """Gives for each snapshot the bytes that ``run_session`` gives on it."""

    def __init__(self) -> None:
        self._scheduler: Scheduler | None = None
        self._allocators: tuple[Allocator, ...] = ()

    def run(
        self, snapshot: Snapshot, *, trace: bool = False, allocators: Iterable[Allocator] = ()
    ) -> tuple[Snapshot, SessionResult]:
        """Return the snapshot and the result of its session; the snapshot shares all that is as before with the last one.

        The snapshot contradicts itself nowhere. After an error everything is made anew.

        Raises:
            AllocatorError, InputError: see ``run_session``.
        """
        given = tuple(allocators)
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is None or given != self._allocators:
            scheduler = Scheduler(snapshot, allocators=given)
        else:
            scheduler.advance(difference(scheduler.snapshot, snapshot))
        result = scheduler.run(trace=trace)
        self._scheduler, self._allocators = scheduler, given
        return scheduler.snapshot, result

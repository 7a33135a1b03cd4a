"""How many slots the waiting jobs need at least, followed from one session to the next without looking at all of them."""

from collections.abc import Sequence

from xce.domain.formats.snapshot import PendingJob


class Needed:
    """Follows the waiting jobs of sessions: those that start go, new ones come at the end."""

    def __init__(self) -> None:
        self._pending: Sequence[PendingJob] = ()
        self._started: set[str] = set()
        self._tasks: dict[str, int] = {}
        self.tasks = 0

    def see(self, pending: Sequence[PendingJob]) -> None:
        """See the jobs that wait at the next session; of those that started none is there, unless it came again."""
        if pending is self._pending and not self._started:
            return
        staying = len(self._pending) - len(self._started)
        if not self._begins_with_those_that_stayed(pending, staying):
            staying = 0
            self.tasks = 0
            self._tasks.clear()
        for job in pending[staying:]:
            self._tasks[job.id] = job.tasks.min
            self.tasks += job.tasks.min
        self._pending, self._started = pending, set()

    def start(self, jobs: set[str]) -> None:
        """Some of those that were seen start."""
        self._started = jobs
        for job in jobs:
            self.tasks -= self._tasks.pop(job)

    def _begins_with_those_that_stayed(self, pending: Sequence[PendingJob], staying: int) -> bool:
        """Return whether all that were seen and did not start are there, in front; then their last one is in its place."""
        if not 0 < staying <= len(pending):
            return False
        last = next(job for job in reversed(self._pending) if job.id not in self._started)
        return pending[staying - 1] is last

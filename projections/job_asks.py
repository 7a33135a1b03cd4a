"""Which requests were made for a job: an index of the newest asks, so that nobody has to look through the log for it."""

from dataclasses import dataclass
from typing import Final

from xce.domain.events.ids import name_of
from xce.domain.provisioning.request import Request
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State

#: Pairs of a request and a job that are kept, some 250 bytes each. Older requests are dropped whole; the audit read models have them.
PAIRS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class AskOfJobs:
    """A request and the jobs that it serves."""

    position: int
    jobs: tuple[str, ...]


@dataclass(slots=True)
class _Kept:
    asks: dict[str, AskOfJobs]
    dropped: int


_KEEPER: Final = Keeper(_Kept)


class JobAsks(Projection):
    """The newest requests by job, at the position reached."""

    def __init__(self, pairs_max: int = PAIRS_MAX) -> None:
        super().__init__()
        self._pairs_max = pairs_max
        #: By request, oldest first.
        self._asks: dict[str, AskOfJobs] = {}
        self._of_job: dict[str, list[str]] = {}
        self._pairs = 0
        self._dropped = 0
        self._on(Request.Intended, self._intended)

    # -------------------------------------------------------------------- views
    def of(self, job: str) -> tuple[str, ...]:
        """Return the requests that were made for a job, oldest first."""
        return tuple(self._of_job.get(job, ()))

    @property
    def dropped(self) -> int:
        """Position of the last request that is not kept any more; 0: all are."""
        return self._dropped

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "asks": dict(self._asks),
            "of job": {job: tuple(names) for job, names in self._of_job.items()},
            "dropped": {"position": self._dropped},
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(_Kept(self._asks, self._dropped))

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        for name, ask in parts.asks.items():
            self._add(name, ask)
        self._dropped = parts.dropped

    # -------------------------------------------------------------------- folds
    def _intended(self, event: Request.Intended, position: int) -> None:
        if not event.jobs:
            return
        self._add(name_of(event.originator_id), AskOfJobs(position, event.jobs))
        while self._pairs > self._pairs_max and len(self._asks) > 1:
            self._drop(next(iter(self._asks)))

    def _add(self, name: str, ask: AskOfJobs) -> None:
        self._asks[name] = ask
        for job in dict.fromkeys(ask.jobs):
            self._of_job.setdefault(job, []).append(name)
            self._pairs += 1

    def _drop(self, name: str) -> None:
        ask = self._asks.pop(name)
        for job in dict.fromkeys(ask.jobs):
            names = self._of_job[job]
            names.remove(name)
            self._pairs -= 1
            if not names:
                del self._of_job[job]
        self._dropped = ask.position

"""Which waiting jobs the catalog pass looks at, and why the others are not counted."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from xce.domain.formats.session_result import ReasonKind
from xce.domain.formats.snapshot import PendingJob, Snapshot
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.explain import Failure, join

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
#: Said of a job that never counts as demand.
OPTED_OUT: Final = "opted out"

#: A job that waits, its class, and why; in job order.
Waiting = tuple[PendingJob, JobClass, Failure]


class Candidate(NamedTuple):
    """A job that failed on resources.

    Attributes:
        place: among all waiting jobs, in job order.
        left_out: why it is not counted whatever the catalog has; None: it is tried.
        is_behind: whether only the order held it back in phase 1.
    """

    place: int
    job: PendingJob
    job_class: JobClass
    left_out: str | None
    is_behind: bool


class Sorted(NamedTuple):
    """All waiting jobs: those to look at, those that are not counted, those past the cap."""

    candidates: list[Candidate]
    not_counted: list[tuple[int, str]]
    not_examined: list[int]


def sort_out(snapshot: Snapshot, waiting: Sequence[Waiting]) -> Sorted:
    """Return the candidates, at most as many as the cap allows, and all others with the reason."""
    cap = snapshot.settings.catalog_pass_cap
    below = _below_threshold(snapshot, waiting)
    found = Sorted([], [], [])
    for place, (job, job_class, failure) in enumerate(waiting):
        if not (failure.on_resources or failure.is_behind):
            found.not_counted.append((place, why_not_examined(failure)))
        elif len(found.candidates) >= cap:
            found.not_examined.append(place)
        else:
            left_out = None
            if not job.provision:
                left_out = OPTED_OUT
            elif job.queue in below:
                left_out = f"below the demand threshold of queue {job.queue}"
            found.candidates.append(Candidate(place, job, job_class, left_out, failure.is_behind))
    return found


def why_not_examined(failure: Failure) -> str:
    """Return what is said of a job that failed on something else than resources."""
    first = join(failure.early)[0]
    match first.kind:
        case ReasonKind.UNIT_UNKNOWN:
            return f"unit unknown: {first.name}"
        case ReasonKind.LIMIT:
            return f"limit {first.name}"
        case kind:
            return kind.value


def _below_threshold(snapshot: Snapshot, waiting: Sequence[Waiting]) -> set[str]:
    """Return the queues whose jobs do not count yet: no pair of jobs and minutes holds."""
    pairs = {
        queue.name: queue.demand_threshold for queue in snapshot.queues if queue.demand_threshold
    }
    if not pairs:
        return set()
    waited: dict[str, list[timedelta]] = {name: [] for name in pairs}
    for job, _, failure in waiting:
        if job.queue in pairs and (failure.on_resources or failure.is_behind):
            waited[job.queue].append(snapshot.now - (job.submitted or _LONG_AGO))
    return {
        name
        for name, times in waited.items()
        if not any(
            sum(1 for time in times if time >= timedelta(minutes=minutes)) >= jobs
            for jobs, minutes in pairs[name]
        )
    }

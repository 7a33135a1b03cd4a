"""What the waiting jobs need, followed from session to session, is what a count of all of them gives."""

from hypothesis import given
from hypothesis import strategies as st

from xce.domain.formats.snapshot import PendingJob, Tasks
from xce.replay.needed import Needed


def job(number: int) -> PendingJob:
    """Return a job that waits; its tasks follow from its number."""
    return PendingJob(id=str(number), resreq="", tasks=Tasks(min=1 + number % 5))


def total(jobs: list[PendingJob]) -> int:
    """Return what jobs need."""
    return sum(each.tasks.min for each in jobs)


def drawn_from(data: st.DataObject, names: list[str]) -> set[str]:
    """Return some of the names."""
    return data.draw(st.sets(st.sampled_from(names))) if names else set()


@given(st.data())
def test_it_follows_jobs_that_come_start_are_withdrawn_and_come_back(data: st.DataObject) -> None:
    needed, waiting, number = Needed(), list[PendingJob](), 0
    for _ in range(data.draw(st.integers(1, 8))):
        for _ in range(data.draw(st.integers(0, 3))):
            number += 1
            waiting.append(job(number))
        withdrawn = drawn_from(data, [each.id for each in waiting])
        waiting = [each for each in waiting if each.id not in withdrawn]

        needed.see(tuple(waiting))
        assert needed.tasks == total(waiting)

        started = drawn_from(data, [each.id for each in waiting])
        needed.start(started)
        assert needed.tasks == total([each for each in waiting if each.id not in started])
        waiting = [each for each in waiting if each.id not in started]
        waiting += [job(int(name)) for name in drawn_from(data, sorted(started))]

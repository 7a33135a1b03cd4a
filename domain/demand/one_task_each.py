"""Where simple jobs are, without an object for each: tens of thousands of them wait at once."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.placement import Placed


class OneTaskEach(Sequence[Placed]):
    """The placements of jobs that have one task on each of their hosts; made when one is asked for.

    Attributes:
        jobs: the class of each job.
        place_of: by number of the job, the place of its first host.
        more_of: the places of its others, in host order, where there are any.
    """

    __slots__ = ("_metered", "jobs", "more_of", "place_of")

    def __init__(
        self,
        jobs: Sequence[JobClass],
        place_of: Sequence[int],
        more_of: Mapping[int, Sequence[int]],
    ) -> None:
        self.jobs = jobs
        self.place_of = place_of
        self.more_of = more_of
        #: What a job of a class takes of meters.
        self._metered: dict[JobClass, dict[int, int]] = {
            job: {
                meter: a_task * job.least + once
                for meter, a_task, once in job.alternatives[0].parts[0].fixed
            }
            for job in dict.fromkeys(jobs)
        }

    @classmethod
    def of(cls, placements: Sequence[Placed]) -> "OneTaskEach":
        """Return placements of simple jobs in this form."""
        if isinstance(placements, cls):
            return placements
        more_of: dict[int, Sequence[int]] = {}
        place_of: list[int] = []
        for number, placed in enumerate(placements):
            first, *others = (claim.place for claim in placed.claims)
            place_of.append(first)
            if others:
                more_of[number] = others
        return cls([placed.job for placed in placements], place_of, more_of)

    @overload
    def __getitem__(self, index: int) -> Placed: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Placed]: ...
    def __getitem__(self, index: int | slice) -> Placed | Sequence[Placed]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self.jobs)))]
        number = range(len(self.jobs))[index]
        job = self.jobs[number]
        return Placed.of_one_task_each(job, self.places(number), self._metered[job])

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Placed]:
        return (self[number] for number in range(len(self.jobs)))

    def places(self, number: int) -> tuple[int, ...]:
        """Return the places of a job's hosts, in host order."""
        return (self.place_of[number], *self.more_of.get(number, ()))

    def metered(self, job: JobClass) -> Mapping[int, int]:
        """Return what a job of a class takes of meters."""
        return self._metered[job]

    def taken(self) -> dict[int, int]:
        """Return what all jobs take of meters."""
        taken: dict[int, int] = {}
        if any(self._metered.values()):
            for job, count in Counter(self.jobs).items():
                for meter, amount in self._metered[job].items():
                    taken[meter] = taken.get(meter, 0) + amount * count
        return taken

    def moved(self, moved: Mapping[int, Sequence[int]]) -> "OneTaskEach":
        """Return the same with other places for some jobs, those in host order."""
        made = OneTaskEach.__new__(OneTaskEach)
        made.jobs, made._metered = self.jobs, self._metered
        place_of, more_of = [*self.place_of], {**self.more_of}
        for number, places in moved.items():
            place_of[number] = places[0]
            if len(places) > 1:
                more_of[number] = places[1:]
        made.place_of, made.more_of = place_of, more_of
        return made

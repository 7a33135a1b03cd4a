"""Rounds of the policy without the names of users and jobs, and without texts that somebody wrote."""

from collections.abc import Callable, Iterable, Iterator

from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.formats.session_result import Demand, Idle, JobWhy

Rename = Callable[[str], str]


def jobs_in(demand: Demand) -> Iterator[str]:
    """Yield the jobs that a demand names."""
    for host in demand.hosts:
        yield from (one.job for one in host.jobs)
    for count in demand.countable:
        yield from (one.job for one in count.jobs)
    yield from (one.job for one in (*demand.impossible, *demand.not_counted))
    yield from demand.not_examined
    for jobs in demand.projects.values():
        yield from jobs


def renamed_demand(demand: Demand, job: Rename) -> Demand:
    """Return a demand with other names of jobs."""
    return demand.model_copy(
        update={
            "hosts": tuple(
                host.model_copy(
                    update={
                        "jobs": tuple(
                            one.model_copy(update={"job": job(one.job)}) for one in host.jobs
                        )
                    }
                )
                for host in demand.hosts
            ),
            "countable": tuple(
                count.model_copy(
                    update={
                        "jobs": tuple(
                            one.model_copy(update={"job": job(one.job)}) for one in count.jobs
                        )
                    }
                )
                for count in demand.countable
            ),
            "impossible": tuple(_without_why(demand.impossible, job)),
            "not_counted": tuple(_without_why(demand.not_counted, job)),
            "not_examined": tuple(map(job, demand.not_examined)),
            "projects": {
                project: tuple(map(job, jobs)) for project, jobs in demand.projects.items()
            },
        }
    )


def _without_why(lines: Iterable[JobWhy], job: Rename) -> Iterator[JobWhy]:
    return (JobWhy(job=job(line.job), why="") for line in lines)


def renamed_input(
    inputs: PolicyInput, job: Rename, said: tuple[Demand, Idle] | None
) -> PolicyInput:
    """Return the input of a round with other names of jobs; ``said``: by its session, with other names already."""
    demand, idle = (renamed_demand(inputs.demand, job), inputs.idle) if said is None else said
    return inputs.model_copy(
        update={
            "demand": demand,
            "idle": idle,
            "pauses": tuple(one.model_copy(update={"why": ""}) for one in inputs.pauses),
            "failures": tuple(one.model_copy(update={"why": ""}) for one in inputs.failures),
        }
    )


def without_words(decisions: Iterable[Decision]) -> list[Decision]:
    """Return what is decided, without reasons and jobs."""
    return [one.model_copy(update={"reason": "", "jobs": ()}) for one in decisions]

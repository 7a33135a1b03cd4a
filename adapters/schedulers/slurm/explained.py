"""Whether our own limits explain why Slurm lets a job wait; where they do, the job waits for a limit, and not because it is held."""

from collections.abc import Iterable
from typing import Final

from xce.adapters.schedulers.slurm.facts import JobFact
from xce.domain.cluster.limits import HOSTS, JOBS, Rule
from xce.domain.formats.snapshot import Limit, RunningJob

_SLOTS: Final = "slots"


class Explained:
    """The limits of one view, and what running jobs have of them."""

    def __init__(self, limits: Iterable[Limit], running: Iterable[RunningJob]) -> None:
        self._rules = [
            Rule(
                one.name, one.resource, one.amount,
                users=one.users, projects=one.projects, queues=one.queues, per=one.per,
            )
            for one in limits
        ]  # fmt: skip
        self._used: dict[tuple[int, tuple[str, ...]], int] = {}
        for job in running:
            for number, rule in enumerate(self._rules):
                for key in rule.keys(job.user, job.project, job.queue, None, ()):
                    place = (number, key)
                    self._used[place] = self._used.get(place, 0) + _has(job, rule.resource)

    def __call__(self, job: JobFact, queue: str) -> bool:
        """Return whether a limit of ours stops the job already now."""
        user, project = job.user or "nobody", job.account or "default"
        for number, rule in enumerate(self._rules):
            need = _wants(job, rule.resource)
            for key in rule.keys(user, project, queue, None, ()) if need else ():
                if self._used.get((number, key), 0) + need > rule.amount:
                    return True
        return False


def _has(job: RunningJob, resource: str) -> int:
    if resource == JOBS:
        return 1
    if resource == HOSTS:
        return len(job.hosts)
    return job.shared.get(resource, 0) + sum(use.uses.get(resource, 0) for use in job.hosts)


def _wants(job: JobFact, resource: str) -> int:
    """Return what it takes at least; 0 for what is not looked at here: then Slurm's word counts."""
    if resource == JOBS:
        return 1
    if resource == HOSTS:
        return job.min_nodes
    return job.cpus if resource == _SLOTS else 0

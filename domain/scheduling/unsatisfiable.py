"""What failed once in a session, for all equal jobs."""

from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.explain import Failure


class Unsatisfiable:
    """The first failure of each class of jobs.

    During a session amounts only shrink, so a class that failed is not tried again. What is kept for a group
    may shrink too, which sets something free: classes outside a guaranteed group are tried each time, and
    still have the reasons of their first failure.
    """

    def __init__(self) -> None:
        self._failures: dict[JobClass, Failure] = {}

    def known(self, job: JobClass) -> Failure | None:
        """Return the failure of a class that need not be tried again, None for one that must be tried."""
        return None if job.outside else self._failures.get(job)

    def first(self, job: JobClass, failure: Failure) -> Failure:
        """Record a failure and return the first one of the class."""
        return self._failures.setdefault(job, failure)

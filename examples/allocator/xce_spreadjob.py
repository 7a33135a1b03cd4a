"""An allocator that spreads the tasks of a job evenly over as many hosts as it can.

The built-in ``parjob`` packs: 4 tasks go as [4], then [3, 1], then [2, 2] and so on. ``spreadjob`` tries
[1, 1, 1, 1] first, then [2, 1, 1], [2, 2] and at last [4]: a host that fails takes as few tasks with it as
can be. All else, which hosts match, what is free, limits, rollback and reasons, is the framework's.
"""

from collections.abc import Iterator

from xce import Allocator, ListedPlans
from xce.domain.cluster.state import State
from xce.domain.scheduling.attempt import Attempt
from xce.domain.scheduling.classes import Part


def accepts(part: Part, tasks: int) -> bool:
    """Return whether there is something to spread; where ``span`` says how to split, that is left to parjob."""
    span = part.request.span
    return tasks > 1 and not (span.one_host or span.one_task_a_host or span.ptile)


def plans(core: State, attempt: Attempt) -> ListedPlans | None:
    """Return even splits, over the most hosts first."""
    assert attempt.part is not None, "the framework checked it"
    hosts = len(core.view(attempt.part.scope).hosts)
    return ListedPlans(even_splits(attempt.tasks, min(attempt.tasks, hosts))) if hosts else None


def even_splits(tasks: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the even splits of tasks over ``most`` hosts, one fewer, down to one."""
    for hosts in range(most, 0, -1):
        each, more = divmod(tasks, hosts)
        yield (each + 1,) * more + (each,) * (hosts - more)


SPREADJOB = Allocator("spreadjob", plans, accepts=accepts)

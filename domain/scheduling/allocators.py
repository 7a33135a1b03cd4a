"""Allocators from other packages: which one a primary request goes to, and what they are held to.

A job names the allocator that it wants. Each of its primary requests that this one accepts goes to it, all
others to the built-in ones: ``seqjob`` for one task, ``parjob`` for several. Who finds the installed
allocators is the shell's business; a session gets them handed in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from xce.domain.cluster.state import State
from xce.domain.errors import AllocatorError
from xce.domain.scheduling.attempt import Attempt
from xce.domain.scheduling.classes import Part
from xce.domain.scheduling.plans import PARJOB, PLANS_MAX, SEQJOB, Allocator, Plan, Plans

#: Allocators by name.
Allocators = Mapping[str, Allocator]

#: Only the built-in ones, which no job names.
NONE_INSTALLED: Final[Allocators] = MappingProxyType({})

#: Names that no other allocator can have.
BUILT_IN: Final = frozenset({SEQJOB.name, PARJOB.name})


def chosen(part: Part, tasks: int) -> Allocator:
    """Return the allocator that places so many tasks of a primary request."""
    wanted = part.allocator
    if wanted is not None and (wanted.accepts is None or wanted.accepts(part, tasks)):
        return wanted
    return SEQJOB if tasks == 1 else PARJOB


def by_name(allocators: Iterable[Allocator]) -> Allocators:
    """Return allocators by name, their plans checked.

    Raises:
        AllocatorError: two have the same name, or one has the name of a built-in one.
    """
    named: dict[str, Allocator] = {}
    for allocator in allocators:
        if allocator.name in BUILT_IN:
            raise AllocatorError(allocator.name, "has the name of a built-in one")
        if allocator.name in named:
            raise AllocatorError(allocator.name, "is there twice")
        named[allocator.name] = _checked(allocator)
    return MappingProxyType(named) if named else NONE_INSTALLED


def unknown(name: str, allocators: Allocators) -> str | None:
    """Return what is wrong with the name of an allocator at a job, None if it is known."""
    if name in allocators:
        return None
    if name in BUILT_IN:
        return f"allocator {name!r} is built in and chosen by the number of tasks; leave it out"
    return f"no allocator {name!r} is installed"


def _checked(allocator: Allocator) -> Allocator:
    make = allocator.plans

    def plans(core: State, attempt: Attempt) -> Plans | None:
        made = make(core, attempt)
        return None if made is None else _CheckedPlans(allocator.name, made, attempt.tasks)

    return replace(allocator, plans=plans)


class _CheckedPlans:
    """The plans of an allocator that is not ours: each splits all tasks, and there are not too many."""

    def __init__(self, name: str, plans: Plans, tasks: int) -> None:
        self._name = name
        self._plans = plans
        self._tasks = tasks
        self._left = PLANS_MAX

    def next(self, failed_at: int | None) -> Plan | None:
        """Return the next plan.

        Raises:
            AllocatorError: it does not split the tasks.
        """
        self._left -= 1
        plan = None if self._left < 0 else self._plans.next(failed_at)
        if plan is not None and (sum(plan) != self._tasks or min(plan) < 1):
            wanted = f"wanted buckets of 1 or more that add up to {self._tasks}"
            raise AllocatorError(self._name, f"made the plan {list(plan)}; {wanted}")
        return plan

    def close(self) -> None:
        """Close the generator."""
        self._plans.close()

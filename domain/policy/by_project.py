"""Things of projects, found by a budget without a look at those of all others: a thousand projects with a budget each are common."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from xce.domain.formats.policy import Budget

T = TypeVar("T")

#: Provider, template (None: units) and project (None: several, or none).
Place = tuple[str, str | None, str | None]


class ByProject(Generic[T]):
    """Things by the project that pays for each."""

    def __init__(self, things: Iterable[T], place: Callable[[T], Place]) -> None:
        """Sort them; ``place`` says where one counts."""
        self._all: list[tuple[T, Place]] = []
        self._of: dict[str | None, list[tuple[T, Place]]] = {}
        for thing in things:
            where = place(thing)
            self._all.append((thing, where))
            self._of.setdefault(where[2], []).append((thing, where))

    def covered(self, budget: Budget) -> Iterator[T]:
        """Yield what a budget covers; each once."""
        if not budget.projects:
            found: Iterable[tuple[T, Place]] = self._all
        else:
            found = (
                one for name in dict.fromkeys(budget.projects) for one in self._of.get(name, ())
            )
        return (thing for thing, where in found if budget.covers(*where))

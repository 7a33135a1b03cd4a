"""The difference between two moments of a log: what changed, from what to what, and the events in between by kind."""

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeGuard

from xce.domain.errors import NotFoundError
from xce.domain.formats.base import path_of
from xce.projections.document import Document
from xce.replay.time_travel import Moment


class Absent(Enum):
    """Stands for what is not there at all, which is not null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs.

    Attributes:
        path: where in the document: ``("totals", "lic_spice", "borrowed")``.
        before: JSON; ABSENT: it was not there.
        after: JSON; ABSENT: it is not there any more.
    """

    path: tuple[str, ...]
    before: Any
    after: Any

    @property
    def what(self) -> str:
        """The path as one text."""
        return path_of(self.path)


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two moments.

    Attributes:
        events: how many of each stored name lie behind the first moment, up to the second.
    """

    before: Moment
    after: Moment
    events: Mapping[str, int]

    def changes(self) -> Iterator[Change]:
        """Yield what changed: in the projections, then in the aggregates in the order of their ids. There may be very many."""
        yield from changes_of(self.before.views(), self.after.views())
        for name in sorted(self.after.changed_since(self.before)):
            yield from self._changes_of_aggregate(name)

    def _changes_of_aggregate(self, name: str) -> Iterator[Change]:
        old, new = self.before.aggregate(name), self.after.aggregate(name)
        if old == new:
            return
        assert new is not None, "an aggregate never goes away"
        path = ("aggregates", name)
        if old is None:
            yield Change(path, ABSENT, json.loads(new))
        else:
            yield from changes_of(json.loads(old), json.loads(new), path)


def difference(before: Moment, after: Moment) -> Difference:
    """Return what changed from one moment to another one of the same log that is not earlier.

    Raises:
        NotFoundError: ``after`` is the earlier one.
    """
    if after.head.position < before.head.position:
        raise NotFoundError(
            f"position {after.head.position} is before {before.head.position}; wanted the earlier one first"
        )
    events = {
        name: count - before.events.get(name, 0)
        for name, count in sorted(after.events.items())
        if count > before.events.get(name, 0)
    }
    return Difference(before, after, events)


def changes_of(before: Document, after: Document, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield where two documents differ: objects key by key, anything else as a whole."""
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key, ABSENT), after.get(key, ABSENT)
        place = (*path, key)
        if _is_object(old) and _is_object(new):
            yield from changes_of(old, new, place)
        elif not _same(old, new):
            yield Change(place, old, new)


def _is_object(value: Any) -> TypeGuard[Document]:
    return isinstance(value, dict)


def _same(old: object, new: object) -> bool:
    """1, 1.0 and true are three things in JSON."""
    if old is ABSENT or new is ABSENT:
        return old is new
    return old == new and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def patched(document: Document, changes: Iterable[Change]) -> Document:
    """Return a document after changes; applied to the first moment they give the second."""
    result = deepcopy(document)
    for change in changes:
        *way, last = change.path
        place = result
        for step in way:
            place = place[step]
        if change.after is ABSENT:
            del place[last]
        else:
            place[last] = deepcopy(change.after)
    return result

"""Requirements made ready for placing: amounts in base units, sorted by what they are taken once for.

A requirement is read once for each text and setting of units and remembered, also between sessions: reading
is pure, so a memory of it cannot be seen from outside.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.requirement import Compound, Per, Primary, Requirement, Span
from xce.domain.cluster.resreq import parse
from xce.domain.cluster.selection import SelectionTypeError, matches
from xce.domain.cluster.units import SLOTS, UnitSettings, need, unit_problems, unknown_units
from xce.domain.errors import InputError
from xce.domain.formats.snapshot import MemoryUnit

#: Name and amount, each amount above 0.
Amounts = tuple[tuple[str, int], ...]

#: A place in ``order[...]``: 0 for a number, 1 for a text, then the value.
SortKey = tuple[int, Fraction, str]

_REMEMBERED_TEXTS: Final = 32_768
_REMEMBERED_SETTINGS: Final = 16
_REMEMBERED_KINDS: Final = 50_000
_REMEMBERED_BUCKETS: Final = 4_096
_NUMBER_OF_NO_TEXT: Final = Fraction(0)


class Selector:
    """Which hosts a request takes, and in which order: ``select``, ``same`` and ``order``.

    Compared by identity; a reader makes one for equal sections.
    """

    __slots__ = ("_matching", "_units", "is_plain", "order", "same", "select")

    def __init__(self, primary: Primary, units: UnitSettings) -> None:
        self.select = primary.select
        self.same = primary.same
        self.order = primary.order
        self.is_plain = primary.select is None and not primary.same and not primary.order
        self._units = units
        self._matching: dict[HostKind, bool] = {}

    def matches(self, kind: HostKind) -> bool:
        """Return whether ``select`` holds on a host of this kind.

        Raises:
            SelectionTypeError: two kinds of values were compared.
        """
        if self.select is None:
            return True
        known = self._matching.get(kind)
        if known is None:
            if len(self._matching) >= _REMEMBERED_KINDS:
                self._matching.clear()
            known = matches(self.select, kind.attributes, kind.totals, self._units)
            self._matching[kind] = known
        return known

    def same_value(self, kind: HostKind) -> tuple[object, ...] | None:
        """Return the values of ``same`` on a host of this kind, None where it lacks one."""
        values: list[object] = []
        for name in self.same:
            value = kind.value(name)
            if value is None:
                return None
            values.append((value.__class__ in (str, bool) and value.__class__, value))
        return tuple(values)

    def in_order(self, hosts: list[int], kinds: list[HostKind]) -> list[int]:
        """Return hosts as ``order[...]`` sorts them."""
        for key in reversed(self.order):
            valued: list[tuple[SortKey, int]] = []
            without: list[int] = []
            for host in hosts:
                value = kinds[host].value(key.name)
                if value is None:
                    without.append(host)
                elif isinstance(value, str):
                    valued.append(((1, _NUMBER_OF_NO_TEXT, value), host))
                else:
                    valued.append(((0, Fraction(value), ""), host))
            valued.sort(key=lambda pair: pair[0], reverse=key.descending)
            hosts = [host for _, host in valued] + without
        return hosts


class Request:
    """One primary request, ready to be placed; compared by identity.

    Attributes:
        selector: which hosts it takes, in which order.
        task, host, job: host consumables taken for each task, once a host, and on the first host.
        shared_task, shared_host, shared_job: the same of shared resources.
        tasks: its own task count as a part of a COMPOUND; None: the job's.
    """

    __slots__ = (
        "_buckets", "_rooms", "exclusive", "host", "job", "selector", "shared_host", "shared_job", "shared_task", "span",
        "task", "tasks",
    )  # fmt: skip

    def __init__(
        self, primary: Primary, tasks: int | None, selector: Selector, units: UnitSettings
    ) -> None:
        amounts: dict[tuple[bool, Per], list[tuple[str, int]]] = {}
        for usage in primary.rusage:
            amount = need(usage.name, usage.amount, units)
            if amount > 0:
                row = amounts.setdefault((usage.name in units.shared, usage.per), [])
                row.append((usage.name, amount))
        if all(usage.name != SLOTS for usage in primary.rusage):
            amounts.setdefault((False, Per.TASK), []).insert(0, (SLOTS, 1))
        self.task: Amounts = tuple(amounts.get((False, Per.TASK), ()))
        self.host: Amounts = tuple(amounts.get((False, Per.HOST), ()))
        self.job: Amounts = tuple(amounts.get((False, Per.JOB), ()))
        self.shared_task: Amounts = tuple(amounts.get((True, Per.TASK), ()))
        self.shared_host: Amounts = tuple(amounts.get((True, Per.HOST), ()))
        self.shared_job: Amounts = tuple(amounts.get((True, Per.JOB), ()))
        self.selector = selector
        self.span: Span = primary.span
        self.exclusive = primary.exclusive
        self.tasks = tasks
        self._buckets: dict[int, Amounts] = {}
        self._rooms: dict[HostKind, int | None] = {}

    def bucket(self, tasks: int, *, first: bool) -> Amounts:
        """Return what a bucket of so many tasks takes of its host; ``first``: the first of its plan."""
        key = tasks if first else -tasks
        known = self._buckets.get(key)
        if known is None:
            amounts: dict[str, int] = {name: amount * tasks for name, amount in self.task}
            for name, amount in self.host:
                amounts[name] = amounts.get(name, 0) + amount
            if first:
                for name, amount in self.job:
                    amounts[name] = amounts.get(name, 0) + amount
            if len(self._buckets) >= _REMEMBERED_BUCKETS:
                self._buckets.clear()
            known = self._buckets[key] = tuple(
                sorted(amounts.items(), key=lambda item: key_of_name(item[0]))
            )
        return known

    def room_on(self, kind: HostKind) -> int | None:
        """Return how many tasks an empty host of a kind takes as one bucket, limits aside; None: any number."""
        known = self._rooms.get(kind, -1)
        if known == -1:
            if len(self._rooms) >= _REMEMBERED_KINDS:
                self._rooms.clear()
            known = self._rooms[kind] = self._room_on(kind)
        return known

    def _room_on(self, kind: HostKind) -> int | None:
        selector, totals, once = self.selector, kind.totals, dict(self.host)
        if not selector.matches(kind) or (selector.same and selector.same_value(kind) is None):
            return 0
        if any(totals.get(name, 0) < amount for name, amount in self.host):
            return 0
        return min(
            (
                max(0, totals.get(name, 0) - once.get(name, 0)) // amount
                for name, amount in self.task
            ),
            default=None,
        )

    def largest_bucket(self, tasks: int) -> int:
        """Return the size of the largest bucket that a plan for so many tasks can have."""
        if self.span.one_task_a_host:
            return 1
        return tasks if self.span.ptile is None else min(self.span.ptile, tasks)

    def fewest_hosts(self, tasks: int) -> int:
        """Return the fewest buckets that a plan for so many tasks can have."""
        if self.span.one_task_a_host:
            return tasks
        return 1 if self.span.ptile is None else -(-tasks // self.span.ptile)


class Wanted:
    """A requirement ready to be placed; compared by identity, one for equal requirements.

    Attributes:
        alternatives: the parts of each; none when a unit is not known.
        exclusive: for each alternative, whether any part of it asks for whole hosts.
        unknown: resources with a bare number whose unit could not be read.
        takes_shared: whether any part of it takes a shared resource.
    """

    __slots__ = (
        "alternatives",
        "compounds",
        "exclusive",
        "has_selection",
        "takes_shared",
        "unknown",
    )

    def __init__(
        self,
        requirement: Requirement,
        units: UnitSettings,
        selector_of: Callable[[Primary], Selector],
    ) -> None:
        self.unknown = unknown_units(requirement, units)
        self.alternatives: tuple[tuple[Request, ...], ...] = ()
        self.exclusive: tuple[bool, ...] = ()
        self.has_selection = False
        self.takes_shared = False
        #: Total task count of every COMPOUND among the alternatives.
        self.compounds: tuple[int, ...] = tuple(
            sum(part.tasks or 1 for part in alternative.parts)
            for alternative in requirement.alternatives
            if isinstance(alternative, Compound)
        )
        if self.unknown:
            return
        alternatives: list[tuple[Request, ...]] = []
        for alternative in requirement.alternatives:
            if isinstance(alternative, Compound):
                parts = [
                    Request(part, part.tasks or 1, selector_of(part), units)
                    for part in alternative.parts
                ]
            else:
                parts = [Request(alternative, None, selector_of(alternative), units)]
            alternatives.append(tuple(parts))
        self.alternatives = tuple(alternatives)
        self.has_selection = any(
            part.selector.select is not None for parts in self.alternatives for part in parts
        )
        self.takes_shared = any(
            part.shared_task or part.shared_host or part.shared_job
            for parts in self.alternatives
            for part in parts
        )
        self.exclusive = tuple(any(part.exclusive for part in parts) for parts in self.alternatives)

    def check_kinds(self, kinds: Iterable[HostKind]) -> None:
        """Compare every selection with every kind, so that a wrong type is found whatever is tried later.

        Raises:
            SelectionTypeError: two kinds of values were compared.
        """
        for parts in self.alternatives:
            for part in parts:
                if part.selector.select is not None:
                    for kind in kinds:
                        part.selector.matches(kind)


class Reader:
    """Reads requirements under one setting of units, and remembers them."""

    __slots__ = ("_by_requirement", "_by_text", "_selectors", "_units")

    def __init__(self, units: UnitSettings) -> None:
        self._units = units
        self._by_text: dict[str, Wanted] = {}
        self._by_requirement: dict[Requirement, Wanted] = {}
        self._selectors: dict[object, Selector] = {}

    def read(self, text: str) -> Wanted:
        """Return what a text asks for.

        Raises:
            InputError: the text cannot be read; the problems have columns and no path.
        """
        known = self._by_text.get(text)
        if known is None:
            requirement = parse(text)
            if problems := unit_problems(requirement, self._units):
                raise InputError("resource requirement", problems)
            if len(self._by_text) >= _REMEMBERED_TEXTS:
                self._by_text.clear()
                self._by_requirement.clear()
                self._selectors.clear()
            known = self._by_requirement.get(requirement)
            if known is None:
                known = self._by_requirement[requirement] = Wanted(
                    requirement, self._units, self._selector
                )
            self._by_text[text] = known
        return known

    def _selector(self, primary: Primary) -> Selector:
        key = (primary.select, primary.same, primary.order)
        known = self._selectors.get(key)
        if known is None:
            known = self._selectors[key] = Selector(primary, self._units)
        return known


_readers: dict[object, Reader] = {}


def reader_of(units: Mapping[str, MemoryUnit | None], shared: Iterable[str]) -> Reader:
    """Return the reader for a snapshot's unit settings and names of shared resources."""
    names = frozenset(shared)
    key = (frozenset(units.items()), names)
    reader = _readers.get(key)
    if reader is None:
        if len(_readers) >= _REMEMBERED_SETTINGS:
            del _readers[next(iter(_readers))]
        reader = _readers[key] = Reader(UnitSettings(dict(units), names))
    return reader


__all__ = ["Amounts", "Reader", "Request", "SelectionTypeError", "Selector", "Wanted", "reader_of"]

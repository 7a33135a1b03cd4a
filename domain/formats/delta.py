"""What is different from one snapshot to the next: one JSON document, ``xce.delta/1``.

Each list of a snapshot whose items have a name changes by name: items go, items change in their place, new ones
come at the end. A delta says to which snapshot it belongs, and gives exactly the next one: the same values in the
same order. A field that is left out has not changed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Generic, Literal, Self, TypeVar, cast

from pydantic import Field

from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import Count, Format, Name, Time
from xce.domain.formats.building import built
from xce.domain.formats.sameness import is_same
from xce.domain.formats.snapshot import (
    Capacity,
    Catalog,
    Countable,
    Group,
    Host,
    InFlight,
    InFlightCount,
    InFlightHost,
    Limit,
    PendingJob,
    Queue,
    Quota,
    RunningJob,
    Settings,
    Shared,
    Snapshot,
    Template,
)
from xce.domain.formats.snapshot_check import contradictions

Named = Host | Shared | Queue | Limit | Quota | Group | Countable
Numbered = RunningJob | PendingJob | Template | InFlightHost
Item = TypeVar("Item", bound=Named | Numbered)


class Changes(Format, Generic[Item]):
    """What is different in one list of a snapshot."""

    removed: tuple[Name, ...] = Field(
        default=(), description="names of items that are not there any more"
    )
    put: tuple[Item, ...] = Field(
        default=(),
        description="items as they are now: one whose name is there stays in its place, another comes at the end",
    )
    order: tuple[Name, ...] | None = Field(
        default=None,
        description="all names in their order, where it is another one; null: it is not",
    )

    @property
    def is_any(self) -> bool:
        """Whether anything is different."""
        return bool(self.removed or self.put) or self.order is not None


class InFlightChanges(Format):
    """What is different of the supply on its way."""

    hosts: Changes[InFlightHost] = Changes[InFlightHost]()
    counts: tuple[InFlightCount, ...] | None = Field(
        default=None, description="all amounts, where any is another; null: none is"
    )


class CatalogChanges(Format):
    """What is different of what could be obtained."""

    templates: Changes[Template] = Changes[Template]()
    countable: Changes[Countable] = Changes[Countable]()
    in_flight: InFlightChanges = InFlightChanges()
    capacities: tuple[Capacity, ...] | None = Field(
        default=None, description="all capacities, where any is another; null: none is"
    )


class Delta(Format):
    """What makes one snapshot of the one before."""

    format: Literal["xce.delta/1"]
    base_now: Time = Field(description="``now`` of the snapshot that it belongs to")
    base_position: Count = Field(
        default=0, description="``position`` of the snapshot that it belongs to"
    )
    now: Time
    position: Count = 0
    hosts: Changes[Host] = Changes[Host]()
    shared: Changes[Shared] = Changes[Shared]()
    queues: Changes[Queue] = Changes[Queue]()
    limits: Changes[Limit] = Changes[Limit]()
    quotas: Changes[Quota] = Changes[Quota]()
    groups: Changes[Group] = Changes[Group]()
    running: Changes[RunningJob] = Changes[RunningJob]()
    pending: Changes[PendingJob] = Changes[PendingJob]()
    catalog: CatalogChanges = CatalogChanges()
    settings: Settings | None = Field(
        default=None, description="all settings, where any is another; null: none is"
    )

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "<text>") -> Self:
        """Return the delta of a JSON document; whether it fits a snapshot is known where it is applied.

        Raises:
            InputError: not JSON, not this format, or it names something twice; every problem with its path.
        """
        delta = super().from_json(text, source)
        if problems := list(names_twice(delta)):
            raise InputError(source, problems)
        return delta

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the canonical JSON text; fields that have their default are left out."""
        return self.model_dump_json(indent=indent, exclude_defaults=True)


NO_CATALOG_CHANGES: Final = CatalogChanges()
_NO_QUEUES: Final = Changes[Queue]()
_NO_LIMITS: Final = Changes[Limit]()
_NO_QUOTAS: Final = Changes[Quota]()
_NO_GROUPS: Final = Changes[Group]()


def is_nothing(changes: CatalogChanges) -> bool:
    """Return whether a catalog stays as it is."""
    supply = changes.in_flight
    return changes is NO_CATALOG_CHANGES or not (
        changes.templates.is_any
        or changes.countable.is_any
        or changes.capacities is not None
        or supply.hosts.is_any
        or supply.counts is not None
    )


def is_empty(delta: Delta) -> bool:
    """Return whether nothing but time and position goes on."""
    return (
        delta.settings is None
        and is_nothing(delta.catalog)
        and not (
            delta.pending.is_any
            or delta.running.is_any
            or delta.hosts.is_any
            or delta.shared.is_any
            or delta.queues.is_any
            or delta.limits.is_any
            or delta.quotas.is_any
            or delta.groups.is_any
        )
    )


def key_of(item: Named | Numbered) -> str:
    """Return the name or id by which an item of a list is known."""
    return (
        item.id
        if isinstance(item, RunningJob | PendingJob | Template | InFlightHost)
        else item.name
    )


# What is different


def difference(before: Snapshot, after: Snapshot) -> Delta:
    """Return the delta from one snapshot to another; neither may contradict itself.

    ``apply(before, difference(before, after))`` has the bytes of ``after``. Values that are equal and are written
    differently, such as a price of 0.1 and one of 0.10, are different.
    """
    return Delta(
        format="xce.delta/1",
        base_now=before.now,
        base_position=before.position,
        now=after.now,
        position=after.position,
        hosts=_changes(Changes[Host], before.hosts, after.hosts),
        shared=_changes(Changes[Shared], before.shared, after.shared),
        queues=_changes(Changes[Queue], before.queues, after.queues),
        limits=_changes(Changes[Limit], before.limits, after.limits),
        quotas=_changes(Changes[Quota], before.quotas, after.quotas),
        groups=_changes(Changes[Group], before.groups, after.groups),
        running=_changes(Changes[RunningJob], before.running, after.running),
        pending=_changes(Changes[PendingJob], before.pending, after.pending),
        catalog=catalog_changes(before.catalog, after.catalog),
        settings=None if is_same(before.settings, after.settings) else after.settings,
    )


def _changes(
    kind: type[Changes[Item]], before: Sequence[Item], after: Sequence[Item]
) -> Changes[Item]:
    if before is after:
        return kind()
    old = {key_of(item): item for item in before}
    new = {key_of(item): item for item in after}
    removed = tuple(name for name in old if name not in new)
    put = tuple(
        item for name, item in new.items() if name not in old or not is_same(old[name], item)
    )
    natural = [name for name in old if name in new]
    natural += [name for name in new if name not in old]
    order = None if natural == list(new) else tuple(new)
    if not removed and not put and order is None:
        return kind()
    return kind.model_construct(removed=removed, put=put, order=order)


def going_on(
    before: Snapshot,
    *,
    now: datetime,
    position: int,
    hosts: Changes[Host],
    shared: Changes[Shared],
    running: Changes[RunningJob],
    pending: Changes[PendingJob],
    catalog: CatalogChanges,
) -> Delta:
    """Return the delta of what goes on from day to day, for who knows what has changed; it is not checked."""
    return built(
        Delta,
        {
            "format": "xce.delta/1",
            "base_now": before.now,
            "base_position": before.position,
            "now": now,
            "position": position,
            "hosts": hosts,
            "shared": shared,
            "queues": _NO_QUEUES,
            "limits": _NO_LIMITS,
            "quotas": _NO_QUOTAS,
            "groups": _NO_GROUPS,
            "running": running,
            "pending": pending,
            "catalog": catalog,
            "settings": None,
        },
    )


class Collected(Generic[Item]):
    """What happens to one list between two snapshots, name by name, for who sees it happen.

    ``taken`` says it as changes, and begins anew.
    """

    __slots__ = ("_kind", "_new", "_nothing", "_put", "_removed")

    def __init__(self, kind: type[Changes[Item]]) -> None:
        self._kind = kind
        self._nothing = kind()
        self._removed: dict[str, None] = {}
        self._put: dict[str, Item] = {}
        self._new: set[str] = set()

    def add(self, item: Item) -> None:
        """An item comes, at the end of the list."""
        name = key_of(item)
        self._put[name] = item
        self._new.add(name)

    def change(self, item: Item) -> None:
        """An item changes in its place."""
        self._put[key_of(item)] = item

    def remove(self, name: str) -> None:
        """An item goes."""
        self._put.pop(name, None)
        if name in self._new:
            self._new.remove(name)
        else:
            self._removed[name] = None

    def taken(self) -> Changes[Item]:
        """Return what has happened since the last call."""
        if not self._put and not self._removed:
            return self._nothing
        changes = built(
            self._kind,
            {"removed": tuple(self._removed), "put": tuple(self._put.values()), "order": None},
        )
        self._removed, self._put, self._new = {}, {}, set()
        return changes


# Applying it


def apply(snapshot: Snapshot, delta: Delta) -> Snapshot:
    """Return the snapshot that a delta makes of the one it belongs to.

    Raises:
        InputError: it belongs to another snapshot, or what it makes contradicts itself; with paths of the delta
            where the delta says it, else of the snapshot that it would make.
    """
    problems = [*names_twice(delta), *_of_another(snapshot, delta)]
    if problems:
        raise InputError("delta", problems)
    made = unchecked(snapshot, delta, problems)
    problems = problems or [in_delta(problem, made, delta) for problem in contradictions(made)]
    if problems:
        raise InputError("delta", problems)
    return made


def next_catalog(catalog: Catalog, changes: CatalogChanges, problems: list[Problem]) -> Catalog:
    """Return a catalog after its changes; what does not fit is added to ``problems``."""
    if is_nothing(changes):
        return catalog
    supply, in_flight = catalog.in_flight, changes.in_flight
    return Catalog.model_construct(
        templates=changed(catalog.templates, changes.templates, "catalog.templates", problems),
        countable=changed(catalog.countable, changes.countable, "catalog.countable", problems),
        in_flight=InFlight.model_construct(
            hosts=changed(supply.hosts, in_flight.hosts, "catalog.in_flight.hosts", problems),
            counts=supply.counts if in_flight.counts is None else in_flight.counts,
        ),
        capacities=catalog.capacities if changes.capacities is None else changes.capacities,
    )


def catalog_changes(before: Catalog, after: Catalog) -> CatalogChanges:
    """Return what is different of what could be obtained."""
    if before is after:
        return NO_CATALOG_CHANGES
    supply, next_supply = before.in_flight, after.in_flight
    return CatalogChanges.model_construct(
        templates=_changes(Changes[Template], before.templates, after.templates),
        countable=_changes(Changes[Countable], before.countable, after.countable),
        in_flight=InFlightChanges.model_construct(
            hosts=_changes(Changes[InFlightHost], supply.hosts, next_supply.hosts),
            counts=None if supply.counts == next_supply.counts else next_supply.counts,
        ),
        capacities=None if before.capacities == after.capacities else after.capacities,
    )


def _of_another(snapshot: Snapshot, delta: Delta) -> Iterator[Problem]:
    if delta.base_now != snapshot.now:
        yield Problem(
            f"belongs to the snapshot of {delta.base_now.isoformat()}, not to that of {snapshot.now.isoformat()}",
            "base_now",
        )
    if delta.base_position != snapshot.position:
        yield Problem(
            f"belongs to the snapshot at {delta.base_position}, not to that at {snapshot.position}",
            "base_position",
        )


def unchecked(snapshot: Snapshot, delta: Delta, problems: list[Problem]) -> Snapshot:
    """Return what a delta makes of a snapshot, whether or not that contradicts itself; what does not fit is added to ``problems``."""
    return Snapshot.model_construct(
        format="xce.snapshot/1",
        now=delta.now,
        position=delta.position,
        hosts=changed(snapshot.hosts, delta.hosts, "hosts", problems),
        shared=changed(snapshot.shared, delta.shared, "shared", problems),
        queues=changed(snapshot.queues, delta.queues, "queues", problems),
        limits=changed(snapshot.limits, delta.limits, "limits", problems),
        quotas=changed(snapshot.quotas, delta.quotas, "quotas", problems),
        groups=changed(snapshot.groups, delta.groups, "groups", problems),
        running=changed(snapshot.running, delta.running, "running", problems),
        pending=changed(snapshot.pending, delta.pending, "pending", problems),
        catalog=next_catalog(snapshot.catalog, delta.catalog, problems),
        settings=snapshot.settings if delta.settings is None else delta.settings,
    )


def changed(
    items: tuple[Item, ...], changes: Changes[Item], path: str, problems: list[Problem]
) -> tuple[Item, ...]:
    """Return a list after its changes; what does not fit is added to ``problems``."""
    if not changes.is_any:
        return items
    by_name = {key_of(item): item for item in items}
    for i, name in enumerate(changes.removed):
        if by_name.pop(name, None) is None:
            problems.append(Problem(f"{name!r} is not there", f"{path}.removed[{i}]"))
    for item in changes.put:
        by_name[key_of(item)] = item
    if changes.order is None:
        return tuple(by_name.values())
    if set(changes.order) != set(by_name):
        wrong = sorted(set(changes.order).symmetric_difference(by_name))
        problems.append(Problem(f"{wrong[0]!r} is either not there or left out", f"{path}.order"))
        return items
    return tuple(by_name[name] for name in changes.order)


def names_twice(delta: Delta) -> Iterator[Problem]:
    """Yield a problem for each name that a list of a delta has twice."""
    for path, changes in _lists(delta).items():
        put = [key_of(item) for item in changes.put]
        for names, of in (
            (changes.removed, "removed"),
            (put, "put"),
            (changes.order or (), "order"),
        ):
            yield from _repeats(names, f"{path}.{of}")


def _repeats(names: Iterable[str], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield Problem(f"{name!r} is there twice", f"{path}[{i}]")
        seen.add(name)


# Paths


_AnyChanges = (
    Changes[Host]
    | Changes[Shared]
    | Changes[Queue]
    | Changes[Limit]
    | Changes[Quota]
    | Changes[Group]
    | Changes[RunningJob]
    | Changes[PendingJob]
    | Changes[Template]
    | Changes[Countable]
    | Changes[InFlightHost]
)
_ITEM_PATH: Final = re.compile(r"([a-z_.]+)\[(\d+)\](.*)", re.DOTALL)


def _lists(delta: Delta) -> Mapping[str, _AnyChanges]:
    return {
        "hosts": delta.hosts,
        "shared": delta.shared,
        "queues": delta.queues,
        "limits": delta.limits,
        "quotas": delta.quotas,
        "groups": delta.groups,
        "running": delta.running,
        "pending": delta.pending,
        "catalog.templates": delta.catalog.templates,
        "catalog.countable": delta.catalog.countable,
        "catalog.in_flight.hosts": delta.catalog.in_flight.hosts,
    }


def _items(snapshot: Snapshot, path: str) -> Sequence[Named | Numbered]:
    owner: object = snapshot
    for step in path.split("."):
        owner = getattr(owner, step)
    return cast(Sequence[Named | Numbered], owner)


def in_delta(problem: Problem, made: Snapshot, delta: Delta) -> Problem:
    """Return a problem of the snapshot that a delta made, with the path of the delta if the delta says it."""
    found = _ITEM_PATH.fullmatch(problem.path)
    changes = None if found is None else _lists(delta).get(found[1])
    if found is not None and changes is not None:
        name = key_of(_items(made, found[1])[int(found[2])])
        for i, item in enumerate(cast(Sequence[Named | Numbered], changes.put)):
            if key_of(item) == name:
                return replace(problem, path=f"{found[1]}.put[{i}]{found[3]}")
    return replace(problem, message=f"of the snapshot that it makes: {problem.message}")

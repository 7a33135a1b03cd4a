"""Allocators that other packages have installed, found by their entry points.

Only those that a job of the snapshot names are loaded: a broken one stops nobody who does not ask for it, and
a session in which no job names one looks for none.
"""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from xce.domain.errors import AllocatorError
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.plans import Allocator

#: The group of the entry points; the name of one is the name that jobs write.
GROUP: Final = "xce.allocators"


def allocators_for(snapshot: Snapshot) -> tuple[Allocator, ...]:
    """Return the installed allocators that jobs of a snapshot name, by name; those not found are left out.

    Raises:
        AllocatorError: one cannot be loaded, or is something else.
    """
    names = {job.allocator for job in snapshot.pending if job.allocator is not None}
    return tuple(_load(point) for point in _installed() if point.name in names) if names else ()


def _installed() -> Iterator[EntryPoint]:
    yield from sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def _load(point: EntryPoint) -> Allocator:
    try:
        found: object = point.load()
    except Exception as error:
        raise AllocatorError(
            point.name, f"cannot be loaded from {point.value}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, Allocator):
        raise AllocatorError(
            point.name, f"is a {type(found).__name__} in {point.value}; wanted an Allocator"
        )
    if found.name != point.name:
        raise AllocatorError(
            point.name, f"calls itself {found.name!r} in {point.value}; wanted the same name"
        )
    return found

"""What every backend of the log does, beyond what the library asks of a recorder.

Positions, digests, the head and the fences belong to one transaction with the events; so they are the recorder's work.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    Notification,
    StoredEvent,
    Subscription,
)

from xce.adapters.store.seat import Seat
from xce.domain.errors import BrokenLogError
from xce.domain.events.digest import link
from xce.domain.events.recorded import Head

#: Rows read from the log at once.
PAGE_ROWS: Final = 2000
#: So many snapshots of the projections are kept, the last ones.
SNAPSHOTS_KEPT: Final = 2


class Row(NamedTuple):
    """One stored event as it lies in the log."""

    position: int
    originator_id: str
    originator_version: int
    topic: str
    state: bytes
    digest: bytes


class NewRow(NamedTuple):
    """One event to be stored; position and digest are given in the transaction."""

    originator_id: str
    originator_version: int
    topic: str
    state: bytes


class SnapshotRow(NamedTuple):
    """One projection at one position: see ``snapshots.py``."""

    position: int
    digest: bytes
    code: str
    name: str
    kept: bytes
    sum: bytes


@dataclass(frozen=True, slots=True)
class Fencing:
    """What one append compares with the fences, and then moves.

    Attributes:
        expected: by fence, where the writer thinks it is.
        moves: by fence, where it goes; never backwards.
    """

    expected: Mapping[str, int]
    moves: Mapping[str, int]


NO_FENCING: Final = Fencing({}, {})


def chain(head: Head, new: Sequence[NewRow]) -> list[Row]:
    """Return the rows that follow ``head``, with their positions and digests."""
    position, digest = head.position, head.digest
    rows: list[Row] = []
    for row in new:
        position += 1
        digest = link(digest, position, *row)
        rows.append(Row(position, *row, digest))
    return rows


class LogRecorder(ApplicationRecorder):
    """An application recorder of the library that also keeps the digest chain, the head and the fences."""

    @abstractmethod
    def append(self, new: Sequence[NewRow], fencing: Fencing) -> list[Row]:
        """Store all or nothing, durably; the rows as stored.

        Raises:
            ConflictError, StaleEpochError, TransientError, PermanentError, BrokenLogError: as ``EventLog.append``.
        """

    @abstractmethod
    def page(self, after: int, upto: int | None, limit: int) -> list[Row]:
        """Return at most ``limit`` rows behind ``after``, in order."""

    @abstractmethod
    def stored_end(self) -> tuple[Head | None, dict[str, int]]:
        """Return what the head's row says (None: the row is missing) and all fences, as of one moment."""

    @abstractmethod
    def move_fence(self, name: str) -> int:
        """Move a fence one further and return where it is."""

    @abstractmethod
    def seat(self) -> Seat:
        """Return the seat of the log's primary, for this process; the caller closes it."""

    @abstractmethod
    def keep_snapshot(self, rows: Sequence[SnapshotRow]) -> None:
        """Store the rows of one snapshot, all or nothing, and let all but the last ``SNAPSHOTS_KEPT`` go.

        Raises:
            TransientError, PermanentError, BrokenLogError: it cannot be stored, which harms nobody.
        """

    @abstractmethod
    def snapshot_rows(self, code: str) -> list[SnapshotRow]:
        """Return the rows of all snapshots that this code made; none where there are none or they cannot be read."""

    def problems(self) -> list[str]:
        """Return what is wrong with the storage itself, as far as the backend can tell."""
        return []

    def rows(self, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        """Yield rows in order; no lock is held between pages.

        Raises:
            BrokenLogError: a row cannot be read; all rows before it have been yielded.
        """
        limit = PAGE_ROWS
        while True:
            try:
                page = self.page(after, upto, limit)
            except BrokenLogError:
                if limit == 1:
                    raise
                limit = 1  # one by one up to the damage
                continue
            if not page:
                return
            yield from page
            after = page[-1].position

    # ------------------------------------------------------ the library's interface
    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Store events that come through the library's own ``save``; ``fencing`` is passed on."""
        fencing: Fencing = kwargs.get("fencing", NO_FENCING)
        new = [
            NewRow(str(e.originator_id), e.originator_version, e.topic, e.state)
            for e in stored_events
        ]
        return [row.position for row in self.append(new, fencing)]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return a page of the log as the library's notifications."""
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        found: list[Notification] = []
        for row in self.rows(after, stop):
            if not topics or row.topic in topics:
                found.append(
                    Notification(
                        originator_id=row.originator_id,
                        originator_version=row.originator_version,
                        topic=row.topic,
                        state=row.state,
                        id=row.position,
                    )
                )
            if len(found) == limit:
                break
        return found

    def max_notification_id(self) -> int | None:
        """Return the last position; None: the log is empty."""
        head, _ = self.stored_end()
        return None if head is None or head.position == 0 else head.position

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Not offered: readers page by position."""
        raise NotImplementedError("readers of the log page by position")


#: What makes a recorder for snapshots of aggregates, by purpose.
SnapshotRecorder = Callable[[str], AggregateRecorder]


def originator_text(originator_id: UUID | str) -> str:
    """Return an id as stored; all ids of ours are text."""
    return originator_id if isinstance(originator_id, str) else originator_id.hex

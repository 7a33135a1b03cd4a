"""The log in memory: for simulations and tests. The same events give the same head as on disk."""

from collections.abc import Sequence
from threading import RLock
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, StoredEvent
from eventsourcing.popo import POPOFactory

from xce.adapters.store.recorder import (
    Fencing,
    LogRecorder,
    NewRow,
    Row,
    SnapshotRow,
    chain,
    originator_text,
)
from xce.adapters.store.seat import Seat, SoleSeat
from xce.domain.errors import ConflictError, StaleEpochError
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head


class MemoryRecorder(LogRecorder):
    """Keeps rows in a list."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._rows: list[Row] = []
        self._rows_of: dict[str, list[Row]] = {}
        self._fences: dict[str, int] = {}

    def append(self, new: Sequence[NewRow], fencing: Fencing) -> list[Row]:
        """Store all or nothing."""
        with self._lock:
            for name, mine in fencing.expected.items():
                current = self._fences.get(name, 0)
                if current != mine:
                    raise StaleEpochError(name, mine, current)
            self._require_next(new)
            rows = chain(self._head(), new)
            self._rows += rows
            for row in rows:
                self._rows_of.setdefault(row.originator_id, []).append(row)
            for name, epoch in fencing.moves.items():
                self._fences[name] = max(epoch, self._fences.get(name, 0))
            return rows

    def page(self, after: int, upto: int | None, limit: int) -> list[Row]:
        """Return a slice."""
        end = after + limit if upto is None else min(after + limit, upto)
        return self._rows[after : max(after, end)]

    def stored_end(self) -> tuple[Head, dict[str, int]]:
        """Return the head and all fences."""
        with self._lock:
            return self._head(), dict(self._fences)

    def move_fence(self, name: str) -> int:
        """Move a fence one further."""
        with self._lock:
            self._fences[name] = self._fences.get(name, 0) + 1
            return self._fences[name]

    def seat(self) -> Seat:
        """Return a seat that is always free."""
        return SoleSeat()

    def keep_snapshot(self, rows: Sequence[SnapshotRow]) -> None:
        """Keep nothing: the log goes with the process too."""

    def snapshot_rows(self, code: str) -> list[SnapshotRow]:
        """Return nothing."""
        return []

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the events of one aggregate."""
        with self._lock:
            rows = self._rows_of.get(originator_text(originator_id), [])[gt or 0 : lte]
        if desc:
            rows = rows[::-1]
        return [
            StoredEvent(r.originator_id, r.originator_version, r.topic, r.state)
            for r in rows[:limit]
        ]

    def _head(self) -> Head:
        if not self._rows:
            return Head(0, GENESIS)
        return Head(self._rows[-1].position, self._rows[-1].digest)

    def _require_next(self, new: Sequence[NewRow]) -> None:
        versions: dict[str, int] = {}
        for row in new:
            before = versions.get(row.originator_id)
            if before is None:
                before = len(self._rows_of.get(row.originator_id, ()))
            if row.originator_version != before + 1:
                raise ConflictError(
                    f"{row.originator_id} version {row.originator_version} is taken, or leaves a gap;"
                    f" the log has {before}"
                )
            versions[row.originator_id] = row.originator_version


class MemoryFactory(POPOFactory):
    """Makes the parts of a log in memory."""

    def application_recorder(self) -> ApplicationRecorder:
        """Return a new, empty recorder."""
        return MemoryRecorder()

"""Folds the events of a log into the rows of the audit read models: from the first event, or from where they stand.

Rows are the only state: what an event changes is read from the tables. So a catch-up and a rebuild are one fold, and give the same tables.
"""

import sqlite3
from typing import Final

from xce.adapters.store.audit_cache import TableRows, at_text
from xce.adapters.store.audit_reasons import ReasonRows
from xce.adapters.store.audit_standing import StandingRows
from xce.adapters.store.audit_supply import SupplyRows
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.recorder import Row
from xce.domain.errors import BrokenLogError
from xce.domain.events import ids
from xce.domain.events.base import DomainEvent

#: Events between two writes.
WRITE_EVERY: Final = 5_000


class AuditRows:
    """The fold. ``take`` each event in the order of the log, then ``finish``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Begin where the tables stand."""
        self._tables = {table.name: TableRows(connection, table) for table in TABLES}
        standing = StandingRows(self._tables)
        supply = SupplyRows(self._tables, standing)
        self._costs = supply.costs
        reasons = ReasonRows(self._tables, standing, supply.costs)
        self._handlers = standing.handlers | supply.handlers | reasons.handlers
        self._unwritten = 0
        self._at: str | None = None

    def take(self, row: Row, event: DomainEvent) -> None:
        """Fold one event.

        Raises:
            BrokenLogError: it does not follow what the tables say.
        """
        at = at_text(event.timestamp)
        aggregate = row.originator_id
        self._tables["events"].touch(
            {
                "position": row.position,
                "at": at,
                "by": event.by,
                "aggregate": aggregate,
                "kind": ids.kind_of(aggregate),
                "name": ids.name_of(aggregate),
                "version": row.originator_version,
                "event": row.topic,
                "epoch": getattr(event, "epoch", None),
                "why": getattr(event, "why", None) or getattr(event, "reason", None),
                "payload": row.state.decode(),
                "digest": row.digest,
            }
        )
        handle = self._handlers.get(type(event))
        if handle is not None:
            try:
                handle(event, row.position, at)
            except (LookupError, TypeError, AssertionError) as error:
                raise BrokenLogError(
                    f"event {row.position} ({row.topic} of {aggregate}) does not fit what is before it: {error!r}",
                    row.position,
                ) from error
        self._at = at
        self._unwritten += 1
        if self._unwritten >= WRITE_EVERY:
            self._write()

    def finish(self) -> str | None:
        """Bring what lives up to the last event, write all, and return the last event's time; None: there was none."""
        if self._at is not None:
            self._costs.bring_up_to(self._at)
        self._write()
        return self._at

    def _write(self) -> None:
        for table in self._tables.values():
            table.write()
        self._unwritten = 0

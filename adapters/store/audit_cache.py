"""Rows of one table of the read models while a log is folded into it: read when an event needs them, written together."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from xce.adapters.store.audit_tables import AuditTable
from xce.domain.events import ids
from xce.domain.events.base import DomainEvent

E = TypeVar("E", bound=DomainEvent)

#: One row, by column.
Values = dict[str, Any]

#: Rows of a table that stay in memory between two writes.
ROWS_KEPT: Final = 20_000


class TableRows:
    """The rows of one table. A row that is changed is a dictionary of its own and is told by ``touch``."""

    def __init__(self, connection: sqlite3.Connection, table: AuditTable) -> None:
        self._connection = connection
        self._key = table.key
        self._columns = tuple(column.name for column in table.columns)
        names = ", ".join(f'"{name}"' for name in self._columns)
        places = ", ".join(f":{name}" for name in self._columns)
        where = " AND ".join(f'"{name}" = ?' for name in table.key)
        self._insert = f'INSERT OR REPLACE INTO "{table.name}" ({names}) VALUES ({places})'
        self._select = f'SELECT {names} FROM "{table.name}"'
        self._find = f"{self._select} WHERE {where}"
        self._rows: dict[tuple[Any, ...], Values] = {}
        self._changed: dict[tuple[Any, ...], Values] = {}

    def find(self, *key: Any) -> Values | None:
        """Return a row by its key; None: there is none."""
        row = self._rows.get(key)
        if row is None:
            found = self._connection.execute(self._find, key).fetchone()
            if found is None:
                return None
            row = self._rows[key] = dict(zip(self._columns, found, strict=True))
        return row

    def touch(self, row: Values) -> Values:
        """Note that a row is new or was changed, and return it."""
        key = tuple(row[name] for name in self._key)
        self._rows[key] = self._changed[key] = row
        return row

    def load(self, where: str) -> list[Values]:
        """Return the rows that fulfil a condition, as they were written last, in the order of the key."""
        order = ", ".join(f'"{name}"' for name in self._key)
        found = self._connection.execute(f"{self._select} WHERE {where} ORDER BY {order}")
        return [dict(zip(self._columns, row, strict=True)) for row in found.fetchall()]

    def write(self) -> None:
        """Write what has changed."""
        self._connection.executemany(self._insert, self._changed.values())
        self._changed.clear()
        if len(self._rows) > ROWS_KEPT:
            self._rows.clear()


class Handlers:
    """The functions that fold events of a group of tables, by class of event: event, position, time."""

    def __init__(self) -> None:
        self.handlers: dict[type[DomainEvent], Callable[[Any, int, str], None]] = {}

    def _on(self, event_class: type[E], handle: Callable[[E, int, str], None]) -> None:
        assert event_class not in self.handlers, f"{event_class} is folded twice"
        self.handlers[event_class] = handle


def at_text(when: datetime) -> str:
    """Return a time as the tables have it: RFC 3339, UTC."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def changed_row(table: TableRows, event: DomainEvent, position: int) -> Values:
    """Return the row of an event's aggregate, to be changed."""
    name = ids.name_of(event.originator_id)
    row = table.find(name)
    if row is None:
        raise LookupError(f"{event.originator_id} has no first event")
    row["position"] = position
    return table.touch(row)

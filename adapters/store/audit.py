"""The audit read models: SQLite tables made from a log, that can be thrown away and made again.

They lie beside the log, as ``LOG.audit.db``, and are made whole under another name first. Queries read only: nothing a query says can
change a file or run for ever.
"""

import os
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import sqlite_utils

from xce.adapters.store.audit_rows import AuditRows, Values
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.log import StoredLog
from xce.domain.errors import InputError, PermanentError, XceError

#: A query that takes longer is stopped.
TIME_LIMIT_S: Final = 30.0
#: A query that gives more rows is cut, with a word about it.
ROWS_MAX: Final = 100_000

#: What a query may do: read, call functions, look at the schema.
_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_PRAGMAS: Final = frozenset({"table_info", "table_list", "table_xinfo", "index_list", "index_info"})


def database_of(log: str) -> str:
    """Return where the read models of a log lie."""
    return f"{log}.audit.db"


def rebuild(log: StoredLog, database: str) -> int:
    """Make the read models anew and return the number of events in them; the old ones are there until then.

    Raises:
        PermanentError: the file cannot be written.
        BrokenLogError: an event cannot be read.
    """
    unfinished = f"{database}.{os.getpid()}.new"
    try:
        try:
            events = _write(log, unfinished)
            os.replace(unfinished, database)
        finally:
            Path(unfinished).unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise PermanentError(f"{database}: the read models cannot be written: {error}") from None
    return events


def is_current(log: StoredLog, database: str) -> bool:
    """Return whether the read models hold exactly the log's events."""
    try:
        with closing(sqlite3.connect(_uri(database), uri=True)) as connection:
            rows = connection.execute("SELECT position, digest FROM log").fetchall()
    except sqlite3.Error:
        return False
    head = log.head()
    return rows == [(head.position, head.digest.hex())]


def _uri(database: str) -> str:
    return f"file:{quote(database)}?mode=ro"


def _write(log: StoredLog, path: str) -> int:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # Nothing is lost with this file: no need to wait for the disk.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        database = sqlite_utils.Database(connection)
        for table in TABLES:
            database.create_table(
                table.name,
                {column.name: column.type for column in table.columns},
                pk=table.key,
            )
        models = AuditRows(log)
        _insert(connection, "events", models.events())
        for name, rows in models.states():
            _insert(connection, name, rows)
        for table in TABLES:
            for column in table.indexes:
                connection.execute(
                    f'CREATE INDEX "{table.name}_{column}" ON "{table.name}" ("{column}")'
                )
        connection.execute("COMMIT")
        return models.last.position


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[Values]) -> None:
    (columns,) = (t.columns for t in TABLES if t.name == table)
    names = ", ".join(f'"{column.name}"' for column in columns)
    places = ", ".join(f":{column.name}" for column in columns)
    connection.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({places})', rows)


# ---------------------------------------------------------------------- querying
@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave: names of the columns, rows, and whether there were more than ``ROWS_MAX``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool


def query(database: str, sql: str, *, time_limit_s: float = TIME_LIMIT_S) -> Answer:
    """Return the answer of one SELECT over the read models.

    Raises:
        InputError: the statement is not one SELECT that SQLite understands, wants to write, or takes too long.
    """
    with closing(sqlite3.connect(_uri(database), uri=True)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_authorize)
        deadline = time.monotonic() + time_limit_s
        connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
        try:
            cursor = connection.execute(sql)
            rows = cursor.fetchmany(ROWS_MAX + 1)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise _refusal(error, time_limit_s) from None
        columns = tuple(name for name, *_ in cursor.description or ())
        if not columns:
            raise InputError.of("SQL", "gives no columns; wanted one SELECT")
        return Answer(columns, tuple(rows[:ROWS_MAX]), len(rows) > ROWS_MAX)


def _authorize(
    action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None
) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _refusal(error: Exception, time_limit_s: float) -> XceError:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return InputError.of("SQL", f"takes longer than {time_limit_s:g} s")
    if code == sqlite3.SQLITE_AUTH or str(error).startswith("not authorized"):
        return InputError.of("SQL", "may only read: wanted one SELECT")
    return InputError.of("SQL", str(error))

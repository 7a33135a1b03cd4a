"""Questions to the audit read models: SQL that can only read, within limits of time, rows and size."""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.side_files import uri_of
from xce.domain.errors import InputError, TransientError, XceError

#: A query that takes longer is stopped.
TIME_LIMIT_S: Final = 30.0
#: A query that gives more rows, or more text, is cut, with a word about it.
ROWS_MAX: Final = 100_000
BYTES_MAX: Final = 64 * 1024 * 1024
#: No value is larger.
VALUE_BYTES_MAX: Final = 16 * 1024 * 1024
SQL_BYTES_MAX: Final = 100_000
#: How long a question waits for somebody who writes.
LOCK_TIMEOUT_S: Final = 10

#: What a query may do: read, call functions, look at the schema.
_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_PRAGMAS: Final = frozenset({"table_info", "table_list", "table_xinfo", "index_list", "index_info"})
_FORBIDDEN_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave: names of the columns, rows, and whether there were more than the limits allow."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool


def query(
    database: str,
    sql: str,
    *,
    time_limit_s: float = TIME_LIMIT_S,
    rows_max: int | None = None,
    bytes_max: int | None = None,
) -> Answer:
    """Return the answer of one SELECT over the read models. Text that is not UTF-8 comes with replacement characters.

    Raises:
        InputError: the statement is not one SELECT that SQLite understands, wants to write, takes too long or makes a value that is
            too large; or the file cannot be read.
        TransientError: the file is being written.
    """
    rows_max = ROWS_MAX if rows_max is None else rows_max
    bytes_max = BYTES_MAX if bytes_max is None else bytes_max
    with closing(_open(database)) as connection:
        deadline = time.monotonic() + time_limit_s
        connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
        try:
            cursor = connection.execute(sql)
            rows, cut = _taken(cursor, rows_max, bytes_max)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise _refusal(error, time_limit_s) from None
        columns = tuple(name for name, *_ in cursor.description or ())
        if not columns:
            raise InputError.of("SQL", "gives no columns; wanted one SELECT")
        return Answer(columns, tuple(rows), cut)


def _open(database: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(uri_of(database, "ro"), uri=True, timeout=LOCK_TIMEOUT_S)
    except (sqlite3.Error, ValueError) as error:
        raise InputError.of(database, f"cannot be read: {error}") from None
    connection.text_factory = _text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.set_authorizer(_authorize)
    return connection


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _taken(
    cursor: sqlite3.Cursor, rows_max: int, bytes_max: int
) -> tuple[list[tuple[Any, ...]], bool]:
    """Return the rows within the limits, and whether there were more."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if len(rows) == rows_max or size > bytes_max:
            return rows, True
        rows.append(row)
    return rows, False


def _authorize(
    action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None
) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _refusal(error: Exception, time_limit_s: float) -> XceError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return InputError.of("SQL", f"takes longer than {time_limit_s:g} s")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return TransientError(f"the read models are being written: {error}")
    if code == sqlite3.SQLITE_AUTH or str(error).startswith("not authorized"):
        return InputError.of("SQL", "may only read: wanted one SELECT")
    why = str(error) or "needs more memory than there is"
    if why.startswith("no such table"):
        why += f"; there are {', '.join(table.name for table in TABLES)}"
    if why.startswith("no such column"):
        why += "; docs/reference/audit.md has the columns, and so has PRAGMA table_info(TABLE)"
    return InputError.of("SQL", why)

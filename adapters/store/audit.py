"""The audit read models: SQLite tables made from a log, that can be thrown away and made again.

They lie beside the log, as ``LOG.audit.db``. Made from nothing they are made whole under another name first; later only what the log has
beyond them is folded in, in one transaction. They are used only where the log still has the event with their position and digest, and where
the same code made them.
"""

import os
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from xce.adapters.store.audit_query import Answer, query
from xce.adapters.store.audit_rows import AuditRows
from xce.adapters.store.audit_tables import TABLES, AuditTable
from xce.adapters.store.log import StoredLog
from xce.adapters.store.recorder import Row
from xce.adapters.store.side_files import (
    application_of,
    beside,
    code_digest,
    make_private,
    remove,
    unwritable,
    uri_of,
)
from xce.domain.errors import BrokenLogError, InputError
from xce.domain.events.digest import GENESIS, link
from xce.domain.events.recorded import Head

__all__ = ["Answer", "CaughtUp", "catch_up", "database_of", "is_current", "query", "rebuild"]

#: "xcea": says in the file's header what it is.
APPLICATION_ID: Final = 0x78636561
#: How long a catch-up waits for another one.
LOCK_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What had to be done until the tables were those of the log.

    Attributes:
        position: of the last event in them.
        added: events that were folded in.
        rebuilt: whether they were made from nothing.
    """

    position: int
    added: int
    rebuilt: bool


def database_of(log: str) -> str:
    """Return where the read models of a log lie, given its path or address."""
    return beside(log, "audit.db")


def is_current(log: StoredLog, database: str) -> bool:
    """Return whether the read models hold exactly the log's events."""
    return _standing(database) == log.head()


def catch_up(log: StoredLog, database: str) -> CaughtUp:
    """Bring the read models up to the end of the log: by what is new, or from nothing where they are not of this log and this code.

    Raises:
        BrokenLogError: an event cannot be read, or does not follow the one before; the tables stay where they were.
        PermanentError: the file cannot be written.
        TransientError: another process writes it for very long, or the disk is full.
        InputError: the file is there and is something else.
    """
    head = log.head()
    standing = _standing(database)
    if standing == head:
        return CaughtUp(head.position, 0, rebuilt=False)
    if standing is not None and _has(log, standing):
        added = _fold_in(log, database, head)
        if added is not None:
            return CaughtUp(head.position, added, rebuilt=False)
    position = rebuild(log, database)
    return CaughtUp(position, position, rebuilt=True)


def rebuild(log: StoredLog, database: str) -> int:
    """Make the read models anew and return the number of events in them; the old ones are there until then.

    Raises:
        BrokenLogError: an event cannot be read, or does not follow the one before.
        PermanentError: the file cannot be written.
        TransientError: the disk is full.
        InputError: the file is there and is something else.
    """
    _require_ours(log, database)
    unfinished = f"{database}.{os.getpid()}.new"
    with _writing(database):
        try:
            position = _make(log, unfinished)
            make_private(unfinished, log.source)
            os.replace(unfinished, database)
        finally:
            remove(unfinished)
    return position


# --------------------------------------------------------------------------- folding
def _fold_in(log: StoredLog, database: str, head: Head) -> int | None:
    """Fold in what the log has beyond the tables and return how much; None: they cannot be used."""
    with (
        _writing(database),
        closing(
            sqlite3.connect(
                uri_of(database, "rw"), uri=True, isolation_level=None, timeout=LOCK_TIMEOUT_S
            )
        ) as connection,
    ):
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        standing = _read_standing(connection)  # another process may have been here meanwhile
        if standing is None or standing.position > head.position or not _has(log, standing):
            connection.execute("ROLLBACK")
            return None
        try:
            _fold(log, connection, standing, head.position)
        except BrokenLogError:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return head.position - standing.position


def _make(log: StoredLog, path: str) -> int:
    import sqlite_utils  # here: most calls make no tables, and it imports numpy where that is installed

    remove(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # Nothing is lost with this file: no need to wait for the disk, and nothing to take back.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("BEGIN")
        database = sqlite_utils.Database(connection)
        for table in TABLES:
            database.create_table(
                table.name,
                {column.name: column.type for column in table.columns},
                pk=table.key[0] if len(table.key) == 1 else table.key,
            )
        position = _fold(log, connection, Head(0, GENESIS), log.head().position)
        for table in TABLES:
            for columns in table.indexes:
                connection.execute(_index(table, columns))
        connection.execute("COMMIT")
        connection.execute("ANALYZE")
        return position


def _index(table: AuditTable, columns: tuple[str, ...]) -> str:
    name = "_".join((table.name, *columns))
    places = ", ".join(f'"{column}"' for column in columns)
    return f'CREATE INDEX "{name}" ON "{table.name}" ({places})'


def _fold(log: StoredLog, connection: sqlite3.Connection, after: Head, upto: int) -> int:
    """Fold the events behind a head, say where the tables stand, and return that position."""
    rows = AuditRows(connection)
    decode = log.registry.decode
    last = after
    for row in chained(log.recorder.rows(after.position, upto), after):
        rows.take(row, decode(*row[:-1]))
        last = Head(row.position, row.digest)
    if last.position < upto:
        raise BrokenLogError(
            f"event {last.position + 1} is missing: the head is {upto}", last.position + 1
        )
    at = rows.finish()
    connection.execute('DELETE FROM "log"')
    connection.execute(
        'INSERT INTO "log" (source, position, digest, at, made_by) VALUES (?, ?, ?, ?, ?)',
        (log.source, last.position, last.digest.hex(), at, code_digest()),
    )
    return last.position


def chained(rows: Iterator[Row], after: Head) -> Iterator[Row]:
    """Yield rows as long as each carries the digest over itself and the one before.

    An event that is not visible yet, or was changed or taken away, ends this: nothing behind it is folded, so it cannot be passed
    over (F28). Numbers that were never used are no gap: the chain goes on over them.

    Raises:
        BrokenLogError: at the first row that does not follow.
    """
    last = after
    for row in rows:
        if row.digest != link(last.digest, *row[:-1]):
            raise BrokenLogError(
                f"event {row.position} does not follow event {last.position}: one between them is missing, or it was changed;"
                " ask xce audit verify",
                row.position,
            )
        yield row
        last = Head(row.position, row.digest)


# ------------------------------------------------------------------------ the file
def _standing(database: str) -> Head | None:
    """Return where the tables of a file stand; None: they are not what this code makes."""
    if application_of(database) != APPLICATION_ID:
        return None
    try:
        with closing(sqlite3.connect(uri_of(database, "ro"), uri=True)) as connection:
            return _read_standing(connection)
    except sqlite3.Error:
        return None


def _read_standing(connection: sqlite3.Connection) -> Head | None:
    try:
        rows = connection.execute('SELECT position, digest, made_by FROM "log"').fetchall()
        ((position, digest, made_by),) = cast("list[tuple[int, str, str]]", rows)
        return Head(position, bytes.fromhex(digest)) if made_by == code_digest() else None
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise
        return None


def _has(log: StoredLog, standing: Head) -> bool:
    """Return whether the log has the event that the tables stand at."""
    if standing.position == 0:
        return standing.digest == GENESIS
    rows = log.recorder.page(standing.position - 1, standing.position, 1)
    return bool(rows) and rows[0].digest == standing.digest


def _require_ours(log: StoredLog, database: str) -> None:
    """Refuse to replace what is not a file of read models; the default name is ours whatever it holds."""
    if not os.path.lexists(database):
        return
    if (
        os.path.exists(log.source)
        and os.path.exists(database)
        and os.path.samefile(log.source, database)
    ):
        raise InputError.of(database, "is the log itself; wanted a file for the read models")
    if not Path(database).is_file():
        raise InputError.of(database, "is no regular file; wanted a file for the read models")
    if database != database_of(log.source) and application_of(database) != APPLICATION_ID:
        raise InputError.of(
            database, "is there and holds no read models; remove it or choose another name"
        )


@contextmanager
def _writing(database: str) -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unwritable(database, "the read models cannot be written", error) from None

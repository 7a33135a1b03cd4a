"""The log in one SQLite file: WAL, synchronous FULL, positions that nothing moves.

Schema 1::

    stored_events  position INTEGER PRIMARY KEY, originator_id, originator_version, topic, state (JSON), digest (SHA-256)
    log_head       one row: position and digest of the last event
    fences         name, epoch

and, once a snapshot of the projections was kept (``snapshots.py``), ``projection_snapshots``, which may be dropped at any time.

Every append is one transaction that writes first (the head's row: that takes the write lock), then compares the fences, then inserts.
"""

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, cast
from urllib.parse import quote
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    PersistenceError,
    StoredEvent,
)
from eventsourcing.sqlite import (
    SQLiteAggregateRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
    SQLiteFactory,
)

from xce.adapters.store.recorder import (
    SNAPSHOTS_KEPT,
    Fencing,
    LogRecorder,
    NewRow,
    Row,
    SnapshotRow,
    chain,
    originator_text,
)
from xce.adapters.store.seat import Seat
from xce.adapters.store.seat_file import FileSeat, identity_of
from xce.domain.errors import (
    BrokenLogError,
    ConflictError,
    PermanentError,
    StaleEpochError,
    TransientError,
    XceError,
)
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head

#: "xce1": says in the file's header that it is a log of ours.
APPLICATION_ID: Final = 0x78636531
SCHEMA_VERSION: Final = 1

#: The WAL is written back into the file once it has this many pages (4 KiB each).
CHECKPOINT_PAGES: Final = 4000

#: The largest integer of SQLite.
INTEGER_MAX: Final = 2**63 - 1

_TABLES: Final = (
    """
    CREATE TABLE stored_events (
        position INTEGER PRIMARY KEY,
        originator_id TEXT NOT NULL,
        originator_version INTEGER NOT NULL,
        topic TEXT NOT NULL,
        state BLOB NOT NULL,
        digest BLOB NOT NULL,
        UNIQUE (originator_id, originator_version)
    ) STRICT
    """,
    """
    CREATE TABLE log_head (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        position INTEGER NOT NULL,
        digest BLOB NOT NULL
    ) STRICT
    """,
    "CREATE TABLE fences (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT",
)

#: What was folded, by position and projection; made when it is first needed, and dropped by whoever likes.
_SNAPSHOTS: Final = """
CREATE TABLE IF NOT EXISTS projection_snapshots (
    position INTEGER NOT NULL, digest BLOB NOT NULL, code TEXT NOT NULL, name TEXT NOT NULL, kept BLOB NOT NULL, sum BLOB NOT NULL,
    PRIMARY KEY (position, name)
) STRICT
"""

#: SQLite's primary result codes by what the caller does next; all others are damage.
_TRANSIENT: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
    }
)
_PERMANENT: Final = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_TOOBIG,
    }
)


def create_schema(connection: sqlite3.Connection) -> None:
    """Make an empty database a log."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO log_head VALUES (1, 0, ?)", (GENESIS,))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def uri_of(path: str, *, read_only: bool) -> str:
    """Return the URI that opens an existing file, and never makes one.

    SQLite keeps two files beside a log in use. A connection that may write nothing leaves them there; so where nobody has left a WAL
    that must stay as it is, a reader also opens the file for writing (and is kept from it by ``query_only``), and they go. Where they
    cannot be made, and nobody has the log in use, the file is read as one that does not change.
    """
    folder = os.path.dirname(os.path.abspath(path))
    in_use = os.path.exists(f"{path}-wal")
    can_make = os.access(folder, os.W_OK)
    tidy = not in_use and can_make and os.access(path, os.W_OK)
    if tidy or not read_only:
        return f"file:{quote(path)}?mode=rw"
    still = "" if in_use or can_make else "&immutable=1"
    return f"file:{quote(path)}?mode=ro{still}"


def translated(error: Exception, source: str) -> XceError:
    """Return what an error of SQLite, or of the library about it, means to us."""
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    code = getattr(cause, "sqlite_errorcode", None)
    if not isinstance(code, int):  # the library's own: no connection was free in time
        return TransientError(f"{source}: {error}")
    primary = code & 0xFF
    message = f"{source}: {cause}"
    if primary in _TRANSIENT:
        return TransientError(message)
    if primary in _PERMANENT:
        return PermanentError(message)
    return BrokenLogError(message)


class _Pool(SQLiteConnectionPool):
    """Connections with the settings that durability needs; none of them is left to SQLite's build."""

    read_only = False

    def _create_connection(self) -> SQLiteConnection:
        return SQLiteConnection(self.connect(), max_age=self.max_age)

    def connect(self) -> sqlite3.Connection:
        """Return a new connection."""
        connection = sqlite3.connect(
            self.db_name,
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=self.lock_timeout or 0,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(f"PRAGMA query_only = {self.read_only:d}")
        except sqlite3.Error:
            connection.close()
            raise
        connection.row_factory = sqlite3.Row  # as the library's own recorders expect
        return connection


class Datastore(SQLiteDatastore):
    """The library's datastore on one file that exists."""

    def __init__(self, path: str, *, read_only: bool, lock_timeout_s: int) -> None:
        uri = uri_of(path, read_only=read_only)
        super().__init__(uri, originator_id_type="text")
        self.path = path
        self.read_only = read_only
        self._identity = identity_of(path)
        self._log_pool = _Pool(
            db_name=uri, lock_timeout=lock_timeout_s, pool_timeout=lock_timeout_s
        )
        self._log_pool.read_only = read_only
        self.pool = self._log_pool

    def require_there(self) -> None:
        """Refuse to go on with a file that is not in its place any more: what is written into it is lost with the last who has it open.

        Raises:
            PermanentError: it was removed, or another one is there.
        """
        if identity_of(self.path) != self._identity:
            raise PermanentError(
                f"{self.path} was removed, or another one is in its place: nothing is written any more"
            )

    def connect(self) -> sqlite3.Connection:
        """Return a new connection that is not in the pool."""
        return self._log_pool.connect()

    @contextmanager
    def reading(self) -> Generator[SQLiteCursor]:
        """One transaction that reads; errors of SQLite become ours."""
        try:
            with self.transaction(commit=False) as cursor:
                yield cursor
        except (sqlite3.Error, PersistenceError) as error:
            raise translated(error, self.path) from error


class SQLiteLogRecorder(LogRecorder):
    """Keeps rows in one SQLite file.

    Writes go over one connection of this recorder; reads over the library's pool. The writer remembers the head it left behind: as long
    as nobody else has written, an append is one update, one insert and one commit.
    """

    def __init__(self, datastore: Datastore) -> None:
        self._datastore = datastore
        self._lock = Lock()
        self._writer: sqlite3.Connection | None = None
        self._head = Head(0, GENESIS)

    def append(self, new: Sequence[NewRow], fencing: Fencing) -> list[Row]:
        """Store all or nothing, durably."""
        with self._writing() as writer:
            rows = self._reserve(writer, new)
            if fencing.expected:
                fences = _fences(writer)
                for name, mine in fencing.expected.items():
                    if fences.get(name, 0) != mine:
                        raise StaleEpochError(name, mine, fences.get(name, 0))
            self._insert(writer, rows)
            for name, epoch in fencing.moves.items():
                writer.execute(
                    "INSERT INTO fences VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
                    " SET epoch = max(epoch, excluded.epoch)",
                    (name, epoch),
                )
            # Under the lock, and before the commit: should that fail, the next append finds the head elsewhere and reads it.
            self._head = Head(rows[-1].position, rows[-1].digest)
        return rows

    def page(self, after: int, upto: int | None, limit: int) -> list[Row]:
        """Return one page by position."""
        end = INTEGER_MAX if upto is None else upto
        with self._datastore.reading() as cursor:
            cursor.sqlite_cursor.row_factory = None
            cursor.execute(
                "SELECT position, originator_id, originator_version, topic, state, digest FROM stored_events"
                " WHERE position > ? AND position <= ? ORDER BY position LIMIT ?",
                (after, end, min(limit, max(0, end - after))),
            )
            return list(map(Row._make, cursor.fetchall()))

    def stored_end(self) -> tuple[Head | None, dict[str, int]]:
        """Return the head's row and all fences."""
        with self._datastore.reading() as cursor:
            cursor.execute("SELECT position, digest FROM log_head")
            row = cursor.fetchone()
            return None if row is None else Head(*row), _fences(cursor.sqlite_cursor)

    def move_fence(self, name: str) -> int:
        """Move a fence one further."""
        with self._writing() as writer:
            (row,) = writer.execute(
                "INSERT INTO fences VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1"
                " RETURNING epoch",
                (name,),
            ).fetchall()
            return cast("int", row[0])

    def seat(self) -> Seat:
        """Return the seat of the log's primary, for this process."""
        return FileSeat(self._datastore.path)

    def keep_snapshot(self, rows: Sequence[SnapshotRow]) -> None:
        """Store the rows of one snapshot in place of the oldest."""
        with self._writing() as writer:
            writer.execute(_SNAPSHOTS)
        with self._writing() as writer:
            writer.execute(
                "DELETE FROM projection_snapshots WHERE position = ? OR position NOT IN"
                " (SELECT DISTINCT position FROM projection_snapshots ORDER BY position DESC LIMIT ?)",
                (rows[0].position, SNAPSHOTS_KEPT - 1),
            )
            writer.executemany("INSERT INTO projection_snapshots VALUES (?, ?, ?, ?, ?, ?)", rows)

    def snapshot_rows(self, code: str) -> list[SnapshotRow]:
        """Return the rows of all snapshots that this code made."""
        try:
            with self._datastore.reading() as cursor:
                cursor.sqlite_cursor.row_factory = None
                cursor.execute(
                    "SELECT position, digest, code, name, kept, sum FROM projection_snapshots WHERE code = ?",
                    (code,),
                )
                return list(map(SnapshotRow._make, cursor.fetchall()))
        except BrokenLogError:  # no such table, or a damaged one: the events are what counts
            return []

    def problems(self) -> list[str]:
        """Return what SQLite's own check of the file finds."""
        try:
            with self._datastore.reading() as cursor:
                cursor.execute("PRAGMA quick_check(20)")
                return [row[0] for row in cursor.fetchall() if row[0] != "ok"]
        except BrokenLogError as error:
            return [str(error)]

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
        with self._datastore.reading() as cursor:
            cursor.sqlite_cursor.row_factory = None
            cursor.execute(
                "SELECT originator_id, originator_version, topic, state FROM stored_events"
                " WHERE originator_id = ? AND originator_version > ? AND originator_version <= ?"
                f" ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?",
                (
                    originator_text(originator_id),
                    gt or 0,
                    INTEGER_MAX if lte is None else lte,
                    -1 if limit is None else limit,
                ),
            )
            return [StoredEvent(*row) for row in cursor.fetchall()]

    def close(self) -> None:
        """Close the writer's connection; may be repeated."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """One transaction of the writer, which must write before it reads."""
        path = self._datastore.path
        if self._datastore.read_only:
            raise PermanentError(f"{path} is open for reading only")
        with self._lock:
            try:
                if self._writer is None:
                    self._writer = self._datastore.connect()
                self._writer.execute("BEGIN")
                yield self._writer
                self._datastore.require_there()
                self._writer.execute("COMMIT")
            except BaseException as error:
                if self._writer is not None and self._writer.in_transaction:
                    self._writer.rollback()
                if isinstance(error, sqlite3.Error):
                    raise translated(error, path) from error
                raise

    def _reserve(self, writer: sqlite3.Connection, new: Sequence[NewRow]) -> list[Row]:
        """Move the head and return the rows that lead there. The update takes the write lock, also when it finds nothing."""
        rows = chain(self._head, new)
        if not self._move_head(writer, rows):
            found = writer.execute("SELECT position, digest FROM log_head").fetchone()
            if found is None:
                raise BrokenLogError(f"{self._datastore.path}: the row with the head is missing")
            self._head = Head(*found)
            rows = chain(self._head, new)
            moved = self._move_head(writer, rows)
            assert moved, "the head moved while the write lock was held"
        return rows

    def _move_head(self, writer: sqlite3.Connection, rows: Sequence[Row]) -> bool:
        update = writer.execute(
            "UPDATE log_head SET position = ?, digest = ? WHERE position = ? AND digest = ?",
            (rows[-1].position, rows[-1].digest, self._head.position, self._head.digest),
        )
        return update.rowcount == 1

    def _insert(self, writer: sqlite3.Connection, rows: Sequence[Row]) -> None:
        try:
            writer.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
                raise BrokenLogError(
                    f"{self._datastore.path}: there are events behind the head, position {self._head.position}",
                    rows[0].position,
                ) from None
            ids = sorted({row.originator_id for row in rows})
            raise ConflictError(f"changed by another writer: one of {', '.join(ids[:5])}") from None


def _fences(connection: sqlite3.Connection | sqlite3.Cursor) -> dict[str, int]:
    return {row[0]: row[1] for row in connection.execute("SELECT name, epoch FROM fences")}


class LogSQLiteFactory(SQLiteFactory):
    """Makes the parts of a log in one SQLite file; the file exists and has the schema."""

    def __init__(self, datastore: Datastore) -> None:
        self._log_datastore = datastore
        self._recorder = SQLiteLogRecorder(datastore)
        super().__init__(
            {self.SQLITE_DBNAME: datastore.pool.db_name, self.ORIGINATOR_ID_TYPE: "text"}
        )
        self.datastore.close()
        self.datastore = datastore

    def application_recorder(self) -> ApplicationRecorder:
        """Return the recorder of the events."""
        return self._recorder

    def close(self) -> None:
        """Close all connections; may be repeated."""
        self._recorder.close()
        super().close()

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Return a recorder of the library in a table of its own, for snapshots."""
        recorder = SQLiteAggregateRecorder(self._log_datastore, f"stored_{purpose}")
        if not self._log_datastore.read_only:
            recorder.create_table()
        return recorder


def header_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the schema version in a file's header.

    Raises:
        sqlite3.Error: it is not an SQLite file, or cannot be read.
    """
    ids: tuple[Any] = connection.execute("PRAGMA application_id").fetchone()
    versions: tuple[Any] = connection.execute("PRAGMA user_version").fetchone()
    return int(ids[0]), int(versions[0])

"""Opening a log by its path or address, with one clear error for each way that can fail."""

import os
import secrets
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from xce.adapters.store.addresses import is_address
from xce.adapters.store.log import StoredLog
from xce.adapters.store.memory import MemoryFactory
from xce.adapters.store.seat_file import seat_path
from xce.adapters.store.side_files import unwritable
from xce.adapters.store.sqlite import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    Datastore,
    LogSQLiteFactory,
    create_schema,
    header_of,
    translated,
    uri_of,
)
from xce.domain.errors import InputError, TransientError
from xce.domain.events.stored import EVENTS, EventRegistry

MEMORY: Final = ":memory:"
LOCK_TIMEOUT_S: Final = 10


def open_log(
    path: str | Path,
    *,
    read_only: bool = False,
    lock_timeout_s: int = LOCK_TIMEOUT_S,
    registry: EventRegistry = EVENTS,
) -> StoredLog:
    """Return the log in a file or a database; close it when done, or use it in a ``with`` statement.

    Args:
        path: an SQLite file; an address of PostgreSQL (``postgresql/address.py``); or ":memory:" for a new log that is not kept. A file, or
            tables, that do not exist are made, whole or not at all, unless ``read_only``.
        read_only: write nothing into the file; also right for a log that another process writes, or left when it was killed.
        lock_timeout_s: how long an append waits for another writer.
        registry: the events that can be read.

    Raises:
        InputError: the file or database cannot be read or is not a log that this release can read.
        PermanentError: a new file, or tables, cannot be made there.
        TransientError: the file is locked for longer than the timeout; the disk has no room for a new one; the server cannot be reached.
    """
    name = os.fspath(path)
    if name == MEMORY:
        return StoredLog(MemoryFactory({}), registry, MEMORY)
    if is_address(name):
        return _open_postgresql(
            name, read_only=read_only, lock_timeout_s=lock_timeout_s, registry=registry
        )
    if not read_only and not os.path.lexists(name):
        _require_new(name)
        _create(name)
    _require_log(name, read_only=read_only, lock_timeout_s=lock_timeout_s)
    datastore = Datastore(name, read_only=read_only, lock_timeout_s=lock_timeout_s)
    return StoredLog(LogSQLiteFactory(datastore), registry, name)


def _open_postgresql(
    text: str, *, read_only: bool, lock_timeout_s: int, registry: EventRegistry
) -> StoredLog:
    try:  # an extra of the package; the library's part of it is slow to import, too
        from xce.adapters.store.postgresql.address import read_address
        from xce.adapters.store.postgresql.factory import LogPostgresqlFactory
        from xce.adapters.store.postgresql.sessions import Sessions
    except ImportError as error:
        raise InputError.of(
            "a log on PostgreSQL",
            f"needs the extra postgresql: pip install 'xce[postgresql]' ({error})",
        ) from None
    address = read_address(text)
    sessions = Sessions(
        address,
        application=f"xce {secrets.token_hex(8)}",
        read_only=read_only,
        lock_timeout_s=lock_timeout_s,
    )
    return StoredLog(LogPostgresqlFactory(sessions), registry, address.shown)


def _require_log(name: str, *, read_only: bool, lock_timeout_s: int) -> None:
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise InputError.of(name, "is a directory; wanted the file of a log")
        if not stat.S_ISREG(mode):
            raise InputError.of(name, "is not a regular file; wanted the file of a log")
        with open(name, "rb" if read_only else "r+b") as file:
            start = file.read(16)
    except OSError as error:
        word = "read" if read_only or not os.access(name, os.R_OK) else "written"
        raise InputError.of(name, f"cannot be {word}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(name, f"cannot be read: {error}") from None
    if not start:
        raise InputError.of(name, "is empty; wanted the file of a log")
    if start != b"SQLite format 3\x00":
        raise InputError.of(name, "is not a log: it is not an SQLite file")
    uri = uri_of(name, read_only=read_only)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=lock_timeout_s)) as connection:
            _require_schema(name, connection)
    except sqlite3.Error as error:
        mine = translated(error, name)
        if isinstance(mine, TransientError):
            raise mine from None
        raise InputError.of(name, f"cannot be read as a log: {error}") from None


def _require_schema(name: str, connection: sqlite3.Connection) -> None:
    application_id, version = header_of(connection)
    if application_id != APPLICATION_ID:
        raise InputError.of(name, "is not a log: it is the SQLite file of another program")
    if not 1 <= version <= SCHEMA_VERSION:
        raise InputError.of(
            name,
            f"was written by another release: its schema is {version}, this release reads 1 to {SCHEMA_VERSION}",
        )
    for table in ("stored_events", "log_head", "fences"):
        connection.execute(f"SELECT * FROM {table} LIMIT 0").fetchall()


def _require_new(name: str) -> None:
    """Refuse to begin a log anew in the place of one that was there: all that it owned would be nobody's."""
    for left in (seat_path(name), f"{name}-wal"):
        if os.path.lexists(left) and not os.path.lexists(name):  # nor has it come meanwhile
            raise InputError.of(
                name,
                f"is gone, while its companion {os.path.basename(left)} is still there; put the log back, or a backup of it;"
                f" to begin a new one remove {os.path.basename(left)}, too",
            )


def _create(name: str) -> None:
    """Make an empty log under another name and put it in place whole, so that a kill leaves no half of one."""
    unfinished = f"{name}.{os.getpid()}.new"
    try:
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
            create_schema(connection)
        try:
            os.link(unfinished, name)
        except FileExistsError:
            pass  # another process made it meanwhile
        finally:
            os.unlink(unfinished)
        _sync_folder(os.path.dirname(os.path.abspath(name)))
    except (OSError, sqlite3.Error, ValueError) as error:
        for rest in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError, ValueError):
                os.unlink(f"{unfinished}{rest}")
        raise unwritable(name, "a new log cannot be made", error) from None


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

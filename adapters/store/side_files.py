"""Files beside a log that are made from it and can be thrown away: whose they are, and who may read them."""

import os
import sqlite3
import stat
from contextlib import closing, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

import xce.adapters.store
import xce.domain
import xce.projections

#: Parts of the code that decide what to do next, or store events; what has been is not their matter.
WITHOUT_A_SAY: Final = frozenset(
    {
        "cluster", "demand", "engine", "scheduling", "postgresql", "log.py", "memory.py", "open.py", "recorder.py",
        "sqlite.py", "application.py", "verify.py",
    }
)  # fmt: skip

#: SQLite, and whatever else a folder or a disk can do.
FILE_ERRORS: Final = (sqlite3.Error, OSError)


def uri_of(path: str, mode: str) -> str:
    """Return the URI of an existing file: ``mode`` is ro, rw or rwc."""
    return f"file:{quote(path)}?mode={mode}"


def application_of(path: str) -> int | None:
    """Return the application id in the header of an SQLite file; None: it is none, or cannot be read."""
    try:
        with closing(sqlite3.connect(uri_of(path, "ro"), uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            (row,) = connection.execute("PRAGMA application_id").fetchall()
    except sqlite3.Error:
        return None
    return int(row[0])


def make_private(path: str, log: str) -> None:
    """Let nobody read a file made from a log who may not read the log; where the log is no file, nobody but the owner."""
    try:
        mode = stat.S_IMODE(os.stat(log).st_mode)
    except (OSError, ValueError):
        mode = 0o600
    os.chmod(path, (mode & 0o666) | 0o600)


def remove(path: str) -> None:
    """Remove an SQLite file with what SQLite may have left beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


@cache
def code_digest() -> str:
    """Return a digest of the code that says what a log amounts to, and of the code that makes these files.

    What was made by other code may be wrong by now, and is made again.
    """
    digest = sha256()
    for package in (xce.domain, xce.projections, xce.adapters.store):
        assert package.__file__ is not None
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            if path.relative_to(folder).parts[0] not in WITHOUT_A_SAY:
                digest.update(f"{path.relative_to(folder)}\0".encode())
                digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()

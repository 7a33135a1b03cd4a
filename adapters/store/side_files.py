"""Files beside a log that are made from it and can be thrown away: whose they are, and who may read them."""

import errno
import os
import re
import sqlite3
import stat
from contextlib import closing, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

import xce.domain
import xce.projections
from xce.adapters.store.addresses import is_address
from xce.adapters.store.sqlite import translated
from xce.domain.errors import PermanentError, TransientError

#: Parts of the domain that decide what to do next; what has been is not their matter.
WITHOUT_A_SAY: Final = frozenset({"cluster", "demand", "engine", "scheduling"})
#: In this folder: what makes files that code makes anew.
MAKERS: Final = ("audit*.py", "checkpoints.py", "side_files.py", "snapshots.py")

#: SQLite, and whatever else a folder or a disk can do.
FILE_ERRORS: Final = (sqlite3.Error, OSError)


#: What a file name made of an address does not have.
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")

#: What a full disk and a used-up quota are called: there may be room later.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def beside(log: str, suffix: str) -> str:
    """Return where a file made from a log lies: beside a log that is a file, in the present folder for one on PostgreSQL."""
    if not is_address(log):
        return f"{log}.{suffix}"
    place = urlsplit(log)
    settings = dict(parse_qsl(place.query))
    parts = (place.hostname, place.port, place.path.strip("/"), settings.get("schema"))
    name = "-".join(str(part) for part in parts if part)
    return f"{_NOT_IN_NAMES.sub('_', name) or 'postgresql'}.{suffix}"


def unwritable(path: str, what: str, error: Exception) -> TransientError | PermanentError:
    """Return the error for a file that cannot be written: ``what`` says which, and that it cannot be."""
    message = f"{path}: {what}: {error}"
    if isinstance(error, sqlite3.Error):
        again = isinstance(translated(error, path), TransientError)
    else:
        again = isinstance(error, OSError) and error.errno in _NO_ROOM
    return TransientError(message) if again else PermanentError(message)


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
    folders = [Path(package.__path__[0]) for package in (xce.domain, xce.projections)]
    paths = [
        path
        for folder in folders
        for path in folder.rglob("*.py")
        if path.relative_to(folder).parts[0] not in WITHOUT_A_SAY
    ]
    here = Path(__file__).parent
    paths += [path for pattern in MAKERS for path in here.glob(pattern)]
    for path in sorted(paths):
        digest.update(f"{path.parent.name}/{path.name}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()

"""The seat of a log in an SQLite file: the file ``LOG.primary``, its lock, and the process that holds it. All on one machine.

A frozen process keeps SQLite's write lock, so it must end before anybody can take over: by process id and start time (decision recorded in
docs/adr). The file is never removed: a lock on a file that is gone would lock nothing.
"""

import fcntl
import json
import os
import stat
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any, Final

from xce.adapters.store.processes import Process
from xce.adapters.store.seat import Sign
from xce.domain.errors import TransientError

#: The sign is written in one piece of this size.
_SIZE: Final = 2048
_TEXT_MAX: Final = 256


def seat_path(log: str) -> str:
    """Return where the seat of a log is."""
    return f"{log}.primary"


def identity_of(path: str) -> tuple[int, int] | None:
    """Return which file has a name; None: there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class FileSeat:
    """The seat of one log, for this process."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._log_was = identity_of(log)
        self._path = seat_path(log)
        self._descriptor: int | None = None
        self._mine: Sign | None = None
        self._locked = False

    def sign(self) -> Sign | None:
        """Return what stands there."""
        try:
            return _decoded(os.pread(self._open(), _SIZE, 0))
        except OSError as error:
            raise self._unreachable(error) from None

    def claim(self) -> bool:
        """Take the lock without waiting."""
        try:
            fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._unreachable(error) from None
        self._locked = True
        return True

    def evict(self, sign: Sign) -> None:
        """End the process that put up the sign."""
        Process(**json.loads(sign.where)).end()

    def clear(self, sign: Sign) -> None:
        """Do nothing: a process that has lost the lock has ended, and everything of it with it."""

    def sit(self, *, epoch: int, name: str, url: str) -> None:
        """Put up my sign."""
        assert self._locked, "whoever sits down has the lock"
        where = json.dumps(asdict(Process.of_self()))
        self._put(Sign(epoch, 0, name[:_TEXT_MAX], url[:_TEXT_MAX], where))

    def beat(self) -> bool:
        """Count on, unless the file, or the log itself, was removed or put in place of another."""
        if self._mine is None:
            return False
        try:
            here = os.fstat(self._open())
            there, log = identity_of(self._path), identity_of(self._log)
        except OSError as error:
            raise self._unreachable(error) from None
        if there != (here.st_dev, here.st_ino) or log != self._log_was:
            return False
        self._put(replace(self._mine, beat=self._mine.beat + 1))
        return True

    def leave(self) -> None:
        """Take my sign down and let go of the lock."""
        try:
            if self._mine is not None:
                self._mine = None
                os.pwrite(self._open(), bytes(_SIZE), 0)
            if self._locked:
                self._locked = False
                fcntl.flock(self._open(), fcntl.LOCK_UN)
        except OSError as error:
            raise self._unreachable(error) from None

    def close(self) -> None:
        """Close the file, and the lock with it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._locked = False
            self._mine = None

    def _open(self) -> int:
        if self._descriptor is None:
            mode = stat.S_IMODE(os.stat(self._log).st_mode)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        return self._descriptor

    def _put(self, sign: Sign) -> None:
        try:
            os.pwrite(self._open(), _encoded(sign), 0)
        except OSError as error:
            raise self._unreachable(error) from None
        self._mine = sign

    def _unreachable(self, error: OSError) -> TransientError:
        return TransientError(f"{self._path}: {error.strerror or error}")


def _encoded(sign: Sign) -> bytes:
    text = json.dumps(asdict(sign)).encode()
    data = sha256(text).hexdigest()[:16].encode() + b" " + text
    assert len(data) <= _SIZE, "the texts of a sign are short"
    return data.ljust(_SIZE, b"\0")


def _decoded(data: bytes) -> Sign | None:
    """Return the sign; None: there is none, or it is being written this moment, which the next look will tell."""
    found, _, text = data.rstrip(b"\0").partition(b" ")
    if not text or sha256(text).hexdigest()[:16].encode() != found:
        return None
    document: dict[str, Any] = json.loads(text)
    return Sign(**document)

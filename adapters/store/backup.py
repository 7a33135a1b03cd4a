"""A copy of a log while others write it: whole as of one moment, checked, and there only when it is."""

import os
import sqlite3
from contextlib import closing, suppress

from xce.adapters.store.addresses import is_address
from xce.adapters.store.open import open_log
from xce.adapters.store.side_files import make_private, remove, unwritable
from xce.adapters.store.sqlite import uri_of
from xce.adapters.store.verify import verify
from xce.domain.errors import BrokenLogError, InputError
from xce.domain.events.recorded import Head


def backup(log: str, target: str, *, check: bool = True) -> Head:
    """Copy a log into a new file and return the end of the copy; those who write the log do not wait.

    All is copied in one reading transaction: the copy is the log at one moment. It comes into being under another name and gets its
    own once it is on the disk and, with ``check``, has been verified as ``xce audit verify`` does.

    Raises:
        InputError: the log cannot be read; or there is something of the name already.
        BrokenLogError: the copy does not verify, because the log does not; nothing is left behind.
        PermanentError: the copy cannot be written.
        TransientError: the disk is full.
    """
    _require_new(target)
    if is_address(log):
        raise InputError.of(
            "backup", "copies SQLite files; a log on PostgreSQL is backed up with pg_dump"
        )
    with open_log(log, read_only=True):
        pass  # what is no log is said before anything is made
    unfinished = f"{target}.{os.getpid()}.new"
    try:
        _copy(log, unfinished)
        head = _checked(unfinished, log, thorough=check)
        _sync(unfinished)
        try:
            os.link(unfinished, target)
        except FileExistsError:
            _require_new(target)
            raise
        _sync(os.path.dirname(os.path.abspath(target)))
    except (sqlite3.Error, OSError, ValueError) as error:
        raise unwritable(target, "a copy cannot be made", error) from None
    finally:
        with suppress(OSError, ValueError):
            remove(unfinished)
    return head


def _require_new(target: str) -> None:
    if os.path.lexists(target):
        raise InputError.of(target, "is there already; a backup never replaces a file")


def _copy(log: str, unfinished: str) -> None:
    remove(unfinished)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    make_private(unfinished, log)
    with (
        closing(sqlite3.connect(uri_of(log, read_only=True), uri=True)) as source,
        closing(sqlite3.connect(unfinished)) as copy,
    ):
        source.execute("PRAGMA query_only = ON")
        source.backup(
            copy, pages=-1
        )  # all in one step: a second step would begin anew whenever somebody writes


def _checked(unfinished: str, log: str, *, thorough: bool) -> Head:
    with open_log(unfinished, read_only=True) as copy:
        if not thorough:
            return copy.head()
        report = verify(copy)
    if not report.passed or report.head is None:
        broken = ", ".join(check.name for check in report.checks if not check.passed)
        first = next((f for check in report.checks for f in check.findings), None)
        raise BrokenLogError(
            f"the copy of {log} does not verify ({broken}): {first}; nothing was kept. xce audit verify names all that is wrong;"
            " --no-check copies it as it is"
        )
    return report.head


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

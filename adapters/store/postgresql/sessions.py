"""Connections to PostgreSQL: their settings, what their errors mean, and a few that are kept open for readers.

No setting that durability needs is left to the server or its administrator. Nothing waits for ever: connecting, locks, statements, a session that
sleeps inside a transaction, and a peer that is silent, all have a limit.
"""

import re
from collections.abc import Callable
from threading import BoundedSemaphore, Lock
from typing import Any, Final, TypeVar

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from xce.adapters.store.postgresql.address import Address
from xce.domain.errors import (
    BrokenLogError,
    InputError,
    PermanentError,
    TransientError,
    XceError,
)

T = TypeVar("T")

Session = Connection[TupleRow]

CONNECT_TIMEOUT_S: Final = 5
STATEMENT_TIMEOUT_S: Final = 30
#: A session that holds locks and sends nothing for so long is ended by the server: its process is frozen or gone.
IDLE_IN_TRANSACTION_S: Final = 10
#: A peer that does not confirm what was sent for so long is gone.
SILENCE_S: Final = 10
#: At most so many readers at once, and so many connections kept open for them.
READERS_MAX: Final = 10
#: PostgreSQL 14 is the first that can wait for the end of a session.
SERVER_MIN: Final = 140_000

#: Prepared at the first use: the same few statements come again and again.
_PREPARE_THRESHOLD: Final = 0

#: Refusals at connecting that no retry mends. libpq gives no code for them, only the server's message, mostly in English.
_REFUSED: Final = re.compile(
    r"authentication failed|no password supplied|does not exist|no pg_hba\.conf entry|not permitted to log in"
    r"|permission denied for database|invalid connection option|invalid sslmode|certificate|does not support SSL"
    r"|is not currently accepting connections",
)

_TRANSIENT: Final = (
    "08",  # connection
    "40",  # rolled back for the sake of others
    "53",  # out of disk, memory, connections
    "55P03",  # lock timeout
    "57",  # shut down, starting, cancelled by a timeout
    "58",  # input and output
    "25P03",  # ended while idle inside a transaction
)
_DAMAGED: Final = ("XX001", "XX002", "42P01", "3F000", "42703")


def translated(error: psycopg.Error, shown: str) -> XceError:
    """Return what an error of PostgreSQL means to us."""
    code = error.sqlstate
    message = f"{shown}: {_one_line(error)}"
    if code is None:
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return TransientError(message)
        return PermanentError(message)
    if code.startswith(_TRANSIENT):
        return TransientError(message)
    if code in _DAMAGED:
        return BrokenLogError(message)
    return PermanentError(message)


def _one_line(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error) or type(error).__name__
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


class Sessions:
    """Opens sessions on one database, and lends a few of them to readers. Threads may share it."""

    def __init__(
        self, address: Address, *, application: str, read_only: bool, lock_timeout_s: int
    ) -> None:
        self.address = address
        #: Marks all sessions of one open log, so that a standby can end them together.
        self.application = application
        self.read_only = read_only
        self._lock_timeout_s = lock_timeout_s
        self._idle: list[Session] = []
        self._idle_lock = Lock()
        self._places = BoundedSemaphore(READERS_MAX)
        self._closed = False

    def connect(self) -> Session:
        """Return a new session of the caller's own.

        Raises:
            InputError: the server refuses it: user, password, database.
            TransientError: the server cannot be reached, or is starting or stopping.
        """
        shown = self.address.shown
        try:
            session = psycopg.connect(
                self.address.conninfo,
                autocommit=True,
                prepare_threshold=_PREPARE_THRESHOLD,
                connect_timeout=CONNECT_TIMEOUT_S,
                application_name=self.application,
                client_encoding="utf8",
                keepalives_idle=SILENCE_S // 2,
                keepalives_interval=1,
                keepalives_count=SILENCE_S // 2,
                tcp_user_timeout=SILENCE_S * 1000,
            )
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            message = _one_line(error)
            if _REFUSED.search(message):
                raise InputError.of(shown, f"cannot be opened: {message}") from None
            raise TransientError(f"{shown}: cannot be reached: {message}") from None
        except psycopg.Error as error:
            raise InputError.of(shown, f"cannot be opened: {_one_line(error)}") from None
        try:
            self._set(session)
        except psycopg.Error as error:
            session.close()
            raise translated(error, shown) from None
        except BaseException:
            session.close()
            raise
        return session

    def _set(self, session: Session) -> None:
        if session.info.server_version < SERVER_MIN:
            raise InputError.of(
                self.address.shown,
                f"is PostgreSQL {session.info.server_version // 10_000}; wanted {SERVER_MIN // 10_000} or newer",
            )
        settings = (
            # remote_apply, the one level above, may stay.
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');"
            # 0 would be "for ever".
            f"SET lock_timeout = {max(1, self._lock_timeout_s * 1000)};"
            f"SET statement_timeout = {max(STATEMENT_TIMEOUT_S, self._lock_timeout_s + 1) * 1000};"
            f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_S * 1000};"
            "SET default_transaction_isolation = 'read committed';"
            f"SET default_transaction_read_only = {'on' if self.read_only else 'off'};"
            f"SET tcp_keepalives_idle = {SILENCE_S // 2}; SET tcp_keepalives_interval = 1;"
            f"SET tcp_keepalives_count = {SILENCE_S // 2}; SET tcp_user_timeout = {SILENCE_S * 1000}"
        )
        session.execute(settings.encode(), prepare=False)

    def read(self, work: Callable[[Session], T]) -> T:
        """Return what ``work`` reads over a session that is lent to it; it may be called twice, where a kept session had died.

        Raises:
            TransientError: the server cannot be reached; may be repeated.
            BrokenLogError: the tables are gone or damaged.
        """
        if not self._places.acquire(timeout=max(1, self._lock_timeout_s)):
            raise TransientError(f"{self.address.shown}: {READERS_MAX} readers are at work")
        try:
            session = self._kept()
            if session is not None:
                try:
                    return self._work(session, work)
                except TransientError:
                    if not session.closed:
                        raise
            return self._work(self.connect(), work)
        finally:
            self._places.release()

    def _work(self, session: Session, work: Callable[[Session], T]) -> T:
        try:
            result = work(session)
        except psycopg.Error as error:
            session.close() if session.broken else self._keep(session)
            raise translated(error, self.address.shown) from None
        except BaseException:
            session.close()  # in an unknown state
            raise
        self._keep(session)
        return result

    def _kept(self) -> Session | None:
        with self._idle_lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, session: Session) -> None:
        with self._idle_lock:
            if not self._closed:
                self._idle.append(session)
                return
        session.close()

    def close(self) -> None:
        """Close all that is kept open; may be repeated."""
        with self._idle_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()


#: What tells a session on the server from all others: its process id and its start.
Identity = tuple[Any, ...]

_SELF: Final = b"SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END_SESSION: Final = b"SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
#: How long the end of a session is waited for.
END_WAIT_MS: Final = 5_000


def identity_of(session: Session) -> Identity:
    """Return what tells a session from all others."""
    (identity,) = rows_of(session, _SELF)
    return identity


def end_session(session: Session, identity: Identity) -> None:
    """End another session of ours, whose connection was lost, and return when it has ended; what it has not done by then it will not do."""
    rows_of(session, _END_SESSION, (END_WAIT_MS, *identity))


def rows_of(session: Session, query: bytes, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Return all rows of a query, in the binary format: numbers and bytes come without text in between."""
    return session.execute(query, parameters, binary=True).fetchall()

"""The seat of a log on PostgreSQL: an advisory lock held by a session, and a row. Whoever loses the session loses the seat.

A frozen or cut-off primary may keep sessions that hold locks: they are ended before somebody else sits down. That needs the same role on the server.
"""

from collections.abc import Callable
from typing import Final, LiteralString, TypeVar

import psycopg

from xce.adapters.store.postgresql.schema import LOCK_CLASS, query
from xce.adapters.store.postgresql.sessions import (
    END_WAIT_MS,
    Identity,
    Session,
    Sessions,
    end_session,
    identity_of,
    rows_of,
    translated,
)
from xce.adapters.store.seat import Sign
from xce.domain.errors import PermanentError, TransientError

T = TypeVar("T")

_SIGN: Final[LiteralString] = (
    "SELECT epoch, beat, name, url, application FROM {schema}.seat WHERE id = 1"
)
_SIT: Final[LiteralString] = """
INSERT INTO {schema}.seat VALUES (1, %s, 0, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET
    epoch = excluded.epoch, beat = 0, name = excluded.name, url = excluded.url, application = excluded.application
"""
_BEAT: Final[LiteralString] = """
UPDATE {schema}.seat SET beat = beat + 1 WHERE id = 1 AND epoch = %s AND application = %s RETURNING beat
"""
_LEAVE: Final[LiteralString] = (
    "DELETE FROM {schema}.seat WHERE id = 1 AND epoch = %s AND application = %s"
)
_CLAIM: Final = b"SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_LET_GO: Final = b"SELECT pg_advisory_unlock(%s, hashtext(%s))"
_THEIRS: Final = (
    b" FROM pg_stat_activity"
    b" WHERE application_name = %s AND datname = current_database() AND pid <> pg_backend_pid()"
)
#: All at once, since waiting for the end of each takes a tenth of a second or more; then for those that are still there.
_END: Final = b"SELECT pg_terminate_backend(pid)" + _THEIRS
_WAIT: Final = b"SELECT pg_terminate_backend(pid, %s)" + _THEIRS


class SessionSeat:
    """The seat of one log, for this process."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._shown = sessions.address.shown
        self._key = (LOCK_CLASS, f"seat {sessions.address.schema}")
        self._session: Session | None = None
        #: The last session at the seat; it may still hold the lock after its connection was lost.
        self._identity: Identity | None = None
        self._locked = False
        self._epoch: int | None = None
        schema = sessions.address.schema
        self._sign, self._sit = query(schema, _SIGN), query(schema, _SIT)
        self._beat, self._leave = query(schema, _BEAT), query(schema, _LEAVE)

    def sign(self) -> Sign | None:
        """Return what stands there."""
        rows = self._do(lambda session: rows_of(session, self._sign))
        return Sign(*rows[0]) if rows else None

    def claim(self) -> bool:
        """Take the lock without waiting."""

        def take(session: Session) -> bool:
            if not self._locked:
                ((self._locked,),) = rows_of(session, _CLAIM, self._key)
            return self._locked

        return self._do(take)

    def evict(self, sign: Sign) -> None:
        """End all sessions of the one who put up the sign."""
        if sign.where == self._sessions.application:
            raise PermanentError("the one to be ended is this process itself")
        try:
            self._do(lambda session: rows_of(session, _END, (sign.where,)))
            ended = self._do(lambda session: rows_of(session, _WAIT, (END_WAIT_MS, sign.where)))
        except PermanentError as error:
            raise PermanentError(
                f"{error}: all controllers of a log must connect as the same role"
            ) from None
        if not all(done for (done,) in ended):
            raise TransientError(f"{self._shown}: a session of {sign.name} has not ended yet")

    def clear(self, sign: Sign) -> None:
        """End the sessions of the one before: that at the seat is gone, others may not be."""
        if sign.where != self._sessions.application:
            self.evict(sign)

    def sit(self, *, epoch: int, name: str, url: str) -> None:
        """Put up my sign."""
        assert self._locked, "whoever sits down has the lock"
        values = (epoch, name, url, self._sessions.application)
        self._do(lambda session: session.execute(self._sit, values))
        self._epoch = epoch

    def beat(self) -> bool:
        """Count on; over a new session, if the lock can be had again."""
        if self._epoch is None or not self.claim():
            return False
        values = (self._epoch, self._sessions.application)
        return bool(self._do(lambda session: rows_of(session, self._beat, values)))

    def leave(self) -> None:
        """Take my sign down and let go of the lock."""
        if self._epoch is not None:
            values = (self._epoch, self._sessions.application)
            self._do(lambda session: session.execute(self._leave, values))
            self._epoch = None
        if self._locked:
            self._do(lambda session: rows_of(session, _LET_GO, self._key))
            self._locked = False

    def close(self) -> None:
        """Close the session, and the lock with it."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._locked = False

    def _do(self, work: Callable[[Session], T]) -> T:
        try:
            if self._session is None:
                self._session = self._sessions.connect()
                if self._identity is not None:
                    end_session(self._session, self._identity)
                self._identity = identity_of(self._session)
                # What stands at the seat need not survive the server.
                self._session.execute("SET synchronous_commit = off")
            return work(self._session)
        except psycopg.Error as error:
            if self._session is not None and self._session.closed:
                self.close()
            raise translated(error, self._shown) from None

"""The log on PostgreSQL: one statement an append, one row that all writers wait at.

Whoever appends moves the row of the head from where it believes it is to behind its own events, and inserts them, in one statement and so
in one transaction. Writers wait for each other at that row until commit; so positions have no holes, and the order of positions is the order of
commits: a reader that has seen a position has seen all before it, and nothing can still appear there (F28).

The writer remembers the head it left and the fences of that moment. Every move of a fence changes the row of the head too; so where the statement
finds the head as remembered, the fences are as remembered. Where it does not, everything is read anew under the row's lock.

When the connection is lost before the answer, the outcome is unknown. The old session is ended, then the log is asked for the digest of the
last event: it is there, or the append never happened. As long as nobody can be asked, the error says so, and the repeated call finds out.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Final, LiteralString, TypeVar, cast
from uuid import UUID

import psycopg
from eventsourcing.persistence import StoredEvent
from psycopg.types.numeric import Int8

from xce.adapters.store.postgresql.schema import query
from xce.adapters.store.postgresql.seat import SessionSeat
from xce.adapters.store.postgresql.sessions import (
    Identity,
    Session,
    Sessions,
    end_session,
    identity_of,
    rows_of,
    translated,
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
from xce.domain.errors import (
    BrokenLogError,
    ConflictError,
    PermanentError,
    StaleEpochError,
    TransientError,
)
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head

T = TypeVar("T")

#: The largest bigint.
INTEGER_MAX: Final = 2**63 - 1

_APPEND: Final[LiteralString] = """
WITH moved AS (
    UPDATE {schema}.log_head SET position = %b, digest = %b, changes = changes + %b
    WHERE id = 1 AND position = %b AND digest = %b AND changes = %b
    RETURNING id
), stored AS (
    INSERT INTO {schema}.stored_events
    SELECT new.* FROM moved, unnest(%b::bigint[], %b::text[], %b::bigint[], %b::text[], %b::bytea[], %b::bytea[]) AS new
)
SELECT count(*) FROM moved
"""
_SET_FENCE: Final[LiteralString] = """
INSERT INTO {schema}.fences VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET epoch = greatest(fences.epoch, excluded.epoch)
"""
_MOVE_FENCE: Final[LiteralString] = """
INSERT INTO {schema}.fences VALUES (%s, 1)
ON CONFLICT (name) DO UPDATE SET epoch = fences.epoch + 1 RETURNING epoch
"""
_PAGE: Final[LiteralString] = """
SELECT position, originator_id, originator_version, topic, state, digest FROM {schema}.stored_events
WHERE position > %s AND position <= %s ORDER BY position LIMIT %s
"""
_END: Final[LiteralString] = """
SELECT 1, position, digest, NULL, NULL FROM {schema}.log_head WHERE id = 1
UNION ALL SELECT 2, NULL, NULL, name, epoch FROM {schema}.fences
"""
_STREAM: Final[LiteralString] = """
SELECT originator_id, originator_version, topic, state FROM {schema}.stored_events
WHERE originator_id = %s AND originator_version > %s AND originator_version <= %s
"""
_DROP_SNAPSHOTS: Final[LiteralString] = """
DELETE FROM {schema}.snapshots WHERE position = %s OR position NOT IN
    (SELECT DISTINCT position FROM {schema}.snapshots ORDER BY position DESC LIMIT %s)
"""
_SETTINGS: Final = b"""
SELECT name, current_setting(name) FROM unnest(ARRAY[
    'synchronous_commit', 'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'default_transaction_isolation'
]) AS name
"""


@dataclass(frozen=True, slots=True)
class _End:
    """What the writer believes: the head, its count of changes, and the fences of that moment."""

    head: Head
    changes: int
    fences: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Doubt:
    """An append whose outcome is unknown, and the session that made it.

    Attributes:
        rows: what was to be stored; empty: nothing was, so far.
        session: process id and start of the session on the server.
    """

    rows: tuple[Row, ...]
    session: Identity


class PostgresqlLogRecorder(LogRecorder):
    """Keeps rows in one schema of a database. Writes go over one session of this recorder; reads over others."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._shown = sessions.address.shown
        self._lock = Lock()
        self._writer: Session | None = None
        self._writer_session: Identity = ()
        self._end = _End(Head(0, GENESIS), -1, {})  # no log has this; so the first append reads
        self._doubt: _Doubt | None = None
        #: Stored although the caller was told that nobody knows; for the call that is repeated.
        self._untold: tuple[Row, ...] = ()
        schema = sessions.address.schema
        self._append_query = query(schema, _APPEND)
        self._set_fence = query(schema, _SET_FENCE)
        self._move_fence = query(schema, _MOVE_FENCE)
        self._page = query(schema, _PAGE)
        self._stored_end = query(schema, _END)
        self._stream = query(schema, _STREAM)
        self._lock_head = query(
            schema,
            "SELECT position, digest, changes FROM {schema}.log_head WHERE id = 1 FOR UPDATE",
        )
        self._fences = query(schema, "SELECT name, epoch FROM {schema}.fences")
        self._count_change = query(
            schema, "UPDATE {schema}.log_head SET changes = changes + 1 WHERE id = 1"
        )
        self._drop_snapshots = query(schema, _DROP_SNAPSHOTS)
        self._keep_snapshot = query(
            schema, "INSERT INTO {schema}.snapshots VALUES (%s, %s, %s, %s, %s, %s)"
        )
        self._snapshot_rows = query(
            schema,
            "SELECT position, digest, code, name, kept, sum FROM {schema}.snapshots WHERE code = %s",
        )
        self._digest = query(
            schema, "SELECT digest FROM {schema}.stored_events WHERE position = %s"
        )

    # ------------------------------------------------------------------ writing
    def append(self, new: Sequence[NewRow], fencing: Fencing) -> list[Row]:
        """Store all or nothing, durably."""
        with self._lock:
            self._require_writable()
            for attempt in (1, 2):
                self._settle()
                if self._untold and [NewRow(*row[1:5]) for row in self._untold] == list(new):
                    rows, self._untold = list(self._untold), ()
                    return rows
                try:
                    rows = self._append(new, fencing)
                except _LostError as lost:  # ask what became of it, and try once more
                    if attempt == 2:
                        raise TransientError(str(lost)) from None
                else:
                    return rows
            raise AssertionError("the second attempt returns or raises")

    def move_fence(self, name: str) -> int:
        """Move a fence one further. Repeated after a lost connection it may move twice, which harms nobody."""
        with self._lock:
            self._require_writable()
            for attempt in (1, 2):
                self._settle()
                try:
                    with self._writing(()) as writer, writer.transaction():
                        self._locked_end(writer)
                        ((epoch,),) = rows_of(writer, self._move_fence, (name,))
                        writer.execute(self._count_change)
                    return cast("int", epoch)
                except _LostError as lost:
                    if attempt == 2:
                        raise TransientError(str(lost)) from None
            raise AssertionError("the second attempt returns or raises")

    def _require_writable(self) -> None:
        if self._sessions.read_only:
            raise PermanentError(f"{self._shown} is open for reading only")

    def _append(self, new: Sequence[NewRow], fencing: Fencing) -> list[Row]:
        if not fencing.moves and _stale(self._end, fencing) is None:
            rows = chain(self._end.head, new)
            with self._writing(rows) as writer:
                if self._store(writer, self._end, rows, 0):
                    self._end = _End(
                        Head(rows[-1].position, rows[-1].digest),
                        self._end.changes,
                        self._end.fences,
                    )
                    return rows
        # Somebody else has written, or this moves a fence: look at everything while nobody can change it.
        with self._writing(()) as writer, writer.transaction():
            end = self._locked_end(writer)
            stale = _stale(end, fencing)
            if stale is not None:
                self._end = end
                raise stale
            rows = chain(end.head, new)
            self._doubt = _Doubt(tuple(rows), self._writer_session)
            stored = self._store(writer, end, rows, int(bool(fencing.moves)))
            assert stored, "the head moved while its row was locked"
            for name, epoch in fencing.moves.items():
                writer.execute(self._set_fence, (name, epoch))
        fences = dict(end.fences)
        for name, epoch in fencing.moves.items():
            fences[name] = max(epoch, fences.get(name, 0))
        self._end = _End(
            Head(rows[-1].position, rows[-1].digest),
            end.changes + int(bool(fencing.moves)),
            fences,
        )
        return rows

    def _store(self, writer: Session, end: _End, rows: Sequence[Row], changes: int) -> bool:
        """Move the head and insert; False: the head is not where it was believed to be, and nothing was done."""
        columns = list(zip(*rows, strict=True))
        try:
            ((moved,),) = rows_of(
                writer,
                self._append_query,
                (
                    Int8(rows[-1].position), rows[-1].digest, Int8(changes),
                    Int8(end.head.position), end.head.digest, Int8(end.changes),
                    [Int8(position) for position in columns[0]], list(columns[1]),
                    [Int8(version) for version in columns[2]], *map(list, columns[3:]),
                ),
            )  # fmt: skip
        except psycopg.errors.UniqueViolation as error:
            if error.diag.constraint_name != "stored_events_version":
                raise BrokenLogError(
                    f"{self._shown}: there are events behind the head, position {end.head.position}",
                    rows[0].position,
                ) from None
            ids = sorted({row.originator_id for row in rows})
            raise ConflictError(f"changed by another writer: one of {', '.join(ids[:5])}") from None
        return bool(moved)

    def _locked_end(self, writer: Session) -> _End:
        found = rows_of(writer, self._lock_head)
        if not found:
            raise BrokenLogError(f"{self._shown}: the row with the head is missing")
        position, digest, changes = found[0]
        fences = {str(name): int(epoch) for name, epoch in rows_of(writer, self._fences)}
        return _End(Head(position, digest), changes, fences)

    @contextmanager
    def _writing(self, rows: Sequence[Row]) -> Generator[Session]:
        """The writer's session; errors of the server become ours, and a lost connection leaves a doubt about ``rows``.

        Raises:
            _LostError: the connection is gone; what became of the rows must be found out.
        """
        if self._writer is None:
            self._writer = self._sessions.connect()
            self._writer_session = self._identity(self._writer)
        writer = self._writer
        self._doubt = _Doubt(tuple(rows), self._writer_session)
        try:
            yield writer
        except psycopg.Error as error:
            if writer.closed:
                self._drop_writer()
                raise _LostError(str(translated(error, self._shown))) from None
            self._doubt = None  # the server answered: it was rolled back
            raise translated(error, self._shown) from None
        except (ConflictError, StaleEpochError, BrokenLogError):
            self._doubt = None
            raise
        except BaseException:
            self._drop_writer()  # interrupted: the doubt stays
            raise
        self._doubt = None

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    # --------------------------------------------------------- after a lost connection
    def _settle(self) -> None:
        """Find out what became of an append whose answer was lost.

        Raises:
            TransientError: nobody can be asked now.
        """
        doubt = self._doubt
        if doubt is None:
            return
        session = self._sessions.connect()
        try:
            # What the old session has not done by now it will not do: first it ends, then the log is asked.
            end_session(session, doubt.session)
            with session.transaction():
                self._end = self._locked_end(session)  # waits for it, should it still be there
                saved = doubt.rows and rows_of(
                    session, self._digest, (doubt.rows[-1].position,)
                ) == [(doubt.rows[-1].digest,)]
        except psycopg.Error as error:
            raise TransientError(
                f"{translated(error, self._shown)}; whether the last append was saved is not known yet:"
                " repeat it, or load again"
            ) from None
        finally:
            session.close()
        if saved:
            self._untold = doubt.rows
        self._doubt = None

    # ------------------------------------------------------------------ reading
    def page(self, after: int, upto: int | None, limit: int) -> list[Row]:
        """Return one page by position."""
        end = INTEGER_MAX if upto is None else upto
        if end <= after:
            return []
        rows = self._sessions.read(lambda s: rows_of(s, self._page, (after, end, limit)))
        return list(map(Row._make, rows))

    def stored_end(self) -> tuple[Head | None, dict[str, int]]:
        """Return the head's row and all fences."""
        head: Head | None = None
        fences: dict[str, int] = {}
        for kind, position, digest, name, epoch in self._sessions.read(
            lambda s: rows_of(s, self._stored_end)
        ):
            if kind == 1:
                head = Head(position, digest)
            else:
                fences[name] = epoch
        return head, fences

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
        order = b" ORDER BY originator_version" + (b" DESC" if desc else b"") + b" LIMIT %s"
        values = (
            originator_text(originator_id),
            gt or 0,
            INTEGER_MAX if lte is None else lte,
            limit,
        )
        rows = self._sessions.read(lambda s: rows_of(s, self._stream + order, values))
        return [StoredEvent(*row) for row in rows]

    def keep_snapshot(self, rows: Sequence[SnapshotRow]) -> None:
        """Store the rows of one snapshot in place of the oldest; over a session of a reader, so that no append waits."""
        self._require_writable()

        def keep(session: Session) -> None:
            with session.transaction():
                session.execute(self._drop_snapshots, (rows[0].position, SNAPSHOTS_KEPT - 1))
                session.cursor().executemany(self._keep_snapshot, rows)

        self._sessions.read(keep)

    def snapshot_rows(self, code: str) -> list[SnapshotRow]:
        """Return the rows of all snapshots that this code made."""
        try:
            rows = self._sessions.read(lambda s: rows_of(s, self._snapshot_rows, (code,)))
        except BrokenLogError:  # no such table, or a damaged one: the events are what counts
            return []
        return list(map(SnapshotRow._make, rows))

    def seat(self) -> Seat:
        """Return the seat of the log's primary, for this process."""
        return SessionSeat(self._sessions)

    def settings(self) -> dict[str, str]:
        """Return the settings of our sessions that durability and waiting hang on."""
        return dict(self._sessions.read(lambda s: rows_of(s, _SETTINGS)))

    def _identity(self, writer: Session) -> Identity:
        try:
            return identity_of(writer)
        except psycopg.Error as error:
            self._drop_writer()
            raise translated(error, self._shown) from None

    def close(self) -> None:
        """Close all sessions; may be repeated."""
        with self._lock:
            self._drop_writer()
        self._sessions.close()


class _LostError(Exception):
    """The connection to the server is gone."""


def _stale(end: _End, fencing: Fencing) -> StaleEpochError | None:
    for name, mine in fencing.expected.items():
        current = end.fences.get(name, 0)
        if current != mine:
            return StaleEpochError(name, mine, current)
    return None

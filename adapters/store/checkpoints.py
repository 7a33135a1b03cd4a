"""Checkpoints of time travel in ``LOG.checkpoints``: an SQLite file that can be thrown away at any time.

Schema 1::

    made_by      one row: digest of the code that made it (``side_files.code_digest``)
    checkpoints  position, digest of the log's event there, summary (JSON), check
    projections  position, name, kept (JSON), check
    aggregates   id, position of the checkpoint, version, document (JSON), check: those that changed since the checkpoint before

Nothing of it is trusted before the log's event at that position has the digest that the checkpoint names. Code that changed makes it
anew; a row whose CRC does not fit makes it go. What cannot be kept (a folder that is read-only, a full disk) is not kept.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self, cast

from xce.adapters.store.log import StoredLog
from xce.adapters.store.side_files import (
    FILE_ERRORS,
    application_of,
    beside,
    code_digest,
    make_private,
    remove,
    uri_of,
)
from xce.domain.errors import BrokenLogError, TransientError
from xce.domain.events.base import Aggregate, fold
from xce.domain.events.document import document_of
from xce.replay.time_travel import Base, Summary

#: "xcep": says in the file's header what it is.
APPLICATION_ID: Final = 0x78636570
#: Documents longer than this are stored compressed.
COMPRESS_FROM: Final = 4096

_SCHEMA: Final = (
    "CREATE TABLE made_by (code TEXT NOT NULL) STRICT",
    """
    CREATE TABLE checkpoints (
        position INTEGER PRIMARY KEY, digest BLOB NOT NULL, summary BLOB NOT NULL, sum INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE projections (
        position INTEGER NOT NULL, name TEXT NOT NULL, kept BLOB NOT NULL, sum INTEGER NOT NULL,
        PRIMARY KEY (position, name)
    ) STRICT
    """,
    """
    CREATE TABLE aggregates (
        id TEXT NOT NULL, position INTEGER NOT NULL, version INTEGER NOT NULL, document BLOB NOT NULL,
        sum INTEGER NOT NULL, PRIMARY KEY (id, position)
    ) STRICT
    """,
    "CREATE INDEX aggregates_position ON aggregates (position)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    "PRAGMA user_version = 1",
)


def checkpoints_of(log: str) -> str:
    """Return where the checkpoints of a log lie, given its path or address."""
    return beside(log, "checkpoints")


class CheckpointFile:
    """The checkpoints of one log (``Checkpoints`` in ``replay/time_travel.py``). Close it when done."""

    def __init__(self, log: StoredLog, path: str) -> None:
        """Make it; the file need not exist, and nothing is written before there is something to keep."""
        self._log = log
        self._path = path
        self._connection: sqlite3.Connection | None = None
        #: Why nothing more is kept; None: all is well.
        self.problem: str | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of the file; may be repeated."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def latest(self, upto: int) -> Base | None:
        """Return the last usable checkpoint at or before a position; None: there is none."""
        try:
            connection = self._open_existing()
            if connection is None:
                return None
            for position, digest, summary, found in connection.execute(
                "SELECT position, digest, summary, sum FROM checkpoints WHERE position <= ?"
                " ORDER BY position DESC",
                (upto,),
            ).fetchall():
                if not self._fits(position, digest):
                    self._drop_from(connection, position)
                    continue
                _require_sum(found, summary, digest)
                return self._checkpoint(connection, position, digest, summary)
        except _DamagedError:
            self._throw_away()
        except FILE_ERRORS as error:
            self._give_up(error)
        return None

    def keep(self, summary: Summary, changed: Mapping[str, Aggregate[Any]]) -> Base | None:
        """Keep a checkpoint; None: it could not be kept, see ``problem``."""
        if self.problem is not None:
            return None
        try:
            connection = self._open_existing() or self._create()
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._write(connection, summary, changed)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except FILE_ERRORS as error:
            self._give_up(error)
            return None
        return _Checkpoint(self._log, connection, self._throw_away, summary)

    # ------------------------------------------------------------------ the file
    def _open_existing(self) -> sqlite3.Connection | None:
        """Return the connection to a file that this code made; one that is anything else goes."""
        if self._connection is not None:
            return self._connection
        if application_of(self._path) != APPLICATION_ID:
            return None
        connection = self._connect("rw")
        made_by = connection.execute("SELECT code FROM made_by").fetchall()
        if made_by != [(code_digest(),)]:
            connection.close()
            return None
        self._connection = connection
        return connection

    def _create(self) -> sqlite3.Connection:
        remove(self._path)
        connection = self._connect("rwc")
        make_private(self._path, self._log.source)
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO made_by VALUES (?)", (code_digest(),))
        connection.execute("COMMIT")
        self._connection = connection
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri_of(self._path, mode), uri=True, isolation_level=None)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _throw_away(self) -> None:
        self.close()
        try:
            remove(self._path)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.problem = f"{self._path}: {error}"
        self.close()

    # -------------------------------------------------------------- its contents
    def _fits(self, position: int, digest: bytes) -> bool:
        rows = self._log.recorder.page(position - 1, position, 1)
        return bool(rows) and rows[0].digest == digest

    def _drop_from(self, connection: sqlite3.Connection, position: int) -> None:
        """Forget what another history of this log left behind."""
        connection.execute("BEGIN IMMEDIATE")
        for table in ("checkpoints", "projections", "aggregates"):
            connection.execute(f"DELETE FROM {table} WHERE position >= ?", (position,))
        connection.execute("COMMIT")

    def _checkpoint(
        self, connection: sqlite3.Connection, position: int, digest: bytes, summary: bytes
    ) -> Base:
        projections: dict[str, bytes] = {}
        for name, kept, found in connection.execute(
            "SELECT name, kept, sum FROM projections WHERE position = ?", (position,)
        ):
            _require_sum(found, kept, name.encode())
            projections[name] = kept
        fields = json.loads(summary)
        if fields["projections"] != sorted(projections):
            raise _DamagedError
        made = Summary(
            position=position,
            digest=digest,
            at=datetime.fromisoformat(fields["at"]),
            events=fields["events"],
            states=fields["states"],
            projections=projections,
        )
        return _Checkpoint(self._log, connection, self._throw_away, made)

    def _write(
        self,
        connection: sqlite3.Connection,
        summary: Summary,
        changed: Mapping[str, Aggregate[Any]],
    ) -> None:
        position = summary.position
        there = connection.execute("SELECT 1 FROM checkpoints WHERE position = ?", (position,))
        if there.fetchone() is not None:
            return  # another process was first; what it kept is the same
        assert summary.at is not None, "a checkpoint is behind an event"
        fields = {
            "at": summary.at.isoformat(),
            "events": dict(summary.events),
            "states": dict(summary.states),
            "projections": sorted(summary.projections),
        }
        text = json.dumps(fields).encode()
        connection.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)",
            (position, summary.digest, text, _sum(text, summary.digest)),
        )
        connection.executemany(
            "INSERT INTO projections VALUES (?, ?, ?, ?)",
            (
                (position, name, kept, _sum(kept, name.encode()))
                for name, kept in summary.projections.items()
            ),
        )
        connection.executemany(
            "INSERT INTO aggregates VALUES (?, ?, ?, ?, ?)",
            (_row(position, aggregate) for aggregate in changed.values()),
        )


class _Checkpoint:
    """One checkpoint, as a fold needs it."""

    def __init__(
        self,
        log: StoredLog,
        connection: sqlite3.Connection,
        throw_away: Any,
        summary: Summary,
    ) -> None:
        self._log = log
        self._connection = connection
        self._throw_away = throw_away
        self.summary = summary

    def aggregate(self, aggregate_id: str) -> Aggregate[Any] | None:
        """Return an aggregate as it stood: folded from its own events, whose number is kept here."""
        row = self._row(aggregate_id)
        if row is None:
            return None
        version, _ = row
        decode = self._log.registry.decode
        events = [
            decode(None, cast("str", e.originator_id), e.originator_version, e.topic, e.state)
            for e in self._log.recorder.select_events(aggregate_id, lte=version)
        ]
        if len(events) != version:
            raise BrokenLogError(
                f"{aggregate_id} had {version} events at position {self.summary.position},"
                f" the log has {len(events)} of them"
            )
        return fold(None, events)

    def document(self, aggregate_id: str) -> bytes | None:
        """Return its document."""
        row = self._row(aggregate_id)
        return None if row is None else row[1]

    def documents(self, kind: str | None) -> Iterator[tuple[str, bytes]]:
        """Yield all documents, or those of one kind, in the order of the ids."""
        # Of each aggregate the row with the greatest position: SQLite takes the other columns from that row.
        chosen = "" if kind is None else " AND id >= ? || ':' AND id < ? || ';'"
        kinds = () if kind is None else (kind, kind)
        for name, version, document, found, _ in self._reading(
            "SELECT id, version, document, sum, max(position) FROM aggregates"
            f" WHERE position <= ?{chosen} GROUP BY id ORDER BY id",
            (self.summary.position, *kinds),
        ):
            yield name, self._checked(name, version, document, found)

    def changed(self, since: int) -> set[str]:
        """Return the ids of those that changed behind an earlier checkpoint."""
        rows = self._reading(
            "SELECT DISTINCT id FROM aggregates WHERE position > ? AND position <= ?",
            (since, self.summary.position),
        )
        return {row[0] for row in rows}

    def _row(self, aggregate_id: str) -> tuple[int, bytes] | None:
        for version, document, found in self._reading(
            "SELECT version, document, sum FROM aggregates WHERE id = ? AND position <= ?"
            " ORDER BY position DESC LIMIT 1",
            (aggregate_id, self.summary.position),
        ):
            return version, self._checked(aggregate_id, version, document, found)
        return None

    def _reading(self, sql: str, values: tuple[object, ...]) -> Iterator[Any]:
        try:
            for row in self._connection.execute(sql, values):  # noqa: UP028 - a reader may stop after the file was closed
                yield row
        except sqlite3.DatabaseError as error:
            raise self._unusable(str(error)) from None

    def _checked(self, name: str, version: int, document: bytes, found: int) -> bytes:
        try:
            _require_sum(found, document, _key(name, version))
            return zlib.decompress(document) if document[:1] == b"x" else document
        except (_DamagedError, zlib.error):
            raise self._unusable(f"what is kept of {name} was changed") from None

    def _unusable(self, why: str) -> TransientError:
        self._throw_away()
        return TransientError(
            f"the checkpoints of {self._log.source} are damaged ({why}) and were thrown away; ask again"
        )


class _DamagedError(Exception):
    """A row is not what was written."""


def _row(position: int, aggregate: Aggregate[Any]) -> tuple[str, int, int, bytes, int]:
    document = document_of(aggregate)
    if len(document) > COMPRESS_FROM:
        document = zlib.compress(document, 1)
    check = _sum(document, _key(aggregate.id, aggregate.version))
    return aggregate.id, position, aggregate.version, document, check


def _key(name: str, version: int) -> bytes:
    return f"{name} {version}".encode()


def _sum(*parts: bytes) -> int:
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return check


def _require_sum(found: int, *parts: bytes) -> None:
    if found != _sum(*parts):
        raise _DamagedError

"""Snapshots of the projections in the store, so that a long log is ready to serve at once.

A snapshot is what was folded up to a position, with the digest of the log's event there and a digest of the code that folded it. It is used only where
the log still has that event (whose digest stands for all before it), where the code is the same, and where its own sum fits. Anything else is as if it were
not there: all of them may be thrown away at any time, and the state is equal with and without them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from threading import Thread
from types import TracebackType
from typing import Final, Self

from xce.adapters.store.follower import Follower
from xce.adapters.store.log import StoredLog
from xce.adapters.store.recorder import SnapshotRow
from xce.adapters.store.side_files import code_digest
from xce.domain.errors import XceError
from xce.domain.events.recorded import Head
from xce.domain.formats.snapshot import Template
from xce.projections.all import Projections

#: A snapshot is due so many events behind the one before. Folding as many takes a fifth of a second.
EVERY: Final = 20_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was folded up to a position.

    Attributes:
        head: position and digest of the last event in it.
        parts: as ``Projections.keep`` returned it.
    """

    head: Head
    parts: Mapping[str, bytes]

    def rows(self, code: str) -> list[SnapshotRow]:
        """Return it as it is stored."""
        return [
            SnapshotRow(
                self.head.position, self.head.digest, code, name, kept, _sum(self.head, code, name, kept)
            )
            for name, kept in self.parts.items()
        ]  # fmt: skip


def open_follower(log: StoredLog, templates: Iterable[Template] = ()) -> Follower:
    """Return the projections of a log at its head, from the last snapshot that can be used.

    Raises:
        BrokenLogError: an event behind the snapshot cannot be read.
        TransientError: the log cannot be read now.
    """
    follower = _from_snapshot(log, tuple(templates)) or Follower(log, Projections(templates))
    follower.catch_up()
    return follower


def _from_snapshot(log: StoredLog, templates: tuple[Template, ...]) -> Follower | None:
    code = code_digest()
    found: dict[int, list[SnapshotRow]] = {}
    for row in log.recorder.snapshot_rows(code):
        found.setdefault(row.position, []).append(row)
    for position in sorted(found, reverse=True):
        rows = found[position]
        head = Head(position, rows[0].digest)
        if any(row.sum != _sum(head, code, row.name, row.kept) for row in rows):
            continue
        if [(row.position, row.digest) for row in log.recorder.page(position - 1, position, 1)] != [
            (head.position, head.digest)
        ]:
            continue  # another log, or one that was set back
        try:
            projections = Projections.resumed(
                position, {row.name: row.kept for row in rows}, templates
            )
        except ValueError:
            continue
        return Follower(log, projections, head)
    return None


def _sum(head: Head, code: str, name: str, kept: bytes) -> bytes:
    label = f"{head} {code} {name} {len(kept)} ".encode()
    return sha256(label + kept).digest()


class SnapshotKeeper:
    """Keeps a snapshot now and then, written by a thread of its own; the last one when it is closed."""

    def __init__(self, log: StoredLog, follower: Follower, *, every: int = EVERY) -> None:
        """Make it.

        Args:
            log: open for writing.
            follower: its projections; where they stand now, no snapshot is due.
            every: events between two snapshots.
        """
        self._log = log
        self._follower = follower
        self._every = every
        self._kept_at = follower.position
        self._writing: Thread | None = None
        #: Why the last one could not be kept; None: it could.
        self.problem: XceError | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it; after an error nothing more is kept."""
        self.close(keep=kind is None)

    def see(self) -> None:
        """Keep a snapshot if one is due; called by whoever folds, when nobody folds. Writing it is not waited for."""
        if self._follower.position - self._kept_at < self._every:
            return
        if self._writing is not None and self._writing.is_alive():
            return  # the disk is slower than the events come
        snapshot = self._take()
        self._writing = Thread(target=self._write, args=(snapshot,), name="snapshot", daemon=True)
        self._writing.start()

    def close(self, *, keep: bool = True) -> None:
        """Keep what was folded since the last snapshot, and return when it is written; may be repeated."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        if keep and self._follower.position > self._kept_at:
            self._write(self._take())

    def _take(self) -> Snapshot:
        self._kept_at = self._follower.position
        return Snapshot(self._follower.head, self._follower.projections.keep())

    def _write(self, snapshot: Snapshot) -> None:
        try:
            self._log.recorder.keep_snapshot(snapshot.rows(code_digest()))
        except XceError as error:
            self.problem = error
        else:
            self.problem = None

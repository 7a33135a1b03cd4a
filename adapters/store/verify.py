"""Verification of a log: is it what was written, and were all promises kept?

Everything is read once, in a stream. Nothing stops at the first finding, so that the report names each check with its outcome.
"""

from collections.abc import Iterable
from typing import Final

from xce.adapters.store.log import PRIMARY, StoredLog
from xce.adapters.store.recorder import Row
from xce.domain.errors import BrokenLogError
from xce.domain.events.digest import GENESIS, link
from xce.domain.events.recorded import Head, Recorded
from xce.domain.formats.policy import Budget
from xce.projections.invariants.budgets import Budgets
from xce.projections.invariants.capacity import Capacity
from xce.projections.invariants.epochs import Epochs
from xce.projections.invariants.intents import Intents
from xce.projections.invariants.ownership import Ownership
from xce.projections.invariants.report import Check, Invariant, Report, Tally
from xce.projections.invariants.states import RebuiltView, States
from xce.projections.invariants.totals import Totals

CHAIN_TITLE: Final = "each event carries the digest over itself and the one before; none is missing"
HEAD_TITLE: Final = "the row of the head names the last event"
FENCES_TITLE: Final = "the rows of the fences are where the leases say"
READABLE_TITLE: Final = "this release can read each event"
STORAGE_TITLE: Final = "the file is whole"
ANCHOR_TITLE: Final = "the log still has the event that was written down"


def verify(
    log: StoredLog,
    *,
    anchor: Head | None = None,
    views: Iterable[RebuiltView] = (),
    budgets: Iterable[Budget] = (),
) -> Report:
    """Check a log; may be done while others write it, and covers what was there at the start.

    Args:
        log: open, for reading is enough.
        anchor: position and digest that were written down elsewhere; without them nobody can tell a log from an earlier state of
            itself.
        views: read models to rebuild and compare.
        budgets: those that held when the log was written; it does not have them.
    """
    return _Verification(log, anchor, views, budgets).run()


class _Verification:
    def __init__(
        self,
        log: StoredLog,
        anchor: Head | None,
        views: Iterable[RebuiltView],
        budgets: Iterable[Budget],
    ) -> None:
        self._log = log
        self._anchor = anchor
        self._storage = Tally("storage", STORAGE_TITLE)
        self._chain = Tally("chain", CHAIN_TITLE)
        self._readable = Tally("readable", READABLE_TITLE)
        self._epochs = Epochs()
        self._invariants: tuple[Invariant, ...] = (
            Ownership(),
            Intents(),
            Totals(),
            Budgets(budgets),
            self._epochs,
            Capacity(),
            States(log, views),
        )
        self._last = Head(0, GENESIS)
        self._damaged = False
        self._anchored = anchor is None or anchor == self._last

    def run(self) -> Report:
        for problem in self._log.recorder.problems():
            self._storage.find(problem)
        self._take(upto=None)
        head, fences = self._stored_end()
        if head is not None and head.position > self._last.position and not self._damaged:
            self._take(upto=head.position)  # others have written meanwhile
        invariants = [invariant.end() for invariant in self._invariants]
        checks = [
            self._storage.check(),
            self._chain.check(),
            self._check_head(head),
            self._check_fences(fences),
            self._readable.check(),
            *invariants,
        ]
        if self._anchor is not None:
            checks.append(self._check_anchor(self._anchor))
        return Report(self._log.source, self._chain.counted, head, tuple(checks))

    def _stored_end(self) -> tuple[Head | None, dict[str, int]]:
        try:
            return self._log.recorder.stored_end()
        except BrokenLogError as error:
            self._storage.find(str(error))
            return None, {}

    def _take(self, upto: int | None) -> None:
        try:
            for row in self._log.recorder.rows(self._last.position, upto):
                self._storage.counted += 1
                self._link(row)
                self._read(row)
        except BrokenLogError as error:
            self._damaged = True
            after = self._last.position
            self._storage.find(
                f"nothing behind event {after} can be read: {error}", position=after + 1
            )

    def _link(self, row: Row) -> None:
        self._chain.counted += 1
        wanted = self._last.position + 1
        place = {"aggregate": row.originator_id, "event": row.topic}
        if row.position != wanted:
            gap = (
                f"event {wanted}"
                if row.position == wanted + 1
                else f"events {wanted} to {row.position - 1}"
            )
            self._chain.find(
                f"{gap} missing: the next one is {row.position}", position=wanted, **place
            )
        elif row.digest != link(self._last.digest, *row[:-1]):
            self._chain.find(
                "the digest does not fit: this event was changed, or the one before was",
                position=row.position,
                **place,
            )
        self._last = Head(row.position, row.digest)
        self._anchored = self._anchored or self._last == self._anchor

    def _read(self, row: Row) -> None:
        self._readable.counted += 1
        try:
            event = self._log.registry.decode(*row[:-1])
        except BrokenLogError as error:
            self._readable.find(
                str(error), position=row.position, aggregate=row.originator_id, event=row.topic
            )
            return
        recorded = Recorded(row.position, event, row.digest)
        for invariant in self._invariants:
            invariant.see(recorded)

    def _check_head(self, head: Head | None) -> Check:
        tally = Tally("head", HEAD_TITLE)
        tally.counted = 1
        if head is None:
            tally.find("the row of the head is missing")
        elif head.position > self._last.position:
            missing = head.position - self._last.position
            tally.find(
                f"the last {missing} events are missing: the head is {head.position},"
                f" the last event is {self._last.position}",
                position=self._last.position + 1,
            )
        elif head.position < self._last.position:
            tally.find(
                f"there are events behind the head {head.position}", position=head.position + 1
            )
        elif head.digest != self._last.digest:
            tally.find("its digest is not that of the last event", position=head.position)
        return tally.check()

    def _check_fences(self, fences: dict[str, int]) -> Check:
        tally = Tally("fences", FENCES_TITLE)
        wanted = self._epochs.fences()
        for name in sorted(wanted.keys() | fences.keys()):
            if name == PRIMARY:
                continue  # its moves are not events
            tally.counted += 1
            if wanted.get(name, 0) != fences.get(name, 0):
                tally.find(
                    f"the fence is {fences.get(name, 0)}, wanted {wanted.get(name, 0)}",
                    aggregate=name,
                )
        return tally.check()

    def _check_anchor(self, anchor: Head) -> Check:
        tally = Tally("anchor", ANCHOR_TITLE)
        tally.counted = 1
        if not self._anchored:
            tally.find("this event is not in the log", position=anchor.position)
        return tally.check()

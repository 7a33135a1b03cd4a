"""Drain: a host that takes no new work, from the wish to the last job's end (SPEC H3).

First it is closed, then looked at again: a job that slipped in between wins over a drain that yields. It belongs to hosts of the
cluster, whoever owns them; a provisioned host goes back only when its drain has found it empty.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import StrictBool

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands
from xce.domain.formats.base import Name, Time


class DrainState(StrEnum):
    """Where a drain is in its life."""

    ASKED = "asked"
    CLOSED = "closed"
    OVERDUE = "overdue"
    EMPTY = "empty"
    CANCELLED = "cancelled"
    ENDED = "ended"


class AtDeadline(StrEnum):
    """What happens to the jobs that still run at the deadline."""

    WAIT = "wait"
    REQUEUE = "requeue"
    LEAVE = "leave"


S = DrainState

#: The host is to take no new work.
OPEN: Final = frozenset({S.ASKED, S.CLOSED, S.OVERDUE, S.EMPTY})
OVER: Final = frozenset(S) - OPEN

TRANSITIONS: Final[Table[DrainState]] = {
    "Asked": lands(OVER, S.ASKED, first=True),
    "Closed": lands({S.ASKED}, S.CLOSED),
    "DeadlinePassed": lands({S.ASKED, S.CLOSED}, S.OVERDUE),
    "Emptied": lands({S.CLOSED, S.OVERDUE}, S.EMPTY),
    "Refilled": lands({S.EMPTY}, S.CLOSED),
    "SlippedIn": lands({S.CLOSED, S.EMPTY}, S.CANCELLED),
    "Cancelled": lands(OPEN, S.CANCELLED),
    "Ended": lands(OPEN, S.ENDED),
}


class Drain(Aggregate[DrainState]):
    """The drains of one host, by its name in the cluster; one at a time."""

    KIND: ClassVar[str] = ids.DRAIN
    TRANSITIONS: ClassVar[Table[DrainState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Asked(Event):
        """The host is to take no new work.

        Attributes:
            instance: of a provisioned host, which goes back when it is empty; null: an own host, which stays closed.
            why: the reason, for people.
            yields: true: a job that is found after the closing wins, and the host opens again.
            deadline: when the jobs should have ended; null: there is none.
            at_deadline: what happens to those that have not.
        """

        TOPIC: ClassVar[str] = "xce.drain.asked"
        instance: Name | None
        why: Why
        yields: StrictBool
        deadline: Time | None
        at_deadline: AtDeadline

    class Closed(Event):
        """The batch system gives it no new work any more."""

        TOPIC: ClassVar[str] = "xce.drain.closed"

    class DeadlinePassed(Event):
        """Jobs still run at the deadline.

        Attributes:
            jobs: the jobs.
            at_deadline: what happens to them.
        """

        TOPIC: ClassVar[str] = "xce.drain.deadline-passed"
        jobs: tuple[Name, ...]
        at_deadline: AtDeadline

    class Emptied(Event):
        """Looked at again after it was closed: it has no job."""

        TOPIC: ClassVar[str] = "xce.drain.emptied"

    class Refilled(Event):
        """It had no job, and has one again, although it is closed.

        Attributes:
            jobs: the jobs.
        """

        TOPIC: ClassVar[str] = "xce.drain.refilled"
        jobs: tuple[Name, ...]

    class SlippedIn(Event):
        """A job had started before it was closed, and wins: the host opens again.

        Attributes:
            jobs: the jobs.
        """

        TOPIC: ClassVar[str] = "xce.drain.slipped-in"
        jobs: tuple[Name, ...]

    class Cancelled(Event):
        """It is to take work again.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.drain.cancelled"
        why: Why

    class Ended(Event):
        """The host is not in the cluster any more.

        Attributes:
            why: where it went.
        """

        TOPIC: ClassVar[str] = "xce.drain.ended"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def ask(
        cls,
        *,
        host: str,
        instance: str | None,
        why: str,
        yields: bool,
        deadline: datetime | None,
        at_deadline: AtDeadline,
        at: datetime,
        by: str,
    ) -> "Drain":
        """Return the first drain of a host."""
        return cls._first(
            cls.Asked,
            ids.drain_id(host),
            at=at,
            by=by,
            instance=instance,
            why=why,
            yields=yields,
            deadline=deadline,
            at_deadline=at_deadline,
        )

    def ask_again(
        self,
        *,
        instance: str | None,
        why: str,
        yields: bool,
        deadline: datetime | None,
        at_deadline: AtDeadline,
        at: datetime,
        by: str,
    ) -> None:
        """Drain the host once more; the same wish again records nothing.

        Raises:
            RejectedError: it is being drained in another way: open it first.
        """
        wish = (instance, yields, deadline, at_deadline)
        if self.state in OPEN:
            if wish == (self.instance, self.yields, self.deadline, self.at_deadline):
                return
            raise RejectedError(f"host {self.name} is being drained in another way; open it first")
        self._require(self.Asked)
        self._record(
            self.Asked,
            at=at,
            by=by,
            instance=instance,
            why=why,
            yields=yields,
            deadline=deadline,
            at_deadline=at_deadline,
        )

    def look(self, *, jobs: Iterable[str], at: datetime, by: str) -> None:
        """Record what a look at the closed host found; the same look again records nothing.

        Raises:
            IllegalTransitionError: it is not being drained.
        """
        found = tuple(jobs)
        if self.state not in OPEN:
            self._require(self.Closed)
        if self.state is S.ASKED:
            self._record(self.Closed, at=at, by=by)
        if not found:
            if self.state is not S.EMPTY:
                self._require(self.Emptied)
                self._record(self.Emptied, at=at, by=by)
            return
        if self.yields and self.state is not S.OVERDUE:
            self._require(self.SlippedIn)
            self._record(self.SlippedIn, at=at, by=by, jobs=found)
            return
        if self.state is S.EMPTY:
            self._record(self.Refilled, at=at, by=by, jobs=found)
        if self.state is S.CLOSED and self.deadline is not None and self.deadline <= at:
            self._record(
                self.DeadlinePassed, at=at, by=by, jobs=found, at_deadline=self.at_deadline
            )

    def cancel(self, *, why: str, at: datetime, by: str) -> None:
        """Let the host take work again; if it is not being drained, nothing is recorded."""
        if self.state in OPEN:
            self._record(self.Cancelled, at=at, by=by, why=why)

    def end(self, *, why: str, at: datetime, by: str) -> None:
        """Record that the host is gone; if it is not being drained, nothing is recorded."""
        if self.state in OPEN:
            self._record(self.Ended, at=at, by=by, why=why)

    # ------------------------------------------------------ event functions
    @applies(Asked)
    def _asked(self, event: Asked) -> None:
        self.state = S.ASKED if event.originator_version == 1 else self._land(event)
        self.instance = event.instance
        self.yields = event.yields
        self.deadline = event.deadline
        self.at_deadline = event.at_deadline

    @applies(Closed)
    def _closed(self, event: Closed) -> None:
        self.state = self._land(event)

    @applies(DeadlinePassed)
    def _deadline_passed(self, event: DeadlinePassed) -> None:
        self.state = self._land(event)

    @applies(Emptied)
    def _emptied(self, event: Emptied) -> None:
        self.state = self._land(event)

    @applies(Refilled)
    def _refilled(self, event: Refilled) -> None:
        self.state = self._land(event)

    @applies(SlippedIn)
    def _slipped_in(self, event: SlippedIn) -> None:
        self.state = self._land(event)

    @applies(Cancelled)
    def _cancelled(self, event: Cancelled) -> None:
        self.state = self._land(event)

    @applies(Ended)
    def _ended(self, event: Ended) -> None:
        self.state = self._land(event)

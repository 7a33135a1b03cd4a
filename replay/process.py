"""The process around the shell, and its machine: whether it lives, what its wall clock is off, and who of its provisioners reaches what."""

from datetime import datetime, timedelta

from xce.domain.errors import BrokenLogError
from xce.domain.events.stored import EVENTS, EventRegistry
from xce.domain.ports import EventLog


class Process:
    """What is so now. Its time is handed in."""

    def __init__(self) -> None:
        #: When the next process begins, or should have; None: there is one.
        self.up_at: datetime | None = None
        #: For how long nobody is there after a crash that is to come.
        self.down_for = timedelta(0)
        #: By how much the wall clock was set back.
        self.set_back = timedelta(0)
        #: Writes of provisioners that were refused, since another one leads.
        self.refused = 0
        self._alone: dict[str, datetime] = {}
        self._late = timedelta(0)
        self._late_until: datetime | None = None
        self._heard: datetime | None = None

    @property
    def is_down(self) -> bool:
        """Whether there is none."""
        return self.up_at is not None

    def comes_up(self, now: datetime) -> datetime | None:
        """Return when the next one begins; None: nobody knows, or there is one."""
        return self.up_at if self.up_at is not None and self.up_at > now else None

    # ------------------------------------------------------------- provisioners
    def isolate(self, name: str, until: datetime) -> None:
        """A provisioner does not reach the controller until then."""
        self._alone[name] = until

    def reaches(self, name: str, now: datetime) -> bool:
        """Return whether a provisioner reaches the controller."""
        until = self._alone.get(name)
        return until is None or until <= now

    # ------------------------------------------------------------------- demand
    def delay_demand(self, by: timedelta, until: datetime) -> None:
        """What sessions say comes so much later, until then."""
        self._late, self._late_until = by, until

    def late(self, now: datetime) -> timedelta:
        """Return how much later what is said now comes."""
        return timedelta(0) if self._late_until is None or now >= self._late_until else self._late

    def hears(self, said_at: datetime) -> bool:
        """Return whether this is news: nothing that was said later has been heard."""
        if self._heard is not None and said_at < self._heard:
            return False
        self._heard = said_at
        return True


def why_unreadable(log: EventLog, without: frozenset[str]) -> str | None:
    """Return why a release that does not know some events, by topic, cannot read a log; None: it can.

    What the log has is read as it is stored, by the rules of every release.
    """
    known = EventRegistry(one for one in EVENTS.event_classes() if one.TOPIC not in without)
    for recorded in log.read():
        event = recorded.event
        topic, state = EVENTS.encode(event)
        try:
            known.decode(
                recorded.position, event.originator_id, event.originator_version, topic, state
            )
        except BrokenLogError as error:
            return str(error)
    return None

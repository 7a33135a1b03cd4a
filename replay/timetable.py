"""The time of a simulated world, and when it looks at what again: sessions, polls, lists, providers and licence servers."""

from datetime import datetime, timedelta
from typing import Final

from xce.domain.errors import InputError
from xce.domain.formats.config import DriverConfig
from xce.replay.agenda import Agenda
from xce.replay.happenings import Change, Happening, Listing, Observe, Poll, Wake
from xce.replay.providers import SimulatedProvider

_WAKE: Final = Wake()
_POLL: Final = Poll()
_LISTING: Final = Listing()

#: What is told of times that are yet to come, such as the end of a hold, has room after it.
LAST_YEAR: Final = 2900


class Timetable:
    """What is to come. Of each thing that is looked at again and again, the last appointment counts."""

    def __init__(self, start: datetime, driver: DriverConfig) -> None:
        self.start = start
        self.now = start
        self.last_session: datetime | None = None
        self._driver = driver
        self._agenda = Agenda[Happening]()
        self._appointments: dict[Wake | Poll | Listing | Observe | Change, datetime] = {}
        #: When a job came, started or ended, or supply came or went.
        self._last_progress = start

    # --------------------------------------------------------------------- time
    @property
    def next_time(self) -> datetime | None:
        """When the next thing happens; None when nothing will."""
        return self._agenda.next_time

    def begin(self, until: datetime | None) -> None:
        """Let it be the time of the first thing that happens; ``until`` is the end, where there is one.

        Raises:
            InputError: the end is past the last year.
        """
        if until is not None:
            _require_calendar(until)
        self.now = self.next_time or self.now
        self.note_progress()

    def put(self, at: datetime, happening: Happening) -> None:
        """Put something down that happens once."""
        self._agenda.put(at, happening)

    def take_until(self, at: datetime) -> list[Happening]:
        """Take everything that happens at ``at`` or before, in order.

        Raises:
            InputError: that is past the last year.
        """
        _require_calendar(at)
        return self._agenda.take_until(at)

    def keeps(self, one: Wake | Poll | Listing | Observe | Change) -> bool:
        """Return whether an appointment is one for now; if it is, it is over. One that was moved is none."""
        if self._appointments.get(one) != self.now:
            return False
        del self._appointments[one]
        return True

    def forget(self, one: Wake | Poll | Listing | Observe | Change) -> None:
        """Call an appointment off, if there is one."""
        self._appointments.pop(one, None)

    def note_progress(self) -> None:
        """Something came nearer to the end now."""
        self._last_progress = self.now

    def is_stalled(self, at: datetime) -> bool:
        """Return whether nothing has come nearer to the end for too long, and no provider changes by itself."""
        if any(isinstance(one, Change) for one in self._appointments):
            return False
        return at - self._last_progress > self._driver.stall_limit

    # ------------------------------------------------------------- appointments
    def wake_soon(self) -> None:
        """Have a session as soon as one may be."""
        self.wake_at(self.now)

    def wake_at(self, at: datetime) -> None:
        """Have a session at a time, but not too soon after the last one."""
        at = max(at, self.now)
        if self.last_session is not None:
            at = max(at, self.last_session + self._driver.session_interval)
        if self._is_sooner(_WAKE, at):
            self._appoint(_WAKE, at)

    def wake_again(self) -> None:
        """Have one more session now, however soon after the last one it is."""
        self._appointments[_WAKE] = self.now

    def poll_soon(self) -> None:
        """Poll at the next beat."""
        self.poll_at(self.now)

    def poll_at(self, earliest: datetime) -> None:
        """Poll at the first beat of the poll interval that is not before ``earliest``."""
        beat = self._driver.poll_interval
        passed = (earliest - self.start) // beat
        at = self.start + passed * beat
        if at < earliest:
            at += beat
        if self._is_sooner(_POLL, at):
            self._appoint(_POLL, at)

    def list_soon(self) -> None:
        """Ask providers for all that they have after an interval, if that is done at all."""
        interval = self._driver.list_interval
        if interval is not None:
            self._appoint(_LISTING, self.now + interval)

    def observe_after(self, server: str, interval: timedelta) -> None:
        """Look at a licence server after an interval."""
        self._appoint(Observe(server), self.now + interval)

    def watch(self, provider: SimulatedProvider) -> None:
        """Notice what changes next at a provider."""
        at = provider.next_change(self.now)
        change = Change(provider.name)
        if at is not None and at != self._appointments.get(change):
            self._appoint(change, at)

    def _is_sooner(self, one: Wake | Poll, at: datetime) -> bool:
        known = self._appointments.get(one)
        return known is None or at < known

    def _appoint(self, one: Wake | Poll | Listing | Observe | Change, at: datetime) -> None:
        self._appointments[one] = at
        self._agenda.put(at, one)


def _require_calendar(at: datetime) -> None:
    if at.year > LAST_YEAR:
        raise InputError.of(
            "simulation",
            f"has come to the year {at.year} and is not over; wanted one that is over by {LAST_YEAR}",
        )

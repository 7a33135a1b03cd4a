"""Several provisioners in virtual time: their leases are looked after beat by beat, and one that stood still goes on."""

from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from xce.replay.happenings import Act
from xce.replay.members import Member
from xce.replay.process import Process
from xce.replay.shell import Shell
from xce.replay.timetable import Timetable


class Around(Protocol):
    """What of a world it depends on."""

    shell: Shell
    process: Process

    @property
    def now(self) -> datetime:
        """The time."""
        ...

    def goes_on(self) -> bool:
        """Return whether anything is still to come or to go."""
        ...

    def note(self, what: str) -> None:
        """Tell of something that is no event."""
        ...

    def looks_again(self) -> None:
        """A provisioner leads that did not, or was not there: it looks at everything."""
        ...


class Turns:
    """Who leads, from moment to moment. Where there is one provisioner nothing happens here."""

    def __init__(self, world: Around, timetable: Timetable) -> None:
        self._world = world
        self._timetable = timetable

    @property
    def is_led(self) -> bool:
        """Whether a provisioner acts now, and reaches the controller."""
        member = self._world.shell.acting
        if member is None or member.caller is None:
            return member is not None
        return self._world.process.reaches(member.name, self._world.now)

    def keep_leases(self) -> None:
        """Look after leases, and again at the next beat."""
        world = self._world
        beat = world.shell.members.beat
        if beat is None:
            return
        self.look_after_leases()
        if world.goes_on():
            self._timetable.put(world.now + beat, Act(self.keep_leases))

    def look_after_leases(self) -> None:
        """End those whose time is over, renew and take them, for whoever reaches the controller."""
        world = self._world
        if world.process.is_down or world.shell.members.beat is None:
            return
        for name in world.shell.keep_leases(lambda name: world.process.reaches(name, world.now)):
            world.note(f"{name} leads")
            world.looks_again()

    def isolate(self, name: str, length: timedelta) -> None:
        """Let a provisioner not reach the controller for a while."""
        until = self._world.now + length
        self._world.process.isolate(name, until)
        self._timetable.put(until, Act(self._world.looks_again))

    def stall(self, name: str, length: timedelta) -> None:
        """Have a provisioner stand still at its next ask, before it writes it."""
        self._world.shell.members.of(name).stall = length

    def stands(self, member: Member, length: timedelta) -> None:
        """A provisioner stands still from now on; it goes on after a while, unless its process ends."""
        self._world.note(f"{member.name} stands still before it writes what it decided")
        go_on = partial(self._go_on, self._world.shell, member)
        self._timetable.put(self._world.now + length, Act(go_on))

    def _go_on(self, shell: Shell, member: Member) -> None:
        world = self._world
        if shell is world.shell and not world.process.is_down:
            world.note(f"{member.name} goes on where it stood")
            shell.go_on(member)
            world.looks_again()

"""The provisioners of a simulated site: one that always leads, or several of which one does, by leases that the real controller gives.

A lease counts from when its last good renewal was sent, on a clock that nobody can set. What a member has decided is written under the
epoch that it had then: whoever stood still meanwhile is refused, and so calls nobody (field case F23).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from xce.domain.engine.calls import Steps
from xce.domain.engine.commands import Command, RenewLease, TakeLease
from xce.domain.engine.messages import Answer, Caller, Role
from xce.domain.engine.provisioner import Provisioner
from xce.domain.errors import RejectedError
from xce.domain.formats.scenario import Provisioners
from xce.domain.ports import IdSource

#: Renewals within one term, as in the daemon.
RENEWALS: Final = 3
#: Carries out the commands of a member under its epochs.
Desk = Callable[[Caller, tuple[Command, ...], Mapping[str, int]], Answer]


@dataclass(slots=True)
class Member:
    """One provisioner process.

    Attributes:
        caller: how it gives orders; None: it is the only one, and its commands are the world's own.
        epochs: of the leases that it holds, by provider.
        until_s: until when it holds them, by its own count.
        stall: for how long it stands still at its next ask.
        kept: what it goes on with when it moves again; None: it does not stand still.
    """

    engine: Provisioner
    caller: Caller | None = None
    epochs: Mapping[str, int] = field(default_factory=dict[str, int])
    until_s: float = 0.0
    stall: timedelta | None = None
    kept: Steps | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        assert self.caller is not None, "one of several has a name"
        return self.caller.name

    def acts(self, elapsed_s: float) -> bool:
        """Return whether it may act now, as far as it knows, and can."""
        return self.kept is None and (self.caller is None or elapsed_s < self.until_s)


class Members:
    """All of them, and who leads."""

    def __init__(
        self, several: Provisioners | None, providers: Iterable[str], ids: IdSource
    ) -> None:
        self._providers = tuple(providers)
        self._term = timedelta(0) if several is None else several.lease_term
        names = () if several is None else several.names
        self._all = [Member(Provisioner(ids), Caller(Role.PROVISIONER, name)) for name in names]
        if not self._all:
            self._all = [Member(Provisioner(ids))]

    @property
    def beat(self) -> timedelta | None:
        """How often leases are looked after; None: there is one member, which needs none."""
        return self._term / RENEWALS if self._all[0].caller is not None else None

    def acting(self, elapsed_s: float) -> Member | None:
        """Return who acts now; None: nobody may."""
        return next((one for one in self._all if one.acts(elapsed_s)), None)

    def of(self, name: str) -> Member:
        """Return one of several by name."""
        return next(one for one in self._all if one.name == name)

    def keep_leases(
        self, desk: Desk, elapsed_s: float, reaches: Callable[[str], bool]
    ) -> Iterator[str]:
        """Renew what is held and take what is free; yield who leads now and did not before.

        Args:
            desk: the controller.
            elapsed_s: seconds of a clock that nobody can set.
            reaches: whether a member reaches the controller.
        """
        for member in self._all:
            if member.kept is not None or not reaches(member.name):
                continue
            if member.acts(elapsed_s):
                self._renew(member, desk, elapsed_s)
            elif self._take(member, desk, elapsed_s):
                yield member.name

    def _renew(self, member: Member, desk: Desk, elapsed_s: float) -> None:
        assert member.caller is not None, "it has a lease"
        commands = tuple(
            RenewLease(provider, member.name, epoch) for provider, epoch in member.epochs.items()
        )
        try:
            desk(member.caller, commands, {})
        except RejectedError:
            member.until_s = 0.0
        else:
            member.until_s = elapsed_s + self._term.total_seconds()

    def _take(self, member: Member, desk: Desk, elapsed_s: float) -> bool:
        assert member.caller is not None, "it wants a lease"
        commands = tuple(TakeLease(one, member.name, self._term) for one in self._providers)
        try:
            member.epochs = desk(member.caller, commands, {}).epochs
        except RejectedError:  # somebody else has it
            return False
        member.until_s = elapsed_s + self._term.total_seconds()
        return True

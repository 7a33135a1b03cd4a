"""The truth of a simulated provider: every machine and every lent amount, with the times at which they change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from xce.domain.formats.snapshot import Attribute


class MachineState(StrEnum):
    """Where a simulated machine is in its life."""

    COMING = "coming"
    BOOTING = "booting"
    UP = "up"
    JOINED = "joined"
    FAILED = "failed"
    GONE = "gone"


@dataclass(slots=True)
class Machine:
    """One machine of the truth.

    Attributes:
        launched_at: from when it exists and costs.
        booted_at: when the provider calls it a success, or, if ``fails``, a failure that leaves nothing.
        joins_at: when it joins the cluster; None: never.
        gone_at: when it ends; None: nobody has given it back.
        told_at: when the provider says that it takes it back; None: it does not.
        taken_at: when it is gone without our return: it died, or was taken back.
    """

    machine: str
    name: str
    template: str
    tag: str
    launched_at: datetime
    booted_at: datetime
    joins_at: datetime | None
    fails: bool
    gone_at: datetime | None = None
    told_at: datetime | None = None
    taken_at: datetime | None = None

    @property
    def ends_at(self) -> datetime | None:
        """When it ends, whoever ends it; None: it is not known to end."""
        return min((at for at in (self.gone_at, self.taken_at) if at is not None), default=None)

    def state(self, now: datetime) -> MachineState:
        """Return where it is at a time."""
        if not self.exists(now):
            return MachineState.FAILED if self.fails else MachineState.GONE
        if now < self.launched_at:
            return MachineState.COMING
        if now < self.booted_at:
            return MachineState.BOOTING
        if self.fails:
            return MachineState.FAILED
        return (
            MachineState.JOINED
            if self.joins_at is not None and self.joins_at <= now
            else MachineState.UP
        )

    def exists(self, now: datetime) -> bool:
        """Return whether it exists or is about to: it takes room at the provider."""
        ends = self.ends_at
        return ends is None or now < ends


@dataclass(slots=True)
class Grant:
    """One lent amount of the truth; ``returns`` says what part of it ends when."""

    grant: str
    resource: str
    tag: str
    amount: int
    granted_at: datetime
    hold_until: datetime | None
    expires_at: datetime | None
    returns: list[tuple[datetime, int]] = field(default_factory=list[tuple[datetime, int]])

    def held(self, now: datetime) -> int:
        """Return what of it is lent at a time, from the ask on."""
        if self.expires_at is not None and self.expires_at <= now:
            return 0
        return self.amount - sum(amount for at, amount in self.returns if at <= now)

    def keeps(self) -> int:
        """Return what of it nobody has given back."""
        return self.amount - sum(amount for _, amount in self.returns)


@dataclass(frozen=True, slots=True)
class Join:
    """A machine that has joined the cluster as a host."""

    machine: str
    name: str
    template: str
    joined_at: datetime
    booted_at: datetime
    attributes: Mapping[str, Attribute]
    total: Mapping[str, int]

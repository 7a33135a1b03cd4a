"""What the provisioner asks for: commands to make durable, then looks and calls; and how each answer comes back."""

from dataclasses import dataclass
from datetime import datetime

from xce.domain.engine.commands import Command
from xce.domain.ports import (
    Accepted,
    Ask,
    Checked,
    CheckingProvider,
    GrantBack,
    Provider,
    Refused,
    Renewed,
    RenewingProvider,
    ReportedMachine,
    ReturnStatus,
    StatusAnswer,
)


@dataclass(frozen=True, slots=True)
class AskCall:
    """Ask a provider; its intent is durable. ``again``: an ask under this tag was made before, or may have been."""

    provider: str
    ask: Ask
    again: bool = False


@dataclass(frozen=True, slots=True)
class StatusCall:
    """Ask a provider where a request is."""

    provider: str
    request: str
    provider_request_id: str


@dataclass(frozen=True, slots=True)
class GiveBackCall:
    """Give machines, or an amount of a grant, back; the intent is durable.

    ``instances`` are pairs of our id and the provider's machine id, ``grants`` of our id and the provider's grant and amount,
    ``orphans`` the provider's ids of machines that no record of ours owns, ``names`` those it reported, by machine id.
    """

    provider: str
    return_id: str
    instances: tuple[tuple[str, str], ...] = ()
    grants: tuple[tuple[str, GrantBack], ...] = ()
    orphans: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    @property
    def machines(self) -> tuple[str, ...]:
        """The provider's ids of all machines that go back."""
        return (*(theirs for _, theirs in self.instances), *self.orphans)


@dataclass(frozen=True, slots=True)
class ReturnStatusCall:
    """Ask a provider what became of a return; pairs of our id and the provider's id. ``theirs`` is its id of the return."""

    provider: str
    return_id: str
    instances: tuple[tuple[str, str], ...] = ()
    grants: tuple[tuple[str, str], ...] = ()
    theirs: str | None = None


@dataclass(frozen=True, slots=True)
class ListCall:
    """Ask a provider for everything it has for us."""

    provider: str


@dataclass(frozen=True, slots=True)
class RenewCall:
    """Ask a lender to put the ends of grants off; pairs of our id and the provider's id. It may be repeated: no intent precedes it."""

    provider: str
    grants: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CheckCall:
    """Look whether hosts that have reported are in order; pairs of our id and the machine. It may be repeated: no intent precedes it."""

    provider: str
    instances: tuple[tuple[str, ReportedMachine], ...]


#: A call with an answer that the provisioner goes on from by itself.
Call = AskCall | StatusCall | GiveBackCall | ReturnStatusCall | RenewCall | CheckCall
AnyCall = Call | ListCall
Answer = Accepted | Refused | StatusAnswer | ReturnStatus | Renewed | Checked


@dataclass(frozen=True, slots=True)
class Look:
    """Look at hosts again, now that they are closed to new work: do they have a job?"""

    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Commands, and what follows once all of them are durable. If one is refused, the whole step is dropped.

    ``otherwise`` is then done instead.
    """

    commands: tuple[Command, ...] = ()
    looks: tuple[Look, ...] = ()
    calls: tuple[AnyCall, ...] = ()
    otherwise: tuple[Command, ...] = ()


Steps = tuple[Step, ...]


def make(call: Call, provider: Provider, now: datetime) -> Answer:
    """Make a call.

    Raises:
        AdapterError: there is no answer.
    """
    match call:
        case AskCall():
            return provider.ask(call.ask, now)
        case StatusCall():
            return provider.status(call.provider_request_id, now)
        case GiveBackCall():
            grants = tuple(part for _, part in call.grants)
            return provider.give_back(
                call.return_id, call.machines, grants, now, names=dict(call.names)
            )
        case ReturnStatusCall():
            return provider.return_status(call.return_id, now, theirs=call.theirs)
        case RenewCall():
            if not isinstance(provider, RenewingProvider):
                return Renewed()
            return provider.renew(tuple(theirs for _, theirs in call.grants), now)
        case CheckCall():
            if not isinstance(provider, CheckingProvider):
                return Checked()
            return provider.check(tuple(machine for _, machine in call.instances), now)

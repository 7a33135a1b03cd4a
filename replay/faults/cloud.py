"""The truth of a provider that lies, lags and loses: what it has really made and lent, by whatever means it can be asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

from xce.domain.errors import TransientError
from xce.domain.formats.provider import (
    Capabilities,
    Kind,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    GrantReport,
    Holding,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)
from xce.replay.faults.chance import Chance
from xce.replay.faults.time import START, Time

TEMPLATE: Final = "c4"
RESOURCE: Final = "lic"
#: A listing shows what was made so long ago, and perhaps what is younger.
LISTED_AFTER_S: Final = 60.0
#: Listings in a row that leave something out which is there: who believes them is not to blame.
MISLEADING: Final = 2
#: What comes is kept for so long.
HOLD: Final = timedelta(minutes=4)


class Bound(StrEnum):
    """How it says how many hosts it can have."""

    TEMPLATE = "template"
    PROVIDER = "provider"
    BOTH = "both"


class Means(StrEnum):
    """How it can be asked what an ask has done."""

    TAG = "tag"
    LISTING = "listing"
    BOTH = "both"
    NEITHER = "neither"

    @property
    def tags(self) -> bool:
        """Whether it recognises a tag that it has seen."""
        return self in (Means.TAG, Means.BOTH)

    @property
    def lists(self) -> bool:
        """Whether it can list what it has."""
        return self in (Means.LISTING, Means.BOTH)


@dataclass(slots=True)
class Machine:
    """One machine, with the times at which it changes; a machine that fails stays until it is given back."""

    machine: str
    tag: str
    made_s: float
    boots_s: float
    joins_s: float | None
    fails: bool
    gone_s: float | None = None
    #: In how many listings in a row it was left out.
    unlisted: int = 0

    def exists(self, now_s: float) -> bool:
        """Return whether it costs."""
        return self.gone_s is None or now_s < self.gone_s

    def is_host(self, now_s: float) -> bool:
        """Return whether it is in the cluster."""
        return self.joins_s is not None and self.joins_s <= now_s and self.exists(now_s)


@dataclass(slots=True)
class Loan:
    """One lent amount; what of it is gone."""

    grant: str
    tag: str
    amount: int
    lent_s: float
    gone: int = 0
    unlisted: int = 0


@dataclass(slots=True)
class _Made:
    machines: list[Machine] = field(default_factory=list[Machine])
    loan: Loan | None = None
    short: bool = False
    told: bool = False


@dataclass(slots=True)
class _Return:
    gone_s: dict[str, float] = field(default_factory=dict[str, float])
    refused: dict[str, str] = field(default_factory=dict[str, str])


class Cloud:
    """One provider: of hosts, or of a countable resource."""

    def __init__(
        self,
        name: str,
        kind: Kind,
        means: Means,
        capacity: int,
        time: Time,
        chance: Chance,
        *,
        bound: Bound = Bound.TEMPLATE,
        price: Decimal | None = None,
    ) -> None:
        self.name = name
        self.bound = bound
        self.price = price
        self.kind = kind
        self.means = means
        self.capacity = capacity
        self.machines: dict[str, Machine] = {}
        self.loans: dict[str, Loan] = {}
        self.notices: dict[str, float] = {}
        self.away = False
        self._time = time
        self._chance = chance
        #: What was answered to each tag.
        self._said: dict[str, Accepted | Refused] = {}
        self._made: dict[str, _Made] = {}
        self._returns: dict[str, _Return] = {}

    # ---------------------------------------------------------------------- asks
    def ask(self, ask: Ask) -> Accepted | Refused:
        """Make what is asked; without the means to recognise a tag, the same ask makes it again."""
        self._answer()
        theirs = f"{self.name}-add-{ask.tag}"
        if self.means.tags and ask.tag in self._said:
            return self._said[ask.tag]
        answer = self._said[ask.tag] = self._make(ask, theirs)
        return answer

    def _make(self, ask: Ask, theirs: str) -> Accepted | Refused:
        if self._chance.fires("refusal", 300):
            return Refused("NotNow", "come again", self._chance.size("refusal", 30, 240))
        room = self.capacity - self.present
        amount = min(ask.amount, room)
        if amount < max(1, ask.least_useful):
            return Refused("InsufficientCapacity", f"{room} are free", None)
        made = self._made.setdefault(theirs, _Made())
        if amount > 1 and self._chance.fires("partial", 600):
            amount -= 1
        made.short = amount < ask.amount
        if ask.kind is Kind.COUNTABLE:
            loan = Loan(f"lent-{ask.tag}-{len(self.loans)}", ask.tag, amount, self._time.now_s)
            made.loan = self.loans[loan.grant] = loan
            return Accepted(theirs)
        if self._chance.fires("surplus", 200):
            amount += 1
        for _ in range(amount):
            machine = self._new(ask.tag)
            made.machines.append(machine)
            self.machines[machine.machine] = machine
        return Accepted(theirs)

    def _new(self, tag: str) -> Machine:
        number = len(self.machines) + 1
        now = self._time.now_s
        boots = now + self._chance.draw(f"{self.name} boots", number, 20, 150)
        fails = self._chance.fires("boot failure", 400)
        never = not fails and self._chance.fires("no join", 400)
        joins = boots + self._chance.draw(f"{self.name} joins", number, 10, 90)
        return Machine(
            f"{self.name}-m{number}", tag, now, boots, None if fails or never else joins, fails
        )

    def status(self, theirs: str) -> StatusAnswer:
        """Return where a request is; a provider that forgets answers once only."""
        self._answer()
        made = self._made.get(theirs)
        if made is None:
            return StatusAnswer(RequestStatus.COMPLETE_WITH_ERROR, message="no such request")
        if made.told and self.means.lists and self._chance.fires("forgets", 3000):
            return StatusAnswer(RequestStatus.COMPLETE_WITH_ERROR, message="forgotten")
        now = self._time.now_s
        if made.loan is not None:
            loan = made.loan
            made.told = True
            grants = (GrantReport(loan.grant, RESOURCE, loan.amount),)
            status = RequestStatus.COMPLETE_WITH_ERROR if made.short else RequestStatus.COMPLETE
            return StatusAnswer(status, grants=grants)
        reports = tuple(self._report(one, now) for one in made.machines)
        if any(one.result is MachineResult.EXECUTING for one in reports):
            return StatusAnswer(RequestStatus.RUNNING, reports)
        made.told = True
        failed = made.short or any(one.result is MachineResult.FAIL for one in reports)
        status = RequestStatus.COMPLETE_WITH_ERROR if failed else RequestStatus.COMPLETE
        return StatusAnswer(status, reports)

    def _report(self, machine: Machine, now: float) -> MachineReport:
        result = MachineResult.SUCCEED
        if now < machine.boots_s:
            result = MachineResult.EXECUTING
        elif machine.fails:
            result = MachineResult.FAIL
        launched = START + timedelta(seconds=machine.made_s)
        return MachineReport(machine.machine, machine.machine, result, launched)

    # ------------------------------------------------------------------- returns
    def give_back(
        self, return_id: str, machines: tuple[str, ...], grants: tuple[GrantBack, ...]
    ) -> Accepted | Refused:
        """Take things back; the same return id is the same return."""
        self._answer()
        if return_id in self._returns:
            return Accepted(f"{self.name}-ret-{return_id}")
        if self._chance.fires("return not taken", 200):
            return Refused("NotNow", "come again")
        made = self._returns[return_id] = _Return()
        now = self._time.now_s
        for name in machines:
            machine = self.machines[name]
            if not machine.exists(now):
                made.gone_s[name] = now
            elif self._chance.fires("return refusal", 400):
                made.refused[name] = "not now"
            else:
                machine.gone_s = made.gone_s[name] = now + self._chance.size("return", 0, 120)
        for part in grants:
            loan = self.loans[part.grant]
            if self._chance.fires("return refusal", 400):
                made.refused[part.grant] = "not now"
            else:
                loan.gone += part.amount
                made.gone_s[part.grant] = now + self._chance.size("return", 0, 120)
        return Accepted(f"{self.name}-ret-{return_id}")

    def return_status(self, return_id: str) -> ReturnStatus:
        """Return what became of a return."""
        self._answer()
        made = self._returns.get(return_id)
        if made is None:
            return ReturnStatus(RequestStatus.COMPLETE_WITH_ERROR)
        now = self._time.now_s
        gone = frozenset(name for name, at in made.gone_s.items() if at <= now)
        refused = tuple(made.refused.items())
        if len(gone) + len(refused) < len(made.gone_s) + len(refused):
            status = RequestStatus.RUNNING
        else:
            status = RequestStatus.COMPLETE_WITH_ERROR if refused else RequestStatus.COMPLETE
        return ReturnStatus(status, gone, refused)

    # --------------------------------------------------------------- what it says
    def describe(self) -> ProviderDescription:
        """Return what it says of itself."""
        self._answer()
        return self.description

    @property
    def description(self) -> ProviderDescription:
        """What it says of itself, before anybody asks."""
        able = Capabilities(
            request_tag=self.means.tags, listing=self.means.lists, partial_returns=True
        )
        if self.kind is Kind.HOST:
            most = -1 if self.bound is Bound.PROVIDER else self.capacity
            return ProviderDescription(
                name=self.name,
                capabilities=able,
                capacity=None if self.bound is Bound.TEMPLATE else self.capacity,
                cost=self.price,
                templates=(TemplateOffer(template_id=TEMPLATE, max_number=most),),
                minimum_hold=HOLD,
            )
        return ProviderDescription(
            name=self.name,
            kinds=(Kind.COUNTABLE.value,),
            capabilities=able,
            cost=self.price,
            resources=(ResourceOffer(name=RESOURCE, capacity=self.capacity),),
            minimum_hold=HOLD,
        )

    def holdings(self) -> tuple[Holding, ...] | None:
        """Return everything it has; what is young is perhaps not there yet, and now and then something is left out."""
        self._answer()
        if not self.means.lists:
            return None
        now = self._time.now_s
        found: list[Holding] = []
        for machine in self.machines.values():
            if not machine.exists(now) or self._is_hidden(machine, machine.made_s, now):
                continue
            launched = START + timedelta(seconds=machine.made_s)
            found.append(
                Holding(
                    machine.machine, Kind.HOST, TEMPLATE, machine.tag, machine.machine,
                    launched_at=launched,
                )
            )  # fmt: skip
        for loan in self.loans.values():
            left = loan.amount - loan.gone
            if left and not self._is_hidden(loan, loan.lent_s, now):
                found.append(Holding(loan.grant, Kind.COUNTABLE, RESOURCE, loan.tag, amount=left))
        return tuple(found)

    def _is_hidden(self, thing: Machine | Loan, made_s: float, now: float) -> bool:
        young = now - made_s < LISTED_AFTER_S
        if self._chance.fires("listing lags", 5000 if young else 20):
            thing.unlisted += 1
            return True
        if thing.unlisted < MISLEADING:
            thing.unlisted = 0
        return False

    def take_backs(self, machines: Mapping[str, str]) -> tuple[TakeBack, ...]:
        """Return which of these machines it takes back: notices are given again until the machine is gone."""
        self._answer()
        now = self._time.now_s
        if self.means.lists:
            for name in machines:
                known = self.machines.get(name)
                if known is None or known.gone_s is not None or not known.is_host(now):
                    continue
                if self._chance.fires("take back", 30):
                    grace = self._chance.size("take back", 60, 300)
                    known.gone_s = self.notices[name] = now + grace
        return tuple(
            TakeBack(name, round(gone - now))
            for name, gone in self.notices.items()
            if name in machines and gone > now
        )

    # --------------------------------------------------------------------- truth
    def keeps(self, machine: str) -> bool:
        """Return whether a machine is there, and its listings have not said otherwise."""
        known = self.machines[machine]
        return known.exists(self._time.now_s) and known.unlisted < MISLEADING

    def lends(self, grant: str) -> int:
        """Return what of a grant is lent, as far as its listings have not said otherwise."""
        known = self.loans[grant]
        return known.amount - known.gone if known.unlisted < MISLEADING else 0

    def there(self) -> list[tuple[str, str]]:
        """Return what exists or is lent: its id and its tag."""
        now = self._time.now_s
        machines = [(m.machine, m.tag) for m in self.machines.values() if m.exists(now)]
        return machines + [(g.grant, g.tag) for g in self.loans.values() if g.amount > g.gone]

    def end(self, theirs: str) -> None:
        """A person ends something."""
        if theirs in self.machines:
            self.machines[theirs].gone_s = self._time.now_s
        else:
            self.loans[theirs].gone = self.loans[theirs].amount

    @property
    def present(self) -> int:
        """How much exists, or is lent."""
        now = self._time.now_s
        lent = sum(one.amount - one.gone for one in self.loans.values())
        return lent + sum(one.exists(now) for one in self.machines.values())

    def _answer(self) -> None:
        if self.away or self._chance.fires("throttled", 100):
            raise TransientError("too many requests")

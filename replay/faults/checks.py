"""The promises of SPEC 13, after every event and at every call of a provider; the first that is broken ends the run."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from xce.domain.events import ids
from xce.domain.events.base import DomainEvent
from xce.domain.events.recorded import Recorded
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import Supply
from xce.domain.ports import Ask, GrantBack
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.budgets import Budgets
from xce.projections.invariants.capacity import Capacity
from xce.projections.invariants.epochs import Epochs
from xce.projections.invariants.intents import Intents
from xce.projections.invariants.ownership import Ownership
from xce.projections.invariants.report import Check, Invariant
from xce.projections.invariants.states import States
from xce.projections.invariants.totals import Totals
from xce.replay.faults.broken import BrokenPromiseError
from xce.replay.faults.cloud import Cloud
from xce.replay.faults.disk import Disk, DiskLog
from xce.replay.faults.ledger import Ledger
from xce.replay.faults.time import Time

#: Demand that is older buys nothing; a round and a call may come on top.
DEMAND_S: Final = 720.0


class Checks:
    """Sees everything that is saved, and every call that leaves a process."""

    def __init__(
        self, disk: Disk, time: Time, budget: Budget | None, clouds: Mapping[str, Cloud]
    ) -> None:
        """Make them; ``clouds``: the providers, for what is really there."""
        self._clouds = clouds
        self._disk = disk
        self._time = time
        self._budget = None if budget is None else budget.max_hosts
        self._budgets = Budgets(() if budget is None else (budget,))
        self._is_rate = budget is not None and budget.max_asked is not None
        #: A controller's clock was set: what was asked within a time depends on who is asked.
        self.clocks_jumped = False
        self._ledger = Ledger(clouds)
        self._invariants: tuple[Invariant, ...] = (
            Ownership(), Intents(), Totals(), Epochs(), Capacity(), States(DiskLog(disk)),
        )  # fmt: skip
        self._requests: dict[str, Request.Intended] = {}
        self._supply: set[str] = set()
        self._exists: set[str] = set()
        self._returns: dict[str, set[str]] = {}
        self._leases: dict[str, tuple[str, int] | None] = {}
        self._extra = 0
        #: Machines that failed and were not counted on any more.
        self._late = 0
        #: Units that came, or came back, when they were not counted on.
        self._late_units = 0
        self._needs: list[tuple[float, int, int]] = []
        self._asked = Counter[str]()
        #: What the scheduler last told the present primary is in use; None: it has not told it.
        self.bookings: int | None = None
        self._booked = 0
        self.events = 0

    # -------------------------------------------------------------------- events
    def booked(self, number: int, occupied: int | None) -> None:
        """A controller has taken what the scheduler told; ``number`` counts what it tells, in the order it tells it."""
        if number < self._booked:
            raise BrokenPromiseError(
                "invariant-3", f"a report of {occupied} occupied was taken behind a newer one"
            )
        self._booked, self.bookings = number, occupied

    def see(self, recorded: Sequence[Recorded]) -> None:
        """Look at what was saved together."""
        for one in recorded:
            self.events += 1
            for invariant in self._invariants:
                invariant.see(one)
                if invariant.found:
                    self._break(invariant.end())
            self._spend(one)
            self._follow(one.event)
            self._ledger.see(one.event)

    def _spend(self, recorded: Recorded) -> None:
        """Look at the budget; what came unasked, perhaps in the same moment, is not known to who asks."""
        before = self._budgets.found
        self._budgets.see(recorded)
        unsure = self._extra or self._late or (self._is_rate and self.clocks_jumped)
        if self._budgets.found > before and not unsure:
            self._break(self._budgets.end())

    def served(self, supply: Supply) -> None:
        """Look at what a controller answers of what there is."""
        if supply.position == self.events:
            self._ledger.compare(supply)

    def _follow(self, event: DomainEvent) -> None:
        match event:
            case ProviderLease.Granted() | ProviderLease.TakenOver() | ProviderLease.Regranted():
                self._leases[ids.name_of(event.originator_id)] = (event.holder, event.epoch)
            case ProviderLease.Released() | ProviderLease.Lapsed():
                self._leases[ids.name_of(event.originator_id)] = None
            case Request.Event():
                self._follow_request(event)
            case Instance.Event():
                self._follow_instance(event)
            case Grant.ReturnStarted():
                self._returns.setdefault(event.return_id, set()).add(event.originator_id)
            case Orphan.ReturnIntended():
                self._returns.setdefault(event.return_id, set()).add(event.originator_id)
            case ElasticResource.PutBack():
                self._late_units += event.amount
            case ElasticResource.GivenBack():
                if self.bookings is None:
                    raise BrokenPromiseError(
                        "invariant-3", f"{event.return_id} while what is occupied is unknown"
                    )
                if event.occupied < self.bookings:
                    raise BrokenPromiseError(
                        "invariant-3",
                        f"{event.return_id} with {event.occupied} occupied; told were {self.bookings}",
                    )
            case _:
                pass

    def _follow_request(self, event: Request.Event) -> None:
        name = ids.name_of(event.originator_id)
        match event:
            case Request.Intended():
                self._requests[name] = event
                if event.kind is Kind.HOST:
                    self._judge(event)
                else:
                    self._judge_units(event)
            case Request.InstanceGranted():
                self._extra += self._ledger.rest(name) <= 0
            case Request.MachineFailed():
                self._late += self._ledger.rest(name) <= 0
            case Request.AmountGranted() | Request.FellShort():
                if self._ledger.rest(name) < event.amount:
                    self._late += 1
                    self._late_units += event.amount
            case _:
                pass

    def _follow_instance(self, event: Instance.Event) -> None:
        name = event.originator_id
        match event:
            case Instance.Granted():
                self._supply.add(name)
                self._exists.add(name)
            case Instance.JoinMissed() | Instance.DrainStarted():
                self._supply.discard(name)
            case Instance.Reopened():
                self._extra += 1
                self._supply.add(name)
            case Instance.ReturnIntended():
                self._returns.setdefault(event.return_id, set()).add(name)
            case Instance.Returned() | Instance.Lost():
                self._supply.discard(name)
                self._exists.discard(name)
            case _:
                pass

    def _judge(self, event: Request.Intended) -> None:
        """Look whether more is asked than the jobs need, or than the budget allows."""
        coming = self._ledger.hosts_coming()
        most = max((hosts for _, hosts, _ in self._recent()), default=0) + self._extra
        there = sum(self._is_there(name) for name in self._supply) + coming
        if there + event.amount > most:
            raise BrokenPromiseError(
                "invariant-9",
                f"{event.amount} hosts are asked with {there} there or coming; jobs need {most}",
            )
        used = len(self._exists) + coming
        if self._budget is not None and used > self._budget + self._extra:
            raise BrokenPromiseError(
                "invariant-5", f"asked with {used} of {self._budget} hosts of the budget used"
            )

    def _judge_units(self, event: Request.Intended) -> None:
        """Look whether more is borrowed than the jobs need."""
        need = max((units for _, _, units in self._recent()), default=0) + self._late_units
        there = self._ledger.expected(event.item)
        if there + event.amount > need:
            raise BrokenPromiseError(
                "invariant-9",
                f"{event.amount} of {event.item} are asked with {there} there or coming; jobs need {need}",
            )

    def _recent(self) -> list[tuple[float, int, int]]:
        since = self._time.now_s - DEMAND_S
        self._needs = [one for one in self._needs if one[0] >= since]
        return self._needs

    def _is_there(self, name: str) -> bool:
        """Return whether the machine of an instance is there: its books may not know yet."""
        provider, _, machine = ids.name_of(name).partition("/")
        return self._clouds[provider].machines[machine].exists(self._time.now_s)

    def needs(self, hosts: int, units: int) -> None:
        """A session has jobs for so many hosts and units."""
        self._needs.append((self._time.now_s, hosts, units))

    # --------------------------------------------------------------------- calls
    def may_act(self, holder: str, provider: str, what: str) -> None:
        """Look whether a process that begins a call that changes something may."""
        lease = self._leases.get(provider)
        if lease is None or lease[0] != holder:
            raise BrokenPromiseError(
                "invariant-6", f"{holder} begins to {what} at {provider}, which {lease} holds"
            )

    def asks(self, ask: Ask, provider: str, *, tags: bool) -> None:
        """Look at an ask that a process sends."""
        intent = self._requests.get(ask.tag)
        if intent is None:
            raise BrokenPromiseError("invariant-2", f"{ask.tag} is asked without an intent")
        if (intent.provider, intent.item, intent.amount) != (provider, ask.item, ask.amount):
            raise BrokenPromiseError("invariant-2", f"{ask.tag} is asked otherwise than intended")
        self._asked[ask.tag] += 1
        if not tags and self._asked[ask.tag] > 1:
            raise BrokenPromiseError("invariant-2", f"{ask.tag} is asked twice")

    def gives_back(
        self,
        provider: str,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        busy: Callable[[str], str | None],
    ) -> None:
        """Look at a return that reaches a provider."""
        intended = self._returns.get(return_id, set())
        for machine in machines:
            owners = {
                ids.instance_id(f"{provider}/{machine}"),
                ids.orphan_id(provider, machine),
            }
            if not owners & intended:
                raise BrokenPromiseError(
                    "invariant-2", f"{machine} goes back as {return_id} without an intent"
                )
            job = busy(machine)
            if job is not None:
                raise BrokenPromiseError("invariant-4", f"{machine} goes back with job {job} on it")
        for part in grants:
            if ids.grant_id(f"{provider}/{part.grant}") not in intended:
                raise BrokenPromiseError(
                    "invariant-2", f"{part.grant} goes back as {return_id} without an intent"
                )

    # ----------------------------------------------------------------------- end
    def end(self) -> None:
        """Look at what must hold when all is quiet."""
        for invariant in self._invariants:
            check = invariant.end()
            if not check.passed:
                self._break(check)

    def open_requests(self) -> Mapping[str, int]:
        """Return what is still expected of requests."""
        return self._ledger.coming()

    @staticmethod
    def _break(check: Check) -> None:
        raise BrokenPromiseError(check.name, str(check.findings[0]))

"""What must hold in every run, whatever a scenario expects: the invariants of SPEC 13, looked at after each moment, and the providers' truth.

Those that a log alone can tell see each event. The others see the site at the moment of the event: what runs on a host that goes back,
what the process that lives has in memory, and what a round of the policy was given when it decided.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import ClassVar, Final

from xce.domain.events.ids import name_of
from xce.domain.events.recorded import Recorded
from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.formats.scenario import Verdict
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.projections.all import Projections
from xce.projections.invariants.budgets import Budgets
from xce.projections.invariants.capacity import Capacity
from xce.projections.invariants.epochs import Epochs
from xce.projections.invariants.intents import Intents
from xce.projections.invariants.ownership import Ownership
from xce.projections.invariants.report import Invariant
from xce.projections.invariants.totals import Totals
from xce.replay.world import World

#: Views are compared after each of so many events, and after that whenever this share more of them has come.
COMPARED_AT_FIRST: Final = 300
_MORE: Final = 1.1

_Item = tuple[Kind, str]


class Busy(Invariant):
    """Sees the site: what runs on a host when it is decided that it goes back."""

    NAME: ClassVar[str] = "invariant-4"
    TITLE: ClassVar[str] = "no instance with a job on it is returned"

    def __init__(self, has_job: Callable[[str], bool]) -> None:
        """Make it; ``has_job``: whether a job runs on the host of an instance."""
        super().__init__()
        self._has_job = has_job

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, Instance.ReturnIntended):
            name = name_of(event.originator_id)
            self._require(not self._has_job(name), f"{name} goes back with a job on it")


class Rebuilt(Invariant):
    """Folds the log a second time, beside the process that lives."""

    NAME: ClassVar[str] = "invariant-8"
    TITLE: ClassVar[str] = "state rebuilt from the log equals the state in memory"

    def __init__(self) -> None:
        super().__init__()
        self._again = Projections()
        self._next = 0

    def _see(self, recorded: Recorded) -> None:
        self._again.apply((recorded,))

    def compare(self, served: Projections) -> None:
        """Compare with what is in memory at the same position: now and then in a long run."""
        position = self._again.position
        if position < self._next or served.position != position:
            return
        self._next = position + 1 if position < COMPARED_AT_FIRST else int(position * _MORE)
        difference = self._again.difference(served)
        self._require(difference is None, difference or "")


class Asked(Invariant):
    """Holds what each round asks against its demand, less what was asked since that was computed and is coming or there.

    Standing minimums, spare hosts and spot shares ask for more than the demand on purpose; what they are about is not looked at.
    """

    NAME: ClassVar[str] = "invariant-9"
    TITLE: ClassVar[str] = "demand never asks for what is in flight"

    def __init__(self) -> None:
        super().__init__()
        #: By request: its item, its position, and what of it is expected or there.
        self._requests: dict[str, tuple[_Item, int, int]] = {}
        self._request_of: dict[str, str] = {}
        self._amounts: dict[str, int] = {}
        self._open: dict[str, int] = {}

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        name = name_of(event.originator_id)
        match event:
            case Request.Intended():
                self._requests[name] = ((event.kind, event.item), recorded.position, event.amount)
                self._open[name] = event.amount
            case Request.InstanceGranted() | Request.MachineFailed():
                self._comes(name, 1)
            case Request.AmountGranted() | Request.FellShort():
                self._comes(name, event.amount)
            case Request.Closed():
                self._comes(name, self._open.get(name, 0))
            case Instance.Granted():
                self._request_of[event.originator_id] = event.request_id
                self._add(event.request_id, 1)
                self._amounts[event.originator_id] = 1
            case Grant.Granted():
                self._request_of[event.originator_id] = event.request_id
                self._add(event.request_id, event.amount)
                self._amounts[event.originator_id] = event.amount
            case (
                Instance.JoinMissed()
                | Instance.ReturnIntended()
                | Instance.Returned()
                | Instance.Lost()
                | Grant.ReturnStarted()
                | Grant.PartLost()
                | Grant.Lost()
            ):
                # Of a grant of which a part goes back all is taken away: then more may be asked, never less.
                left = self._amounts.pop(event.originator_id, 0)
                self._add(self._request_of.get(event.originator_id, ""), -left)
            case _:
                pass

    def _comes(self, request: str, amount: int) -> None:
        """Expect less of a request: what came counts by itself, what failed does not count."""
        less = min(amount, self._open.get(request, 0))
        if less:
            self._open[request] -= less
            self._add(request, -less)

    def _add(self, request: str, amount: int) -> None:
        if request in self._requests:
            item, position, there = self._requests[request]
            self._requests[request] = (item, position, there + amount)

    def decided(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """Look at what a round decided on what it was given."""
        asked: Counter[_Item] = Counter()
        for one in decisions:
            if one.kind is DecisionKind.REQUEST:
                if one.template is not None:
                    asked[Kind.HOST, one.template] += one.count or 0
                elif one.resource is not None:
                    asked[Kind.COUNTABLE, one.resource] += one.amount or 0
        settings = inputs.settings
        if not asked or settings.standing or settings.spare or settings.spot:
            return
        for item, amount in asked.items():
            since = sum(
                max(0, there)
                for of, position, there in self._requests.values()
                if of == item and position > inputs.position
            )
            most = max(0, _wanted(inputs, item) - since) + _spare(inputs, item)
            self._require(
                amount <= most,
                f"{amount} of {item[1]} are asked on a demand of {_wanted(inputs, item)} with {since} asked since",
            )


def _wanted(inputs: PolicyInput, item: _Item) -> int:
    kind, name = item
    if kind is Kind.HOST:
        return sum(
            one.count
            for one in inputs.demand.hosts
            if one.template == name or one.template.startswith(f"{name}@")
        )
    wanted = sum(one.amount for one in inputs.demand.countable if one.name == name)
    return wanted + sum(one.headroom for one in inputs.shared if one.name == name)


def _spare(inputs: PolicyInput, item: _Item) -> int:
    """Return what may come on top for the sake of the sizes that providers give."""
    kind, name = item
    spare = 0
    for provider in inputs.providers:
        grain = provider.granularity
        if kind is Kind.HOST:
            spare += max(grain.minimum, grain.step) - 1
        else:
            spare += sum(one.step - 1 for one in provider.resources if one.name == name)
    if kind is Kind.COUNTABLE:
        own = max((one.step for one in inputs.shared if one.name == name), default=1)
        spare = (spare + 1) * own - 1
    return spare


class Truths:
    """Looks at one run, as one of its watchers; ``attach`` says which."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._budgets = Budgets()
        self._rebuilt = Rebuilt()
        self._asked = Asked()
        self._invariants: tuple[Invariant, ...] = (
            Ownership(),
            Intents(),
            Totals(),
            Busy(self._has_job),
            self._budgets,
            Epochs(),
            Capacity(),
            self._rebuilt,
            self._asked,
        )
        self._owned: set[str] = set()

    def attach(self, world: World) -> None:
        """Say whose run it is."""
        self._world = world

    @property
    def _site(self) -> World:
        assert self._world is not None, "attached before the run"
        return self._world

    def _has_job(self, instance: str) -> bool:
        return self._site.cluster.has_job(instance)

    # ------------------------------------------------------------------ watcher
    def started(self, job: object, at: datetime) -> None:
        """See ``Watcher.started``."""

    def ended(self, job: object, at: datetime) -> None:
        """See ``Watcher.ended``."""

    def session(self, snapshot: object, result: object) -> None:
        """See ``Watcher.session``."""

    def decided(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """See ``RoundWatcher.decided``."""
        self._asked.decided(inputs, decisions)

    def take(self, recorded: Iterable[Recorded]) -> None:
        """Look at what was appended since the last call, and at the site as it is now."""
        self._budgets.keep(self._site.config.policy.budgets)
        for entry in recorded:
            if isinstance(entry.event, Instance.Granted):
                self._owned.add(name_of(entry.event.originator_id))
            for invariant in self._invariants:
                invariant.see(entry)
        self._rebuilt.compare(self._site.projections)

    # ---------------------------------------------------------------------- end
    def verdicts(self, end: datetime) -> Iterator[Verdict]:
        """Yield whether the invariants held, and whether our books are what the providers have."""
        for invariant in self._invariants:
            check = invariant.end()
            found = "; ".join(str(finding) for finding in check.findings[:3])
            yield Verdict(
                expectation=f"{check.name}: {check.title}",
                passed=check.passed,
                found=found or f"{check.counted} looked at",
            )
        yield self._ownership_in_truth(end)

    def _ownership_in_truth(self, end: datetime) -> Verdict:
        site = self._site
        orphans = {f"{row.provider}/{row.theirs}" for row in site.projections.reasons.orphans()}
        asked = {
            entry.id for entry in site.projections.inventory.view().requests
        }  # what is asked and not told yet
        strange = [
            machine.machine
            for name, provider in site.providers.items()
            for machine in provider.machines()
            if machine.launched_at <= end
            and f"{name}/{machine.machine}" not in self._owned | orphans
            and machine.tag not in asked
        ]
        return Verdict(
            expectation="truth: every machine that was made is in our books",
            passed=not strange,
            found=", ".join(strange[:5]) or f"{len(self._owned)} looked at",
        )

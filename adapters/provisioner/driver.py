"""One provider: calls made one after the other, answers recorded, and what is due. No threads and no waiting in here.

It does what the engine says, in the order that makes every death harmless: a call follows its durable intent, under the lease epoch
that the intent was written under; an answer is recorded before the next call. What cannot be recorded is found again by a poll.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.provisioner.books_time import BooksTime
from xce.adapters.provisioner.hearing import Heard, record_of
from xce.adapters.provisioner.orders import Orders
from xce.adapters.provisioner.supplies import (
    ask_of,
    capabilities_of,
    failures_of,
    inventory_of,
    policy_of,
)
from xce.adapters.provisioner.surroundings import Surroundings
from xce.domain.engine.calls import (
    Answer,
    AnyCall,
    AskCall,
    Call,
    CheckCall,
    ListCall,
    RenewCall,
    StatusCall,
    Step,
    make,
)
from xce.domain.engine.commands import DescribeProvider
from xce.domain.engine.polling import is_unknown, taken_back
from xce.domain.engine.reconciliation import Listing, Sightings, forget, reconcile
from xce.domain.errors import AdapterError, TransientError
from xce.domain.formats.inventory import InstanceEntry, Inventory
from xce.domain.formats.rest import Supply
from xce.domain.ports import FullProvider, Refused
from xce.domain.provisioning.drain import DrainState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import OPEN, RequestState

_LOG = structlog.get_logger("xce.provisioner")
#: Machines of one question whether they are taken back.
CHECKED_TOGETHER: Final = 100
#: States of machines that a provider may take back.
_THERE = frozenset({InstanceState.STARTING, InstanceState.JOINED, InstanceState.DRAINING})


@dataclass(frozen=True, slots=True)
class _Check:
    """Machines that may be taken back: their names, by the provider's id."""

    machines: dict[str, str]
    instances: tuple[InstanceEntry, ...]


class Driver:
    """Does all that concerns one provider. Any thread may ``submit``; all else is for one thread."""

    def __init__(
        self,
        name: str,
        provider: FullProvider,
        around: Surroundings,
        heard: Heard | None = None,
    ) -> None:
        """Make it; ``heard`` gathers what the provider really says, for those that tell it."""
        self.name = name
        self._heard = heard or Heard()
        self._provider = provider
        self._around = around
        self._orders = Orders(name, around)
        #: What is stamped in the books is compared with their own time.
        self._time = BooksTime(around.clock, around.elapsed_s)
        self._to_check: deque[_Check] = deque()
        self._sightings = Sightings()
        #: Whether it said what it offers when it was last asked.
        self.is_described = False

    # ---------------------------------------------------------------- messages in
    @property
    def decides_under(self) -> int | None:
        """The epoch under which something may be decided on what is read from now on; None: nothing may."""
        return self._orders.decides_under

    @property
    def in_doubt(self) -> bool:
        """Whether an order that was not answered may still be on its way."""
        return self._orders.in_doubt

    @property
    def came(self) -> int | None:
        """How often it was recorded what came of requests; None: it is being recorded."""
        return self._orders.came

    def submit(self, steps: Iterable[Step], *, under: int | None, came: int | None = None) -> bool:
        """Make decisions durable, one by one, and put their calls into the queue; see ``Orders.submit``."""
        return self._orders.submit(steps, under=under, came=came)

    # ------------------------------------------------------------------- the queue
    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._orders.calls)

    @property
    def acts(self) -> bool:
        """Whether we may act on the provider now."""
        return self._orders.epoch is not None

    @property
    def asking(self) -> Collection[str]:
        """Tags of the asks that wait, or are being made."""
        return self._orders.calls.underway().asks

    def begin(self, before: int | None, epoch: int) -> None:
        """A lease epoch begins for us; what waits under an earlier one is not carried out."""
        self._sightings = Sightings()
        self._orders.begin(before, epoch)

    def withdraw(self) -> None:
        """End the requests whose first asks still wait: we stop, and know that they were never made."""
        self._orders.withdraw()

    def work(self) -> bool:
        """Make the next call that waits, and record its answer; return whether there was one."""
        batch = self._orders.calls.next()
        if not batch:
            return False
        epoch, calls = batch[0].epoch, [one.call for one in batch]
        try:
            if self._orders.epoch != epoch:
                return True  # the intents of another epoch are looked up, not carried out
            first = calls[0]
            if isinstance(first, ListCall):
                self.reconcile()
            elif isinstance(first, StatusCall):
                self._ask_status([call for call in calls if isinstance(call, StatusCall)])
            else:
                self._call(first, epoch)
        finally:
            self._orders.calls.forget(calls)
        return True

    # ----------------------------------------------------------------------- calls
    def _call(self, call: Call, epoch: int) -> None:
        around = self._around
        began = around.elapsed_s()
        self._heard.take()  # what was said before led to nothing
        if isinstance(call, AskCall) and not self._is_wanted(call.ask.tag):
            return
        if self._orders.epoch != epoch:
            return  # it has ended while we looked whether the ask is wanted
        try:
            answer = make(call, self._provider, self._time.now())
        except AdapterError as error:
            suspect = error.suspect if isinstance(error, OutcomeUnknownError) else None
            self._failed(call, error, began)
            following = around.engine.failed(call, str(error), suspect)
        else:
            self._answered(call, type(answer).__name__.lower(), began)
            following = around.engine.answered(
                call, answer, self._time.now(), around.policy, self._failures(call, answer)
            )
        self._follow(following)

    def _supply(self, not_before_s: float) -> Supply:
        return self._time.hear(self._around.books.supply(not_before_s))

    def _failures(self, call: Call, answer: Answer) -> int:
        """Return how often what is asked failed in a row: the pause after a refusal grows with it."""
        if not (isinstance(call, AskCall) and isinstance(answer, Refused)):
            return 0
        try:
            supply = self._supply(self._around.elapsed_s())
        except AdapterError:
            return 0  # the shortest pause does no harm
        return failures_of(supply, self.name, call.ask.item)

    def _is_wanted(self, tag: str) -> bool:
        """Return whether a request is still open: its ask may have waited past its deadline."""
        try:
            supply = self._supply(self._around.elapsed_s())
        except AdapterError:
            return True  # its intent is durable, and we may act
        known = (one.state for one in supply.inventory.requests if one.id == tag)
        return next(known, RequestState.FAILED) in OPEN

    def _ask_status(self, calls: Sequence[StatusCall]) -> None:
        around = self._around
        began = around.elapsed_s()
        self._heard.take()
        ids = [call.provider_request_id for call in calls]
        try:
            answers = self._provider.statuses(ids, self._time.now())
        except AdapterError as error:
            self._failed(calls[0], error, began)
            return
        for call in calls:
            answer = answers.get(call.provider_request_id)
            if answer is None or isinstance(answer, AdapterError):
                self._failed(call, answer or TransientError("no answer"), began)
                continue
            self._answered(call, answer.status, began)
            self._follow(around.engine.answered(call, answer, self._time.now(), around.policy))

    def _follow(self, steps: Iterable[Step]) -> None:
        """Record what follows from an answer."""
        self._orders.tell(self._with_evidence(steps))

    def _with_evidence(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps, the first of them with what was really said."""
        said = tuple(
            record_of(one, self.name, self._around.ids.next_id("E")) for one in self._heard.take()
        )
        for step in steps:
            yield replace(step, commands=(*step.commands, *said)) if step.commands else step
            said = () if step.commands else said

    def _answered(self, call: AnyCall, outcome: str, began: float) -> None:
        seconds = self._around.elapsed_s() - began
        self._around.watch.called(self.name, type(call).__name__, outcome, seconds)
        _LOG.info(
            "provider answered",
            provider=self.name,
            call=type(call).__name__,
            subject=_subject(call),
            outcome=outcome,
            seconds=round(seconds, 3),
        )

    def _failed(self, call: AnyCall, error: AdapterError, began: float) -> None:
        seconds = self._around.elapsed_s() - began
        self._around.watch.called(self.name, type(call).__name__, error.code, seconds)
        _LOG.warning(
            "provider did not answer",
            provider=self.name,
            call=type(call).__name__,
            subject=_subject(call),
            code=error.code,
            error=str(error),
            seconds=round(seconds, 3),
        )

    # ---------------------------------------------------------------- what is due
    def poll(self) -> None:
        """Put everything that is due into the queue."""
        around, under = self._around, self._orders.decides_under
        if under is None:
            return
        supply = self._supply(self._orders.wrote_s)
        inventory = inventory_of(supply, self.name)
        self._recall(inventory)
        self._hear_recalls(inventory)
        now = self._time.now()
        able = capabilities_of(supply, self.name)
        steps = around.engine.poll(
            inventory,
            now,
            policy_of(around.policy, supply),
            looked_at=around.newest.looked_at(now, around.elapsed_s()),
            lifecycle=around.lifecycle,
            capabilities={self.name: able},
            underway=self._orders.calls.underway(),
        )
        self.submit(steps, under=under)
        self._give_back_what_is_empty(supply, inventory, under)
        if not self._to_check:
            self._to_check.extend(_checks(inventory))

    def _recall(self, inventory: Inventory) -> None:
        """Find the answers that a predecessor on this machine has heard and not recorded."""
        around = self._around
        for entry in inventory.requests:
            if entry.state is not RequestState.INTENDED or not is_unknown(entry):
                continue
            if entry.id in self._orders.calls.underway().asks:
                continue
            call = AskCall(self.name, ask_of(entry))
            self._heard.take()
            try:
                answer = self._provider.recall(entry.id, entry.kind)
            except AdapterError as error:
                suspect = error.suspect if isinstance(error, OutcomeUnknownError) else None
                if suspect is not None:
                    self._follow(around.engine.failed(call, str(error), suspect))
                continue
            if answer is not None:
                self._follow(around.engine.answered(call, answer, self._time.now(), around.policy))

    def _hear_recalls(self, inventory: Inventory) -> None:
        """Ask a lender of something that we have what it says now: whether it wants some of it back."""
        if inventory.grants:
            self.describe()

    def _give_back_what_is_empty(self, supply: Supply, inventory: Inventory, under: int) -> None:
        """Give back the hosts that their scheduler has closed and found empty; it opens those on which a job slipped in."""
        draining = {
            entry.id for entry in inventory.instances if entry.state is InstanceState.DRAINING
        }
        empty = {
            drain.instance: False
            for drain in supply.drains
            if drain.state is DrainState.EMPTY and drain.instance in draining and drain.instance
        }
        if empty and not supply.site.frozen:
            self.submit(self._around.engine.looked(empty, inventory), under=under)

    def check_some(self) -> bool:
        """Ask which of some machines the provider takes back; return whether there were any to ask about.

        A part at a time, so that with many machines an ask does not wait for all of them.
        """
        under = self._orders.decides_under
        if not self._to_check or under is None:
            return False
        check = self._to_check.popleft()
        now = self._time.now()
        try:
            notices = self._provider.take_backs(check.machines, now)
        except AdapterError as error:
            _LOG.warning("take-backs unknown", provider=self.name, error=str(error))
            return True
        if notices:
            self.submit(taken_back(notices, check.instances, now), under=under)
        return True

    def reconcile(self) -> None:
        """Compare what the provider has with what we have."""
        around, under = self._around, self._orders.decides_under
        if under is None:
            return
        inventory = inventory_of(self._supply(self._orders.wrote_s), self.name)
        orphans = around.books.orphans(self.name)
        asked_at, began = self._time.now(), around.elapsed_s()
        call = ListCall(self.name)
        self._heard.take()
        try:
            holdings = self._provider.holdings(asked_at)
        except AdapterError as error:
            self._failed(call, error, began)
            self._sightings = forget(self._sightings)
            return
        if holdings is None:
            return
        self._answered(call, f"{len(holdings)} held", began)
        steps, self._sightings = reconcile(
            Listing(self.name, holdings, asked_at),
            inventory,
            self._sightings,
            around.ids,
            lifecycle=around.lifecycle,
            orphans=orphans,
            asking=self._orders.calls.underway().asks,
        )
        around.watch.held_back(self.name, self._sightings.held)
        if self._sightings.held is not None:
            _LOG.error("losses held back", provider=self.name, why=self._sightings.held)
        for odd in self._sightings.more:
            _LOG.error("amounts differ", provider=self.name, why=odd)
        self.submit(self._with_evidence(steps), under=under)

    @property
    def disbelieved(self) -> str | None:
        """Which losses the last listing showed that are not believed yet; None: none."""
        return self._sightings.held

    @property
    def is_unsettled(self) -> bool:
        """Whether the last listing left something that only the next one can confirm."""
        seen = self._sightings
        return bool(seen.missing or seen.unowned or seen.less)

    def describe(self) -> None:
        """Ask the provider what it offers; what it cannot say now, it has said before, or will say when it is asked again."""
        self.is_described = False
        under = self._orders.decides_under
        if under is None:
            return
        began = self._around.elapsed_s()
        try:
            description = self._provider.describe(self._time.now())
        except AdapterError as error:
            _LOG.warning("description unknown", provider=self.name, error=str(error))
            return
        if description is None:
            return
        self._around.watch.called(
            self.name, "DescribeCall", "answered", self._around.elapsed_s() - began
        )
        self.is_described = True
        self.submit((Step((DescribeProvider(description),)),), under=under)


def _checks(inventory: Inventory) -> Iterator[_Check]:
    there = [
        entry
        for entry in inventory.instances
        if entry.state in _THERE and entry.machine is not None
    ]
    for start in range(0, len(there), CHECKED_TOGETHER):
        some = tuple(there[start : start + CHECKED_TOGETHER])
        names = {entry.machine: entry.name or entry.machine for entry in some if entry.machine}
        yield _Check(names, some)


def _subject(call: AnyCall) -> str:
    match call:
        case AskCall():
            return call.ask.tag
        case StatusCall():
            return call.request
        case ListCall():
            return ""
        case CheckCall():
            return ", ".join(ours for ours, _ in call.instances)
        case RenewCall():
            return ", ".join(ours for ours, _ in call.grants)
        case _:
            return call.return_id

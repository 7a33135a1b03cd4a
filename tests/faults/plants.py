"""Faults planted in our own code on purpose: the campaign must find each (SPEC 13, and the list in ``docs/reference/faults.md``)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pytest

from xce.adapters.provisioner.driver import Driver
from xce.adapters.provisioner.leases import Leases
from xce.adapters.provisioner.orders import Orders
from xce.domain.engine import accounting, handling, polling, provisioner, reconciliation
from xce.domain.engine.calls import GiveBackCall, Step
from xce.domain.engine.commands import OpenRequest
from xce.domain.engine.workspace import Workspace
from xce.domain.events import ids
from xce.domain.formats.inventory import InstanceEntry
from xce.domain.policy import bounds, facts, reclaim_hosts, usage, wanted
from xce.domain.ports import IdSource, MachineReport
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections import catalog
from xce.projections.totals import SharedTotals

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Plant:
    """A planted fault.

    Attributes:
        promises: one of these is broken by it.
        plant: does it.
    """

    name: str
    promises: frozenset[str]
    plant: Callable[[Patch], None]
    #: Whether it takes hundreds of seeds.
    rare: bool = False


def nothing(*arguments: object) -> tuple[()]:
    return ()


def none(*arguments: object) -> None:
    return None


def no(*arguments: object) -> bool:
    return False


def yes(*arguments: object) -> bool:
    return True


PLANTS: Final[list[Plant]] = []


def plant(
    *promises: str, rare: bool = False
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def keep(function: Callable[[Patch], None]) -> Callable[[Patch], None]:
        name = function.__name__.replace("_", " ")
        PLANTS.append(Plant(name, frozenset(promises), function, rare))
        return function

    return keep


@plant("invariant-6")
def a_stale_epoch_is_accepted(patch: Patch) -> None:
    def fence(self: Workspace, provider: str) -> int:
        lease = self.find(ProviderLease, ids.lease_id(provider))
        return 1 if lease is None else lease.epoch

    patch.setattr(Workspace, "fence", fence)


@plant("invariant-6", rare=True)
def a_lease_never_ends_for_its_holder(patch: Patch) -> None:
    def epoch(self: Any, provider: str) -> int | None:
        held = self._held.get(provider)
        return None if held is None else held.epoch

    patch.setattr(Leases, "epoch", epoch)


@plant("invariant-2")
def an_ask_is_made_before_its_intent_is_durable(patch: Patch) -> None:
    real = Driver.submit

    def submit(
        self: Any, steps: Iterable[Step], *, under: int | None, came: int | None = None
    ) -> bool:
        for step in steps:
            if under is not None and any(isinstance(one, OpenRequest) for one in step.commands):
                self._orders.calls.put(under, step.calls)
                self.work()
                step = Step(step.commands, otherwise=step.otherwise)
            real(self, (step,), under=under, came=came)
        return True

    patch.setattr(Driver, "submit", submit)


@plant("invariant-2")
def an_unknown_outcome_is_asked_again(patch: Patch) -> None:
    real = polling._outcomes  # pyright: ignore[reportPrivateUsage]

    def outcomes(requests: Any, can: Any, underway: Any) -> Iterator[Step]:
        able = {name: one.model_copy(update={"request_tag": True}) for name, one in can.items()}
        return real(requests, able, underway)

    patch.setattr(polling, "_outcomes", outcomes)


@plant("invariant-4")
def a_draining_host_is_not_looked_at_again(patch: Patch) -> None:
    real = Driver._give_back_what_is_empty  # pyright: ignore[reportPrivateUsage]

    def give_back(self: Any, supply: Any, inventory: Any, under: int) -> None:
        draining = {
            one.id: False for one in inventory.instances if one.state is InstanceState.DRAINING
        }
        if draining:
            self.submit(self._around.engine.looked(draining, inventory), under=under)
        real(self, supply, inventory, under)

    patch.setattr(Driver, "_give_back_what_is_empty", give_back)


@plant("invariant-3", rare=True)
def unknown_use_of_a_shared_resource_counts_as_none(patch: Patch) -> None:
    real = handling.grant

    def grant(space: Any, command: Any, stamp: Any, occupied: int | None) -> None:
        real(space, command, stamp, occupied or 0)

    patch.setattr(handling, "grant", grant)


@plant("invariant-3")
def a_shared_resource_goes_back_while_it_is_in_use(patch: Patch) -> None:
    real = ElasticResource.give_back

    def give_back(self: ElasticResource, *, occupied: int, **rest: Any) -> None:
        real(self, occupied=0, **rest)

    patch.setattr(ElasticResource, "give_back", give_back)


@plant("invariant-1")
def a_surplus_is_not_recorded(patch: Patch) -> None:
    name_for = accounting._name_for  # pyright: ignore[reportPrivateUsage]
    is_new_grant = accounting._is_new_grant  # pyright: ignore[reportPrivateUsage]

    def name_unless_full(request: Request, *rest: Any) -> str | None:
        return name_for(request, *rest) if request.granted < request.amount else None

    def new_unless_full(request: Request, *rest: Any) -> bool:
        return request.granted < request.amount and is_new_grant(request, *rest)

    patch.setattr(accounting, "_name_for", name_unless_full)
    patch.setattr(accounting, "_is_new_grant", new_unless_full)


@plant("invariant-7", "invariant-5")
def the_capacity_forgets_what_goes_back(patch: Patch) -> None:
    def exists(instance: InstanceEntry) -> bool:
        return instance.state in facts.USABLE

    patch.setattr(facts, "exists", exists)


@plant("invariant-7", "invariant-5")
def the_capacity_forgets_what_nobody_owns(patch: Patch) -> None:
    patch.setattr(usage, "unaccounted", nothing)
    patch.setattr(catalog, "unaccounted", nothing)


@plant("invariant-5", "invariant-7")
def bounds_forget_asks_without_an_answer(patch: Patch) -> None:
    real = facts.open_amount

    def open_amount(request: Any) -> int:
        return 0 if request.state is not RequestState.ACCEPTED else real(request)

    patch.setattr(facts, "open_amount", open_amount)


@plant("invariant-9", "invariant-5", "invariant-7")
def the_demand_forgets_what_was_asked_since(patch: Patch) -> None:
    def asked_since(*arguments: object) -> int:
        return 0

    patch.setattr(wanted, "_hosts_asked_since", asked_since)


@plant("invariant-1", "invariant-9", "settles", "defect")
def an_answer_that_comes_twice_counts_twice(patch: Patch) -> None:
    real = accounting.record_status

    def name_for(request: Request, report: MachineReport, record_of: Any, passed: object) -> str:
        name = f"{request.provider}/{report.machine}"
        return name if record_of(name) is None else f"{name}~{request.name}"

    def record_status(request: Request, *rest: Any, **more: Any) -> Iterator[Any]:
        known, request.instance_of = request.instance_of, {}
        yield from real(request, *rest, **more)
        request.instance_of = {**known, **request.instance_of}

    patch.setattr(accounting, "_name_for", name_for)
    patch.setattr(accounting, "record_status", record_status)


@plant("invariant-1")
def an_ask_that_was_never_found_out_is_not_reported(patch: Patch) -> None:
    def silently(entry: Any, why: str, because: Any, asking: Any) -> Step:
        made = give_up(entry, why, because, asking)
        return Step(made.commands[:2])

    give_up = provisioner._give_up  # pyright: ignore[reportPrivateUsage]
    patch.setattr(provisioner, "_give_up", silently)
    patch.setattr(polling, "_settled", nothing)


@plant("invariant-1", rare=True)
def an_ask_given_up_while_it_is_made_is_forgotten_with_its_process(patch: Patch) -> None:
    real = polling._settled  # pyright: ignore[reportPrivateUsage]

    def settled(requests: Iterable[Any], *rest: Any) -> Iterator[Step]:
        known = [one for one in requests if one.provider_request_id is not None]
        return real(known, *rest)

    patch.setattr(polling, "_settled", settled)


@plant("invariant-3")
def a_host_goes_back_before_its_hold(patch: Patch) -> None:
    real = Instance.intend_return

    def intend_return(self: Instance, **rest: Any) -> None:
        hold, self.hold_until = self.hold_until, None
        try:
            real(self, **rest)
        finally:
            self.hold_until = hold

    patch.setattr(Instance, "intend_return", intend_return)
    patch.setattr(reclaim_hosts, "_in_hold", none)

    def useless(instances: Iterable[InstanceEntry], now: object, own: IdSource) -> Any:
        never = [one for one in instances if one.state is InstanceState.NEVER_JOINED]
        return polling.give_back(never, "useless", own)

    patch.setattr(polling, "_useless", useless)


@plant("settles")
def a_machine_that_never_joins_is_kept(patch: Patch) -> None:
    patch.setattr(polling, "_useless", nothing)


@plant("invariant-2")
def a_return_that_was_not_answered_is_made_again_under_another_id(patch: Patch) -> None:
    real = polling._return_calls  # pyright: ignore[reportPrivateUsage]

    def calls(*arguments: Any) -> Iterator[Any]:
        for call in real(*arguments):
            if isinstance(call, GiveBackCall):
                again = f"{call.return_id}-again"
                yield GiveBackCall(call.provider, again, call.instances, call.grants)
            else:
                yield call

    patch.setattr(polling, "_return_calls", calls)


@plant("invariant-1")
def what_was_given_up_is_not_asked_about(patch: Patch) -> None:
    patch.setattr(polling, "_too_late", yes)
    patch.setattr(polling, "_settled", nothing)


@plant("invariant-1", "invariant-3", "invariant-8", "settles", rare=True)
def a_refused_order_leaves_half_of_itself(patch: Patch) -> None:
    patch.setattr(Workspace, "undo", none)


@plant("invariant-9", "invariant-5", "invariant-7")
def the_budget_and_the_demand_forget_requests(patch: Patch) -> None:
    patch.setattr(facts, "is_open", no)


@plant("invariant-1")
def nothing_found_in_a_listing_is_believed_at_once(patch: Patch) -> None:
    real = reconciliation._look_up  # pyright: ignore[reportPrivateUsage]

    def look_up(
        requests: Any, adopted: Any, strange: Any, listing: Any, lifecycle: Any, asking: Any
    ) -> Any:
        hasty = lifecycle.model_copy(update={"lookup_settle": timedelta(0)})
        return real(requests, adopted, strange, listing, hasty, asking)

    patch.setattr(reconciliation, "_look_up", look_up)
    patch.setattr(reconciliation, "_report", nothing)


@plant("invariant-3")
def what_comes_is_recorded_without_its_hold(patch: Patch) -> None:
    patch.setattr(accounting, "_hold_until", none)


@plant("invariant-8")
def a_grant_is_counted_twice_in_a_total(patch: Patch) -> None:
    real = SharedTotals._fold_borrowed  # pyright: ignore[reportPrivateUsage]

    def twice(self: Any, event: Any, position: int) -> None:
        real(self, event, position)
        real(self, event, position)

    patch.setattr(SharedTotals, "_fold_borrowed", twice)


@plant("invariant-5")
def a_budget_is_off_by_one(patch: Patch) -> None:
    real = bounds.CountBound.room

    def room(self: Any, price: Any) -> int:
        more = str(self.what).startswith("hosts of budget")
        return int(real(self, price)) + more

    patch.setattr(bounds.CountBound, "room", room)


@plant("invariant-5")
def money_is_spent_beyond_a_budget(patch: Patch) -> None:
    def endless(*arguments: object) -> int:
        return 100

    patch.setattr(bounds.CostBound, "room", endless)


@plant("invariant-7")
def the_capacity_of_a_provider_is_forgotten(patch: Patch) -> None:
    patch.setattr(bounds.Bounds, "_capacity", nothing)


@plant("invariant-1")
def a_return_under_way_is_taken_for_its_end(patch: Patch) -> None:
    def gone(theirs: str, answer: object) -> str:
        return ""

    patch.setattr(provisioner, "_fate", gone)


@plant("invariant-2")
def calls_follow_a_step_that_is_not_recorded(patch: Patch) -> None:
    real = Orders._recorded  # pyright: ignore[reportPrivateUsage]

    def recorded(self: Any, step: Step, epoch: int, *, insist: bool) -> int:
        done = real(self, step, epoch, insist=insist)
        return epoch if done is None else done

    patch.setattr(Orders, "_recorded", recorded)

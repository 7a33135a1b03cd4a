"""What is due, read from the inventory alone: asks without an outcome, status, late joins, drains, returns under way.

A provisioner that was killed at any moment finds here what its predecessor left: an intent without an outcome is *unknown*, and is
looked up in the way that the provider makes possible, never repeated blindly (field cases F04, F19).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from xce.domain.engine.calls import (
    AskCall,
    CheckCall,
    GiveBackCall,
    ListCall,
    Look,
    ReturnStatusCall,
    StatusCall,
    Step,
    Steps,
)
from xce.domain.engine.commands import (
    LoseGrant,
    LoseTrack,
    MissJoin,
    RecordStatus,
    ReportOrphan,
    SettleRequest,
    StartReturn,
)
from xce.domain.engine.site_commands import DrainHost
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.provider import Capabilities
from xce.domain.policy.times import later
from xce.domain.ports import (
    Ask,
    GrantBack,
    IdSource,
    ReportedMachine,
    RequestStatus,
    StatusAnswer,
    TakeBack,
)
from xce.domain.provisioning.drain import AtDeadline
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.request import GIVEN_UP, RequestState

#: Machines of one return, and of one record of a status: messages stay small, and one stuck return holds up no more.
TOGETHER: Final = 100
RECORDED_TOGETHER: Final = 500
#: Without a word of the provider: a contract version 1 script.
PLAIN: Final = Capabilities()
DEFAULTS: Final = LifecycleSettings()

NO_OUTCOME: Final = "no outcome was recorded: the provisioner ended during the call"


@dataclass(frozen=True, slots=True)
class Underway:
    """What this process is at, so that a poll does not take it for something that a dead one has left.

    Attributes:
        asks: tags of asks.
        returns: ids of returns.
    """

    asks: Collection[str] = frozenset()
    returns: Collection[str] = frozenset()


NOTHING: Final = Underway()


def poll(
    inventory: Inventory,
    now: datetime,
    settings: PolicySettings,
    ids: IdSource,
    *,
    looked_at: datetime | None,
    lifecycle: LifecycleSettings = DEFAULTS,
    capabilities: Mapping[str, Capabilities] | None = None,
    underway: Underway = NOTHING,
) -> Steps:
    """Return what is due for all that is open in an inventory.

    Args:
        inventory: what is asked, owned or owed; of one provider, or of all.
        now: the time.
        settings: of the policy.
        ids: for new returns.
        looked_at: when the scheduler last looked at its hosts and told who joined; None: nobody knows.
        lifecycle: how things are followed.
        capabilities: what each provider can do; one that is not named can do what version 1 of the contract can.
        underway: what this process is at.
    """
    can = capabilities or {}
    draining = tuple(
        entry.id for entry in inventory.instances if entry.state is InstanceState.DRAINING
    )
    return (
        *_outcomes(inventory.requests, can, underway),
        Step(calls=tuple(_status_calls(inventory.requests, now, lifecycle))),
        *_settled(inventory.requests, now, lifecycle, underway),
        *(() if settings.freeze else _aged(inventory.instances, now, lifecycle)),
        *((Step(looks=(Look(draining),)),) if draining else ()),
        *_never_joined(inventory.instances, looked_at, now, settings),
        Step(calls=tuple(_checks(inventory.instances))),
        *(() if settings.freeze else _useless(inventory.instances, now, ids)),
        Step(calls=tuple(_return_calls(inventory.instances, inventory.grants, underway))),
        *_ended(inventory.grants, now, can),
    )


def give_back(entries: Iterable[InstanceEntry], why: str, ids: IdSource) -> Steps:
    """Return the intent and the call for each provider that gets machines back."""
    steps: list[Step] = []
    by_provider = sorted(entries, key=lambda entry: entry.provider)
    for provider, gone in _groups(by_provider):
        pairs = tuple((entry.id, machine_of(entry)) for entry in gone)
        return_id = ids.next_id("B")
        intent = StartReturn(return_id, tuple(ours for ours, _ in pairs), why)
        call = GiveBackCall(provider, return_id, instances=pairs, names=_names(gone))
        steps.append(Step((intent,), calls=(call,)))
    return tuple(steps)


def _groups(entries: list[InstanceEntry]) -> Iterator[tuple[str, list[InstanceEntry]]]:
    for provider, group in groupby(entries, key=lambda entry: entry.provider):
        some = list(group)
        for start in range(0, len(some), TOGETHER):
            yield provider, some[start : start + TOGETHER]


def record_status(request: str, answer: StatusAnswer) -> Steps:
    """Return the steps that record an answer; of a long one, its parts first as those of a request that runs on."""
    machines = answer.machines
    cuts = range(0, max(1, len(machines)), RECORDED_TOGETHER)
    parts = [machines[start : start + RECORDED_TOGETHER] for start in cuts]
    return (
        *(
            Step((RecordStatus(request, StatusAnswer(RequestStatus.RUNNING, part)),))
            for part in parts[:-1]
        ),
        Step((RecordStatus(request, replace(answer, machines=parts[-1])),)),
    )


def machine_of(entry: InstanceEntry) -> str:
    """Return the provider's id of an instance."""
    return entry.machine or own_part(entry.id, entry.provider)


def own_part(our_id: str, provider: str) -> str:
    """Return the provider's id inside ours: ``aws/m-1`` is machine ``m-1`` of ``aws``; a provider's name may hold a stroke."""
    return our_id.removeprefix(f"{provider}/")


def is_unknown(entry: RequestEntry) -> bool:
    """Return whether nobody knows what an ask has done."""
    return entry.state is RequestState.UNKNOWN or (
        entry.state is RequestState.INTENDED and entry.provider_request_id is None
    )


# -------------------------------------------------------------------- requests
def _outcomes(
    requests: Iterable[RequestEntry], can: Mapping[str, Capabilities], underway: Underway
) -> Iterator[Step]:
    """Look up what nobody knows; a provider that can do neither keeps it open until its deadline."""
    listed: set[str] = set()
    for entry in requests:
        if not is_unknown(entry) or entry.id in underway.asks:
            continue
        lost = (LoseTrack(entry.id, NO_OUTCOME),) if entry.state is RequestState.INTENDED else ()
        able = can.get(entry.provider, PLAIN)
        if entry.provider_request_id is not None:
            call = StatusCall(entry.provider, entry.id, entry.provider_request_id)
            yield Step(lost, calls=(call,))
        elif able.request_tag:
            yield Step(lost, calls=(AskCall(entry.provider, _ask_again(entry), again=True),))
        elif able.listing and entry.provider not in listed:
            listed.add(entry.provider)
            yield Step(lost, calls=(ListCall(entry.provider),))
        elif lost:
            yield Step(lost)


def _ask_again(entry: RequestEntry) -> Ask:
    item = entry.template if entry.template is not None else entry.resource
    assert item is not None, "a request is for a template or a resource"
    return Ask(entry.id, entry.kind, item, entry.amount)


def _status_calls(
    requests: Iterable[RequestEntry], now: datetime, lifecycle: LifecycleSettings
) -> Iterator[StatusCall]:
    for entry in requests:
        if entry.provider_request_id is None:
            continue
        late = entry.state in GIVEN_UP and not _too_late(entry, now, lifecycle)
        if entry.state is RequestState.ACCEPTED or late:
            yield StatusCall(entry.provider, entry.id, entry.provider_request_id)


def _settled(
    requests: Iterable[RequestEntry],
    now: datetime,
    lifecycle: LifecycleSettings,
    underway: Underway,
) -> Iterator[Step]:
    """End what was given up, and tell people what nobody asks for any more.

    That is an ask that a process was at when it died, and one whose provider never said that it is over.
    """
    for entry in requests:
        if entry.state not in GIVEN_UP or entry.settled or entry.id in underway.asks:
            continue
        if entry.provider_request_id is None and not entry.granted:
            settle = SettleRequest(entry.id, NO_OUTCOME)
            yield Step((settle, never_found_out(entry)), otherwise=(settle,))
        elif _too_late(entry, now, lifecycle):
            settle = SettleRequest(entry.id, "its provider was asked to no end")
            yield Step((settle, never_found_out(entry)), otherwise=(settle,))


def never_found_out(entry: RequestEntry) -> ReportOrphan:
    """Return the report of an ask of which nobody knows what it has done."""
    item = entry.template if entry.template is not None else entry.resource
    why = (
        f"what the ask for {entry.amount} of {item} has done was never found out:"
        " look for it at the provider"
    )
    return ReportOrphan(entry.provider, entry.id, OrphanKind.UNKNOWN_TO_US, entry.id, why)


def _too_late(entry: RequestEntry, now: datetime, lifecycle: LifecycleSettings) -> bool:
    if entry.settled:
        return True
    return now >= later(entry.deadline or entry.asked_at, lifecycle.late_answers_for)


# ------------------------------------------------------------------- instances
def _aged(
    instances: Iterable[InstanceEntry], now: datetime, lifecycle: LifecycleSettings
) -> Iterator[Step]:
    for entry in instances:
        if entry.state is InstanceState.JOINED and is_aged(entry, now, lifecycle):
            limit = lifecycle.host_age_limit
            assert limit is not None, "something is only too old where there is a limit"
            assert entry.host is not None, "what has joined has a host"
            # Unlike an idle host's, this drain waits for the jobs.
            yield Step((DrainHost(entry.host, entry.id, f"older than {minutes(limit)}"),))


def taken_back(
    notices: Iterable[TakeBack], instances: Iterable[InstanceEntry], now: datetime
) -> Steps:
    """Drain what the provider takes back; jobs that still run when the grace is over are requeued."""
    mine = {machine_of(entry): entry for entry in instances}
    steps: list[Step] = []
    for notice in notices:
        entry = mine.get(notice.machine)
        if entry is None or entry.state is not InstanceState.JOINED or entry.host is None:
            continue  # unknown, on its way, or going back already
        if notice.grace_s is None:
            drain = DrainHost(entry.host, entry.id, "its provider takes it back")
        else:
            drain = DrainHost(
                entry.host,
                entry.id,
                f"its provider takes it back in {notice.grace_s} s",
                later(now, timedelta(seconds=notice.grace_s)),
                AtDeadline.REQUEUE,
            )
        steps.append(Step((drain,)))
    return tuple(steps)


def is_aged(entry: InstanceEntry, now: datetime, lifecycle: LifecycleSettings) -> bool:
    """Return whether a host has passed the age limit."""
    limit = lifecycle.host_age_limit
    return limit is not None and now - entry.granted_at >= limit


def _never_joined(
    instances: Iterable[InstanceEntry],
    looked_at: datetime | None,
    now: datetime,
    settings: PolicySettings,
) -> Iterator[Step]:
    """Miss the hosts that were not there when somebody looked, and those whose check comes to no end.

    While nobody looks, the others may have joined, and have jobs.
    """
    limit = settings.join_limit
    for entry in instances:
        if entry.state is not InstanceState.STARTING:
            continue
        if entry.reported_at is not None:
            if now - entry.reported_at >= limit:
                why = f"its health check has not passed within {minutes(limit)}"
                yield Step((MissJoin(entry.id, why),))
        elif looked_at is not None and looked_at - entry.granted_at >= limit:
            yield Step((MissJoin(entry.id, f"did not join within {minutes(limit)}"),))


def _checks(instances: Iterable[InstanceEntry]) -> Iterator[CheckCall]:
    """Look whether hosts that have reported are in order."""
    reported: dict[str, list[tuple[str, ReportedMachine]]] = {}
    for entry in instances:
        if entry.state is InstanceState.STARTING and entry.reported_as is not None:
            machine = machine_of(entry)
            told = ReportedMachine(
                machine, entry.name or machine, entry.reported_as, entry.template
            )
            reported.setdefault(entry.provider, []).append((entry.id, told))
    for provider, pairs in reported.items():
        for start in range(0, len(pairs), TOGETHER):
            yield CheckCall(provider, tuple(pairs[start : start + TOGETHER]))


def _useless(instances: Iterable[InstanceEntry], now: datetime, ids: IdSource) -> Steps:
    useless = [
        entry
        for entry in instances
        if entry.state is InstanceState.NEVER_JOINED
        and (entry.hold_until is None or entry.hold_until <= now)
    ]
    sick = [entry for entry in useless if entry.reported_as is not None]
    absent = [entry for entry in useless if entry.reported_as is None]
    return (
        *give_back(absent, "never joined", ids),
        *give_back(sick, "its health check did not pass", ids),
    )


def minutes(length: timedelta) -> str:
    """Return a length of time for a reason."""
    return f"{length.total_seconds() / 60:g} min"


# --------------------------------------------------------------------- returns
def _return_calls(
    instances: Iterable[InstanceEntry], grants: Iterable[GrantEntry], underway: Underway
) -> Iterator[GiveBackCall | ReturnStatusCall]:
    """Ask what became of each return; one that was never answered is made again, under its own id."""
    machines: dict[tuple[str, str], list[InstanceEntry]] = {}
    amounts: dict[tuple[str, str], list[GrantEntry]] = {}
    for instance in instances:
        if instance.state is InstanceState.RETURNING and instance.return_id is not None:
            key = (instance.provider, instance.return_id)
            machines.setdefault(key, []).append(instance)
    for grant in grants:
        if grant.returning and grant.return_id is not None:
            amounts.setdefault((grant.provider, grant.return_id), []).append(grant)
    for key in [*machines, *(key for key in amounts if key not in machines)]:
        provider, return_id = key
        hosts, parts = machines.get(key, []), amounts.get(key, [])
        answered = [
            *(entry.provider_return_id for entry in hosts),
            *(entry.provider_return_id for entry in parts),
        ]
        theirs = next((one for one in answered if one is not None), None)
        pairs = tuple((entry.id, machine_of(entry)) for entry in hosts)
        if theirs is not None:
            lent = tuple((entry.id, own_part(entry.id, provider)) for entry in parts)
            yield ReturnStatusCall(provider, return_id, pairs, lent, theirs)
        elif return_id not in underway.returns:
            backs = tuple(
                (entry.id, GrantBack(own_part(entry.id, provider), entry.returning))
                for entry in parts
            )
            yield GiveBackCall(provider, return_id, pairs, backs, names=_names(hosts))


def _ended(
    grants: Iterable[GrantEntry], now: datetime, can: Mapping[str, Capabilities]
) -> Iterator[Step]:
    """Lose the grants that their lenders have ended; one that can list is asked whether it has."""
    listed: set[str] = set()
    for grant in grants:
        if grant.expires_at is None or now < grant.expires_at:
            continue
        if not can.get(grant.provider, PLAIN).listing:
            yield Step((LoseGrant(grant.id, "its term has ended"),))
        elif grant.provider not in listed:
            listed.add(grant.provider)
            yield Step(calls=(ListCall(grant.provider),))


def _names(entries: Iterable[InstanceEntry]) -> tuple[tuple[str, str], ...]:
    return tuple((machine_of(entry), entry.name) for entry in entries if entry.name is not None)

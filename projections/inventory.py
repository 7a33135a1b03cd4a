"""All that is asked, owned or owed and not ended: open requests, instances that exist, amounts that are lent, and open orphans.

What ended is dropped and only counted, so that the view is as large as the supply, not as the log.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.events.transitions import land
from xce.domain.formats.inventory import Inventory
from xce.domain.formats.provider import Kind
from xce.domain.provisioning import grant as grants
from xce.domain.provisioning import instance as instances
from xce.domain.provisioning import request as requests
from xce.domain.provisioning.grant import Grant, GrantState
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.orphan import Orphan, OrphanKind
from xce.domain.provisioning.request import Request, RequestState
from xce.projections.kept import Keeper, Pairs
from xce.projections.projection import Projection, State
from xce.projections.rows import GrantRow, InstanceRow, RequestRow, UnownedRow


@dataclass(slots=True)
class _Kept:
    requests: dict[str, RequestRow]
    instances: dict[str, InstanceRow]
    grants: dict[str, GrantRow]
    hosts_of: Pairs[tuple[str, str], int]
    units_of: Pairs[tuple[str, str], int]
    ended: dict[str, int]
    unowned: dict[str, UnownedRow] = field(default_factory=dict[str, UnownedRow])


_KEEPER: Final = Keeper(_Kept)


class LiveInventory(Projection):
    """The inventory at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        #: Counts the changes; whoever keeps something made from this view compares it.
        self.version = 0
        #: By name, in the order in which they were asked or granted.
        self._requests: dict[str, RequestRow] = {}
        self._instances: dict[str, InstanceRow] = {}
        self._grants: dict[str, GrantRow] = {}
        #: By the aggregate's id, in the order found.
        self._unowned: dict[str, UnownedRow] = {}
        #: Those that are asks, by the request.
        self._asks: dict[str, UnownedRow] = {}
        #: Hosts that exist or are asked, by provider and template; units that are lent or asked, by provider and resource.
        self.hosts_of = Counter[tuple[str, str]]()
        self.units_of = Counter[tuple[str, str]]()
        #: How many have ended, by the state they ended in: see ``ended``.
        self._ended = Counter[str]()
        self._view: Inventory | None = None
        self._on(Request.Intended, self._intended)
        self._on(Request.Accepted, self._accepted)
        self._on(Request.OutcomeUnknown, self._outcome_unknown)
        self._on(Request.InstanceGranted, self._instance_came)
        self._on(Request.MachineFailed, self._machine_failed)
        self._on(Request.AmountGranted, self._amount_came)
        self._on(Request.FellShort, self._fell_short)
        self._on(Request.Closed, self._closed)
        self._on(Request.Settled, self._settled)
        self._on(Instance.Granted, self._instance_granted)
        self._on(Instance.CheckStarted, self._check_started)
        self._on(Instance.Joined, self._joined)
        self._on(Instance.JoinMissed, self._instance_moved)
        self._on(Instance.DrainStarted, self._instance_moved)
        self._on(Instance.Reopened, self._instance_moved)
        self._on(Instance.ReturnIntended, self._return_intended)
        self._on(Instance.ReturnAccepted, self._return_accepted)
        self._on(Instance.ReturnRefused, self._return_refused)
        self._on(Instance.Returned, self._instance_moved)
        self._on(Instance.Lost, self._instance_moved)
        self._on(Grant.Granted, self._grant_granted)
        self._on(Grant.ReturnStarted, self._grant_return_started)
        self._on(Grant.ReturnAccepted, self._grant_return_accepted)
        self._on(Grant.ReturnConfirmed, self._grant_return_confirmed)
        self._on(Grant.ReturnRefused, self._grant_return_refused)
        self._on(Grant.Extended, self._grant_extended)
        self._on(Grant.PartLost, self._grant_part_lost)
        self._on(Grant.Lost, self._grant_lost)
        self._on(Orphan.Found, self._orphan_found)
        self._on(Orphan.Adopted, self._orphan_ended)
        self._on(Orphan.Dismissed, self._orphan_ended)
        self._on(Orphan.Vanished, self._orphan_ended)

    # -------------------------------------------------------------------- views
    def view(self) -> Inventory:
        """Return the inventory as the policy reads it, in the order of the log."""
        if self._view is None:
            self._view = Inventory.model_construct(
                requests=tuple(row.entry() for row in self._requests.values()),
                instances=tuple(row.entry() for row in self._instances.values()),
                grants=tuple(row.entry() for row in self._grants.values()),
                unowned=tuple(row.entry() for row in self._unowned.values() if row.amount),
            )
        return self._view

    def request(self, name: str) -> RequestRow | None:
        """Return a request that is open or of which something lives; None: it is over, or never was."""
        return self._requests.get(name)

    def joined_hosts(self) -> dict[str, str]:
        """Return the instance of each host that is in the cluster, by the host's name; draining ones are."""
        return {
            row.host: row.id
            for row in self._instances.values()
            if row.host is not None and row.state in (InstanceState.JOINED, InstanceState.DRAINING)
        }

    def in_flight(self) -> tuple[list[InstanceRow], list[RequestRow]]:
        """Return the instances that have not joined yet, and the requests of which more is expected."""
        return (
            [row for row in self._instances.values() if row.state is InstanceState.STARTING],
            [row for row in self._requests.values() if row.open],
        )

    def ended(self) -> dict[str, int]:
        """Return how many requests, instances and grants have ended, by how: ``request complete``, ``instance lost``..."""
        return dict(self._ended)

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        view = self.view()
        return {
            "requests": {
                row.id: (entry, row.live)
                for entry, row in zip(view.requests, self._requests.values(), strict=True)
            },
            "instances": {
                row.id: (entry, row.expected_name)
                for entry, row in zip(view.instances, self._instances.values(), strict=True)
            },
            "grants": {
                row.id: (entry, dict(row.returns))
                for entry, row in zip(view.grants, self._grants.values(), strict=True)
            },
            "unowned": {row.id: row.entry() for row in self._unowned.values()},
            "hosts": dict(self.hosts_of),
            "units": dict(self.units_of),
            "ended": dict(self._ended),
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(
            _Kept(
                requests=self._requests,
                instances=self._instances,
                grants=self._grants,
                hosts_of=self.hosts_of,
                units_of=self.units_of,
                ended=self._ended,
                unowned=self._unowned,
            )
        )

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._requests = parts.requests
        self._instances = parts.instances
        self._grants = parts.grants
        self.hosts_of = Counter(parts.hosts_of)
        self.units_of = Counter(parts.units_of)
        self._ended = Counter(parts.ended)
        self._unowned = parts.unowned
        self._asks = {
            row.tag: row for row in self._unowned.values() if row.is_an_ask and row.tag is not None
        }
        self._touch()

    # ----------------------------------------------------------------- requests
    def _intended(self, event: Request.Intended, position: int) -> None:
        name = name_of(event.originator_id)
        row = self._requests[name] = RequestRow(
            id=name,
            provider=event.provider,
            kind=event.kind,
            item=event.item,
            amount=event.amount,
            asked_at=event.timestamp,
            asked_position=position,
            deadline=event.deadline,
            price=event.price_per_hour,
            project=event.project,
        )
        self._count_request(row, 0)

    def _accepted(self, event: Request.Accepted, position: int) -> None:
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            row.state = land(requests.TRANSITIONS, "Accepted", row.state)
            row.theirs = event.provider_request_id
            self._touch_request(row)

    def _outcome_unknown(self, event: Request.OutcomeUnknown, position: int) -> None:
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            row.state = RequestState.UNKNOWN
            self._touch_request(row)

    def _instance_came(self, event: Request.InstanceGranted, position: int) -> None:
        self._found_out(event, 1)
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            before = row.open
            row.granted += 1
            row.live += 1
            self._count_request(row, before)

    def _machine_failed(self, event: Request.MachineFailed, position: int) -> None:
        self._found_out(event, 1)
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            before = row.open
            row.failed += 1
            row.live += 1
            self._count_request(row, before)

    def _amount_came(self, event: Request.AmountGranted, position: int) -> None:
        self._found_out(event, event.amount)
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            before = row.open
            row.granted += event.amount
            row.live += 1
            self._count_request(row, before)

    def _fell_short(self, event: Request.FellShort, position: int) -> None:
        self._found_out(event, event.amount)
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            before = row.open
            row.failed += event.amount
            self._count_request(row, before)

    def _closed(self, event: Request.Closed, position: int) -> None:
        self._ended[f"request {event.outcome}"] += 1
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            before = row.open
            row.state = event.outcome
            self._count_request(row, before)
            self._drop_if_over(row)

    def _settled(self, event: Request.Settled, position: int) -> None:
        if (row := self._requests.get(name_of(event.originator_id))) is not None:
            row.settled = True
            self._touch_request(row)
            self._drop_if_over(row)

    def _count_request(self, row: RequestRow, before: int) -> None:
        counter = self.hosts_of if row.kind is Kind.HOST else self.units_of
        _add(counter, (row.provider, row.item), row.open - before)
        self._touch_request(row)

    def _touch_request(self, row: RequestRow) -> None:
        row.touch()
        self._touch()

    def _one_less(self, request: str) -> None:
        """Something that a request brought has ended; a request that is closed and has nothing left is over."""
        if (row := self._requests.get(request)) is not None:
            row.live -= 1
            self._drop_if_over(row)

    def _drop_if_over(self, row: RequestRow) -> None:
        if row.over:
            del self._requests[row.id]

    # ---------------------------------------------------------------- instances
    def _instance_granted(self, event: Instance.Granted, position: int) -> None:
        name = name_of(event.originator_id)
        self._instances[name] = InstanceRow(
            id=name,
            provider=event.provider,
            template=event.template,
            request=event.request_id,
            machine=event.machine,
            expected_name=event.name,
            granted_at=event.timestamp,
            hold_until=event.hold_until,
            price=event.price_per_hour,
            project=event.project,
        )
        _add(self.hosts_of, (event.provider, event.template), 1)
        self._touch()

    def _instance_moved(self, event: DomainEvent, position: int) -> None:
        self._move(self._instances[name_of(event.originator_id)], event)

    def _check_started(self, event: Instance.CheckStarted, position: int) -> None:
        row = self._instances[name_of(event.originator_id)]
        row.reported_as, row.booted_at = event.host, event.booted_at
        if (
            row.reported_at is None
        ):  # a host that boots again and again is not waited for without end
            row.reported_at = event.timestamp
        row.touch()
        self._touch()

    def _joined(self, event: Instance.Joined, position: int) -> None:
        row = self._instances[name_of(event.originator_id)]
        row.host = event.host
        row.joined_at = event.timestamp
        self._move(row, event)

    def _return_intended(self, event: Instance.ReturnIntended, position: int) -> None:
        row = self._instances[name_of(event.originator_id)]
        row.return_id = event.return_id
        row.provider_return_id = None
        self._move(row, event)

    def _return_accepted(self, event: Instance.ReturnAccepted, position: int) -> None:
        row = self._instances[name_of(event.originator_id)]
        row.provider_return_id = event.provider_return_id
        row.touch()
        self._touch()

    def _return_refused(self, event: Instance.ReturnRefused, position: int) -> None:
        row = self._instances[name_of(event.originator_id)]
        row.return_id = row.provider_return_id = None
        before = InstanceState.NEVER_JOINED if row.host is None else InstanceState.DRAINING
        self._move(row, event, before)

    def _move(
        self, row: InstanceRow, event: DomainEvent, choice: InstanceState | None = None
    ) -> None:
        row.state = land(instances.TRANSITIONS, type(event).__name__, row.state, choice)
        row.touch()
        if row.state in instances.GONE:
            del self._instances[row.id]
            _add(self.hosts_of, (row.provider, row.template), -1)
            self._ended[f"instance {row.state}"] += 1
            self._one_less(row.request)
        self._touch()

    # ------------------------------------------------------------------- grants
    def _grant_granted(self, event: Grant.Granted, position: int) -> None:
        name = name_of(event.originator_id)
        self._grants[name] = GrantRow(
            id=name,
            provider=event.provider,
            resource=event.resource,
            request=event.request_id,
            amount=event.amount,
            granted_at=event.timestamp,
            hold_until=event.hold_until,
            expires_at=event.expires_at,
            price=event.price_per_hour,
            project=event.project,
        )
        _add(self.units_of, (event.provider, event.resource), event.amount)
        self._touch()

    def _grant_return_started(self, event: Grant.ReturnStarted, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        row.returns[event.return_id] = event.amount
        self._rest(row)

    def _grant_return_accepted(self, event: Grant.ReturnAccepted, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        row.accepted[event.return_id] = event.provider_return_id
        row.touch()
        self._touch()

    def _grant_return_confirmed(self, event: Grant.ReturnConfirmed, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        amount = row.returns.pop(event.return_id)
        row.accepted.pop(event.return_id, None)
        row.returned += amount
        _add(self.units_of, (row.provider, row.resource), -amount)
        self._rest(row)

    def _grant_return_refused(self, event: Grant.ReturnRefused, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        del row.returns[event.return_id]
        row.accepted.pop(event.return_id, None)
        self._rest(row)

    def _grant_extended(self, event: Grant.Extended, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        row.expires_at, row.renewed_at = event.expires_at, event.timestamp
        row.touch()
        self._touch()

    def _grant_part_lost(self, event: Grant.PartLost, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        row.returned += event.amount
        _add(self.units_of, (row.provider, row.resource), -event.amount)
        self._rest(row)

    def _grant_lost(self, event: Grant.Lost, position: int) -> None:
        row = self._grants[name_of(event.originator_id)]
        _add(self.units_of, (row.provider, row.resource), row.returned - row.amount)
        row.state = GrantState.LOST
        self._drop_grant(row)

    def _rest(self, row: GrantRow) -> None:
        """Put a grant into the state that what it has left and in return amounts to."""
        row.touch()
        if row.returned == row.amount:
            row.state = GrantState.CLOSED
            self._drop_grant(row)
        else:
            row.state = GrantState.RETURNING if row.returns else GrantState.ACTIVE
        self._touch()

    def _drop_grant(self, row: GrantRow) -> None:
        assert row.state not in grants.LIVE, "only what has ended is dropped"
        del self._grants[row.id]
        self._ended[f"grant {row.state}"] += 1
        self._one_less(row.request)
        self._touch()

    # ------------------------------------------------------------------ orphans
    def _orphan_found(self, event: Orphan.Found, position: int) -> None:
        if event.kind is not OrphanKind.UNKNOWN_TO_US:
            return  # a record of ours counts already
        self._unowned.pop(event.originator_id, None)
        row = UnownedRow(
            id=name_of(event.originator_id),
            provider=event.provider,
            kind=event.of,
            item=event.item,
            amount=event.amount,
            tag=event.tag,
            price=event.price_per_hour,
            project=event.project,
            since=event.costs_since,
        )
        self._unowned[event.originator_id] = row
        if row.is_an_ask and row.tag is not None:
            self._asks[row.tag] = row
        self._touch()

    def _orphan_ended(
        self, event: Orphan.Adopted | Orphan.Dismissed | Orphan.Vanished, position: int
    ) -> None:
        row = self._unowned.pop(event.originator_id, None)
        if row is not None:
            if row.is_an_ask and row.tag is not None:
                self._asks.pop(row.tag, None)
            self._touch()

    def _found_out(self, event: Request.Event, amount: int) -> None:
        """Count less of an ask that is an orphan: so much of what it has done is known now."""
        row = self._asks.get(name_of(event.originator_id))
        if row is not None:
            row.amount = max(0, row.amount - amount)
            self._touch()

    def _touch(self) -> None:
        self.version += 1
        self._view = None


def _add(counter: Counter[tuple[str, str]], key: tuple[str, str], change: int) -> None:
    """Count, and forget what comes to nothing."""
    if change:
        count = counter[key] + change
        if count:
            counter[key] = count
        else:
            del counter[key]

"""Rows of what is asked, owned or owed: requests and their jobs, instances, grants, returns; and, through them, what it costs.

Lifecycles are the domain's (``TRANSITIONS``): a table says nothing else than the aggregate.
"""

import json
from collections.abc import Mapping
from datetime import datetime

from xce.adapters.store.audit_cache import Handlers, TableRows, Values, at_text, changed_row
from xce.adapters.store.audit_costs import Costs, money, provider_billing
from xce.adapters.store.audit_standing import StandingRows
from xce.domain.events import ids
from xce.domain.events.base import DomainEvent
from xce.domain.events.transitions import land
from xce.domain.formats.provider import Kind
from xce.domain.provisioning import instance as instances
from xce.domain.provisioning import request as requests
from xce.domain.provisioning.grant import Grant, GrantState
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import Request, RequestState


class SupplyRows(Handlers):
    """Folds events of requests, instances and grants."""

    def __init__(self, tables: Mapping[str, TableRows], standing: StandingRows) -> None:
        """Begin where the tables stand; ``standing`` knows how providers bill."""
        super().__init__()
        self._requests = tables["requests"]
        self._jobs = tables["request_jobs"]
        self._instances = tables["instances"]
        self._grants = tables["grants"]
        self._returns = tables["returns"]
        self._standing = standing
        self.costs = Costs(tables["spending"])
        #: Returns under way, by what goes back and return id; as large as the supply, not as the log.
        self._open_returns: dict[str, dict[str, Values]] = {}
        for row in self._returns.load('"outcome" IS NULL'):
            self._open_returns.setdefault(row["of"], {})[row["return_id"]] = row
        self._on(Request.Intended, self._intended)
        self._on(Request.Accepted, self._accepted)
        self._on(Request.OutcomeUnknown, self._outcome_unknown)
        self._on(Request.InstanceGranted, self._instance_came)
        self._on(Request.MachineFailed, self._machine_failed)
        self._on(Request.AmountGranted, self._amount_came)
        self._on(Request.FellShort, self._fell_short)
        self._on(Request.Closed, self._closed)
        self._on(Instance.Granted, self._instance_granted)
        self._on(Instance.Joined, self._joined)
        self._on(Instance.CheckStarted, self._check_started)
        self._on(Instance.JoinMissed, self._instance_moved)
        self._on(Instance.DrainStarted, self._instance_moved)
        self._on(Instance.Reopened, self._instance_moved)
        self._on(Instance.ReturnIntended, self._instance_return_intended)
        self._on(Instance.ReturnAccepted, self._instance_return_accepted)
        self._on(Instance.ReturnRefused, self._instance_return_refused)
        self._on(Instance.Returned, self._instance_gone)
        self._on(Instance.Lost, self._instance_gone)
        self._on(Grant.Granted, self._grant_granted)
        self._on(Grant.ReturnStarted, self._grant_return_started)
        self._on(Grant.ReturnConfirmed, self._grant_return_confirmed)
        self._on(Grant.ReturnRefused, self._grant_return_refused)
        self._on(Grant.Extended, self._grant_extended)
        self._on(Grant.PartLost, self._grant_part_lost)
        self._on(Grant.Lost, self._grant_lost)

    # ----------------------------------------------------------------- requests
    def _intended(self, event: Request.Intended, position: int, at: str) -> None:
        name = ids.name_of(event.originator_id)
        self._requests.touch(
            {
                "id": name,
                "provider": event.provider,
                "kind": event.kind.value,
                "item": event.item,
                "amount": event.amount,
                "granted": 0,
                "failed": 0,
                "state": RequestState.INTENDED.value,
                "price_per_hour": money(event.price_per_hour),
                "asked_at": at,
                "asked_by": event.by,
                "epoch": event.epoch,
                "deadline": at_text(event.deadline),
                "reason": event.reason,
                "jobs": json.dumps(event.jobs),
                "demand_position": event.demand_position,
                "provider_request_id": None,
                "closed_at": None,
                "outcome_why": None,
                "position": position,
            }
        )
        for number, job in enumerate(event.jobs, start=1):
            self._jobs.touch({"request": name, "number": number, "job": job})

    def _accepted(self, event: Request.Accepted, position: int, at: str) -> None:
        row = self._request(event, position)
        row["state"] = land(requests.TRANSITIONS, "Accepted", RequestState(row["state"])).value
        row["provider_request_id"] = event.provider_request_id

    def _outcome_unknown(self, event: Request.OutcomeUnknown, position: int, at: str) -> None:
        self._request(event, position)["state"] = RequestState.UNKNOWN.value

    def _instance_came(self, event: Request.InstanceGranted, position: int, at: str) -> None:
        self._request(event, position)["granted"] += 1

    def _machine_failed(self, event: Request.MachineFailed, position: int, at: str) -> None:
        self._request(event, position)["failed"] += 1

    def _amount_came(self, event: Request.AmountGranted, position: int, at: str) -> None:
        self._request(event, position)["granted"] += event.amount

    def _fell_short(self, event: Request.FellShort, position: int, at: str) -> None:
        self._request(event, position)["failed"] += event.amount

    def _closed(self, event: Request.Closed, position: int, at: str) -> None:
        row = self._request(event, position)
        row |= {"state": event.outcome.value, "closed_at": at, "outcome_why": event.why}

    def _request(self, event: DomainEvent, position: int) -> Values:
        return changed_row(self._requests, event, position)

    # ---------------------------------------------------------------- instances
    def _instance_granted(self, event: Instance.Granted, position: int, at: str) -> None:
        self._instances.touch(
            {
                "id": ids.name_of(event.originator_id),
                "request": event.request_id,
                "provider": event.provider,
                "template": event.template,
                "machine": event.machine,
                "name": event.name,
                "host": None,
                "state": InstanceState.STARTING.value,
                "price_per_hour": money(event.price_per_hour),
                "granted_at": at,
                "joined_at": None,
                "hold_until": _perhaps(event.hold_until),
                "return_id": None,
                "returning_at": None,
                "ended_at": None,
                "why": None,
                "position": position,
            }
        )
        self.costs.begin(
            event.originator_id,
            request=event.request_id,
            provider=event.provider,
            kind=Kind.HOST.value,
            item=event.template,
            amount=1,
            price=event.price_per_hour,
            billing=event.billing,
            at=at,
            position=position,
        )

    def _check_started(self, event: Instance.CheckStarted, position: int, at: str) -> None:
        row = changed_row(self._instances, event, position)
        row["why"] = f"host {event.host} is checked before it opens"

    def _joined(self, event: Instance.Joined, position: int, at: str) -> None:
        row = self._move_instance(event, position)
        row |= {"host": event.host, "joined_at": at, "why": None}

    def _instance_moved(
        self,
        event: Instance.JoinMissed | Instance.DrainStarted | Instance.Reopened,
        position: int,
        at: str,
    ) -> None:
        self._move_instance(event, position)["why"] = event.why

    def _instance_return_intended(
        self, event: Instance.ReturnIntended, position: int, at: str
    ) -> None:
        row = self._move_instance(event, position)
        row |= {"return_id": event.return_id, "returning_at": at, "why": event.why}
        self._begin_return(event, row["provider"], event.return_id, 1, position, at)

    def _instance_return_accepted(
        self, event: Instance.ReturnAccepted, position: int, at: str
    ) -> None:
        changed_row(self._instances, event, position)
        row = self._open_returns[event.originator_id][event.return_id]
        row |= {
            "accepted_at": at,
            "provider_return_id": event.provider_return_id,
            "position": position,
        }
        self._returns.touch(row)

    def _instance_return_refused(
        self, event: Instance.ReturnRefused, position: int, at: str
    ) -> None:
        row = changed_row(self._instances, event, position)
        back = InstanceState.NEVER_JOINED if row["host"] is None else InstanceState.DRAINING
        row |= {"state": back.value, "return_id": None, "why": event.why}
        self._end_return(event, event.return_id, "refused", event.why, position, at)

    def _instance_gone(
        self, event: Instance.Returned | Instance.Lost, position: int, at: str
    ) -> None:
        row = self._move_instance(event, position)
        row["ended_at"] = at
        lost = isinstance(event, Instance.Lost)
        if isinstance(event, Instance.Lost):
            row["why"] = event.why
        for return_id in tuple(self._open_returns.get(event.originator_id, ())):
            outcome, why = ("lost", row["why"]) if lost else ("confirmed", None)
            self._end_return(event, return_id, outcome, why, position, at)
        self.costs.end(event.originator_id, amount=None, at=at, position=position)

    def _move_instance(self, event: DomainEvent, position: int) -> Values:
        row = changed_row(self._instances, event, position)
        state = land(instances.TRANSITIONS, type(event).__name__, InstanceState(row["state"]))
        row["state"] = state.value
        return row

    # ------------------------------------------------------------------- grants
    def _grant_granted(self, event: Grant.Granted, position: int, at: str) -> None:
        self._grants.touch(
            {
                "id": ids.name_of(event.originator_id),
                "request": event.request_id,
                "provider": event.provider,
                "resource": event.resource,
                "amount": event.amount,
                "returned": 0,
                "going_back": 0,
                "state": GrantState.ACTIVE.value,
                "price_per_hour": money(event.price_per_hour),
                "granted_at": at,
                "hold_until": _perhaps(event.hold_until),
                "expires_at": _perhaps(event.expires_at),
                "ended_at": None,
                "position": position,
            }
        )
        self.costs.begin(
            event.originator_id,
            request=event.request_id,
            provider=event.provider,
            kind=Kind.COUNTABLE.value,
            item=event.resource,
            amount=event.amount,
            price=event.price_per_hour,
            billing=provider_billing(self._standing.provider(event.provider)),
            at=at,
            position=position,
        )

    def _grant_return_started(self, event: Grant.ReturnStarted, position: int, at: str) -> None:
        row = changed_row(self._grants, event, position)
        row["going_back"] += event.amount
        self._rest(row, at)
        self._begin_return(event, row["provider"], event.return_id, event.amount, position, at)

    def _grant_return_confirmed(self, event: Grant.ReturnConfirmed, position: int, at: str) -> None:
        row = changed_row(self._grants, event, position)
        amount = self._end_return(event, event.return_id, "confirmed", None, position, at)
        row["going_back"] -= amount
        row["returned"] += amount
        self._rest(row, at)
        self.costs.end(event.originator_id, amount=amount, at=at, position=position)

    def _grant_return_refused(self, event: Grant.ReturnRefused, position: int, at: str) -> None:
        row = changed_row(self._grants, event, position)
        row["going_back"] -= self._end_return(
            event, event.return_id, "refused", event.why, position, at
        )
        self._rest(row, at)

    def _grant_extended(self, event: Grant.Extended, position: int, at: str) -> None:
        row = changed_row(self._grants, event, position)
        row["expires_at"] = _perhaps(event.expires_at)

    def _grant_part_lost(self, event: Grant.PartLost, position: int, at: str) -> None:
        row = changed_row(self._grants, event, position)
        row["returned"] += event.amount
        self._rest(row, at)
        self.costs.end(event.originator_id, amount=event.amount, at=at, position=position)

    def _grant_lost(self, event: Grant.Lost, position: int, at: str) -> None:
        row = changed_row(self._grants, event, position)
        row |= {"state": GrantState.LOST.value, "ended_at": at}
        for return_id in tuple(self._open_returns.get(event.originator_id, ())):
            self._end_return(event, return_id, "lost", event.why, position, at)
        self.costs.end(event.originator_id, amount=None, at=at, position=position)

    def _rest(self, row: Values, at: str) -> None:
        """Put a grant into the state that what it has left and in return amounts to."""
        state = GrantState.RETURNING if row["going_back"] else GrantState.ACTIVE
        if row["returned"] == row["amount"]:
            state = GrantState.CLOSED
            row["ended_at"] = at
        row["state"] = state.value

    # ------------------------------------------------------------------ returns
    def _begin_return(
        self,
        event: Instance.ReturnIntended | Grant.ReturnStarted,
        provider: str,
        return_id: str,
        amount: int,
        position: int,
        at: str,
    ) -> None:
        of = event.originator_id
        self._open_returns.setdefault(of, {})[return_id] = self._returns.touch(
            {
                "return_id": return_id,
                "of": of,
                "provider": provider,
                "amount": amount,
                "intended_at": at,
                "by": event.by,
                "epoch": event.epoch,
                "why": getattr(event, "why", None),
                "accepted_at": None,
                "provider_return_id": None,
                "ended_at": None,
                "outcome": None,
                "outcome_why": None,
                "position": position,
            }
        )

    def _end_return(
        self,
        event: DomainEvent,
        return_id: str,
        outcome: str,
        why: str | None,
        position: int,
        at: str,
    ) -> int:
        """End a return and return its amount."""
        of = self._open_returns[event.originator_id]
        row = of.pop(return_id)
        if not of:
            del self._open_returns[event.originator_id]
        row |= {"ended_at": at, "outcome": outcome, "outcome_why": why, "position": position}
        self._returns.touch(row)
        amount: int = row["amount"]
        return amount


def _perhaps(when: datetime | None) -> str | None:
    return None if when is None else at_text(when)

"""The rows of the audit read models, from one pass over a log."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from xce.adapters.store.log import StoredLog
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head
from xce.domain.provisioning.grant import LIVE, Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource

Values = dict[str, Any]


class AuditRows:
    """One pass over the log: the rows of the events as they come, those of the states at the end."""

    def __init__(self, log: StoredLog) -> None:
        self._log = log
        self._aggregates: dict[str, Aggregate[Any]] = {}
        self._rows: dict[str, Values] = {}
        self._leases: list[Values] = []
        self._lease_now: dict[str, Values] = {}
        self._totals: list[Values] = []
        self._total_now: dict[str, int] = {}
        self.last = Head(0, GENESIS)

    def events(self) -> Iterator[Values]:
        """Yield the rows of the table ``events``."""
        decode = self._log.registry.decode
        for row in self._log.recorder.rows():
            event = decode(*row[:-1])
            aggregate = event.mutate(self._aggregates.get(row.originator_id))
            assert aggregate is not None
            self._aggregates[row.originator_id] = aggregate
            self._note(row.position, event)
            self.last = Head(row.position, row.digest)
            yield {
                "position": row.position,
                "at": _at(event.timestamp),
                "by": event.by,
                "aggregate": row.originator_id,
                "kind": ids.kind_of(row.originator_id),
                "name": ids.name_of(row.originator_id),
                "version": row.originator_version,
                "event": row.topic,
                "payload": row.state.decode(),
            }

    def states(self) -> Iterator[tuple[str, Iterable[Values]]]:
        """Yield the other tables with their rows, after the last event."""
        by_kind: dict[str, list[Values]] = {"requests": [], "instances": [], "grants": []}
        for aggregate_id, aggregate in self._aggregates.items():
            noted = self._rows.get(aggregate_id, {})
            match aggregate:
                case Request():
                    by_kind["requests"].append(_request(aggregate) | noted)
                case Instance():
                    by_kind["instances"].append(_instance(aggregate) | noted)
                case Grant():
                    by_kind["grants"].append(_grant(aggregate) | noted)
                case _:
                    pass
        yield from by_kind.items()
        yield "leases", self._leases
        yield "shared_totals", self._totals
        source = {
            "source": self._log.source,
            "position": self.last.position,
            "digest": self.last.digest.hex(),
        }
        yield "log", [source]

    def _note(self, position: int, event: DomainEvent) -> None:
        """Keep what the state at the end does not say: who, when, why."""
        at = _at(event.timestamp)
        aggregate = self._aggregates[event.originator_id]
        match event:
            case Request.Event() | Instance.Event() | Grant.Event():
                noted = self._rows.setdefault(event.originator_id, dict(_UNKNOWN[type(aggregate)]))
                noted["position"] = position
                _note_fact(noted, event, at)
                if isinstance(aggregate, Grant) and aggregate.state not in LIVE:
                    noted["ended_at"] = at
            case ProviderLease.Event():
                self._note_lease(position, event, at)
            case ElasticResource.Event():
                assert isinstance(aggregate, ElasticResource)
                self._note_total(position, event, aggregate, at)
            case _:
                pass

    def _note_lease(self, position: int, event: ProviderLease.Event, at: str) -> None:
        provider = ids.name_of(event.originator_id)
        held = self._lease_now.pop(provider, None)
        if held is not None:
            held |= {"until": at, "ended_by": _ENDED_BY[type(event)], "position": position}
        match event:
            case ProviderLease.Granted() | ProviderLease.TakenOver() | ProviderLease.Regranted():
                row: Values = {
                    "provider": provider,
                    "epoch": event.epoch,
                    "holder": event.holder,
                    "since": at,
                    "until": None,
                    "ended_by": None,
                    "term_s": round(event.term.total_seconds()),
                    "by": event.by,
                    "position": position,
                }
                self._leases.append(row)
                self._lease_now[provider] = row
            case _:
                pass

    def _note_total(
        self, position: int, event: ElasticResource.Event, resource: ElasticResource, at: str
    ) -> None:
        before = self._total_now.get(resource.name)
        if before == resource.total:
            return
        self._total_now[resource.name] = resource.total
        self._totals.append(
            {
                "position": position,
                "at": at,
                "by": event.by,
                "resource": resource.name,
                "event": event.TOPIC,
                "grant": getattr(event, "grant_id", None),
                "change": resource.total - (before or 0),
                "owned": resource.owned,
                "borrowed": resource.borrowed,
                "total": resource.total,
            }
        )


_ENDED_BY: Final[dict[type[DomainEvent], str]] = {
    ProviderLease.TakenOver: "taken over",
    ProviderLease.Released: "released",
    ProviderLease.Lapsed: "lapsed",
}

#: What is noted along the way, and its value until then.
_UNKNOWN: Final[dict[type[Aggregate[Any]], Values]] = {
    Request: dict.fromkeys(("asked_at", "asked_by", "epoch", "reason", "closed_at", "outcome_why")),
    Instance: dict.fromkeys(("granted_at", "returning_at", "ended_at", "why")),
    Grant: dict.fromkeys(("granted_at", "ended_at")),
}


def _note_fact(noted: Values, event: DomainEvent, at: str) -> None:
    match event:
        case Request.Intended():
            noted |= {
                "asked_at": at,
                "asked_by": event.by,
                "epoch": event.epoch,
                "reason": event.reason,
            }
        case Request.Closed():
            noted |= {"closed_at": at, "outcome_why": event.why}
        case Instance.Granted() | Grant.Granted():
            noted["granted_at"] = at
        case Instance.ReturnIntended():
            noted |= {"returning_at": at, "why": event.why}
        case Instance.Returned():
            noted["ended_at"] = at
        case Instance.Lost():
            noted |= {"ended_at": at, "why": event.why}
        case (
            Instance.JoinMissed()
            | Instance.DrainStarted()
            | Instance.Reopened()
            | Instance.ReturnRefused()
        ):
            noted["why"] = event.why
        case _:
            pass


def _request(request: Request) -> Values:
    return {
        "id": request.name,
        "provider": request.provider,
        "kind": request.kind.value,
        "item": request.item,
        "amount": request.amount,
        "granted": request.granted,
        "failed": request.failed,
        "state": request.state.value,
        "price_per_hour": _money(request.price_per_hour),
        "deadline": _at(request.deadline),
        "jobs": json.dumps(request.jobs),
        "demand_position": request.demand_position,
        "provider_request_id": request.provider_request_id,
    }


def _instance(instance: Instance) -> Values:
    return {
        "id": instance.name,
        "request": instance.request_id,
        "provider": instance.provider,
        "template": instance.template,
        "machine": instance.machine,
        "name": instance.provider_name,
        "host": instance.host,
        "state": instance.state.value,
        "price_per_hour": _money(instance.price_per_hour),
        "joined_at": _perhaps(instance.joined_at),
        "hold_until": _perhaps(instance.hold_until),
        "return_id": instance.return_id,
    }


def _grant(grant: Grant) -> Values:
    return {
        "id": grant.name,
        "request": grant.request_id,
        "provider": grant.provider,
        "resource": grant.resource,
        "amount": grant.amount,
        "returned": grant.returned,
        "returning": grant.returning,
        "state": grant.state.value,
        "price_per_hour": _money(grant.price_per_hour),
        "hold_until": _perhaps(grant.hold_until),
        "expires_at": _perhaps(grant.expires_at),
    }


def _at(when: datetime) -> str:
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _perhaps(when: datetime | None) -> str | None:
    return None if when is None else _at(when)


def _money(price: object) -> str | None:
    return None if price is None else f"{price:f}"

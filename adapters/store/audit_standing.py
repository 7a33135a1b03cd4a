"""Rows of what stands for a while: descriptions, pauses, leases, totals; and what was refused."""

from collections.abc import Mapping
from datetime import datetime

from xce.adapters.store.audit_cache import Handlers, TableRows, Values, at_text
from xce.domain.events import ids
from xce.domain.events.base import DomainEvent
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.refusals import Refusals
from xce.domain.sharing.elastic_resource import ElasticResource


class StandingRows(Handlers):
    """Folds events of providers, leases, shared resources and refusals."""

    def __init__(self, tables: Mapping[str, TableRows]) -> None:
        """Begin where the tables stand."""
        super().__init__()
        self._tables = tables
        self._providers = {
            row["provider"]: row for row in tables["providers"].load('"until" IS NULL')
        }
        self._pauses = {
            (row["provider"], row["item"]): row
            for row in tables["pauses"].load('"ended_at" IS NULL')
        }
        self._leases = {row["provider"]: row for row in tables["leases"].load('"until" IS NULL')}
        self._totals = {
            row["resource"]: row
            for row in tables["shared_totals"].load(
                'position IN (SELECT max(position) FROM "shared_totals" GROUP BY resource)'
            )
        }
        self._on(ProviderLease.Granted, self._lease_given)
        self._on(ProviderLease.TakenOver, self._lease_given)
        self._on(ProviderLease.Regranted, self._lease_given)
        self._on(ProviderLease.Released, self._lease_ended)
        self._on(ProviderLease.Lapsed, self._lease_ended)
        self._on(Provider.Described, self._described)
        self._on(Provider.Paused, self._paused)
        self._on(Provider.Resumed, self._resumed)
        self._on(ElasticResource.Declared, self._declared)
        self._on(ElasticResource.OwnedSet, self._owned_set)
        self._on(ElasticResource.Borrowed, self._borrowed)
        self._on(ElasticResource.GivenBack, self._given_back)
        self._on(ElasticResource.PutBack, self._put_back)
        self._on(ElasticResource.PartLost, self._share_lost)
        self._on(ElasticResource.GrantLost, self._share_lost)
        self._on(Refusals.Noted, self._refused)

    def provider(self, name: str) -> Values | None:
        """Return how a provider describes itself now; None: it never did."""
        return self._providers.get(name)

    # ------------------------------------------------------------------- leases
    def _lease_given(
        self,
        event: ProviderLease.Granted | ProviderLease.TakenOver | ProviderLease.Regranted,
        position: int,
        at: str,
    ) -> None:
        provider = ids.name_of(event.originator_id)
        held = self._leases.get(provider)
        if held is not None:
            held |= {"until": at, "ended_by": "taken over", "position": position}
            self._tables["leases"].touch(held)
        self._leases[provider] = self._tables["leases"].touch(
            {
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
        )

    def _lease_ended(
        self, event: ProviderLease.Released | ProviderLease.Lapsed, position: int, at: str
    ) -> None:
        held = self._leases.pop(ids.name_of(event.originator_id))
        ended_by = "released" if isinstance(event, ProviderLease.Released) else "lapsed"
        held |= {"until": at, "ended_by": ended_by, "position": position}
        self._tables["leases"].touch(held)

    # ---------------------------------------------------------------- providers
    def _described(self, event: Provider.Described, position: int, at: str) -> None:
        description = event.description
        before = self._providers.get(description.name)
        if before is not None:
            before["until"] = at
            self._tables["providers"].touch(before)
        self._providers[description.name] = self._tables["providers"].touch(
            {
                "position": position,
                "provider": description.name,
                "since": at,
                "until": None,
                "by": event.by,
                "kinds": ",".join(description.kinds),
                "capacity": description.capacity,
                "billing_unit": description.billing.unit.value,
                "billing_minimum_s": round(description.billing.minimum.total_seconds()),
                "region": description.region,
                "zone": description.zone,
                "description": description.to_json(),
            }
        )

    def _paused(self, event: Provider.Paused, position: int, at: str) -> None:
        provider = ids.name_of(event.originator_id)
        self._end_pause((provider, event.item), "replaced", at)
        self._pauses[provider, event.item] = self._tables["pauses"].touch(
            {
                "position": position,
                "provider": provider,
                "item": event.item,
                "since": at,
                "until": at_text(event.until),
                "why": event.why,
                "by": event.by,
                "ended_at": None,
                "ended_by": None,
            }
        )

    def _resumed(self, event: Provider.Resumed, position: int, at: str) -> None:
        self._end_pause((ids.name_of(event.originator_id), event.item), "resumed", at)

    def _end_pause(self, key: tuple[str, str | None], ended_by: str, at: str) -> None:
        """End a pause, unless it had ended by itself before."""
        row = self._pauses.pop(key, None)
        if row is not None and datetime.fromisoformat(row["until"]) > datetime.fromisoformat(at):
            self._tables["pauses"].touch(row | {"ended_at": at, "ended_by": ended_by})

    # ------------------------------------------------------------------- totals
    def _declared(self, event: ElasticResource.Declared, position: int, at: str) -> None:
        self._total(event, position, at, owned=event.owned)

    def _owned_set(self, event: ElasticResource.OwnedSet, position: int, at: str) -> None:
        self._total(event, position, at, owned=event.owned)

    def _borrowed(self, event: ElasticResource.Borrowed, position: int, at: str) -> None:
        self._total(event, position, at, more=event.amount, grant=event.grant_id)

    def _given_back(self, event: ElasticResource.GivenBack, position: int, at: str) -> None:
        self._total(event, position, at, more=-event.amount, grant=event.grant_id)

    def _put_back(self, event: ElasticResource.PutBack, position: int, at: str) -> None:
        self._total(event, position, at, more=event.amount, grant=event.grant_id)

    def _share_lost(
        self,
        event: ElasticResource.PartLost | ElasticResource.GrantLost,
        position: int,
        at: str,
    ) -> None:
        self._total(event, position, at, more=-event.amount, grant=event.grant_id)

    def _total(
        self,
        event: DomainEvent,
        position: int,
        at: str,
        *,
        owned: int | None = None,
        more: int = 0,
        grant: str | None = None,
    ) -> None:
        resource = ids.name_of(event.originator_id)
        before = self._totals.get(resource)
        if before is None:
            assert owned is not None, f"{resource} was never declared"
            before = {"owned": owned, "borrowed": 0, "total": 0}
        now_owned: int = before["owned"] if owned is None else owned
        total: int = now_owned + before["borrowed"] + more
        if total == before["total"] and resource in self._totals:
            return
        self._totals[resource] = self._tables["shared_totals"].touch(
            {
                "position": position,
                "at": at,
                "by": event.by,
                "resource": resource,
                "event": event.TOPIC,
                "grant": grant,
                "change": total - before["total"],
                "owned": now_owned,
                "borrowed": before["borrowed"] + more,
                "total": total,
            }
        )

    # ----------------------------------------------------------------- refusals
    def _refused(self, event: Refusals.Noted, position: int, at: str) -> None:
        self._tables["refusals"].touch(
            {
                "position": position,
                "at": at,
                "by": event.by,
                "action": event.action,
                "count": event.count,
                "why": event.why,
            }
        )

"""Rows of decisions and what they led to, and of orphans and what became of them."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from xce.adapters.store.audit_cache import Handlers, TableRows, Values, at_text, changed_row
from xce.adapters.store.audit_costs import Costs, money, provider_billing
from xce.adapters.store.audit_standing import StandingRows
from xce.domain.events import ids
from xce.domain.events.transitions import land
from xce.domain.formats.provider import ProviderDescription
from xce.domain.policy.unaccounted import counts_as, stated_prices
from xce.domain.provisioning import orphan as orphans
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.orphan import Orphan, OrphanState

#: What leaves an orphan nothing to be done about.
_ENDS = (Orphan.Adopted, Orphan.Dismissed, Orphan.Vanished)


class ReasonRows(Handlers):
    """Folds events of decisions and orphans."""

    def __init__(
        self, tables: Mapping[str, TableRows], standing: StandingRows, costs: Costs
    ) -> None:
        """Begin where the tables stand; ``standing`` knows what providers offer, ``costs`` gets what orphans cost."""
        super().__init__()
        self._standing = standing
        self._costs = costs
        self._decisions = tables["decisions"]
        self._effects = tables["decision_effects"]
        self._orphans = tables["orphans"]
        self._on(Decision.Made, self._made)
        self._on(Orphan.Found, self._found)
        self._on(Orphan.Adopted, self._adopted)
        self._on(Orphan.Dismissed, self._dismissed)
        self._on(Orphan.ReturnIntended, self._return_intended)
        self._on(Orphan.ReturnRefused, self._return_refused)
        self._on(Orphan.Vanished, self._vanished)

    def _made(self, event: Decision.Made, position: int, at: str) -> None:
        name = ids.name_of(event.originator_id)
        self._decisions.touch(
            {
                "id": name,
                "at": at,
                "by": event.by,
                "epoch": event.epoch,
                "provider": event.provider,
                "deed": event.deed.value,
                "item": event.item,
                "amount": event.amount,
                "reason": event.reason,
                "jobs": json.dumps(event.jobs),
                "demand_position": event.demand_position,
                "demand_digest": event.demand_digest,
                "cost_per_hour": money(event.cost_per_hour),
                "position": position,
            }
        )
        for number, aggregate in enumerate(event.led_to, start=1):
            self._effects.touch({"decision": name, "number": number, "aggregate": aggregate})

    def _found(self, event: Orphan.Found, position: int, at: str) -> None:
        name = ids.name_of(event.originator_id)
        before = self._orphans.find(name)
        self._orphans.touch(
            {
                "id": name,
                "provider": event.provider,
                "theirs": event.theirs,
                "kind": event.kind.value,
                "tag": event.tag,
                "state": OrphanState.REPORTED.value,
                "found_at": at if before is None else before["found_at"],
                "reported_at": at,
                "owner": None,
                "return_id": None,
                "ended_at": None,
                "by": event.by,
                "why": event.why,
                "position": position,
            }
        )
        if event.costs_since is not None and event.amount:
            self._begin_to_cost(event, event.costs_since, position, again=before is not None)

    def _begin_to_cost(
        self, event: Orphan.Found, since: datetime, position: int, *, again: bool
    ) -> None:
        provider = self._standing.provider(event.provider)
        stated: dict[str, Decimal | None] = {}
        if provider is not None:
            description = ProviderDescription.from_json(provider["description"])
            stated = stated_prices(description, event.of)
        item, price = counts_as(event.item, event.price_per_hour, stated)
        self._costs.begin(
            event.originator_id,
            request=event.tag,
            provider=event.provider,
            kind=event.of.value,
            item=item,
            amount=event.amount,
            price=price,
            billing=provider_billing(provider),
            at=at_text(since),
            position=position,
            part=position if again else 0,
        )

    def _adopted(self, event: Orphan.Adopted, position: int, at: str) -> None:
        self._move(event, position, at)["owner"] = event.owner
        self._costs.end_orphan(event.originator_id, at=at, position=position)

    def _vanished(self, event: Orphan.Vanished, position: int, at: str) -> None:
        self._move(event, position, at)["why"] = event.why
        self._costs.end_orphan(event.originator_id, at=at, position=position)

    def _dismissed(self, event: Orphan.Dismissed, position: int, at: str) -> None:
        self._move(event, position, at)["why"] = event.why
        self._costs.end_orphan(event.originator_id, at=at, position=position, ours=False)

    def _return_intended(self, event: Orphan.ReturnIntended, position: int, at: str) -> None:
        row = self._move(event, position, at)
        row |= {"return_id": event.return_id, "why": event.why}

    def _return_refused(self, event: Orphan.ReturnRefused, position: int, at: str) -> None:
        row = self._move(event, position, at)
        row |= {"return_id": None, "why": event.why}

    def _move(self, event: Orphan.Event, position: int, at: str) -> Values:
        row = changed_row(self._orphans, event, position)
        state = land(orphans.TRANSITIONS, type(event).__name__, OrphanState(row["state"]))
        row |= {
            "state": state.value,
            "by": event.by,
            "ended_at": at if isinstance(event, _ENDS) else None,
        }
        return row

"""What the projections say, as one plain document: everything under its name, so that two of them can be compared."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from xce.domain.policy import money
from xce.domain.values import write_duration
from xce.projections.all import Projections
from xce.projections.drains import DrainRow
from xce.projections.leases import LeaseRow
from xce.projections.reasons import OrphanRow, SiteRow
from xce.projections.spending import SpendingLine
from xce.projections.totals import SharedTotal

_PLAIN: Final[TypeAdapter[DrainRow | OrphanRow | SiteRow]] = TypeAdapter(
    DrainRow | OrphanRow | SiteRow
)

#: JSON.
Document = dict[str, Any]


def document_of(projections: Projections, now: datetime | None) -> Document:
    """Return totals, inventory, catalog, spending, leases, drains, orphans and the site by name.

    Args:
        projections: at some position.
        now: says which pauses hold, and up to when what lives has cost; None: nothing has happened yet.
    """
    return {
        "totals": {total.name: _total(total) for total in projections.totals.all()},
        "inventory": _inventory(projections),
        "catalog": {} if now is None else _catalog(projections, now),
        "spending": {} if now is None else _spending(projections, now, owned=True),
        "spending_on_orphans": {} if now is None else _spending(projections, now, owned=False),
        "leases": {row.provider: _lease(row) for row in projections.leases.rows()},
        "drains": {row.host: _plain(row, "host") for row in projections.drains.rows()},
        "orphans": {
            f"{row.provider}/{row.theirs}": _plain(row, "provider", "theirs")
            for row in projections.reasons.orphans()
        },
        "site": {} if now is None else _plain(projections.reasons.site),
    }


def _total(total: SharedTotal) -> Document:
    fields = asdict(total)
    del fields["name"]
    return fields | {
        "total": total.total,
        "headroom": total.headroom,
        "idle_return_after": write_duration(total.idle_return_after),
        "min_hold": write_duration(total.min_hold),
    }


def _inventory(projections: Projections) -> Document:
    view = projections.inventory.view()
    return {
        "requests": {entry.id: _without(entry, "id") for entry in view.requests},
        "instances": {entry.id: _without(entry, "id") for entry in view.instances},
        "grants": {entry.id: _without(entry, "id") for entry in view.grants},
        "ended": projections.inventory.ended(),
    }


def _catalog(projections: Projections, now: datetime) -> Document:
    view = projections.catalog.view(now)
    return {
        "templates": {template.id: _without(template, "id") for template in view.templates},
        "countable": {line.name: _without(line, "name") for line in view.countable},
        "capacities": {one.name: one.room for one in view.capacities},
        "in_flight": {
            "hosts": {host.id: _without(host, "id") for host in view.in_flight.hosts},
            "counts": {count.name: count.amount for count in view.in_flight.counts},
        },
    }


def _spending(projections: Projections, now: datetime, *, owned: bool) -> Document:
    spending: Document = {}
    for line in projections.spending.lines(now):
        if line.owned is owned:
            kinds = spending.setdefault(line.provider, {})
            kinds.setdefault(line.kind.value, {})[line.item or "unknown"] = _line(line)
    return spending


def _line(line: SpendingLine) -> Document:
    return {
        "live": line.live,
        "ended": line.ended,
        "used_s": line.used.total_seconds(),
        "billed_s": round(line.billed.total_seconds()),
        "cost": money.plain(line.cost),
        "per_hour": money.plain(line.per_hour),
        "unpriced": line.unpriced,
    }


def _lease(row: LeaseRow) -> Document:
    return {
        "holder": row.holder,
        "epoch": row.epoch,
        "state": row.state.value,
        "term": write_duration(row.term),
        "since": row.since.isoformat().replace("+00:00", "Z"),
    }


def _plain(row: DrainRow | OrphanRow | SiteRow, *without: str) -> Document:
    made: Document = _PLAIN.dump_python(row, mode="json")
    return {name: value for name, value in made.items() if name not in without}


def _without(model: BaseModel, name: str) -> Document:
    return model.model_dump(mode="json", exclude={name})

"""Rows of the views as entries of the interface, where more than one endpoint shows them."""

from xce.adapters.controller.views import Views
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.rest import LeaseEntry, ProviderEntry, SharedEntry
from xce.projections.leases import LeaseRow
from xce.projections.totals import SharedTotal


def shared_entry(row: SharedTotal, views: Views) -> SharedEntry:
    """Return a shared resource as the interface shows it."""
    return SharedEntry(
        name=row.name,
        total=row.total,
        owned=row.owned,
        borrowed=row.borrowed,
        in_flight=row.in_flight,
        returning=row.returning,
        occupied=views.occupied.get(row.name),
        report=views.reports.get(row.name),
        headroom=row.headroom,
        provider=row.provider,
        max_borrow=row.max_borrow,
        step=row.step,
        idle_return_after=row.idle_return_after,
        min_hold=row.min_hold,
    )


def provider_entries(views: Views) -> list[ProviderEntry]:
    """Return all providers as the interface shows them."""
    projections = views.projections
    pauses = projections.catalog.pauses(views.now)
    described: list[ProviderDescription] = list(projections.catalog.descriptions())
    return [
        ProviderEntry(
            name=one.name,
            description=one,
            pauses=tuple(pause for pause in pauses if pause.provider == one.name),
            hosts=sum(
                count
                for (name, _), count in projections.inventory.hosts_of.items()
                if name == one.name
            ),
        )
        for one in described
    ]


def lease_entry(row: LeaseRow, left_s: float | None) -> LeaseEntry:
    """Return a lease as the interface shows it; ``left_s``: until its term ends, None: nobody knows."""
    return LeaseEntry(
        provider=row.provider,
        holder=row.holder,
        epoch=row.epoch,
        state=row.state,
        term=row.term,
        since=row.since,
        left_s=left_s,
    )

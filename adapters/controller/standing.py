"""Endpoints that read what stands out: hosts that drain, things that nobody owns, decisions, the freeze."""

import time
from collections.abc import Mapping
from typing import Final

from xce.adapters.controller.calls import CURSOR, LIMIT, Call, Endpoint, Reply
from xce.adapters.controller.views import Views
from xce.domain.alerts.alert import AlertState
from xce.domain.engine.authorisation import Question
from xce.domain.formats.rest import (
    AlertEntry,
    AlertPage,
    DecisionEntry,
    DecisionPage,
    DrainEntry,
    DrainPage,
    OrphanEntry,
    OrphanPage,
    SiteEntry,
)
from xce.domain.formats.standing import Standing
from xce.projections.alerts import AlertRow
from xce.projections.drains import DrainRow
from xce.projections.reasons import DecisionRow, OrphanRow, SiteRow

#: Decisions are listed by how far their positions are from here, so that the newest comes first.
_FAR: Final = 2**53 - 1
_PAGED: Final = (LIMIT, CURSOR)


async def drains(call: Call) -> Reply:
    """Hosts that take no new work, and how far their drains are."""
    rows = call.reads.read(lambda views: views.projections.drains.rows())
    items, following = call.page([drain_entry(row) for row in rows], lambda entry: entry.host)
    return Reply(DrainPage(items=items, next=following))


async def orphans(call: Call) -> Reply:
    """What nobody owns, and somebody has to do something about."""
    rows = call.reads.read(lambda views: views.projections.reasons.orphans())
    items, following = call.page([_orphan(row) for row in rows], lambda entry: entry.id)
    return Reply(OrphanPage(items=items, next=following))


async def decisions(call: Call) -> Reply:
    """The newest decisions, newest first; the log has older ones."""
    rows = call.reads.read(lambda views: views.projections.reasons.decisions())
    newest = [_decision(row) for row in rows]
    items, following = call.page(newest, lambda entry: str(_FAR - entry.position))
    return Reply(DecisionPage(items=items, next=following))


async def site(call: Call) -> Reply:
    """What holds for the whole site: the freeze switch, and which configurations the daemons work with."""
    return Reply(site_entry(call.reads.read(lambda views: views.projections.reasons.site)))


async def alerts(call: Call) -> Reply:
    """Alerts that are raised, and the last that are over; by when they were raised, the newest first."""

    def made(views: Views) -> list[AlertEntry]:
        found = views.projections.alerts
        waiting = {
            webhook.name: {notice.position for notice in found.notices(webhook.name)}
            for webhook in call.service.config.alerts.webhooks
        }
        return [_alert(row, waiting) for row in (*found.raised(), *found.over())]

    items, following = call.page(call.reads.read(made), lambda entry: str(_FAR - entry.position))
    return Reply(AlertPage(items=items, next=following))


async def standing(call: Call) -> Reply:
    """How far budgets are used, and which losses are not believed yet, as each provisioner reported it within five minutes."""
    return Reply(Standing(reports=call.service.board.standing_at(time.monotonic())))


def _alert(row: AlertRow, waiting: Mapping[str, set[int]]) -> AlertEntry:
    return AlertEntry(
        id=row.id,
        position=row.position,
        kind=row.kind,
        subject=row.subject,
        state=AlertState.RAISED if row.cleared is None else AlertState.CLEARED,
        text=row.text,
        raised_at=row.raised,
        cleared_at=row.cleared,
        not_told=tuple(name for name, positions in waiting.items() if row.position in positions),
    )


def drain_entry(row: DrainRow) -> DrainEntry:
    """Return a drain as the interface shows it."""
    return DrainEntry(**{name: getattr(row, name) for name in DrainEntry.model_fields})


def _orphan(row: OrphanRow) -> OrphanEntry:
    return OrphanEntry(
        id=f"{row.provider}/{row.theirs}",
        provider=row.provider,
        theirs=row.theirs,
        kind=row.kind,
        state=row.state,
        tag=row.tag,
        why=row.why,
        found=row.found,
        return_id=row.return_id,
    )


def _decision(row: DecisionRow) -> DecisionEntry:
    return DecisionEntry(**{name: getattr(row, name) for name in DecisionEntry.model_fields})


def site_entry(row: SiteRow) -> SiteEntry:
    """Return what holds for the site as the interface shows it."""
    return SiteEntry(
        frozen=row.frozen,
        why=row.why,
        since=row.since,
        by=row.by,
        configurations=dict(row.configurations),
    )


ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint("GET", "/v1/drains", "Drains", drains, DrainPage, Question.DRAINS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/orphans", "Orphans", orphans, OrphanPage, Question.ORPHANS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/decisions", "Decisions", decisions, DecisionPage, Question.DECISIONS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/alerts", "Alerts", alerts, AlertPage, Question.ALERTS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/standing", "How provisioners stand", standing, Standing, Question.STANDING),
    Endpoint("GET", "/v1/site", "What holds for the whole site", site, SiteEntry, Question.STATUS, followed=True),
)  # fmt: skip

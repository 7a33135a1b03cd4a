"""Endpoints that read: lists and single things, all of one answer at one position of the log."""

import asyncio
import time
from importlib.metadata import version
from typing import Final

from xce.adapters.controller.calls import (
    CURSOR,
    LIMIT,
    ZONES_MAX,
    Call,
    Endpoint,
    Parameter,
    Reply,
)
from xce.adapters.controller.entries import lease_entry, provider_entries, shared_entry
from xce.adapters.controller.problems import RefusedCallError
from xce.adapters.controller.single import ENDPOINTS as SINGLE
from xce.adapters.controller.standing import ENDPOINTS as STANDING
from xce.adapters.controller.standing import drain_entry, site_entry
from xce.adapters.controller.views import Views
from xce.domain.engine.authorisation import Question
from xce.domain.errors import NotFoundError
from xce.domain.formats.config import SharedPool
from xce.domain.formats.event_entry import event_entry
from xce.domain.formats.periods import Period
from xce.domain.formats.rest import (
    Bookings,
    CostLine,
    Costs,
    DemandMessage,
    EventPage,
    GrantPage,
    Health,
    InstancePage,
    LeaseEntry,
    LeasePage,
    Observations,
    ProviderPage,
    RequestPage,
    SharedEntry,
    SharedPage,
    SpentPeriods,
    Status,
    Supply,
    UnaccountedLine,
)
from xce.domain.formats.snapshot import Catalog, Snapshot
from xce.domain.policy import money
from xce.projections.spending import SpendingLine

#: Largest position.
POSITION_MAX: Final = 2**53 - 1
_COUNT_MOST: Final = 2**53 - 1


# ------------------------------------------------------------------ where we are
async def status(call: Call) -> Reply:
    """Where the controller is."""
    standby = call.standby
    head = await asyncio.to_thread(call.live.log.head) if standby is None else standby.head
    live = call.live if standby is None else None
    newest = None if live is None else live.session()
    unheld = call.service.board.no_session_at(time.monotonic())

    def made(views: Views) -> Status:
        return Status(
            release=version("xce"),
            position=head.position,
            digest=head.digest.hex(),
            epoch=0 if live is None else live.epoch,
            primary=live is not None and live.lost is None,
            session=0 if live is None or live.feed.session is None else live.feed.session.number,
            session_age_s=None if live is None or newest is None else live.age_s(newest),
            no_session=next((one.why for one in unheld.values()), None),
            now=views.now,
        )

    return Reply(call.reads.read(made))


# ------------------------------------------------------------------------- lists
async def requests(call: Call) -> Reply:
    """Requests that are open, or of which something lives."""
    entries = call.reads.read(lambda views: views.projections.inventory.view().requests)
    items, following = call.page(entries, lambda entry: entry.id)
    return Reply(RequestPage(items=items, next=following))


async def instances(call: Call) -> Reply:
    """Instances that exist."""
    entries = call.reads.read(lambda views: views.projections.inventory.view().instances)
    items, following = call.page(entries, lambda entry: entry.id)
    return Reply(InstancePage(items=items, next=following))


async def grants(call: Call) -> Reply:
    """Grants of which the lender has not all back."""
    entries = call.reads.read(lambda views: views.projections.inventory.view().grants)
    items, following = call.page(entries, lambda entry: entry.id)
    return Reply(GrantPage(items=items, next=following))


async def shared(call: Call) -> Reply:
    """Shared resources with owned, borrowed, in flight and occupied amounts."""

    def made(views: Views) -> list[SharedEntry]:
        return [shared_entry(row, views) for row in views.projections.totals.all()]

    items, following = call.page(call.reads.read(made), lambda entry: entry.name)
    return Reply(SharedPage(items=items, next=following))


async def providers(call: Call) -> Reply:
    """Providers: what they say of themselves, and what is paused."""
    items, following = call.page(call.reads.read(provider_entries), lambda entry: entry.name)
    return Reply(ProviderPage(items=items, next=following))


async def leases(call: Call) -> Reply:
    """Who may act on each provider."""

    def made(views: Views) -> list[LeaseEntry]:
        return [
            lease_entry(row, views.lease_left_s.get(row.provider))
            for row in views.projections.leases.rows()
        ]

    items, following = call.page(call.reads.read(made), lambda entry: entry.provider)
    return Reply(LeasePage(items=items, next=following))


def cost_line(line: SpendingLine) -> CostLine:
    """Return a line of costs as a format can hold it: of more, the most."""
    return CostLine(
        provider=line.provider,
        kind=line.kind,
        item=line.item,
        live=min(line.live, _COUNT_MOST),
        ended=min(line.ended, _COUNT_MOST),
        used=line.used,
        billed=line.billed,
        cost=money.at_most(line.cost),
        per_hour=money.at_most(line.per_hour),
        unpriced=min(line.unpriced, _COUNT_MOST),
        owned=line.owned,
    )


async def costs(call: Call) -> Reply:
    """What everything cost, and costs per hour."""

    def made(views: Views) -> Costs:
        spending = views.projections.spending
        return Costs(
            position=views.projections.position,
            now=views.now,
            cost=money.at_most(spending.cost_at(views.now)),
            per_hour=money.at_most(spending.per_hour(views.now)),
            lines=tuple(map(cost_line, spending.lines(views.now))),
            unaccounted=tuple(
                UnaccountedLine(
                    what=one.what,
                    provider=one.provider,
                    kind=one.kind,
                    item=one.item,
                    amount=one.amount,
                    price_per_hour=one.price,
                    project=one.project,
                    since=one.since,
                )
                for one in views.projections.catalog.unaccounted()
            ),
        )

    return Reply(call.reads.read(made))


async def spent(call: Call) -> Reply:
    """What was spent in each day or month, by the clocks of a time zone; over a month ago by the dates of UTC."""
    (zone,) = call.zones(("UTC",))[:1] or ("UTC",)
    text = call.query.get("period", Period.DAY.value)
    if text not in list(Period):
        raise RefusedCallError("period: wanted day or month")
    period = Period(text)

    def made(views: Views) -> SpentPeriods:
        return SpentPeriods(
            position=views.projections.position,
            now=views.now,
            items=views.projections.spending.periods(period, zone, views.now),
        )

    return Reply(call.reads.read(made))


async def catalog(call: Call) -> Reply:
    """What could be obtained, and what is on its way: for a snapshot."""
    return Reply(call.live.read(lambda views: views.projections.catalog.view(views.now)))


async def supply(call: Call) -> Reply:
    """Catalog, shared resources, inventory, providers and leases in one answer, all of it at one position."""
    pools, zones = call.service.config.shared, call.zones()
    return Reply(call.live.read(lambda views: supply_of(views, pools, zones)))


def supply_of(
    views: Views, pools: tuple[SharedPool, ...] = (), zones: tuple[str, ...] = ()
) -> Supply:
    """Return what a session and a policy round need; ``zones``: whose days and months have budgets."""
    projections = views.projections
    return Supply(
        position=projections.position,
        now=views.now,
        primary=views.primary,
        catalog=projections.catalog.view(views.now),
        shared=tuple(shared_entry(row, views) for row in projections.totals.all()),
        inventory=projections.inventory.view(),
        providers=tuple(provider_entries(views)),
        leases=tuple(
            lease_entry(row, views.lease_left_s.get(row.provider))
            for row in projections.leases.rows()
        ),
        drains=tuple(map(drain_entry, projections.drains.rows())),
        site=site_entry(projections.reasons.site),
        asked=projections.asks.view(views.now),
        failures=projections.failures.view(),
        losses=projections.losses.view(),
        spent=projections.spending.this_far(zones, views.now),
        pools=pools,
    )


async def observations(call: Call) -> Reply:
    """What observers saw last of shared resources, with what the configuration says of these."""
    kept = call.service.board.observations
    return Reply(
        Observations(
            observations=tuple(kept[key] for key in sorted(kept)),
            pools=call.service.config.shared,
        )
    )


async def bookings(call: Call) -> Reply:
    """What is in use of each shared resource, as the scheduler reported it."""
    return Reply(
        call.live.read(
            lambda views: Bookings(occupied=dict(views.occupied), reports=dict(views.reports))
        )
    )


# --------------------------------------------------------- what the scheduler posts
async def session(call: Call) -> Reply:
    """The newest session result with demand and idle supply; unknown after a start, and when it is too old."""
    return Reply(demand_message(call))


def demand_message(call: Call) -> DemandMessage:
    """Return what is known of demand now."""
    live = call.live
    published = live.session()
    if published is None:
        newest = live.feed.session
        number = 0 if newest is None else newest.number
        age = 0.0 if newest is None else live.age_s(newest)
        return DemandMessage(number=number, age_s=age, by="", result=None)
    return DemandMessage(
        number=published.number,
        age_s=live.age_s(published),
        by=published.by,
        result=published.result,
    )


async def snapshot(call: Call) -> Reply:
    """The newest snapshot that was posted."""
    text = call.service.board.snapshot
    if text is None:
        raise NotFoundError("no snapshot was posted since the controller started")
    return Reply(text=text)


# ------------------------------------------------------------------------ events
async def events(call: Call) -> Reply:
    """The log itself, event by event."""
    after = call.number("after", 0, POSITION_MAX)
    limit = call.limit()
    found = await asyncio.to_thread(call.reads.events_after, after, limit)
    items = tuple(event_entry(recorded) for recorded in found)
    following = items[-1].position if len(items) == limit else None
    return Reply(EventPage(items=items, next=following))


async def health(call: Call) -> Reply:
    """Whether the process works."""
    return Reply(Health())


_PAGED: Final = (LIMIT, CURSOR)
_PERIOD: Final = Parameter(
    "period",
    "query",
    "day or month",
    {"type": "string", "enum": ["day", "month"], "default": "day"},
)
_ZONE: Final = Parameter(
    "zones", "query", "a time zone, such as Europe/Berlin", {"type": "string", "default": "UTC"}
)
_ZONES: Final = Parameter(
    "zones",
    "query",
    f"time zones, with commas between them, {ZONES_MAX} at most: `spent` is of today and this month by their clocks",
    {"type": "string"},
)
_AFTER: Final = Parameter(
    "after",
    "query",
    "position of the last event that is known",
    {"type": "integer", "minimum": 0, "maximum": POSITION_MAX, "default": 0},
)

Q = Question
ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint("GET", "/v1/status", "Where the controller is", status, Status, Q.STATUS, followed=True),
    Endpoint("GET", "/v1/requests", "Requests", requests, RequestPage, Q.REQUESTS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/instances", "Instances", instances, InstancePage, Q.INSTANCES, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/grants", "Grants", grants, GrantPage, Q.GRANTS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/shared", "Shared resources", shared, SharedPage, Q.SHARED, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/providers", "Providers", providers, ProviderPage, Q.PROVIDERS, None, _PAGED, followed=True),
    Endpoint("GET", "/v1/leases", "Leases", leases, LeasePage, Q.LEASES, None, _PAGED, followed=True),
    *SINGLE,
    *STANDING,
    Endpoint("GET", "/v1/costs", "Costs", costs, Costs, Q.COSTS, followed=True),
    Endpoint("GET", "/v1/spent", "Costs by day or month", spent, SpentPeriods, Q.COSTS, None, (_PERIOD, _ZONE), followed=True),
    Endpoint("GET", "/v1/catalog", "The catalog", catalog, Catalog, Q.CATALOG),
    Endpoint("GET", "/v1/supply", "Everything for a session or a policy round", supply, Supply, Q.SUPPLY, None, (_ZONES,)),
    Endpoint("GET", "/v1/observations", "Observations", observations, Observations, Q.OBSERVATIONS),
    Endpoint("GET", "/v1/bookings", "Bookings", bookings, Bookings, Q.BOOKINGS),
    Endpoint("GET", "/v1/session", "The newest session result", session, DemandMessage, Q.SESSION),
    Endpoint("GET", "/v1/snapshot", "The newest snapshot", snapshot, Snapshot, Q.SNAPSHOT),
    Endpoint("GET", "/v1/events", "Events", events, EventPage, Q.EVENTS, None, (LIMIT, _AFTER), followed=True),
    Endpoint("GET", "/healthz", "Whether the process works", health, Health, open=True),
)  # fmt: skip

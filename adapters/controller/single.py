"""Endpoints that read one thing, also one that is over; and what was asked for one job."""

import asyncio
from typing import Any, Final

from xce.adapters.controller.calls import Call, Endpoint, Reply
from xce.adapters.controller.entries import lease_entry, provider_entries, shared_entry
from xce.adapters.controller.views import Views
from xce.domain.engine.authorisation import Question
from xce.domain.errors import NotFoundError
from xce.domain.events import ids
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, RequestEntry
from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import JobEntry, LeaseEntry, ProviderEntry, SharedEntry
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource

#: Requests of one job that are shown, the newest.
REQUESTS_MAX: Final = 100


async def request(call: Call) -> Reply:
    """One request, also one that is over."""
    name = call.name("id")
    made = await asyncio.to_thread(_find, call, Request, ids.request_id(name))
    return Reply(_request(call, name, made), etag=_tag(made))


async def request_entry(call: Call, name: str) -> RequestEntry:
    """Return one request as the interface shows it.

    Raises:
        NotFoundError: there is none.
    """
    return _request(call, name, await asyncio.to_thread(_find, call, Request, ids.request_id(name)))


def _request(call: Call, name: str, made: Request) -> RequestEntry:
    row = call.reads.read(lambda views: views.projections.inventory.request(name))
    host = made.kind is Kind.HOST
    return RequestEntry(
        id=name,
        provider=made.provider,
        kind=made.kind,
        template=made.item if host else None,
        resource=None if host else made.item,
        amount=made.amount,
        granted=made.granted,
        failed=made.failed,
        state=made.state,
        asked_at=made.created_on,
        asked_position=0 if row is None else row.asked_position,
        deadline=made.deadline,
        price_per_hour=made.price_per_hour,
        project=made.project,
        provider_request_id=made.provider_request_id,
    )


async def instance(call: Call) -> Reply:
    """One instance, also one that is gone."""
    name = call.name("id")
    made = await asyncio.to_thread(_find, call, Instance, ids.instance_id(name))
    entry = InstanceEntry(
        id=name,
        provider=made.provider,
        template=made.template,
        request=made.request_id,
        state=made.state,
        machine=made.machine,
        host=made.host,
        granted_at=made.created_on,
        reported_as=None if made.report is None else made.report.host,
        booted_at=None if made.report is None else made.report.booted_at,
        reported_at=made.reported_at,
        joined_at=made.joined_at,
        hold_until=made.hold_until,
        price_per_hour=made.price_per_hour,
        project=made.project,
        return_id=made.return_id,
    )
    return Reply(entry, etag=_tag(made))


async def grant(call: Call) -> Reply:
    """One grant, also one that is over."""
    name = call.name("id")
    made = await asyncio.to_thread(_find, call, Grant, ids.grant_id(name))
    entry = GrantEntry(
        id=name,
        provider=made.provider,
        resource=made.resource,
        request=made.request_id,
        amount=made.amount,
        returning=made.returning,
        returned=made.returned,
        state=made.state,
        granted_at=made.created_on,
        hold_until=made.hold_until,
        expires_at=made.expires_at,
        price_per_hour=made.price_per_hour,
        project=made.project,
    )
    return Reply(entry, etag=_tag(made))


async def one_shared(call: Call) -> Reply:
    """One shared resource."""
    name = call.name("name")
    made = await asyncio.to_thread(_find, call, ElasticResource, ids.shared_id(name))

    def entry(views: Views) -> SharedEntry:
        row = next((row for row in views.projections.totals.all() if row.name == name), None)
        if row is None:  # a standby has not followed so far
            raise NotFoundError(f"there is no shared {name} yet")
        return shared_entry(row, views)

    return Reply(call.reads.read(entry), etag=_tag(made))


async def provider(call: Call) -> Reply:
    """One provider."""
    name = call.name("name")
    made = await asyncio.to_thread(_find, call, Provider, ids.provider_id(name))
    entries = call.reads.read(provider_entries)
    entry = next((entry for entry in entries if entry.name == name), None)
    if entry is None:  # a standby has not followed so far
        raise NotFoundError(f"there is no provider {name} yet")
    return Reply(entry, etag=_tag(made))


async def lease(call: Call) -> Reply:
    """The lease of one provider."""
    name = call.name("provider")

    def made(views: Views) -> LeaseEntry:
        row = views.projections.leases.of(name)
        if row is None:
            raise NotFoundError(f"nobody ever held a lease of provider {name}")
        return lease_entry(row, views.lease_left_s.get(name))

    return Reply(call.reads.read(made))


async def job(call: Call) -> Reply:
    """What was asked for one job; the newest requests."""
    name = call.name("job")
    names, dropped = call.reads.read(
        lambda views: (views.projections.job_asks.of(name), views.projections.job_asks.dropped)
    )
    entries = [await request_entry(call, one) for one in names[-REQUESTS_MAX:]]
    return Reply(JobEntry(job=name, requests=tuple(entries), known_after=dropped))


# ----------------------------------------------------------------------- helpers
def _find(call: Call, kind: Any, aggregate_id: str) -> Any:
    try:
        return call.reads.log.get(kind, aggregate_id)
    except NotFoundError:
        raise NotFoundError(
            f"there is no {ids.kind_of(aggregate_id)} {ids.name_of(aggregate_id)}"
        ) from None


def _tag(aggregate: Any) -> str:
    return f'"{aggregate.version}"'


Q = Question
ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint("GET", "/v1/jobs/{job:path}", "What was asked for one job", job, JobEntry, Q.REQUESTS, followed=True),
    Endpoint("GET", "/v1/requests/{id:path}", "One request", request, RequestEntry, Q.REQUESTS, followed=True),
    Endpoint("GET", "/v1/instances/{id:path}", "One instance", instance, InstanceEntry, Q.INSTANCES, followed=True),
    Endpoint("GET", "/v1/grants/{id:path}", "One grant", grant, GrantEntry, Q.GRANTS, followed=True),
    Endpoint("GET", "/v1/shared/{name:path}", "One shared resource", one_shared, SharedEntry, Q.SHARED, followed=True),
    Endpoint("GET", "/v1/providers/{name:path}", "One provider", provider, ProviderEntry, Q.PROVIDERS, followed=True),
    Endpoint("GET", "/v1/leases/{provider:path}", "One lease", lease, LeaseEntry, Q.LEASES, followed=True),
)  # fmt: skip

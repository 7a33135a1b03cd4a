"""Endpoints that change something: orders to the state machine, and what the scheduler posts."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, cast

from pydantic import create_model

from xce.adapters.controller.calls import (
    IDEMPOTENCY_KEY,
    IF_MATCH,
    Call,
    Endpoint,
    Reply,
)
from xce.adapters.controller.hosts import confirmed
from xce.adapters.controller.live import LiveController
from xce.adapters.controller.views import Views
from xce.domain.engine.authorisation import Report
from xce.domain.engine.commands import (
    Command,
    DeclareShared,
    DescribeProvider,
    PauseProvider,
    RecordJoin,
    ReleaseLease,
    RenewLease,
    ReportBookings,
    ResumeProvider,
    SetOwned,
    TakeLease,
)
from xce.domain.engine.joins import Expected, instance_of
from xce.domain.engine.messages import Answer, Role
from xce.domain.engine.site_commands import (
    DrainHost,
    Freeze,
    OpenHost,
    ReportDrain,
    Unfreeze,
)
from xce.domain.engine.wire import MODELS, OrderFormat, read_order
from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.formats.base import Format
from xce.domain.formats.no_session import NoSession
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.rest import (
    Because,
    DrainLook,
    DrainWish,
    HostAnswer,
    JoinReport,
    ObservationReport,
    OrderAnswer,
)
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.formats.standing import StandingReport

_make_model: Final[Any] = create_model


# ------------------------------------------------------------------------ orders
async def order(call: Call) -> Reply:
    """Carry out several commands, all or nothing."""
    commands, epochs = await asyncio.to_thread(read_order, call.body, "the body")
    return await _give(call, *commands, epochs=epochs)


async def _give(
    call: Call,
    *commands: Command,
    epochs: Mapping[str, int] | None = None,
    expected: Mapping[str, int] | None = None,
) -> Reply:
    answer = await _carried_out(call, *commands, epochs=epochs, expected=expected)
    return Reply(
        OrderAnswer(
            changed=answer.changed, versions=dict(answer.versions), epochs=dict(answer.epochs)
        ),
        etag=next(
            (f'"{answer.versions[one]}"' for one in expected or () if one in answer.versions), None
        ),
    )


async def _carried_out(
    call: Call,
    *commands: Command,
    epochs: Mapping[str, int] | None = None,
    expected: Mapping[str, int] | None = None,
) -> Answer:
    terms = call.service.config.leases
    for command in commands:
        if isinstance(command, TakeLease) and not terms.minimum <= command.term <= terms.maximum:
            raise RejectedError(
                f"the term of a lease is {terms.minimum.total_seconds():g} s to"
                f" {terms.maximum.total_seconds():g} s here, found {command.term.total_seconds():g} s"
            )
    future = call.live.submit(
        call.caller, *commands, key=call.key(), epochs=epochs, expected=expected
    )
    return await asyncio.wrap_future(future)


def _expected(call: Call, aggregate_id: str) -> dict[str, int]:
    version = call.version()
    return {} if version is None else {aggregate_id: version}


def _body_of(command: type[Command], *without: str) -> type[Format]:
    """Return the model of a command whose other fields are in the path."""
    model = MODELS[command]
    own: dict[str, Any] = {
        name: (info.annotation, info)
        for name, info in model.model_fields.items()
        if name not in {"command", *without}
    }
    return cast(
        "type[Format]",
        _make_model(f"{command.__name__}Body", __base__=Format, __doc__=command.__doc__, **own),
    )


def _single(
    command: type[Command], in_path: str, aggregate: Callable[[str], str], body: type[Format]
) -> Callable[[Call], Any]:
    """Return the handler of one command: one field from the path, the others from the body."""

    async def handle(call: Call) -> Reply:
        name = call.name(in_path)
        read = body.from_json(call.body, "the body")
        made: Any = command
        values = {
            field.name: getattr(read, field.name) for field in fields(made) if field.name != in_path
        }
        return await _give(
            call, made(**{in_path: name}, **values), expected=_expected(call, aggregate(name))
        )

    handle.__doc__ = command.__doc__
    return handle


async def describe(call: Call) -> Reply:
    """A provider says what it is."""
    name = call.name("name")
    description = ProviderDescription.from_json(call.body, "the body")
    if description.name != name:
        raise RejectedError(f"the path names provider {name}, the body {description.name}")
    return await _give(
        call,
        DescribeProvider(description),
        expected=_expected(call, ids.provider_id(name)),
    )


async def report_bookings(call: Call) -> Reply:
    """The scheduler reports what is in use of shared resources; what is not named stays."""
    read: Any = _BOOKINGS.from_json(call.body, "the body")
    return await _give(call, ReportBookings(read.occupied, read.reports, read.primary, read.as_of))


# ------------------------------------------------------------------------- hosts
async def join(call: Call) -> Reply:
    """A host reports to the cluster."""
    report = JoinReport.from_json(call.body, "the body")
    instance = call.live.read(
        lambda views: instance_of(
            report.host, report.booted_at, report.instance, report.machine, _expected_hosts(views)
        )
    )
    return await _give(
        call,
        RecordJoin(
            instance,
            report.host,
            report.booted_at,
            report.attributes,
            report.total,
            busy=report.busy,
        ),
    )


async def drain(call: Call) -> Reply:
    """Close a host to new work; a provisioned one goes back when it is empty, an own one stays closed."""
    host = call.name("host")
    wish = DrainWish.from_json(call.body or b"{}", "the body")
    command = DrainHost(
        host,
        _instance_of_host(call.live, host),
        wish.why or "drained by hand",
        wish.deadline,
        wish.at_deadline,
    )
    return await _give_host(call, command)


async def reopen(call: Call) -> Reply:
    """End the drain of a host: it takes work again."""
    host = call.name("host")
    because = Because.from_json(call.body or b"{}", "the body")
    command = OpenHost(host, _instance_of_host(call.live, host), because.why or "opened by hand")
    return await _give_host(call, command)


async def _give_host(call: Call, command: DrainHost | OpenHost) -> Reply:
    """Carry out an order about a host that the cluster has, as far as anybody has told."""
    known = await confirmed(call, command.host, command.instance)
    answer = await _carried_out(call, command, epochs=_own_epochs(call, command.instance))
    return Reply(
        HostAnswer(
            changed=answer.changed,
            versions=dict(answer.versions),
            epochs=dict(answer.epochs),
            confirmed=known,
        )
    )


async def looked(call: Call) -> Reply:
    """The scheduler has closed a host and then looked at it again: whether jobs run on it."""
    host = call.name("host")
    look = DrainLook.from_json(call.body, "the body")
    return await _give(call, ReportDrain(host, _instance_of_host(call.live, host), look.jobs))


def _own_epochs(call: Call, instance: str | None) -> dict[str, int]:
    """Return the epoch that a provisioner acts under, where it holds the lease of the host's provider; others name none."""
    if instance is None or call.caller.role is not Role.PROVISIONER:
        return {}

    def found(views: Views) -> dict[str, int]:
        return {
            row.provider: row.epoch
            for row in views.projections.leases.rows()
            if row.holder == call.caller.name
        }

    return call.live.read(found)


def _instance_of_host(live: LiveController, host: str) -> str | None:
    """Return the instance that is in the cluster under this name; None: it is an own host."""
    return live.read(lambda views: views.projections.inventory.joined_hosts().get(host))


async def freeze(call: Call) -> Reply:
    """Ask, drain and give back nothing new, until it is unfrozen."""
    because = Because.from_json(call.body or b"{}", "the body")
    return await _give(call, Freeze(because.why or "frozen by hand"))


async def unfreeze(call: Call) -> Reply:
    """Act again."""
    because = Because.from_json(call.body or b"{}", "the body")
    return await _give(call, Unfreeze(because.why or "unfrozen by hand"))


def _expected_hosts(views: Views) -> list[Expected]:
    inventory = views.projections.inventory
    starting, _ = inventory.in_flight()
    expected: list[Expected] = []
    for row in starting:
        request = inventory.request(row.request)
        asked_at = row.granted_at if request is None else request.asked_at
        expected.append(Expected(row.id, row.machine, row.expected_name, asked_at))
    machines = {entry.id: entry.machine for entry in inventory.view().instances}
    joined = inventory.joined_hosts().items()
    return [*expected, *(Expected(one, machines.get(one), host=host) for host, one in joined)]


# --------------------------------------------------------- what the scheduler posts
async def post_session(call: Call) -> Reply:
    """Publish a session's result: demand, idle supply, pend reasons. In memory; the newest replaces older ones."""
    result = await asyncio.to_thread(SessionResult.from_json, call.body, "the body")
    call.live.publish(result, call.body.decode(), call.caller.by)
    call.service.board.no_session.clear()
    return Reply(status=204)


async def report_no_session(call: Call) -> Reply:
    """Tell why there can be no session now; until there is one, it is told again and again. In memory."""
    report = NoSession.from_json(call.body, "the body")
    _ = call.live  # one that stands by has no use for it
    call.service.board.no_session[call.caller.by] = report, time.monotonic()
    return Reply(status=204)


async def post_snapshot(call: Call) -> Reply:
    """Post the snapshot that the session was of, for whoever wants to look at it. In memory; the newest replaces older ones."""
    snapshot = await asyncio.to_thread(Snapshot.from_json, call.body, "the body")
    board = call.service.board
    if snapshot.position > call.live.feed.position:
        raise RejectedError(
            f"the snapshot is of position {snapshot.position}; the log has {call.live.feed.position}"
        )
    if snapshot.position < board.snapshot_position:
        raise RejectedError(
            f"the snapshot is of position {snapshot.position}; there is one of {board.snapshot_position}"
        )
    board.snapshot, board.snapshot_position = call.body.decode(), snapshot.position
    board.hosts = frozenset(host.name for host in snapshot.hosts)
    return Reply(status=204)


async def report_observations(call: Call) -> Reply:
    """Tell what an observer saw of shared resources. In memory; an older look than the last of its source changes nothing."""
    report = ObservationReport.from_json(call.body, "the body")
    declared = {pool.name for pool in call.service.config.shared}
    kept = call.service.board.observations
    for one in report.observations:
        if one.resource not in declared:
            raise RejectedError(f"no shared resource is named {one.resource} in the configuration")
        known = kept.get((one.resource, one.source))
        if known is None or (one.received_at, one.sequence) > (known.received_at, known.sequence):
            kept[one.resource, one.source] = one
    return Reply(status=204)


async def report_standing(call: Call) -> Reply:
    """Tell how far budgets are used, and which losses are not believed yet. In memory; the newest report of each caller counts."""
    report = StandingReport.from_json(call.body, "the body")
    call.service.board.standing[call.caller.name] = report, time.monotonic()
    return Reply(status=204)


# ------------------------------------------------------------------------- table
_PAUSE: Final = _body_of(PauseProvider, "provider")
_RESUME: Final = _body_of(ResumeProvider, "provider")
_DECLARE: Final = _body_of(DeclareShared, "name")
_OWNED: Final = _body_of(SetOwned, "name")
_TAKE: Final = _body_of(TakeLease, "provider")
_RENEW: Final = _body_of(RenewLease, "provider")
_RELEASE: Final = _body_of(ReleaseLease, "provider")
_BOOKINGS: Final = _body_of(ReportBookings)
_KEY: Final = (IDEMPOTENCY_KEY,)
_BOTH: Final = (IDEMPOTENCY_KEY, IF_MATCH)


def _row(
    method: str,
    path: str,
    summary: str,
    command: type[Command],
    in_path: str,
    aggregate: Callable[[str], str],
    body: type[Format],
) -> Endpoint:
    handler = _single(command, in_path, aggregate, body)
    return Endpoint(method, path, summary, handler, OrderAnswer, command, body, _BOTH)


_PROVIDER: Final = ids.provider_id
_LEASE: Final = ids.lease_id
_SHARED: Final = ids.shared_id

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint("POST", "/v1/commands", "Commands, all or nothing", order, OrderAnswer, None, OrderFormat, _KEY),
    _row("POST", "/v1/providers/{provider:path}/pause", "Pause a provider", PauseProvider, "provider", _PROVIDER, _PAUSE),
    _row("POST", "/v1/providers/{provider:path}/resume", "Resume a provider", ResumeProvider, "provider", _PROVIDER, _RESUME),
    Endpoint("PUT", "/v1/providers/{name:path}", "Describe a provider", describe, OrderAnswer, DescribeProvider, ProviderDescription, _BOTH),
    _row("POST", "/v1/leases/{provider:path}/take", "Take a lease", TakeLease, "provider", _LEASE, _TAKE),
    _row("POST", "/v1/leases/{provider:path}/renew", "Renew a lease", RenewLease, "provider", _LEASE, _RENEW),
    _row("POST", "/v1/leases/{provider:path}/release", "Release a lease", ReleaseLease, "provider", _LEASE, _RELEASE),
    _row("PUT", "/v1/shared/{name:path}/owned", "Set what is owned of a shared resource", SetOwned, "name", _SHARED, _OWNED),
    _row("PUT", "/v1/shared/{name:path}", "Declare a shared resource", DeclareShared, "name", _SHARED, _DECLARE),
    Endpoint("POST", "/v1/hosts/join", "A host joins", join, OrderAnswer, RecordJoin, JoinReport, _KEY),
    Endpoint("POST", "/v1/hosts/{host:path}/drain", "Drain a host", drain, HostAnswer, DrainHost, DrainWish, _KEY),
    Endpoint("POST", "/v1/hosts/{host:path}/open", "Open a host", reopen, HostAnswer, OpenHost, Because, _KEY),
    Endpoint("POST", "/v1/hosts/{host:path}/looked", "A drained host was looked at", looked, OrderAnswer, ReportDrain, DrainLook, _KEY),
    Endpoint("POST", "/v1/freeze", "Freeze the site", freeze, OrderAnswer, Freeze, Because, _KEY),
    Endpoint("POST", "/v1/unfreeze", "Unfreeze the site", unfreeze, OrderAnswer, Unfreeze, Because, _KEY),
    Endpoint("PUT", "/v1/bookings", "Report bookings", report_bookings, OrderAnswer, ReportBookings, _BOOKINGS, _KEY),
    Endpoint("PUT", "/v1/observations", "Report observations", report_observations, None, Report.OBSERVATIONS, ObservationReport, ()),
    Endpoint("PUT", "/v1/standing", "Report how a provisioner stands", report_standing, None, Report.STANDING, StandingReport, ()),
    Endpoint("PUT", "/v1/session", "Publish a session result", post_session, None, Report.SESSION, SessionResult, (), large=True),
    Endpoint("PUT", "/v1/no-session", "Report that there is no session", report_no_session, None, Report.NO_SESSION, NoSession, ()),
    Endpoint("PUT", "/v1/snapshot", "Post a snapshot", post_snapshot, None, Report.SNAPSHOT, Snapshot, (), large=True),
)  # fmt: skip

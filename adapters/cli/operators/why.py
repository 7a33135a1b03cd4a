"""``xcecli why JOB``: why a job waits, what would help, what was asked for it, what came of it, and when it may start."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import Times, show, shown
from xce.domain.errors import NotFoundError
from xce.domain.formats.policy import InstanceEntry, RequestEntry
from xce.domain.formats.rest import DemandMessage, Supply
from xce.domain.formats.session_result import Pending, Reason, SessionResult
from xce.domain.formats.snapshot import RunningJob, Snapshot
from xce.domain.provisioning.request import OPEN

if TYPE_CHECKING:
    from xce.adapters.client import Client

#: Newest events that are looked through for asks for the job.
LOOKED_AT_MAX: Final = 50_000


@dataclass(slots=True)
class Why:
    """All that is known of one job, as a chain of facts."""

    job: str
    state: str = "unknown"
    session_age_s: float | None = None
    hosts: tuple[str, ...] = ()
    reason: str | None = None
    reasons: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    provisioning: dict[str, Any] | None = None
    not_counted: str | None = None
    impossible: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    in_flight: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    pauses: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    expected_at: str | None = None
    frozen: str | None = None


def why(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="Its id in the batch system.")],
    as_json: terminal.JsonOption = False,
) -> None:
    """Why a job waits: the pend reason, what would help, the ask made for it, the provider's answer, what is expected and when."""
    connection = connection_of(context)
    with connection.client() as client:
        found = explained(client, job)
    if as_json:
        terminal.write_json(json.dumps(asdict(found)))
        return
    for line in lines_of(found, Times(connection.local)):
        show(line)


def explained(client: "Client", job: str) -> Why:
    """Return all that the controller knows of a job.

    Raises:
        NotFoundError: neither the newest session nor the newest events have it.
    """
    message = client.session()
    snapshot = _snapshot(client)
    supply = client.supply()
    found = Why(job)
    if supply.site.frozen:
        found.frozen = supply.site.why
    running = _running(snapshot, job)
    if running is not None:
        found.state, found.hosts = "running", tuple(use.name for use in running.hosts)
    _of_session(found, message)
    _of_requests(found, client, supply)
    _of_supply(found, supply)
    if found.state == "unknown" and not found.requests:
        raise NotFoundError(
            f"job {job} is not known here: it is in neither the newest session nor the newest"
            f" {LOOKED_AT_MAX} events"
        )
    return found


def _snapshot(client: "Client") -> Snapshot | None:
    try:
        return client.snapshot()
    except NotFoundError:
        return None


def _running(snapshot: Snapshot | None, job: str) -> RunningJob | None:
    if snapshot is None:
        return None
    return next((one for one in snapshot.running if one.id == job), None)


def _of_session(found: Why, message: DemandMessage) -> None:
    if message.result is None:
        return
    result, job = message.result, found.job
    found.session_age_s = message.age_s
    for allocation in result.allocations:
        if allocation.job == job:
            found.state = "starting"
            found.hosts = tuple(place.name for place in allocation.hosts)
    pending = next((one for one in result.pending if one.job == job), None)
    if pending is None:
        return
    found.state, found.reason = "pending", pending.reason.value
    found.reasons = [_short(reason) for reason in _reasons(result, pending)]
    if pending.provisioning is not None:
        found.provisioning = json.loads(pending.provisioning.to_json())
    found.not_counted = next((o.why for o in result.demand.not_counted if o.job == job), None)
    found.impossible = next((o.why for o in result.demand.impossible if o.job == job), None)


def _reasons(result: SessionResult, pending: Pending) -> tuple[Reason, ...]:
    if pending.expanded is not None:
        return pending.expanded
    sets = {one.id: one.reasons for one in result.reason_sets}
    return () if pending.reasons is None else sets.get(pending.reasons, ())


def _short(reason: Reason) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(reason.to_json())
    return {name: value for name, value in document.items() if value is not None}


def _of_requests(found: Why, client: "Client", supply: Supply) -> None:
    """Add the asks that were made for the job, with what came of them."""
    end = client.status().position
    names = [
        event.aggregate.partition(":")[2]
        for event in client.events(after=max(0, end - LOOKED_AT_MAX))
        if event.name.startswith("xce.request.intended") and found.job in _jobs(event.data)
    ]
    for name in names:
        entry = client.request(name)
        brought = [one for one in supply.inventory.instances if one.request == name]
        found.requests.append(_request(entry, brought))


def _jobs(data: dict[str, object]) -> list[str]:
    jobs = data.get("jobs")
    return [str(job) for job in jobs] if isinstance(jobs, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _request(entry: RequestEntry, brought: list[InstanceEntry]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(entry.to_json())
    document["instances"] = [
        {"id": one.id, "state": one.state.value, "host": one.host} for one in brought
    ]
    return document


def _of_supply(found: Why, supply: Supply) -> None:
    wanted: dict[str, Any] = found.provisioning or {}
    on_the_way = set(wanted.get("in_flight", ()))
    templates = {template.id: template for template in supply.catalog.templates}
    ready: list[datetime] = []
    for host in supply.catalog.in_flight.hosts:
        if host.id in on_the_way:
            found.in_flight.append(json.loads(host.to_json()))
            if host.ready_at is not None:
                ready.append(host.ready_at)
    for name in wanted.get("templates", {}):
        template = templates.get(name)
        if template is None:
            continue
        if template.paused_until is not None and template.paused_until > supply.now:
            paused = {"item": name, "until": template.paused_until.isoformat()}
            found.pauses.append({**paused, "why": template.paused_why})
        if template.lead_time is not None and not found.in_flight:
            asked = [r["asked_at"] for r in found.requests if r["state"] in set(OPEN)]
            since = datetime.fromisoformat(min(asked)) if asked else supply.now
            ready.append(since + template.lead_time)
    if ready:
        found.expected_at = max(ready).isoformat().replace("+00:00", "Z")


# ------------------------------------------------------------------- for people
def lines_of(found: Why, times: Times) -> Iterator[str]:
    """Yield the chain, one fact a line."""
    where = f" on {shown(found.hosts)}" if found.hosts else ""
    match found.state:
        case "running":
            yield f"job {found.job} runs{where}"
        case "starting":
            yield f"job {found.job} starts{where}"
        case "pending":
            yield f"job {found.job} waits: {found.reason}"
        case _:
            yield f"job {found.job} is not in the newest session"
    for reason in found.reasons:
        yield f"  {_reason_line(reason)}"
    if found.impossible is not None:
        yield f"  it can never run: {found.impossible}"
    if found.not_counted is not None:
        yield f"  nothing is asked for it: {found.not_counted}"
    wanted: dict[str, Any] = found.provisioning or {}
    for name, count in wanted.get("templates", {}).items():
        yield f"  would help: {count} new host{'s' if count > 1 else ''} of {name}"
    for name, amount in wanted.get("countable", {}).items():
        yield f"  would help: {amount} more of {name}"
    for one in wanted.get("in_flight", ()):
        yield f"  on its way: {one}"
    if found.frozen is not None and wanted:
        yield f"  but the site is frozen: {found.frozen}"
    for pause in found.pauses:
        until = times.of(datetime.fromisoformat(pause["until"]))
        yield f"  but {pause['item']} is not asked for until {until}: {pause['why']}"
    for request in found.requests:
        yield from _request_lines(request, times)
    if found.expected_at is not None and found.state == "pending":
        yield f"  expected at {times.of(datetime.fromisoformat(found.expected_at))}"
    elif wanted and found.state == "pending" and not found.requests:
        yield "  nothing has been asked for it yet"


def _reason_line(reason: dict[str, Any]) -> str:
    words = [str(reason["kind"])]
    if "resource" in reason:
        words.append(f"short of {reason['resource']}")
    if "limit" in reason:
        words.append(f"limit {reason['limit']}")
    if "detail" in reason:
        words.append(str(reason["detail"]))
    if reason.get("hosts"):
        words.append(f"on {shown(reason['hosts'])}")
    return ", ".join(words)


def _request_lines(request: dict[str, Any], times: Times) -> Iterator[str]:
    item = request["template"] or request["resource"]
    asked = times.of(datetime.fromisoformat(request["asked_at"]))
    yield f"  asked: {request['amount']} of {item} at {request['provider']} as {request['id']}, {asked}"
    came = f"{request['granted']} came, {request['failed']} failed"
    yield f"    the request is {request['state']}: {came}"
    for instance in request["instances"]:
        host = f", host {instance['host']}" if instance["host"] else ""
        yield f"    {instance['id']} is {instance['state']}{host}"

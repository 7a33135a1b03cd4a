"""Why a job waits, as a chain of facts: the pend reason, what would help, what was asked for it, what came of it, what is expected.

Plain functions of what a session said, what could be obtained and what was asked: a daemon's answers and a simulated world's state
are told in the same words.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from xce.domain.formats.inventory import InstanceEntry, RequestEntry
from xce.domain.formats.policy import Decision
from xce.domain.formats.session_result import Pending, Reason, SessionResult
from xce.domain.formats.snapshot import Catalog, RunningJob
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import OPEN


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
    held: list[str] = field(default_factory=list[str])


def add_running(found: Why, running: Iterable[RunningJob]) -> None:
    """Add where the job runs, if it does."""
    for one in running:
        if one.id == found.job:
            found.state, found.hosts = "running", tuple(use.name for use in one.hosts)


def add_session(found: Why, result: SessionResult) -> None:
    """Add what a session said of the job."""
    job = found.job
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


def request_document(entry: RequestEntry, brought: list[InstanceEntry]) -> dict[str, Any]:
    """Return a request with what it brought."""
    document: dict[str, Any] = json.loads(entry.to_json())
    document["instances"] = [
        {
            "id": one.id,
            "state": one.state.value,
            "host": one.host,
            "checked_since": checked_since(one),
        }
        for one in brought
    ]
    return document


def checked_since(entry: InstanceEntry) -> str | None:
    """Return since when a host is in its health check; None: it is in none."""
    if entry.state is not InstanceState.STARTING or entry.reported_at is None:
        return None
    return entry.reported_at.isoformat().replace("+00:00", "Z")


def add_supply(found: Why, catalog: Catalog, now: datetime) -> None:
    """Add what is on its way for the job, what is paused, and when it may start; requests are to be there already."""
    wanted: dict[str, Any] = found.provisioning or {}
    on_the_way = set(wanted.get("in_flight", ()))
    templates = {template.id: template for template in catalog.templates}
    ready: list[datetime] = []
    for host in catalog.in_flight.hosts:
        if host.id in on_the_way:
            found.in_flight.append(json.loads(host.to_json()))
            if host.ready_at is not None:
                ready.append(host.ready_at)
    for name in wanted.get("templates", {}):
        template = templates.get(name)
        if template is None:
            continue
        if template.paused_until is not None and template.paused_until > now:
            paused = {"item": name, "until": template.paused_until.isoformat()}
            found.pauses.append({**paused, "why": template.paused_why})
        if template.lead_time is not None and not found.in_flight:
            asked = [r["asked_at"] for r in found.requests if r["state"] in set(OPEN)]
            since = datetime.fromisoformat(min(asked)) if asked else now
            ready.append(since + template.lead_time)
    if ready:
        found.expected_at = max(ready).isoformat().replace("+00:00", "Z")


def add_holds(found: Why, holds: Iterable[Decision]) -> None:
    """Add why nothing more is asked for the job, as the newest rounds of the policy said; its supply is to be there already."""
    if found.state != "pending":
        return
    found.held = [hold.reason for hold in holds if found.job in hold.jobs]
    under_way = found.in_flight or any(one["state"] in set(OPEN) for one in found.requests)
    if found.held and not under_way:
        found.expected_at = None  # it was of an ask that is not made


# ------------------------------------------------------------------- for people
def lines_of(found: Why, time_of: Callable[[datetime], str | None]) -> Iterator[str]:
    """Yield the chain, one fact a line."""
    where = f" on {_few(found.hosts)}" if found.hosts else ""
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
        until = time_of(datetime.fromisoformat(pause["until"]))
        yield f"  but {pause['item']} is not asked for until {until}: {pause['why']}"
    for why in found.held:
        yield f"  held: {why}"
    for request in found.requests:
        yield from _request_lines(request, time_of)
    if found.expected_at is not None and found.state == "pending":
        yield f"  expected at {time_of(datetime.fromisoformat(found.expected_at))}"
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
        words.append(f"on {_few(reason['hosts'])}")
    return ", ".join(words)


def _request_lines(
    request: dict[str, Any], time_of: Callable[[datetime], str | None]
) -> Iterator[str]:
    item = request["template"] or request["resource"]
    asked = time_of(datetime.fromisoformat(request["asked_at"]))
    yield f"  asked: {request['amount']} of {item} at {request['provider']} as {request['id']}, {asked}"
    came = f"{request['granted']} came, {request['failed']} failed"
    yield f"    the request is {request['state']}: {came}"
    for instance in request["instances"]:
        host = f", host {instance['host']}" if instance["host"] else ""
        since = instance["checked_since"]
        if since is not None:
            host = f", in its health check since {time_of(datetime.fromisoformat(since))}"
        yield f"    {instance['id']} is {instance['state']}{host}"


def _few(names: Iterable[str], most: int = 4) -> str:
    found = list(names)
    more = len(found) - most
    return ", ".join(found[:most]) + (f" and {more} more" if more > 0 else "")

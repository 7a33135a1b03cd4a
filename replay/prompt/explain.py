"""``why`` and ``trace``: what the newest session says of one job, and what came of it."""

from dataclasses import asdict
from typing import Any

from xce.domain.engine.why import (
    Why,
    add_holds,
    add_running,
    add_session,
    add_supply,
    checked_since,
    lines_of,
)
from xce.domain.formats.policy import DecisionKind
from xce.domain.scheduling.session import run_session
from xce.replay.history import RequestUse
from xce.replay.prompt.answers import Answer, clock, stamp
from xce.replay.prompt.info import result_of
from xce.replay.prompt.stand import Stand


def why(job: str, play: Stand) -> Answer:
    """Return the chain from the pend reason to what is expected, in the words of ``xcecli why``."""
    found = Why(job)
    if play.projections.reasons.site.frozen:
        found.frozen = play.projections.reasons.site.why
    add_running(found, play.running)
    waits = any(one.id == job for one in play.pending)
    if waits and play.seen.result is not None:
        add_session(found, play.seen.result)
    found.requests = [
        _request(one, play) for one in play.history.requests.values() if job in one.jobs
    ]
    if waits:
        add_supply(found, play.projections.catalog.view(play.now), play.now)
        held = (one for one in play.seen.decisions if one.kind is DecisionKind.HOLD)
        add_holds(found, held)
    lines = list(lines_of(found, clock))
    if found.state == "unknown":
        found.state = play.fate(job)
        lines[0] = f"job {job} {found.state}"
    return Answer(asdict(found), tuple(lines))


def _request(use: RequestUse, play: Stand) -> dict[str, Any]:
    inventory = play.projections.inventory.view()
    live = next((one for one in inventory.requests if one.id == use.request), None)
    granted, state = use.granted, use.outcome
    failed = max(0, use.amount - use.granted) if use.closed_at is not None else 0
    if live is not None:
        granted, failed, state = live.granted, live.failed, live.state.value
    host_like = use.kind.value == "host"
    return {
        "id": use.request,
        "provider": use.provider,
        "template": use.item if host_like else None,
        "resource": None if host_like else use.item,
        "amount": use.amount,
        "granted": granted,
        "failed": failed,
        "state": state,
        "asked_at": stamp(use.asked_at),
        "why": use.why or None,
        "instances": [
            {
                "id": one.id,
                "state": one.state.value,
                "host": one.host,
                "checked_since": checked_since(one),
            }
            for one in inventory.instances
            if one.request == use.request
        ],
    }


def trace(job: str, play: Stand) -> Answer:
    """Return what the newest session tried for a job: it is run again on the same snapshot, with its trace."""
    result_of(play, "trace")
    assert play.seen.snapshot is not None, "it comes with the result"
    again = run_session(play.seen.snapshot, trace=True)
    lines = tuple(line for line in again.trace or () if line.startswith(f"job {job}:"))
    at = play.seen.snapshot.now
    head = f"session {play.seen.sessions} of {clock(at)}"
    nothing = f"it says nothing of job {job}: the job was not waiting then"
    document = {"job": job, "at": stamp(at), "trace": list(lines)}
    return Answer(document, (head, *(lines or (nothing,))))

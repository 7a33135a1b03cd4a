"""Cases worked out by hand, written in few words: how a line becomes a snapshot, and what a session says about it in few words.

The cases are in ``tests/data/hand_worked/*.yaml``. A thing is a text, or a mapping whose ``is`` is that text and whose other
keys are fields of the format:

==================  =================================================================================
hosts, templates    ``name slots [mem]``; the key ``has`` adds to the amounts
pending             ``id [xTASKS] [requirement]``, ``x3`` or ``x3..9`` tasks; ``1..4`` are four jobs
running             ``id [host:slots ...]``; the key ``on`` says all amounts by host
limits              ``name resource amount``
shared, counts      ``name amount``; so is ``countable``, where ``?`` is unknown
coming              ``id template``
==================  =================================================================================

What a case does not expect is expected to be empty, but for ``DETAILS``, which are compared only where a case has them.
"""

import json
import re
from typing import Any, cast

from xce.domain.formats.session_result import Reason, SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session

Document = dict[str, Any]

NOW = "2026-03-01T10:00:00Z"
DETAILS = ("waits", "parts", "order", "warnings")
#: In place of a reason that may be put in other words.
ANY = "*"


def snapshot_of(case: Document) -> Document:
    """Return the snapshot of a case."""
    made: Document = {"format": "xce.snapshot/1", "now": NOW}
    for key in ("settings", "queues", "groups", "quotas"):
        if key in case:
            made[key] = case[key]
    made["hosts"] = [_amounts(thing, "name", "total") for thing in _things(case, "hosts")]
    made["pending"] = [job for thing in _things(case, "pending") for job in _jobs(thing)]
    made["running"] = [_running(thing) for thing in _things(case, "running")]
    made["limits"] = [_fields(t, "name", "resource", "amount") for t in _things(case, "limits")]
    made["shared"] = [_fields(t, "name", "total") for t in _things(case, "shared")]
    made["catalog"] = {
        "templates": [_amounts(t, "id", "provides") for t in _things(case, "templates")],
        "countable": [_fields(t, "name", "headroom") for t in _things(case, "countable")],
        "in_flight": {
            "hosts": [_fields(t, "id", "template") for t in _things(case, "coming")],
            "counts": [_fields(t, "name", "amount") for t in _things(case, "counts")],
        },
    }
    return made


def _things(case: Document, key: str) -> list[Document]:
    return [{"is": thing} if isinstance(thing, str) else dict(thing) for thing in case.get(key, ())]


def _fields(thing: Document, *names: str) -> Document:
    words = thing.pop("is").split(" ")
    assert len(words) == len(names), words
    return {**{name: _value(word) for name, word in zip(names, words, strict=True)}, **thing}


def _value(word: str) -> int | str | None:
    return int(word) if word.isdigit() else None if word == "?" else word


def _amounts(thing: Document, name: str, amounts: str) -> Document:
    called, *numbers = thing.pop("is").split(" ")
    total: Document = dict(zip(("slots", "mem"), map(int, numbers), strict=False))
    total |= thing.pop("has", {})
    if "price" in thing:
        thing["price_per_hour"] = thing.pop("price")
    return {name: called, amounts: total, **thing}


_JOB = re.compile(r"(\S+)(?: x(\d+)(?:\.\.(\d+))?)?(?: (.*))?")


def _jobs(thing: Document) -> list[Document]:
    found = _JOB.fullmatch(thing.pop("is"))
    assert found is not None
    ids, least, most, resreq = found.groups()
    first, _, last = ids.partition("..")
    names = [str(number) for number in range(int(first), int(last) + 1)] if last else [ids]
    tasks = {"min": int(least or 1), "max": int(most or least or 1)}
    return [{"id": name, "tasks": tasks, "resreq": resreq or "", **thing} for name in names]


def _running(thing: Document) -> Document:
    name, *uses = thing.pop("is").split(" ")
    on: Document = {where: {"slots": int(n)} for where, n in (use.split(":") for use in uses)}
    on |= thing.pop("on", {})
    hosts = [{"name": where, "uses": amounts} for where, amounts in on.items()]
    return {"id": name, "hosts": hosts, **thing}


def session(document: Document) -> SessionResult:
    """Return the session over a document that is read as a file is."""
    return run_session(Snapshot.from_json(json.dumps(document)))


def said(result: SessionResult) -> Document:
    """Return what a session says.

    starts: by job ``h1:2 h2`` (tasks, where not one); waits: by job ``no_resource slots@h1,h2; limit run``; new: hosts by template;
    more: ``amount/wanted`` by shared resource; parts: by counted job what it waits for (``template*2``, ``resource+2``, and ``~`` what
    is in flight); never, not_now: by job why; past: jobs not examined; idle: hosts by instance, amounts by shared resource.
    """
    demand = result.demand
    sets = {each.id: each.reasons for each in result.reason_sets}
    return {
        "starts": {
            each.job: " ".join(
                on.name if on.tasks == 1 else f"{on.name}:{on.tasks}" for on in each.hosts
            )
            for each in result.allocations
        },
        "waits": {
            each.job: "; ".join(map(_reason, sets[each.reasons or 0])) for each in result.pending
        },
        "new": {each.template: each.count for each in demand.hosts},
        "order": [name for name, count in demand.order for _ in range(count)],
        "more": {each.name: f"{each.amount}/{each.wanted}" for each in demand.countable},
        "parts": {
            each.job: " ".join(
                [
                    *(f"{name}*{count}" for name, count in each.provisioning.templates.items()),
                    *(f"{name}+{amount}" for name, amount in each.provisioning.countable.items()),
                    *(f"~{name}" for name in each.provisioning.in_flight),
                ]
            )
            for each in result.pending
            if each.provisioning is not None
        },
        "never": {each.job: each.why for each in demand.impossible},
        "not_now": {each.job: each.why for each in demand.not_counted},
        "past": list(demand.not_examined),
        "idle": {
            **{each.instance: each.host for each in result.idle.hosts},
            **{each.name: each.amount for each in result.idle.counts},
        },
        "warnings": list(result.warnings),
    }


def _reason(reason: Reason) -> str:
    name = reason.limit or reason.resource
    text = reason.kind.value + (f" {name}" if name else "")
    return text if reason.hosts is None else f"{text}@{','.join(reason.hosts)}"


def differences(result: SessionResult, case: Document) -> Document:
    """Return what a session says otherwise than a case expects: by key what it said, and what was expected."""
    told = said(result)
    found: Document = {}
    for key, value in told.items():
        if key in DETAILS and key not in case:
            continue
        wanted = case.get(key, type(value)())
        if isinstance(value, dict):
            wanted = _filled_in(cast("Document", wanted), cast("Document", value))
        if value != wanted:
            found[key] = (value, wanted)
    return found


def _filled_in(wanted: Document, told: Document) -> Document:
    """Return what is expected, any text that may be put in other words being that which was said."""
    return {name: told.get(name, ANY) if text == ANY else text for name, text in wanted.items()}

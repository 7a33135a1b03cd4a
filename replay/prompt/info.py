"""``info``: what there is at the moment, topic by topic."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from xce.domain.cluster.units import written
from xce.domain.errors import InputError
from xce.domain.formats.base import Format
from xce.domain.formats.expectations import Measure
from xce.domain.formats.session_result import SessionResult
from xce.domain.policy.lines import line_id
from xce.domain.values import write_duration
from xce.replay.prompt.answers import (
    Answer,
    Document,
    Table,
    clock,
    counted,
    number,
    stamp,
    table,
    text,
)
from xce.replay.prompt.play import Play
from xce.replay.prompt.stand import Stand
from xce.replay.prompt.until import measured
from xce.replay.prompt.words import known
from xce.replay.rounding import money
from xce.replay.scenario.judge import words as expectation_words
from xce.replay.scenario.run import event_words

M = Measure
#: Rows of a table for people; JSON has all.
ROWS_MAX: Final = 40
#: Newest events that are shown.
EVENTS_SHOWN: Final = 15
#: What the overview, and a comparison of two runs, has.
FIGURES: Final = (
    M.WAITING, M.RUNNING, M.ENDED, M.LONGEST_WAIT, M.MEAN_WAIT, M.REQUESTS, M.IN_FLIGHT, M.OWNED, M.EXISTING, M.COST,
    M.COST_PER_HOUR,
)  # fmt: skip

_Rows = list[Document]
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def info(topic: str | None, play: Play) -> Answer:
    """Return what there is of a topic; None: the overview.

    Raises:
        InputError: there is no such topic.
    """
    if topic is None:
        return _overview(play)
    return TOPICS[known("info", "topic", topic, TOPICS)](play)


def figures(play: Play) -> dict[str, str]:
    """Return what a run amounts to so far."""
    return {of.value: _figure(of, play) for of in FIGURES}


def _figure(of: Measure, play: Play) -> str:
    value = play.runner.gauge.value(measured(of))
    if value is not None and of is M.MEAN_WAIT:
        value = round(value, 1)
    return number(value)


def result_of(play: Stand, command: str) -> SessionResult:
    """Return what the newest session says.

    Raises:
        InputError: there was none.
    """
    if play.seen.result is None:
        raise InputError.of(command, "there was no session yet; try: run until session")
    return play.seen.result


def _overview(play: Play) -> Answer:
    found = figures(play)
    following = play.world.next_time
    end = "nothing more happens by itself" if play.is_over else f"next at {text(following)}"
    sums = counted(play.seen.sessions, "session"), counted(len(play.runner.gauge.events), "event")
    document = {
        "name": play.site.scenario.name,
        "seed": play.runner.config.driver.seed,
        "now": stamp(play.now),
        "next": None if play.is_over else stamp(following),
        "sessions": play.seen.sessions,
        "events": len(play.runner.gauge.events),
        "figures": found,
    }
    head = f"{play.site.scenario.name}, seed {play.runner.config.driver.seed}: {clock(play.now)} UTC, {end}"
    return Answer(
        document, (head, ", ".join(sums), table("MEASURE VALUE", with_units(found), (1,)))
    )


def with_units(found: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return figures as people read them: times with their unit, which is that of conditions too."""
    times = {M.LONGEST_WAIT.value, M.MEAN_WAIT.value}
    return [
        (name, f"{value} s" if name in times and value != number(None) else value)
        for name, value in found.items()
    ]


def spent(play: Stand) -> Decimal | None:
    """Return the money spent up to here; None: a price is unknown."""
    now, history = play.now, play.history
    costs = [use.cost(now) for use in history.hosts.values()]
    return money([*costs, *(use.cost(now) for use in history.grants.values())])


# ----------------------------------------------------------------- a topic's rows
def rows_of(
    name: str, rows: _Rows, headings: str, keys: str, numbers: tuple[int, ...] = ()
) -> Answer:
    """Return rows as a document and as a table of some of their keys."""
    shown = table(headings, ((_cell(row.get(key)) for key in keys.split()) for row in rows[:ROWS_MAX]), numbers)  # fmt: skip
    parts: list[str | Table] = [shown if rows else f"no {name}"]
    if len(rows) > ROWS_MAX:
        parts.append(f"and {len(rows) - ROWS_MAX} more")
    return Answer({name: rows}, tuple(parts))


def _cell(value: object) -> object:
    """Return a value as people read it: a time without its zone, which is always UTC."""
    if isinstance(value, str) and _STAMP.fullmatch(value):
        return value.replace("T", " ").removesuffix("Z")
    return value


def _plain(entry: Format, **more: Any) -> Document:
    return {**entry.model_dump(mode="json"), **more}


def _jobs(play: Stand) -> Answer:
    said = {} if play.seen.result is None else {one.job: one for one in play.seen.result.pending}
    rows: _Rows = [
        {
            "job": job.id, "state": "running", "user": job.user, "queue": job.queue,
            "since": stamp(job.started), "on": " ".join(use.name for use in job.hosts), "reason": None,
        }
        for job in play.running
    ]  # fmt: skip
    rows += [
        {
            "job": job.id, "state": "waiting", "user": job.user, "queue": job.queue,
            "since": stamp(job.submitted), "on": None,
            "reason": said[job.id].reason.value if job.id in said else None,
        }
        for job in play.pending
    ]  # fmt: skip
    return rows_of("jobs", rows, "JOB STATE USER QUEUE SINCE ON WHY", "job state user queue since on reason")  # fmt: skip


def _hosts(play: Stand) -> Answer:
    used: dict[str, dict[str, int]] = {}
    jobs: dict[str, int] = {}
    for job in play.running:
        for use in job.hosts:
            mine = used.setdefault(use.name, {})
            jobs[use.name] = jobs.get(use.name, 0) + 1
            for name, amount in use.uses.items():
                mine[name] = mine.get(name, 0) + amount
    rows: _Rows = []
    for host in play.hosts:
        taken = used.get(host.name, {})
        uses = {name: [taken.get(name, 0), total] for name, total in host.total.items()}
        rows.append(
            {
                "host": host.name, "state": host.state.value, "instance": host.instance, "jobs": jobs.get(host.name, 0),
                "uses": uses, "use": ", ".join(f"{written(name, of)} of {written(name, all_)} {name}" for name, (of, all_) in uses.items()),
                "idle_since": stamp(host.idle_since),
            }
        )  # fmt: skip
    answer = rows_of("hosts", rows, "HOST STATE INSTANCE JOBS USE IDLE-SINCE", "host state instance jobs use idle_since", (3,))  # fmt: skip
    for row in rows:
        del row["use"]
    return answer


def _demand(play: Stand) -> Answer:
    demand = result_of(play, "info demand").demand
    assert play.seen.snapshot is not None, "it comes with the result"
    rows = [("hosts", one.template, one.count, _names(part.job for part in one.jobs)) for one in demand.hosts]  # fmt: skip
    rows += [("tokens", one.name, one.amount, _names(part.job for part in one.jobs)) for one in demand.countable]  # fmt: skip
    parts: list[str | Table] = [f"session {play.seen.sessions} of {clock(play.seen.snapshot.now)}"]
    parts.append(table("KIND OF NUMBER FOR", rows, (2,)) if rows else "nothing is wanted")
    parts += [f"never: {one.job}: {one.why}" for one in demand.impossible[:ROWS_MAX]]
    parts += [f"not counted: {one.job}: {one.why}" for one in demand.not_counted[:ROWS_MAX]]
    document = {"at": stamp(play.seen.snapshot.now), "demand": _plain(demand)}
    return Answer(document, tuple(parts))


def _names(names: Any, most: int = 5) -> str:
    found = list(names)
    return " ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def _idle(play: Stand) -> Answer:
    idle = result_of(play, "info idle").idle
    rows: _Rows = [
        {"kind": "host", "of": one.host, "id": one.instance, "amount": 1, "since": stamp(one.idle_since)}
        for one in idle.hosts
    ]  # fmt: skip
    rows += [{"kind": "tokens", "of": one.name, "amount": one.amount} for one in idle.counts]
    return rows_of("idle", rows, "KIND OF INSTANCE NUMBER SINCE", "kind of id amount since", (3,))


def _shared(play: Play) -> Answer:
    world = play.world
    rows: _Rows = []
    for pool in world.config.cluster.shared:
        totals = world.projections.totals.of(pool.name)
        reading = world.shared.meter(pool.name).read(world.shared.totals(pool.name), play.now)
        rows.append(
            {
                "shared": pool.name, "total": totals.total, "owned": totals.owned, "borrowed": totals.borrowed,
                "in_flight": totals.in_flight, "returning": totals.returning, "occupied": reading.occupied,
                "free": reading.free, "elsewhere": reading.used_elsewhere,
            }
        )  # fmt: skip
    return rows_of(
        "shared", rows, "SHARED TOTAL OWNED BORROWED IN-FLIGHT RETURNING OCCUPIED FREE ELSEWHERE",
        "shared total owned borrowed in_flight returning occupied free elsewhere", tuple(range(1, 9)),
    )  # fmt: skip


def _requests(play: Stand) -> Answer:
    rows: _Rows = [
        {
            "request": use.request, "provider": use.provider, "of": use.item, "amount": use.amount, "granted": use.granted,
            "outcome": use.outcome, "asked_at": stamp(use.asked_at), "closed_at": stamp(use.closed_at), "why": use.why,
            "reason": use.reason, "jobs": list(use.jobs),
        }
        for use in play.history.requests.values()
    ]  # fmt: skip
    return rows_of("requests", rows, "REQUEST PROVIDER OF NUMBER CAME STATE ASKED WHY", "request provider of amount granted outcome asked_at why", (3, 4))  # fmt: skip


def _instances(play: Stand) -> Answer:
    view = play.projections.inventory.view()
    rows = [_plain(entry) for entry in view.instances]
    return rows_of("instances", rows, "INSTANCE PROVIDER TEMPLATE STATE HOST GRANTED HELD-UNTIL", "id provider template state host granted_at hold_until")  # fmt: skip


def _grants(play: Stand) -> Answer:
    view = play.projections.inventory.view()
    rows = [_plain(entry) for entry in view.grants]
    return rows_of("grants", rows, "GRANT PROVIDER OF NUMBER RETURNING BACK STATE HELD-UNTIL", "id provider resource amount returning returned state hold_until", (3, 4, 5))  # fmt: skip


def _leases(play: Stand) -> Answer:
    rows: _Rows = [
        {
            "provider": row.provider, "holder": row.holder, "epoch": row.epoch, "state": row.state.value,
            "since": stamp(row.since),
        }
        for row in play.projections.leases.rows()
    ]  # fmt: skip
    return rows_of("leases", rows, "PROVIDER HOLDER EPOCH STATE SINCE", "provider holder epoch state since", (2,))  # fmt: skip


def _costs(play: Stand) -> Answer:
    rows: _Rows = [
        {
            "provider": line.provider, "of": line.item if line.owned else f"{line.item or '?'}, orphans",
            "live": line.live, "ended": line.ended,
            "used": write_duration(line.used), "cost": number(line.cost), "per_hour": number(line.per_hour),
            "unpriced": line.unpriced,
        }
        for line in play.projections.spending.lines(play.now)
    ]  # fmt: skip
    answer = rows_of("costs", rows, "PROVIDER OF LIVE ENDED USED COST PER-HOUR UNPRICED", "provider of live ended used cost per_hour unpriced", (2, 3, 5, 6, 7))  # fmt: skip
    whole = number(spent(play))
    return Answer({**answer.document, "cost": whole}, (*answer.parts, f"together: {whole}"))


def _providers(play: Play) -> Answer:
    projections = play.world.projections
    templates = {one.id: one for one in projections.catalog.view(play.now).templates}
    pauses = projections.catalog.pauses(play.now)
    rows: _Rows = []
    for name, provider in play.world.providers.items():
        offers: list[tuple[str, Decimal | None, int | None]] = [(one.template_id, one.price_per_hour, one.priority) for one in provider.description.templates]  # fmt: skip
        offers += [(one.name, one.price_per_hour, None) for one in provider.description.resources]
        for item, price, priority in offers:
            paused = [one for one in pauses if one.provider == name and one.item in (None, item)]
            template = templates.get(item, templates.get(line_id(item, price)))
            rows.append(
                {
                    "provider": name, "of": item, "price_per_hour": None if price is None else number(price),
                    "priority": priority, "room": None if template is None else template.allowed,
                    "paused_until": stamp(paused[0].until) if paused else None,
                    "why": paused[0].why if paused else None,
                }
            )  # fmt: skip
    return rows_of("providers", rows, "PROVIDER OF PRICE/H PRIORITY ROOM PAUSED-UNTIL WHY", "provider of price_per_hour priority room paused_until why", (2, 3, 4))  # fmt: skip


def _configuration(part: str) -> Callable[[Play], Answer]:
    def shown(play: Play) -> Answer:
        document = getattr(play.world.config, part).model_dump(mode="json")
        return Answer({part: document}, (table("KEY VALUE", document.items()),))

    return shown


def _limits(play: Play) -> Answer:
    rows = [_plain(limit) for limit in play.world.config.cluster.limits]
    return rows_of("limits", rows, "LIMIT OF AMOUNT PER USERS QUEUES", "name resource amount per users queues", (2,))  # fmt: skip


def _decisions(play: Stand) -> Answer:
    rows: _Rows = [
        {
            "position": row.position, "at": stamp(row.at), "provider": row.provider, "deed": row.deed.value, "of": row.item,
            "amount": row.amount, "reason": row.reason, "jobs": list(row.jobs), "led_to": list(row.led_to),
        }
        for row in play.projections.reasons.decisions()
    ]  # fmt: skip
    return rows_of("decisions", rows, "POSITION AT PROVIDER DEED OF NUMBER REASON", "position at provider deed of amount reason", (0, 5))  # fmt: skip


def _events(play: Stand) -> Answer:
    rows: _Rows = [
        {"position": one.position, "at": stamp(one.event.timestamp), "what": event_words(one.event)}
        for one in play.events[-EVENTS_SHOWN:]
    ]
    return rows_of("events", rows, "POSITION AT WHAT", "position at what", (0,))


def _expect(play: Play) -> Answer:
    rows: _Rows = [
        {
            "expectation": expectation_words(case.expectation),
            "state": "open" if case.passed is None else "holds" if case.passed else "not met",
            "failed_at": stamp(case.failed_at),
            "found": case.found,
        }
        for case in play.runner.cases()
    ]
    return rows_of("expect", rows, "STATE EXPECTATION FOUND FAILED", "state expectation found failed_at")  # fmt: skip


#: What can be asked for wherever one stands.
EVERYWHERE: Final[Mapping[str, Callable[[Stand], Answer]]] = {
    "jobs": _jobs,
    "hosts": _hosts,
    "demand": _demand,
    "idle": _idle,
    "requests": _requests,
    "instances": _instances,
    "grants": _grants,
    "leases": _leases,
    "costs": _costs,
    "decisions": _decisions,
    "events": _events,
}
#: What can be asked for in a run that goes on.
TOPICS: Final[Mapping[str, Callable[[Play], Answer]]] = {
    "jobs": _jobs,
    "hosts": _hosts,
    "demand": _demand,
    "idle": _idle,
    "shared": _shared,
    "requests": _requests,
    "instances": _instances,
    "grants": _grants,
    "leases": _leases,
    "costs": _costs,
    "providers": _providers,
    "limits": _limits,
    "policy": _configuration("policy"),
    "session": _configuration("session"),
    "decisions": _decisions,
    "events": _events,
    "expect": _expect,
}

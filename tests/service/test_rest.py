"""The REST interface over a real socket: changes, tags, keys, pages, problems, and what is kept in memory only."""

import json
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from tests.service.running import NAMES, TOKENS, Running, running
from xce.domain.engine.messages import Role

P1 = NAMES[Role.PROVISIONER]
CLOUD = {"name": "cloud", "templates": [{"templateId": "c4"}]}
DEADLINE = (datetime.now(UTC) + timedelta(days=1)).isoformat()


def open_request(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "command": "open-request",
        "request": name,
        "provider": "cloud",
        "kind": "host",
        "item": "c4",
        "amount": 2,
        "price_per_hour": "0.17",
        "deadline": DEADLINE,
        "reason": "jobs wait",
        "jobs": ["1"],
        "demand_position": 0,
    } | changes


def status_of(name: str, *machines: str) -> dict[str, Any]:
    reports = [{"machine": m, "name": f"n-{m}", "result": "succeed"} for m in machines]
    return {
        "command": "record-status",
        "request": name,
        "answer": {"status": "complete", "machines": reports},
    }


def good(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def order(client: httpx.Client, *commands: dict[str, Any], **more: Any) -> Any:
    body = {"commands": commands, "epochs": {"cloud": 1}}
    return good(client.post("/v1/commands", json=body, **more))


@pytest.fixture
def cloud(service: Running) -> httpx.Client:
    """A provisioner that holds the lease of a cloud."""
    client = service.as_(Role.PROVISIONER)
    good(client.put("/v1/providers/cloud", json=CLOUD))
    good(client.post("/v1/leases/cloud/take", json={"holder": P1, "term": "30s"}))
    return client


# ----------------------------------------------------------------- a host's life
def test_a_host_from_the_ask_to_its_return(service: Running, cloud: httpx.Client) -> None:
    scheduler = service.as_(Role.SCHEDULER)
    order(cloud, open_request("R1"))
    order(cloud, {"command": "accept-request", "request": "R1", "provider_request_id": "add-1"})
    order(cloud, status_of("R1", "m1", "m2"))

    report = {"host": "node-1", "booted_at": DEADLINE, "machine": "m1", "total": {"slots": 4}}
    good(scheduler.post("/v1/hosts/join", json=report))
    good(scheduler.post("/v1/hosts/node-1/drain", json={"why": "idle"}))

    instance = good(scheduler.get("/v1/instances/cloud/m1"))
    assert (instance["state"], instance["host"]) == ("draining", "node-1")
    good(scheduler.post("/v1/hosts/node-1/open", json={}))
    assert [i["id"] for i in good(cloud.get("/v1/instances"))["items"]] == ["cloud/m1", "cloud/m2"]
    assert good(cloud.get("/v1/requests/R1"))["state"] == "complete"
    assert good(service.admin.get("/v1/costs"))["lines"][0]["live"] == 2


def test_a_lender_that_lends_without_measure_takes_no_answer_away(service: Running) -> None:
    # Given a pool that answers two asks of 2 with more than anybody can count, at the highest price.
    highest, most = "99999999999999.999999", 10**12
    pool = {"name": "cloud", "kinds": ["countable"], "resources": [{"name": "lic", "capacity": 9, "pricePerHour": highest}]}  # fmt: skip
    lender = service.as_(Role.PROVISIONER)
    good(
        service.admin.put(
            "/v1/shared/lic",
            json={
                "owned": 3,
                "provider": "cloud",
                "max_borrow": 9,
                "step": 1,
                "idle_return_after": "0s",
                "min_hold": "0s",
            },
        )
    )
    good(lender.put("/v1/providers/cloud", json=pool))
    good(lender.post("/v1/leases/cloud/take", json={"holder": P1, "term": "30s"}))
    for name in ("R1", "R2"):
        order(lender, open_request(name, kind="countable", item="lic", price_per_hour=highest))
        order(lender, {"command": "accept-request", "request": name, "provider_request_id": f"add-{name}"})  # fmt: skip
        grants = [{"grant": f"g-{name}", "resource": "lic", "amount": most}]
        order(
            lender,
            {"command": "record-status", "request": name, "answer": {"status": "complete", "grants": grants}},
        )  # fmt: skip

    beyond = [{"grant": "g-R3", "resource": "lic", "amount": most + 1}]
    refused = lender.post("/v1/commands", json={"commands": [{"command": "record-status", "request": "R1", "answer": {"status": "complete", "grants": beyond}}], "epochs": {"cloud": 1}})  # fmt: skip

    assert refused.status_code == 422
    for path in ("supply", "shared", "shared/lic", "grants", "requests", "costs", "spent", "catalog", "providers"):  # fmt: skip
        good(service.admin.get(f"/v1/{path}"))


def test_costs_by_day_and_month_in_a_zone(service: Running, cloud: httpx.Client) -> None:
    order(cloud, {**open_request("R1"), "project": "chip1"})
    order(cloud, {"command": "accept-request", "request": "R1", "provider_request_id": "add-1"})
    order(cloud, status_of("R1", "m1", "m2"))

    supply = good(cloud.get("/v1/supply", params={"zones": "UTC,Asia/Kathmandu"}))
    spent = good(service.admin.get("/v1/spent", params={"period": "month", "zones": "Asia/Tokyo"}))

    assert [(one["period"], one["zone"]) for one in supply["spent"]] == [
        ("day", "UTC"), ("month", "UTC"), ("day", "Asia/Kathmandu"), ("month", "Asia/Kathmandu")
    ]  # fmt: skip
    (line,) = supply["spent"][0]["lines"]
    assert (line["provider"], line["item"], line["project"]) == ("cloud", "c4", "chip1")
    assert Decimal(line["cost"]) > 0
    assert [one["period"] for one in spent["items"]] == ["month"]
    assert good(cloud.get("/v1/supply"))["spent"] == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/v1/supply?zones=UTC,Mars", "zones: 'Mars' is not a time zone"),
        ("/v1/spent?zones=../etc", "zones: '../etc' is not a time zone"),
        ("/v1/spent?period=year", "period: wanted day or month"),
        (
            f"/v1/supply?zones={','.join(f'Etc/GMT-{n}' for n in range(1, 15))},UTC,GMT,Zulu",
            "at most 16",
        ),
    ],
)
def test_a_zone_or_period_that_is_none_is_refused(service: Running, path: str, why: str) -> None:
    refused = service.admin.get(path)

    assert refused.status_code == 400
    assert why in refused.json()["detail"]


def test_an_own_host_is_drained_looked_at_and_opened(service: Running) -> None:
    admin, scheduler = service.admin, service.as_(Role.SCHEDULER)
    wish = {"why": "disk", "deadline": DEADLINE, "at_deadline": "requeue"}
    good(admin.post("/v1/hosts/own-1/drain", json=wish))
    good(scheduler.post("/v1/hosts/own-1/looked", json={"jobs": []}))

    (drain,) = good(scheduler.get("/v1/drains"))["items"]
    assert (drain["host"], drain["state"], drain["why"]) == ("own-1", "empty", "disk")
    assert good(scheduler.get("/v1/supply"))["drains"] == [drain]
    good(admin.post("/v1/hosts/own-1/open", json={}))
    assert good(scheduler.get("/v1/drains"))["items"] == []


def test_a_frozen_site_says_so_and_asks_nothing(service: Running, cloud: httpx.Client) -> None:
    good(service.admin.post("/v1/freeze", json={"why": "audit"}))

    site = good(cloud.get("/v1/site"))
    body = {"commands": [open_request("R1")], "epochs": {"cloud": 1}}
    refused = cloud.post("/v1/commands", json=body)

    assert (site["frozen"], site["why"], site["by"]) == (True, "audit", "admin/admin-1")
    assert (refused.status_code, refused.json()["code"]) == (409, "frozen")
    good(service.admin.post("/v1/unfreeze", json={}))
    assert good(cloud.get("/v1/supply"))["site"]["frozen"] is False
    order(cloud, open_request("R1"))


def test_orphans_and_decisions_are_listed_the_newest_decision_first(
    service: Running, cloud: httpx.Client
) -> None:
    found = {
        "provider": "cloud",
        "theirs": "m9",
        "kind": "unknown_to_us",
        "tag": None,
        "why": "listed",
    }
    order(cloud, {"command": "report-orphan", **found})
    decision = {
        "command": "record-decision", "provider": "cloud", "deed": "request", "item": "c4", "amount": 2, "reason": "jobs wait",
        "jobs": ["1"], "demand_position": 1, "demand_digest": None, "cost_per_hour": "0.34", "led_to": ["request:R1"],
    }  # fmt: skip
    order(cloud, {**decision, "decision": "D1"})
    order(cloud, {**decision, "decision": "D2"})

    (orphan,) = good(cloud.get("/v1/orphans"))["items"]
    first = good(cloud.get("/v1/decisions?limit=1"))
    second = good(cloud.get(f"/v1/decisions?cursor={first['next']}"))

    assert (orphan["id"], orphan["state"], orphan["why"]) == ("cloud/m9", "reported", "listed")
    assert [one["decision"] for one in (*first["items"], *second["items"])] == ["D2", "D1"]
    dismiss = {"command": "dismiss-orphan", "provider": "cloud", "theirs": "m9", "why": "ours"}
    order(service.admin, dismiss)
    assert good(cloud.get("/v1/orphans"))["items"] == []


def test_a_host_that_nobody_expects_is_not_found(service: Running, cloud: httpx.Client) -> None:
    answer = service.as_(Role.SCHEDULER).post(
        "/v1/hosts/join", json={"host": "stray", "booted_at": DEADLINE}
    )

    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


# ------------------------------------------------------------------ tags and keys
def test_a_change_of_what_has_changed_meanwhile_is_412(service: Running) -> None:
    admin = service.admin
    declared = {"owned": 4, "provider": None, "max_borrow": 0, "step": 1, "idle_return_after": "1h", "min_hold": "0s"}  # fmt: skip
    good(admin.put("/v1/shared/lic", json=declared))
    tag = admin.get("/v1/shared/lic").headers["etag"]

    first = admin.put("/v1/shared/lic/owned", json={"owned": 5}, headers={"if-match": tag})
    second = admin.put("/v1/shared/lic/owned", json={"owned": 6}, headers={"if-match": tag})

    assert (first.status_code, first.headers["etag"]) == (200, '"2"')
    assert (second.status_code, second.json()["code"]) == (412, "stale-version")
    assert good(admin.get("/v1/shared/lic"))["owned"] == 5


def test_a_repeated_key_does_nothing_twice_also_after_a_restart(tmp_path: Path) -> None:
    body = {"holder": P1, "term": "30s"}
    key = {"idempotency-key": "k1"}
    with running(tmp_path) as service:
        client = service.as_(Role.PROVISIONER)
        first = good(client.post("/v1/leases/cloud/take", json=body, headers=key))
        again = good(client.post("/v1/leases/cloud/take", json=body, headers=key))
        other = client.post("/v1/leases/cloud/take", json=body | {"term": "40s"}, headers=key)
    with running(tmp_path) as service:
        client = service.as_(Role.PROVISIONER)
        later = good(client.post("/v1/leases/cloud/take", json=body, headers=key))

    assert first["epochs"] == again["epochs"] == later["epochs"] == {"cloud": 1}
    assert (first["changed"], again["changed"], later["changed"]) == (True, False, False)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


def test_a_provisioner_that_lost_its_lease_is_refused(
    service: Running, cloud: httpx.Client
) -> None:
    body = {"holder": "p2", "term": "30s", "force": True}
    good(service.admin.post("/v1/leases/cloud/take", json=body))

    late = cloud.post(
        "/v1/commands", json={"commands": [open_request("R1")], "epochs": {"cloud": 1}}
    )
    silent = cloud.post("/v1/commands", json={"commands": [open_request("R1")]})

    assert (late.status_code, late.json()["code"]) == (409, "stale-epoch")
    assert (silent.status_code, silent.json()["code"]) == (409, "epoch-missing")


def test_a_lease_that_is_not_renewed_lapses(service: Running) -> None:
    config = service.service.config
    assert config.leases.minimum == timedelta(seconds=3)

    answer = service.as_(Role.PROVISIONER).post(
        "/v1/leases/cloud/take", json={"holder": P1, "term": "2s"}
    )

    assert answer.status_code == 409
    assert "3 s to 3600 s" in answer.json()["detail"]


# --------------------------------------------------------------------------- pages
def test_pages_are_bounded_and_miss_nothing_that_stays(
    service: Running, cloud: httpx.Client
) -> None:
    order(cloud, *(open_request(f"R{n}") for n in range(1, 13)))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "5"} | ({"cursor": cursor} if cursor else {})
        page = good(cloud.get("/v1/requests", params=query))
        assert len(page["items"]) <= 5
        seen += [item["id"] for item in page["items"]]
        if seen[-1] == "R5":  # what ends between two pages does not move the others
            order(cloud, {"command": "refuse-request", "request": "R2", "why": "no"})
        cursor = page["next"]
        if cursor is None:
            break

    assert seen == [f"R{n}" for n in range(1, 13)]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "cursor=%25", "cursor=é", "limit="]
)
def test_a_page_that_cannot_be_is_400(shared_service: Running, query: str) -> None:
    assert shared_service.admin.get(f"/v1/requests?{query}").status_code == 400


@pytest.mark.parametrize(
    "path", ["requests", "instances", "grants", "shared", "providers", "leases", "events"]
)
def test_who_has_an_answer_already_is_not_given_it_again(service: Running, path: str) -> None:
    declared = {"owned": 4, "provider": None, "max_borrow": 0, "step": 1, "idle_return_after": "1h", "min_hold": "0s"}  # fmt: skip
    good(service.admin.put("/v1/shared/a", json=declared))
    first = service.admin.get(f"/v1/{path}")
    tag = first.headers["etag"]

    again = service.admin.get(f"/v1/{path}", headers={"if-none-match": f'"other", W/{tag}'})
    other = service.admin.get(f"/v1/{path}", headers={"if-none-match": '"other"'})

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert (other.status_code, other.content) == (200, first.content)


def test_events_are_paged_by_position(service: Running, cloud: httpx.Client) -> None:
    order(cloud, *(open_request(f"R{n}") for n in range(9)))

    first = good(service.admin.get("/v1/events?limit=4"))
    rest = good(service.admin.get(f"/v1/events?after={first['next']}"))

    positions = [event["position"] for event in first["items"] + rest["items"]]
    assert positions == list(range(1, len(positions) + 1))
    assert rest["next"] is None


# ------------------------------------------------------------- what is kept in memory
def session(position: int, template: str = "c4") -> dict[str, Any]:
    return {
        "format": "xce.session/1",
        "position": position,
        "demand": {"hosts": [{"template": template, "count": 1, "jobs": []}]},
    }


def test_demand_is_unknown_until_the_first_session_and_the_newest_replaces(
    service: Running, cloud: httpx.Client
) -> None:
    scheduler = service.as_(Role.SCHEDULER)
    assert good(cloud.get("/v1/session"))["result"] is None

    good(scheduler.put("/v1/session", json=session(1)))
    good(scheduler.put("/v1/session", json=session(2, "c8")))
    older = scheduler.put("/v1/session", json=session(1))
    ahead = scheduler.put("/v1/session", json=session(999))

    message = good(cloud.get("/v1/session"))
    assert (message["number"], message["result"]["position"]) == (2, 2)
    assert (older.status_code, ahead.status_code) == (409, 409)


def test_demand_that_is_too_old_is_unknown(tmp_path: Path) -> None:
    with running(tmp_path, demand_time_to_live="1s") as service:
        good(service.as_(Role.SCHEDULER).put("/v1/session", json=session(0)))
        published = service.service.live.feed.session
        assert published is not None
        aged = service.service.live.settings.demand_time_to_live.total_seconds()
        object.__setattr__(published, "at_s", published.at_s - aged - 1)

        assert good(service.admin.get("/v1/session"))["result"] is None


def test_a_snapshot_is_given_back_as_it_was_posted(service: Running) -> None:
    scheduler = service.as_(Role.SCHEDULER)
    assert scheduler.get("/v1/snapshot").status_code == 404
    document: dict[str, Any] = {
        "format": "xce.snapshot/1",
        "now": DEADLINE,
        "position": 0,
        "hosts": [],
    }

    answer = scheduler.put("/v1/snapshot", json=document)

    assert answer.status_code == 204, answer.text
    assert good(scheduler.get("/v1/snapshot")) == document


def test_bookings_are_in_memory_and_shown_with_the_resource(service: Running) -> None:
    good(service.as_(Role.SCHEDULER).put("/v1/bookings", json={"occupied": {"lic": 3}}))

    assert good(service.admin.get("/v1/bookings")) == {"occupied": {"lic": 3}, "reports": {}}
    assert good(service.admin.get("/v1/status"))["position"] == 0


# ------------------------------------------------------------------------- problems
def test_every_mistake_of_a_body_is_listed_with_its_path(service: Running) -> None:
    body = {"commands": [{"command": "take-lease", "provider": "", "holder": 3, "x": 1}]}

    answer = service.admin.post("/v1/commands", json=body)

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "input")
    assert answer.headers["content-type"] == "application/problem+json"
    paths = {each["path"].rpartition(".")[2] for each in problem["problems"]}
    assert paths == {"provider", "holder", "term", "x"}


GARBAGE: list[tuple[str, str, bytes, dict[str, str], int]] = [
    ("POST", "/v1/commands", b"", {}, 422),
    ("POST", "/v1/commands", b"\xff\xfe", {}, 422),
    ("POST", "/v1/commands", b"{" * 5000, {}, 422),
    ("POST", "/v1/commands", b"[" * 100_000, {}, 422),
    ("POST", "/v1/commands", b'{"commands": [], "commands": []}', {}, 422),
    ("POST", "/v1/commands", b"null", {}, 422),
    ("POST", "/v1/commands", b"{}", {"content-type": "text/plain"}, 415),
    ("POST", "/v1/commands", b"x" * (1024 * 1024 + 1), {}, 413),
    ("POST", "/v1/commands", b"{}", {"idempotency-key": "with blank"}, 422),
    ("PUT", "/v1/shared/lic/owned", b'{"owned": 1}', {"if-match": "W/x"}, 400),
    ("PUT", "/v1/shared/lic/owned", b'{"owned": 1}', {"idempotency-key": "with blank"}, 400),
    ("PUT", "/v1/shared/lic/owned", b'{"owned": 1e999}', {}, 422),
    ("PUT", "/v1/shared/lic/owned", b'{"owned": 99999999999999999999}', {}, 422),
    ("PUT", "/v1/shared/lic/owned", b'{"owned": NaN}', {}, 422),
    ("PUT", "/v1/shared/" + "x" * 300 + "/owned", b'{"owned": 1}', {}, 422),
    ("PUT", "/v1/shared/%00/owned", b'{"owned": 1}', {}, 422),
    ("PUT", "/v1/providers/a", b'{"name": "b"}', {}, 409),
    ("GET", "/v1/requests/%FF", b"", {}, 404),
    ("GET", "/v1/events?after=-1", b"", {}, 400),
    ("GET", "/v1/events?after=9999999999999999999999", b"", {}, 400),
    ("GET", "/nowhere", b"", {}, 404),
    ("DELETE", "/v1/requests", b"", {}, 405),
    ("GET", "/v1/stream?after=x", b"", {}, 400),
    ("GET", "/v1/stream?events=maybe", b"", {}, 400),
]


@pytest.mark.parametrize(("method", "path", "content", "headers", "status"), GARBAGE)
def test_garbage_is_a_problem_of_the_caller(
    shared_service: Running,
    method: str,
    path: str,
    content: bytes,
    headers: dict[str, str],
    status: int,
) -> None:
    headers = {"content-type": "application/json"} | headers

    answer = shared_service.admin.request(method, path, content=content, headers=headers)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status


def test_too_many_calls_are_told_to_wait(tmp_path: Path) -> None:
    limits = {"calls_per_second": 1, "calls_burst": 3}
    with running(tmp_path, limits=limits) as service:
        answers = [service.admin.get("/v1/bookings") for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].headers["retry-after"] == "1"


def test_a_request_id_is_taken_over_if_it_is_sane(shared_service: Running) -> None:
    admin = shared_service.admin

    assert admin.get("/v1/status", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"  # fmt: skip
    assert admin.get("/v1/status", headers={"x-request-id": 'x"\\'}).headers["x-request-id"] != 'x"\\'  # fmt: skip


def test_the_interface_describes_itself_and_its_answers_fit(
    service: Running, cloud: httpx.Client
) -> None:
    order(cloud, open_request("R1"))
    document = good(service.as_(None).get("/v1/openapi.json"))
    assert document["openapi"].startswith("3.1")
    for path in (
        "/v1/requests",
        "/v1/leases",
        "/v1/status",
        "/v1/events",
        "/v1/costs",
        "/v1/catalog",
    ):
        content = document["paths"][path]["get"]["responses"]["200"]["content"]
        wanted = content["application/json"]["schema"] | {"components": document["components"]}
        answer = good(service.admin.get(path))
        validator: Any = jsonschema.Draft202012Validator(wanted)
        assert not [error.message for error in validator.iter_errors(answer)]


def test_no_token_is_in_the_log_the_events_or_a_problem(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "xce_a-token-that-is-not-known"
    with running(tmp_path, request_log=True) as service:
        told = [
            service.as_(None).get("/v1/status", headers={"authorization": f"Bearer {secret}"}),
            service.as_(None).get("/v1/status", headers={"authorization": f"Basic {secret}"}),
            service.as_(Role.VIEWER).put("/v1/session", json={}),
            service.admin.post("/v1/commands", content=b"{", headers={"content-type": "application/json"}),
        ]  # fmt: skip
        metrics = service.admin.get("/metrics").text
        events = json.dumps(good(service.admin.get("/v1/events")))
    printed = capfd.readouterr()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("events.db*"))
    everything = (
        "".join(answer.text for answer in told) + metrics + events + printed.out + printed.err
    )

    for token in (secret, *TOKENS.values()):
        assert token not in everything
        assert token.encode() not in stored
        assert token not in (tmp_path / "tokens.txt").read_text()


def test_orders_of_many_clients_share_appends(service: Running) -> None:
    def work(number: int) -> None:
        client = service.as_(Role.PROVISIONER)
        for turn in range(20):
            good(client.put(f"/v1/providers/c{number}", json={"name": f"c{number}", "capacity": turn}))  # fmt: skip

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = service.admin.get("/metrics").text.splitlines()
    appends = next(float(line.split()[1]) for line in lines if line.startswith("xce_append_seconds_count"))  # fmt: skip
    assert good(service.admin.get("/v1/status"))["position"] == 160
    assert appends < 160

"""Alerts of a real controller, told to real sockets that are well, down, slow or hostile."""

import hmac
import json
import os
import socket
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.service.running import TOKENS, Running, running
from tests.service.webhook_server import (
    WITHIN_S,
    endless_headers,
    flood,
    garbage,
    never,
    settings,
    status,
    webhook,
)
from xce.adapters.cli.main import app as xce
from xce.adapters.cli.operators.main import app as operators
from xce.adapters.store.seat_file import FileSeat
from xce.domain.engine.messages import Role


def alerting(*webhooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"look": "1s", "clear_after": "0s", "webhooks": list(webhooks)} | more


def find_orphan(service: Running, theirs: str) -> None:
    """Let a provisioner report an orphan at a provider that it has described."""
    admin = service.admin
    order(service, {"command": "describe-provider", "description": {"name": "aws"}})
    order(service, {"command": "take-lease", "provider": "aws", "holder": "p1", "term": "1h"})
    found = {"provider": "aws", "theirs": theirs, "kind": "unknown_to_us", "tag": None}
    order(service, {"command": "report-orphan", **found, "why": "listed twice"})
    assert admin.get("/v1/orphans").json()["items"]


def order(service: Running, *commands: dict[str, Any]) -> None:
    answer = service.admin.post("/v1/commands", json={"commands": list(commands), "epochs": {}})
    assert answer.is_success, answer.text


def dismiss(service: Running, theirs: str) -> None:
    order(
        service,
        {"command": "dismiss-orphan", "provider": "aws", "theirs": theirs, "why": "not ours"},
    )


def alerts(service: Running) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = service.admin.get("/v1/alerts").json()["items"]
    return items


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.02)


def settled(service: Running, name: str = "pager") -> list[str]:
    """Return what became of each notice, by the log."""
    events = service.admin.get("/v1/events?limit=1000").json()["items"]
    return [
        event["data"]["outcome"]
        for event in events
        if event["name"] == "xce.webhook.told" and event["aggregate"] == f"webhook:{name}"
    ]


def test_a_webhook_is_told_once_that_something_is_so_and_once_that_it_is_over(
    tmp_path: Path,
) -> None:
    with webhook() as server, running(tmp_path, alerts=alerting(settings(server))) as service:
        find_orphan(service, "i-7")
        (raised,) = server.wait_for(1)
        until(lambda: settled(service) == ["delivered"])
        assert [one["state"] for one in alerts(service)] == ["raised"]
        dismiss(service, "i-7")
        _, over = server.wait_for(2)
        until(lambda: settled(service) == ["delivered", "delivered"])
        metrics = service.admin.get("/metrics").text
        environment = {"XCE_ADDRESS": service.address, "XCE_TOKEN": TOKENS[Role.VIEWER]}
        now = CliRunner().invoke(operators, ["alerts"], env=environment).stdout
        ever = CliRunner().invoke(operators, ["alerts", "--all"], env=environment).stdout

    assert now == "no alerts\n"
    assert "orphan  cleared" in ever
    assert "i-7 at aws: nobody owns it" in ever
    assert raised.notice.alert == over.notice.alert == "orphan/aws/i-7"
    assert (raised.notice.state, over.notice.state) == ("raised", "cleared")
    assert raised.notice.text == "i-7 at aws: nobody owns it: listed twice"
    assert over.notice.text == f"over: {raised.notice.text}"
    assert raised.notice.id != over.notice.id
    assert raised.headers["x-xce-notice"] == raised.notice.id
    assert 'xce_notices_total{outcome="delivered",webhook="pager"} 2.0' in metrics
    assert 'xce_alerts{kind="orphan"} 0.0' in metrics
    assert len(server.told) == 2


@pytest.mark.parametrize("secret", [b"s3cret", b"s3\xff\xfecret"])
def test_a_notice_is_signed_with_the_secret_that_the_variable_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: bytes
) -> None:
    monkeypatch.setenv("PAGER_SECRET", os.fsdecode(secret))
    with webhook() as server:
        monkeypatch.setenv("PAGER_URL", server.url)
        hook = settings(server, secret_variable="PAGER_SECRET", url=None, url_variable="PAGER_URL")
        with running(tmp_path, alerts=alerting(hook)) as service:
            find_orphan(service, "i-7")
            (told,) = server.wait_for(1)

    at, _, digest = told.headers["x-xce-signature"].partition(",")
    signed = at.removeprefix("t=").encode() + b"." + told.body
    assert digest == "v1=" + hmac.new(secret, signed, sha256).hexdigest()
    assert secret not in told.body


def test_a_restart_neither_loses_nor_repeats_what_was_told(tmp_path: Path) -> None:
    with webhook() as server:
        for theirs in ("i-1", "i-2", "i-3"):
            with running(tmp_path, alerts=alerting(settings(server))) as service:
                find_orphan(service, theirs)
                until(lambda: len(settled(service)) == len(server.told) >= 1)
                until(lambda: len(alerts(service)) == len(settled(service)))
        with running(tmp_path, alerts=alerting(settings(server))) as service:
            dismiss(service, "i-2")
            until(lambda: len(settled(service)) == 4)

    subjects = [(told.notice.subject, told.notice.state) for told in server.told]
    assert subjects == [
        ("aws/i-1", "raised"), ("aws/i-2", "raised"), ("aws/i-3", "raised"), ("aws/i-2", "cleared"),
    ]  # fmt: skip


def test_a_webhook_that_is_down_is_told_when_it_is_back_and_the_controller_works_meanwhile(
    tmp_path: Path,
) -> None:
    answers = (status(503), status(500), status(404), status(302), garbage, status(200))
    with (
        webhook(*answers) as server,
        running(tmp_path, alerts=alerting(settings(server))) as service,
    ):
        find_orphan(service, "i-7")
        told = server.wait_for(len(answers))
        until(lambda: settled(service) == ["delivered"])

    assert len({one.notice.id for one in told}) == 1


def test_where_nobody_listens_notices_wait_in_the_log_for_the_next_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    with running(tmp_path, alerts=alerting(settings(nobody))) as service:
        find_orphan(service, "i-7")
        until(lambda: [one["not_told"] for one in alerts(service)] == [["pager"]])
        until(lambda: 'outcome="failed"' in service.admin.get("/metrics").text)
        assert settled(service) == []
    with webhook() as server, running(tmp_path, alerts=alerting(settings(server))) as service:
        server.wait_for(1)
        until(lambda: [one["not_told"] for one in alerts(service)] == [[]])


def test_a_notice_that_is_refused_does_not_hold_up_the_next(tmp_path: Path) -> None:
    with (
        webhook(status(422), status(200)) as server,
        running(tmp_path, alerts=alerting(settings(server))) as service,
    ):
        find_orphan(service, "i-1")
        until(lambda: settled(service) == ["refused"])
        find_orphan(service, "i-2")
        until(lambda: settled(service) == ["refused", "delivered"])


def test_a_notice_that_could_not_be_delivered_for_too_long_is_dropped(tmp_path: Path) -> None:
    with webhook(status(503)) as server:
        hook = settings(server, give_up_after="1s")
        with running(tmp_path, alerts=alerting(hook)) as service:
            find_orphan(service, "i-1")
            until(lambda: settled(service) == ["expired"])


@pytest.mark.parametrize("answer", [never, endless_headers], ids=["silent", "endless-headers"])
def test_a_hostile_webhook_holds_up_neither_another_one_nor_orders_nor_the_end(
    tmp_path: Path, answer: Any
) -> None:
    with webhook(answer) as bad, webhook() as good:
        hooks = settings(bad, "bad"), settings(good, "good")
        with running(tmp_path, alerts=alerting(*hooks)) as service:
            find_orphan(service, "i-1")
            bad.wait_for(1)
            find_orphan(service, "i-2")
            good.wait_for(2)
            until(lambda: settled(service, "good") == ["delivered"] * 2)
            assert settled(service, "bad") == []


def test_a_webhook_that_never_answers_is_asked_again_within_its_time(tmp_path: Path) -> None:
    with webhook(never, status(200)) as server:
        hook = settings(server, timeout="1s")
        with running(tmp_path, alerts=alerting(hook)) as service:
            find_orphan(service, "i-1")
            until(lambda: settled(service) == ["delivered"])
            assert len(server.told) == 2


def test_a_body_without_end_is_not_read(tmp_path: Path) -> None:
    with webhook(flood) as server, running(tmp_path, alerts=alerting(settings(server))) as service:
        find_orphan(service, "i-1")
        until(lambda: settled(service) == ["delivered"])


def test_a_webhook_is_told_of_the_kinds_that_it_wants(tmp_path: Path) -> None:
    with webhook() as all_of_it, webhook() as some:
        hooks = settings(all_of_it, "all"), settings(some, "some", kinds=["paused"])
        with running(tmp_path, alerts=alerting(*hooks)) as service:
            find_orphan(service, "i-1")
            all_of_it.wait_for(1)
            pause = {"item": None, "until": "2998-01-01T00:00:00Z", "why": "no credit"}
            answer = service.as_(Role.ADMIN).post("/v1/providers/aws/pause", json=pause)
            assert answer.is_success, answer.text
            all_of_it.wait_for(2)
            some.wait_for(1)

    assert [told.notice.kind for told in some.told] == ["paused"]


def test_what_a_provisioner_reports_is_alerted_of_and_unknown_is_not_over(tmp_path: Path) -> None:
    report = {
        "budgets": [{"budget": "all", "bound": "max_hosts", "used": "9", "limit": "10"}],
        "held_back": [{"provider": "aws", "why": "9 of 9 are missing at once"}],
    }
    with running(tmp_path, alerts=alerting()) as service:
        answer = service.as_(Role.PROVISIONER).put("/v1/standing", json=report)
        assert answer.status_code == 204, answer.text
        until(lambda: len(alerts(service)) == 2)
        shown = service.as_(Role.VIEWER).get("/v1/standing").json()
    with running(tmp_path, alerts=alerting()) as service:
        find_orphan(service, "i-1")
        until(lambda: len(alerts(service)) == 3)
        assert {one["state"] for one in alerts(service)} == {"raised"}
        answer = service.as_(Role.PROVISIONER).put("/v1/standing", json={})
        assert answer.status_code == 204, answer.text
        until(
            lambda: (
                sorted(one["state"] for one in alerts(service)) == ["cleared", "cleared", "raised"]
            )
        )

    assert shown["reports"]["provisioner-1"]["budgets"][0]["used"] == "9"


def test_a_scheduler_that_can_hold_no_session_is_alerted_of_until_it_holds_one(
    tmp_path: Path,
) -> None:
    more = {"kinds": ["no_session"], "no_session_after": "1s"}
    with running(tmp_path, alerts=alerting(**more)) as service:
        scheduler = service.as_(Role.SCHEDULER)
        why = {"why": "the requirement of job 7 cannot be read, 'select[mem >'"}

        def is_raised() -> bool:
            assert scheduler.put("/v1/no-session", json=why).status_code == 204
            return any(one["state"] == "raised" for one in alerts(service))

        until(is_raised)
        (alert,) = alerts(service)
        assert (alert["kind"], alert["subject"]) == ("no_session", "scheduler/scheduler-1")
        assert "job 7 cannot be read, 'select[mem >'" in alert["text"]

        session = {"format": "xce.session/1", "position": 0}
        assert scheduler.put("/v1/session", json=session).is_success
        until(lambda: alerts(service)[0]["state"] == "cleared")


def test_a_controller_that_takes_the_place_of_a_dead_one_says_so_and_after_a_proper_end_nothing(
    tmp_path: Path,
) -> None:
    with running(tmp_path, alerts=alerting(), name="first"):
        pass
    with running(tmp_path, alerts=alerting(), name="second") as service:
        assert alerts(service) == []
    dead = FileSeat(str(tmp_path / "events.db"))
    assert dead.claim()
    dead.sit(epoch=2, name="second", url="")
    dead.close()  # as a kill does: its lock is gone, its sign stands
    with webhook() as server:
        hook = settings(server)
        with running(tmp_path, alerts=alerting(hook), name="third"):
            (told,) = server.wait_for(1)

    assert told.notice.alert == "taken_over/epoch 3"
    assert told.notice.text == "third took the place of second, which did not end by itself"


def test_a_webhook_can_be_tried_without_a_controller(tmp_path: Path) -> None:
    with webhook() as good, webhook(status(403)) as bad:
        path = tmp_path / "controller.yaml"
        path.write_text(
            f"log: none.db\ntokens: none\nname: c1\nalerts:\n  webhooks:\n    - {{name: good, url: '{good.url}', kinds: [drift]}}\n"
            f"    - {{name: bad, url: '{bad.url}'}}\n"
        )
        words = ["controller", "try-webhook", "--config", str(path)]
        one = CliRunner().invoke(xce, [*words, "--webhook", "good"])
        both = CliRunner().invoke(xce, words)
        document = json.loads(CliRunner().invoke(xce, [*words, "--json"]).stdout)
        none = CliRunner().invoke(xce, [*words, "--webhook", "other"])
        told = good.wait_for(1)[0].notice

    assert (one.exit_code, one.stdout) == (0, "good: delivered\n")
    assert (both.exit_code, both.stdout) == (
        75,
        "good: delivered\nbad: not delivered: answered 403\n",
    )
    assert [item["delivered"] for item in document["items"]] == [True, False]
    assert "there are good, bad" in str(none.exception)
    assert (told.kind, told.text) == ("drift", "a trial: the controller c1 can tell good")
    assert not (tmp_path / "none.db").exists()

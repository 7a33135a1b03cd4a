"""A second controller on the log of a primary: what it answers, and that it goes on where the first one ends."""

import re
import time
from contextlib import ExitStack
from pathlib import Path

from typer.testing import CliRunner

from tests.service.running import TOKENS, running
from xce.adapters.cli.operators.main import app as operators
from xce.adapters.client import Client
from xce.adapters.controller.app import own_endpoints
from xce.adapters.controller.questions import ENDPOINTS as QUESTIONS
from xce.domain.engine.messages import Role
from xce.domain.errors import TransientError
from xce.domain.formats.provider import ProviderDescription

#: A standby looks ten times as often.
DETECTION = "10s"
WITHIN_S = 60.0


def test_a_standby_refuses_orders_and_questions_names_the_primary_and_is_healthy(
    tmp_path: Path,
) -> None:
    with (
        running(tmp_path, name="first", url="http://first:8470"),
        running(tmp_path, name="second") as second,
    ):
        answers = [
            second.admin.get("/readyz"),
            second.admin.get("/v1/status"),
            second.admin.get("/v1/stream"),
            second.admin.post("/v1/commands", json={"commands": [], "epochs": {}}),
        ]
        health = second.as_(None).get("/healthz")
        interface = second.as_(None).get("/v1/openapi.json")
        metrics = second.admin.get("/metrics")
        unknown = second.as_(None).get("/v1/status")
        forbidden = second.as_(Role.VIEWER).put("/v1/session", json={})

    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-primary")
        assert answer.headers["retry-after"] == "1"
        assert "the primary is first at http://first:8470" in answer.json()["detail"]
    assert [one.status_code for one in (health, interface, metrics)] == [200, 200, 200]
    assert "xce_primary 0.0" in metrics.text
    assert (unknown.status_code, forbidden.status_code) == (401, 403)


def test_a_standby_serves_from_where_the_primary_ended_and_the_client_finds_it(
    tmp_path: Path,
) -> None:
    with ExitStack() as one, ExitStack() as other:
        first = one.enter_context(running(tmp_path, detection=DETECTION))
        second = other.enter_context(running(tmp_path, detection=DETECTION))
        addresses = [first.address, second.address]
        client = other.enter_context(Client(addresses, token=TOKENS[Role.ADMIN]))
        client.describe(ProviderDescription(name="before"))
        before = client.status()
        one.close()
        client.describe(ProviderDescription(name="after"))
        after = client.status()
        assert [provider.name for provider in client.providers()] == ["after", "before"]
        assert second.admin.get("/readyz").status_code == 200
    assert (before.epoch, after.epoch) == (1, 2)
    assert after.position > before.position


def test_a_controller_that_is_stopped_while_it_stands_by_ends_well(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        with running(tmp_path) as second:
            assert second.admin.get("/readyz").status_code == 503
        assert first.admin.get("/readyz").status_code == 200


def test_a_standby_answers_a_question_of_the_log_to_a_caller_who_takes_what_may_be_behind(
    tmp_path: Path,
) -> None:
    allow = {"x-xce-standby": "allow"}
    with (
        running(tmp_path, name="first", url="http://first:8470", detection=DETECTION) as first,
        running(tmp_path, name="second", detection=DETECTION) as second,
    ):
        assert first.admin.put("/v1/providers/aws", json={"name": "aws"}).is_success
        wanted = first.admin.get("/v1/providers").json()
        deadline = time.monotonic() + WITHIN_S
        while second.admin.get("/v1/providers", headers=allow).json() != wanted:
            assert time.monotonic() < deadline, "it does not follow"
            time.sleep(0.02)
        answer = second.admin.get("/v1/providers/aws", headers=allow)
        status = second.admin.get("/v1/status", headers=allow).json()
        events = second.admin.get("/v1/events", headers=allow).json()
        own = first.admin.get("/v1/providers", headers=allow)
        refused = [
            second.admin.get("/v1/providers"),
            second.admin.get("/v1/supply", headers=allow),
            second.admin.get("/v1/session", headers=allow),
            second.admin.put("/v1/providers/gcp", json={"name": "gcp"}, headers=allow),
        ]
        stranger = second.as_(None).get("/v1/providers", headers=allow)

    assert answer.json()["name"] == "aws"
    assert (answer.headers["x-xce-standby"], answer.headers["x-xce-position"]) == ("true", "1")
    assert (status["primary"], status["position"], status["epoch"]) == (False, 1, 0)
    assert [event["position"] for event in events["items"]] == [1]
    assert "x-xce-standby" not in own.headers
    for one in refused:
        assert (one.status_code, one.json()["code"]) == (503, "not-primary")
        assert one.headers["x-xce-primary"] == "http://first:8470"
    assert stranger.status_code == 401


def test_every_question_that_a_standby_may_answer_is_answered_or_not_found(tmp_path: Path) -> None:
    rows = [row for row in own_endpoints() + QUESTIONS if row.followed]
    with running(tmp_path), running(tmp_path) as second:
        for row in rows:
            path = re.sub(r"\{[^}]+\}", "none", row.path)
            answer = second.admin.get(path, headers={"x-xce-standby": "allow"})
            assert answer.status_code in (200, 404), (path, answer.text)
            assert answer.status_code == 404 or answer.headers["x-xce-standby"] == "true", path
    assert len(rows) > 15


def test_xcecli_shows_what_a_standby_knows_while_no_primary_answers_and_says_so(
    tmp_path: Path,
) -> None:
    with running(tmp_path, detection=DETECTION) as first:
        assert first.admin.put("/v1/providers/aws", json={"name": "aws"}).is_success
        with running(tmp_path, detection=DETECTION) as second:
            environment = {"XCE_ADDRESS": second.address, "XCE_TOKEN": TOKENS[Role.ADMIN]}
            listed = CliRunner().invoke(operators, ["providers"], env=environment)
            frozen = CliRunner().invoke(operators, ["freeze"], env=environment)

    assert listed.stdout.splitlines()[1].startswith("aws ")
    assert "stands by, and says what the log had up to position 1" in listed.stderr
    assert isinstance(frozen.exception, TransientError)

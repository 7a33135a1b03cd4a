"""A second controller on the log of a primary: what it answers, and that it goes on where the first one ends."""

from contextlib import ExitStack
from pathlib import Path

from tests.service.running import TOKENS, running
from xce.adapters.client import Client
from xce.domain.engine.messages import Role
from xce.domain.formats.provider import ProviderDescription

#: A standby looks ten times as often.
DETECTION = "10s"


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

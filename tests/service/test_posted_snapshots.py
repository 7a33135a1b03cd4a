"""Snapshots that another scheduler posts."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.running import TOKENS, write_tokens
from xce.adapters.schedulers.posted import PostedSnapshots
from xce.domain.engine.messages import Role
from xce.domain.errors import PermanentError
from xce.domain.formats.controller_config import Listen
from xce.domain.formats.scheduler_config import PostedSource
from xce.domain.ports import SchedulerOrders


@pytest.fixture
def source(tmp_path: Path) -> Iterator[PostedSnapshots]:
    tokens = str(write_tokens(tmp_path))
    made = PostedSnapshots(PostedSource(listen=Listen(port=0), tokens=tokens, size_mib=1))
    yield made
    made.close()


@pytest.fixture
def http(source: PostedSnapshots) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{source.port}", timeout=10.0) as client:
        yield client


def of(role: Role) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[role]}"}


def snapshot(minute: int) -> dict[str, str]:
    return {"format": "xce.snapshot/1", "now": f"2026-03-01T10:{minute:02d}:00Z"}


def test_the_newest_snapshot_is_the_view(source: PostedSnapshots, http: httpx.Client) -> None:
    assert source.view() is None
    for minute in (1, 2):
        answer = http.put("/v1/snapshot", json=snapshot(minute), headers=of(Role.SCHEDULER))
        assert answer.status_code == 204

    source.wait(60.0)
    view = source.view()

    assert view is not None
    assert view.now.minute == 2
    old = http.put("/v1/snapshot", json=snapshot(1), headers=of(Role.SCHEDULER))
    assert (old.status_code, old.json()["code"]) == (409, "rejected")


def test_orders_are_read_by_anybody_who_is_known(
    source: PostedSnapshots, http: httpx.Client
) -> None:
    source.obey(SchedulerOrders(position=3, close=("h1",)))

    answer = http.get("/v1/orders", headers=of(Role.VIEWER))

    assert (answer.json()["position"], answer.json()["close"]) == (3, ["h1"])
    assert http.get("/v1/orders").status_code == 401
    assert http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("role", "content", "status", "code"),
    [
        (Role.VIEWER, "{}", 403, "forbidden"),
        (Role.SCHEDULER, "{", 422, "input"),
        (Role.SCHEDULER, '{"format": "xce.snapshot/1", "now": "2026-03-01T10:00:00Z", "x": 1}', 422, "input"),
        (Role.SCHEDULER, " " * (2**20 + 1), 413, "too-large"),
        (None, "{}", 401, "unauthenticated"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_answered_with_a_problem(
    source: PostedSnapshots, http: httpx.Client, role: Role | None, content: str, status: int, code: str
) -> None:  # fmt: skip
    headers = {} if role is None else of(role)

    answer = http.put("/v1/snapshot", content=content, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert source.view() is None


def test_an_address_that_is_taken_is_told(source: PostedSnapshots, tmp_path: Path) -> None:
    config = PostedSource(listen=Listen(port=source.port), tokens=str(tmp_path / "tokens.txt"))

    with pytest.raises(PermanentError, match="is it taken"):
        PostedSnapshots(config)

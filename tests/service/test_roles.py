"""Every role on every endpoint: the answer is the table's, and who is refused is in the audit trail."""

import pytest

from tests.service.running import NAMES, Running
from xce.adapters.controller import orders, questions
from xce.adapters.controller.calls import Endpoint
from xce.domain.engine.authorisation import ROLES, Question, action_name
from xce.domain.engine.messages import Role

ENDPOINTS = [*orders.ENDPOINTS, *questions.ENDPOINTS]
EVERY = [
    pytest.param(row, role, id=f"{role}-{row.method}-{row.plain_path}")
    for row in ENDPOINTS
    if row.action is not None
    for role in Role
]


def path_of(row: Endpoint) -> str:
    path = row.plain_path
    for name in row.path_parameters:
        path = path.replace(f"{{{name}}}", "nobody")
    return path


@pytest.mark.parametrize(("row", "role"), EVERY)
def test_a_role_gets_through_exactly_where_its_row_says(
    shared_service: Running, row: Endpoint, role: Role
) -> None:
    assert row.action is not None
    client = shared_service.as_(role)

    answer = client.request(row.method, path_of(row), json={} if row.body else None)

    if role in ROLES[row.action]:
        assert answer.status_code not in (401, 403), answer.text
        assert answer.status_code < 500, answer.text
    else:
        assert answer.status_code == 403
        assert answer.json()["code"] == "forbidden"
        assert action_name(row.action) in answer.json()["detail"]


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: f"{row.method}-{row.plain_path}")
def test_without_a_token_nothing_is_told_but_health(shared_service: Running, row: Endpoint) -> None:
    answer = shared_service.as_(None).request(
        row.method, path_of(row), json={} if row.body else None
    )

    assert answer.status_code in ((200,) if row.open else (401, 429))


def test_an_order_with_one_forbidden_command_is_refused_as_a_whole(
    shared_service: Running,
) -> None:
    body = {
        "commands": [
            {"command": "report-bookings", "occupied": {"lic": 1}},
            {"command": "set-owned", "name": "lic", "owned": 1},
        ]
    }
    answer = shared_service.as_(Role.SCHEDULER).post("/v1/commands", json=body)

    assert answer.status_code == 403
    assert shared_service.admin.get("/v1/bookings").json() == {"occupied": {}, "reports": {}}


def test_metrics_and_the_stream_are_for_the_roles_of_the_table(shared_service: Running) -> None:
    for role in Role:
        client = shared_service.as_(role)
        assert (client.get("/metrics").status_code == 200) == (role in ROLES[Question.METRICS])
        with client.stream("GET", "/v1/stream") as stream:
            assert (stream.status_code == 200) == (role in ROLES[Question.STREAM])


def test_refused_attempts_are_in_the_audit_trail(service: Running) -> None:
    viewer = service.as_(Role.VIEWER)
    for _ in range(3):
        assert viewer.put("/v1/session", json={}).status_code == 403
    assert service.as_(None).get("/v1/status").status_code == 401

    notes = [
        (event["by"], event["data"]["action"])
        for event in service.admin.get("/v1/events").json()["items"]
        if event["name"] == "xce.refusals.noted"
    ]
    assert notes == [
        (f"viewer/{NAMES[Role.VIEWER]}", "publish-session"),
        ("unauthenticated/unknown", "authenticate"),
    ]

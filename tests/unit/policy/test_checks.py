"""Malformed input is refused with the path of each problem; ``xce policy`` prints decisions for people and programs."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from xce.adapters.cli.policy import policy
from xce.domain.errors import InputError
from xce.domain.formats.policy import Decisions, PolicyInput
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide

Document = dict[str, Any]


def document(**fields: object) -> Document:
    return {"format": "xce.policy/1", "now": "2026-03-01T10:00:00Z", **fields}


REQUEST: Document = {
    "id": "R1",
    "provider": "aws",
    "kind": "host",
    "template": "c4",
    "amount": 2,
    "state": "accepted",
    "asked_at": "2026-03-01T09:59:00Z",
}
INSTANCE: Document = {
    "id": "i-1",
    "provider": "aws",
    "template": "c4",
    "state": "joined",
    "granted_at": "2026-03-01T09:00:00Z",
}
GRANT: Document = {
    "id": "g-1",
    "provider": "pool",
    "resource": "lic",
    "amount": 4,
    "state": "active",
    "granted_at": "2026-03-01T09:00:00Z",
}
HOSTS: Document = {"template": "c4", "count": 1, "jobs": []}
UNITS: Document = {"name": "lic", "amount": 1, "wanted": 1, "jobs": []}
IDLE: Document = {"instance": "i-1", "host": "h1", "idle_since": "2026-03-01T09:30:00Z"}


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        (document(format="xce.policy/2"), "format", "xce.policy/1"),
        ({"format": "xce.policy/1"}, "now", "missing"),
        (document(now="yesterday"), "now", "valid datetime"),
        (document(now="2026-03-01T10:00:00"), "now", "timezone"),
        (document(budget=[]), "budget", "unknown field"),
        (document(settings={"frozen": True}), "settings.frozen", "unknown field"),
        (document(settings={"freeze": "yes"}), "settings.freeze", "bool"),
        (document(settings={"max_per_request": 0}), "settings.max_per_request", "greater"),
        (document(settings={"minimum_hold": "soon"}), "settings.minimum_hold", "duration"),
        (document(position=-1), "position", "greater"),
        (document(position=1.5), "position", "integer"),
        (
            document(budgets=[{"name": "b", "max_cost_per_hour": 3}]),
            "budgets[0].max_cost_per_hour",
            "decimal string",
        ),
        (
            document(budgets=[{"name": "b", "max_cost_per_hour": "-3"}]),
            "budgets[0].max_cost_per_hour",
            "decimal string",
        ),
        (document(budgets=[{"name": "b"}, {"name": "b"}]), "budgets[1].name", "twice"),
        (
            document(providers=[{"name": "p", "templates": [{"templateid": "c4"}]}]),
            "providers[0].templates[0].templateId",
            "missing",
        ),
        (document(providers=[{"name": "p"}, {"name": "p"}]), "providers[1].name", "twice"),
        (
            document(providers=[{"name": "p", "templates": [{"templateId": "c"}] * 2}]),
            "providers[0].templates[1].templateId",
            "twice",
        ),
        (
            document(providers=[{"name": "p", "resources": [{"name": "lic"}] * 2}]),
            "providers[0].resources[1].name",
            "twice",
        ),
        (
            document(providers=[{"name": "p", "granularity": {"step": 0}}]),
            "providers[0].granularity.step",
            "greater",
        ),
        (document(demand={"hosts": [HOSTS, HOSTS]}), "demand.hosts[1].template", "twice"),
        (document(demand={"countable": [UNITS, UNITS]}), "demand.countable[1].name", "twice"),
        (document(demand={"order": [["c4", "2"]]}), "demand.order[0][1]", "integer"),
        (document(idle={"hosts": [IDLE, IDLE]}), "idle.hosts[1].instance", "twice"),
        (
            document(idle={"counts": [{"name": "lic", "amount": 1}] * 2}),
            "idle.counts[1].name",
            "twice",
        ),
        (
            document(inventory={"requests": [REQUEST, REQUEST]}),
            "inventory.requests[1].id",
            "twice",
        ),
        (
            document(inventory={"requests": [{**REQUEST, "template": None}]}),
            "inventory.requests[0].template",
            "names its template",
        ),
        (
            document(inventory={"requests": [{**REQUEST, "resource": "lic"}]}),
            "inventory.requests[0].resource",
            "has no resource",
        ),
        (
            document(inventory={"requests": [{**REQUEST, "kind": "countable"}]}),
            "inventory.requests[0].resource",
            "names its resource",
        ),
        (
            document(inventory={"requests": [{**REQUEST, "state": "open"}]}),
            "inventory.requests[0].state",
            "intended",
        ),
        (
            document(inventory={"instances": [INSTANCE, INSTANCE]}),
            "inventory.instances[1].id",
            "twice",
        ),
        (document(inventory={"grants": [GRANT, GRANT]}), "inventory.grants[1].id", "twice"),
        (
            document(inventory={"grants": [{**GRANT, "returning": 3, "returned": 2}]}),
            "inventory.grants[0].amount",
            "more than 4",
        ),
        (
            document(inventory={"grants": [{**GRANT, "amount": 2**53}]}),
            "inventory.grants[0].amount",
            "less than",
        ),
    ],
)
def test_a_wrong_input_is_refused_with_the_path(wrong: Document, path: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        read_policy_input(json.dumps(wrong), "round.json")

    found = {problem.path: problem.message for problem in refused.value.problems}
    assert message in found[path]
    assert all(line.startswith("round.json: ") for line in refused.value.lines())


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "xce", '{"format": "xce.policy/1"', "\x00"]
)
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_policy_input(text)


def test_a_right_input_is_read_and_written_back_the_same() -> None:
    whole = document(
        position=7,
        providers=[{"name": "aws", "templates": [{"templateId": "c4", "pricePerHour": "0.17"}]}],
        demand={"hosts": [HOSTS]},
        inventory={"requests": [REQUEST], "instances": [INSTANCE], "grants": [GRANT]},
        settings={"minimum_hold": "1h30m"},
    )

    inputs = read_policy_input(json.dumps(whole))

    assert PolicyInput.from_json(inputs.to_json()) == inputs


# --------------------------------------------------------------------- command
@pytest.fixture
def round_file(tmp_path: Path) -> Path:
    path = tmp_path / "round.json"
    path.write_text(
        json.dumps(
            document(
                providers=[
                    {
                        "name": "aws",
                        "templates": [{"templateId": "c4", "pricePerHour": "0.17", "maxNumber": 2}],
                    }
                ],
                demand={"hosts": [{**HOSTS, "count": 3}]},
            )
        )
    )
    return path


def test_the_command_prints_the_decisions_as_one_json_document(
    round_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy(str(round_file), as_json=True)

    printed = capsys.readouterr().out
    expected = decide(read_policy_input(round_file.read_bytes()))
    assert Decisions.from_json(printed) == expected
    assert printed == expected.to_json() + "\n"
    assert [decision.kind for decision in expected.decisions] == ["request", "hold"]


def test_the_command_prints_a_table_for_people(
    round_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy(str(round_file))

    text = " ".join(capsys.readouterr().out.split())
    assert "DECISION PROVIDER OF AMOUNT PER HOUR REASON" in text
    assert "request aws c4 2 0.34" in text
    assert "hold aws c4 1" in text


def test_the_command_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = io.TextIOWrapper(io.BytesIO(json.dumps(document()).encode()))
    monkeypatch.setattr(sys, "stdin", text)

    policy("-")

    assert capsys.readouterr().out == "nothing to do\n"


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        policy(str(tmp_path / "none.json"))

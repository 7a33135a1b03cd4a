"""The check of a provider: fit ones pass, each kind of broken one is found, and nothing is left behind."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.providers.scripts import prints, write_scripts
from xce.adapters.cli.provider import table_of
from xce.adapters.providers import call
from xce.adapters.providers.check import check_provider
from xce.adapters.providers.check.findings import CheckReport, Outcome
from xce.adapters.providers.install import SIMULATED_CONF, Comes, Knows, install
from xce.domain.formats.script_provider import ScriptSettings


def checked(tmp_path: Path, call_limit_s: int = 60, wait_s: float = 60) -> CheckReport:
    settings = ScriptSettings(
        name="p", folder=str(tmp_path / "p"), call_limit=timedelta(seconds=call_limit_s)
    )
    return check_provider(settings, tmp_path / "kept", wait_s=wait_s, tag="check-1")


def simulated(
    tmp_path: Path, faults: Sequence[dict[str, Any]] = (), knows: Knows = Knows.TAGS, **changes: Any
) -> None:
    conf = {**SIMULATED_CONF, "faults": list(faults), **changes}
    install(Comes.SIMULATED, tmp_path / "p", knows=knows, conf=conf)


def left_at(tmp_path: Path) -> list[str]:
    state = json.loads((tmp_path / "kept/data/simulated.json").read_text())
    lent = [grant for grant, known in state["grants"].items() if known["amount"]]
    return [one for one, known in state["machines"].items() if known["gone"] is None] + lent


def broken(report: CheckReport) -> set[str]:
    return {one.what for one in report.findings if one.outcome is Outcome.BROKEN}


@pytest.mark.parametrize("knows", Knows)
def test_a_provider_that_keeps_the_contract_is_fit(tmp_path: Path, knows: Knows) -> None:
    simulated(tmp_path, knows=knows)

    report = checked(tmp_path)

    assert report.fit, report.findings
    assert report.left == ()
    assert left_at(tmp_path) == []
    assert "hosts" in report.supports
    assert ("request tags" in report.supports) is (knows is Knows.TAGS)
    assert ("listing" in report.supports) is (knows is not Knows.NEITHER)


@pytest.mark.parametrize(
    ("body", "outcome", "detail"),
    [
        ('sed \'s/"host"/"result": "fail", &/\' "$2"', Outcome.OK, "fail"),
        (prints('{"machines": [{"machineId": "other"}]}'), Outcome.BROKEN, "speaks of other"),
        ("exit 1", Outcome.BROKEN, ""),
    ],
)
def test_a_health_check_is_tried_with_a_machine_that_has_not_joined(
    tmp_path: Path, body: str, outcome: Outcome, detail: str
) -> None:
    simulated(tmp_path)
    write_scripts(tmp_path / "p", {"checkMachines": body})

    report = checked(tmp_path)

    (found,) = [one for one in report.findings if one.what == "health check"]
    assert (found.outcome, detail in found.detail) == (outcome, True), found
    assert ("health checks" in report.supports) is (outcome is Outcome.OK)
    assert left_at(tmp_path) == []


#: Puts the end of the grant it is asked about off: to each of two times, one call after the other.
RENEWS = """
id=$(sed 's/.*"grantId": *"\\([^"]*\\)".*/\\1/' "$2")
echo x >>"$PRO_DATA_DIR/renewed"
[ $(wc -l <"$PRO_DATA_DIR/renewed") = 1 ] && at=FIRST || at=SECOND
echo "{\\"grants\\": [{\\"grantId\\": \\"$id\\", \\"expiresAt\\": \\"$at\\"}]}"
"""


@pytest.mark.parametrize(
    ("first", "second", "outcome", "detail"),
    [
        ("2030-01-01T08:00:00Z", "2030-01-01T09:00:00Z", Outcome.OK, "1 of 1 put off"),
        ("2030-01-01T09:00:00Z", "2030-01-01T08:00:00Z", Outcome.BROKEN, "ends earlier"),
    ],
)
def test_renewals_are_tried_and_never_make_an_end_earlier(
    tmp_path: Path, first: str, second: str, outcome: Outcome, detail: str
) -> None:
    simulated(tmp_path)
    body = RENEWS.replace("FIRST", first).replace("SECOND", second)
    write_scripts(tmp_path / "p", {"renewResources": body})

    report = checked(tmp_path)

    (found,) = [one for one in report.findings if one.what == "renewals"]
    assert (found.outcome, detail in found.detail) == (outcome, True), found
    assert ("renewals" in report.supports) is (outcome is Outcome.OK)
    assert left_at(tmp_path) == []


def test_what_could_not_be_given_back_within_its_hold_is_not_borrowed(tmp_path: Path) -> None:
    held = {"name": "lic_kept", "capacity": 20, "step": 1, "price": "0.50", "hold": 600}
    simulated(tmp_path, resources=[held])

    report = checked(tmp_path)

    assert report.fit, report.findings
    assert (report.left, left_at(tmp_path)) == ((), [])
    (borrowing,) = [one for one in report.findings if one.what == "borrowing"]
    assert borrowing.outcome is Outcome.NOT_TRIED
    assert "lic_kept is kept for 10m" in borrowing.detail


@pytest.mark.parametrize("fault", ["noise", "literal"])
def test_what_the_caller_copes_with_is_noted_and_fit(tmp_path: Path, fault: str) -> None:
    simulated(tmp_path, [{"fault": fault}], Knows.NEITHER)

    report = checked(tmp_path)

    assert report.fit
    assert any(one.outcome is Outcome.NOTED for one in report.findings)


@pytest.mark.parametrize(
    ("fault", "script", "found"),
    [
        ("lost", "requestMachines", "request"),
        ("two", "requestMachines", "request"),
        ("surplus", "requestMachines", "request"),
        ("garbage", "getRequestStatus", "status"),
        ("garbage", "getAvailableTemplates", "templates"),
        ("garbage", "getReturnRequests", "take-backs"),
        ("return-refused", "requestReturnMachines", "return"),
        ("garbage", "listMachines", "listMachines"),
    ],
)
def test_a_broken_provider_is_found_out(
    tmp_path: Path, fault: str, script: str, found: str
) -> None:
    simulated(tmp_path, [{"fault": fault, "script": script}], resources=[])

    report = checked(tmp_path)

    assert not report.fit
    assert found in broken(report), table_of(report)
    if fault not in ("return-refused", "garbage", "flood"):
        assert left_at(tmp_path) == [], report.left


@pytest.mark.parametrize("fault", ["hang", "hang-after"])
def test_a_request_that_never_ends_is_killed_and_what_it_made_goes_back(
    tmp_path: Path, fault: str
) -> None:
    simulated(tmp_path, [{"fault": fault, "script": "requestMachines", "calls": [1]}], resources=[])

    report = checked(tmp_path, call_limit_s=3)

    assert "request" in broken(report)
    assert left_at(tmp_path) == []
    assert not any(any(call.left_of(folder)) for folder in (tmp_path / "kept/calls").iterdir())


def test_a_request_that_runs_for_ever_is_found_out(tmp_path: Path) -> None:
    simulated(tmp_path, [{"fault": "stuck", "script": "requestMachines"}], Knows.NEITHER)

    assert "status" in broken(checked(tmp_path, wait_s=2))


def test_a_provider_where_everything_hangs_is_given_up(tmp_path: Path) -> None:
    simulated(tmp_path, [{"fault": "hang"}], Knows.NEITHER)

    assert broken(checked(tmp_path, call_limit_s=1)) == {"templates", "unknown request"}


def test_tags_that_are_promised_and_not_kept_are_found_out(tmp_path: Path) -> None:
    simulated(tmp_path, resources=[])
    path = tmp_path / "p/conf/simulated.json"
    conf = json.loads(path.read_text())
    conf["capabilities"]["requestTag"] = False
    conf["description"] = {"capabilities": {"requestTag": True, "listing": True}}
    path.write_text(json.dumps(conf))

    report = checked(tmp_path)

    assert "request tags" in broken(report)
    assert left_at(tmp_path) == []


def test_a_folder_without_scripts_is_not_fit(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()

    assert broken(checked(tmp_path)) == {"scripts"}


def test_a_script_that_is_missing_or_cannot_be_executed_is_named(tmp_path: Path) -> None:
    simulated(tmp_path, knows=Knows.NEITHER)
    (tmp_path / "p/scripts/requestReturnMachines.sh").unlink()
    (tmp_path / "p/scripts/getReturnRequests.sh").chmod(0o644)

    report = checked(tmp_path)

    details = [one.detail for one in report.findings if one.what == "scripts"]
    assert details == [
        "there is no requestReturnMachines",
        "getReturnRequests.sh cannot be executed",
    ]
    assert report.left == ("machine vm-0002", "machine vm-0004")


def test_ids_that_are_used_twice_are_found_out(tmp_path: Path) -> None:
    answer = {"requestId": "r", "status": "complete", "machines": [
        {"machineId": "m", "name": "n", "result": "succeed", "launchtime": 1}
    ]}  # fmt: skip
    write_scripts(
        tmp_path / "p",
        {
            "getAvailableTemplates": prints('{"templates": [{"templateId": "t"}]}'),
            "requestMachines": prints('{"requestId": "r"}'),
            "getRequestStatus": prints(json.dumps({"requests": [answer]})),
            "requestReturnMachines": prints('{"requestId": "r"}'),
        },
    )

    assert "second request" in broken(checked(tmp_path))


def test_machines_that_are_still_executing_when_their_request_is_over_are_noted_and_fit(
    tmp_path: Path,
) -> None:
    write_scripts(
        tmp_path / "p",
        {
            "getAvailableTemplates": prints('{"templates": [{"templateId": "t", "maxNumber": 1}]}'),
            "requestMachines": 'grep -q \'"t"\' "$2" || exit 1\n' + prints('{"requestId": "add"}'),
            "getRequestStatus": """if grep -q add "$2"; then
                echo '{"requests": [{"requestId": "add", "status": "complete", "machines": [
                    {"machineId": "m1", "name": "n1", "result": "executing"}]}]}'
            else echo '{"requests": [{"requestId": "ret", "status": "complete"}]}'; fi""",
            "requestReturnMachines": prints('{"requestId": "ret"}'),
        },
    )

    report = checked(tmp_path, wait_s=1)

    assert report.fit, report.findings
    noted = [one.detail for one in report.findings if one.outcome is Outcome.NOTED]
    assert "complete, and 1 machines are still executing" in noted
    assert report.left == ()


def test_processes_that_a_script_leaves_are_ended_and_noted(tmp_path: Path) -> None:
    simulated(tmp_path, knows=Knows.NEITHER)
    path = tmp_path / "p/scripts/getAvailableTemplates.sh"
    body = path.read_text().replace("exec", "setsid sleep 600 >/dev/null 2>&1 &\nexec")
    path.write_text(body)

    report = checked(tmp_path)

    assert report.fit
    assert any("left processes running" in one.detail for one in report.findings)


def test_templates_that_are_wrong_are_named_by_place(tmp_path: Path) -> None:
    simulated(
        tmp_path,
        templates=[{"templateId": "t", "attributes": {"mem": ["Number", "8192"]}}],
        resources=[],
    )

    report = checked(tmp_path)

    details = [one.detail for one in report.findings if one.what == "templates"]
    assert details == [
        'templates[0].attributes.mem: wanted ["String", "Numeric" or "Boolean", value]'
    ]

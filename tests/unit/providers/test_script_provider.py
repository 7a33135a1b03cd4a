"""The caller of scripts: every rule of section 3 of the provider contract that a caller keeps."""

import json
from pathlib import Path

import pytest

from tests.unit.providers.scripts import (
    ACCEPTS,
    COUNT,
    NOW,
    hosts,
    prints,
    provider,
    runs,
    status_of,
)
from xce.adapters.providers import call
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.providers.evidence import HIDDEN, Evidence
from xce.domain.errors import InputError, TransientError
from xce.domain.formats.provider import Kind
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    MachineReport,
    MachineResult,
    Refused,
    ReportedMachine,
    RequestStatus,
    TakeBack,
)


# ---------------------------------------------------------------------- how it is called
def test_a_script_gets_two_arguments_a_folder_of_its_own_and_nothing_on_stdin(
    tmp_path: Path,
) -> None:
    body = (
        'printf "%s|" "$#" "$1" "$(cat)" "$(pwd)" >"$PRO_DATA_DIR/how"; touch here; cp "$2" "$PRO_DATA_DIR/in"; '
        + ACCEPTS
    )
    made = provider(tmp_path, {"requestMachines": body})

    made.ask(hosts(3), NOW)

    data = tmp_path / "kept" / "data"
    count, flag, stdin, folder, _ = (data / "how").read_text().split("|")
    assert (count, flag, stdin) == ("2", "-f", "")
    assert Path(folder).parts[-1] == "work"
    assert json.loads((data / "in").read_text()) == {
        "template": {"templateId": "t1", "machineCount": 3},
        "rc_account": "default",
        "userData": {},
    }


def test_a_script_finds_both_families_of_variables_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XCE_TOKEN", "secret-of-the-daemon")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    made = provider(
        tmp_path,
        {"requestMachines": 'env >"$PRO_DATA_DIR/env"; ' + ACCEPTS},
        options="-x",
        environment={"SITE": "here"},
    )

    made.ask(hosts(), NOW)

    found = dict(
        line.split("=", 1) for line in (tmp_path / "kept/data/env").read_text().splitlines()
    )
    expected = {
        "PRO_LSF_TOP", "PRO_CONF_DIR", "PRO_DATA_DIR", "PRO_LSF_LOGDIR", "PROVIDER_NAME",
        "SCRIPT_OPTIONS", "LSF_ENVDIR", "HF_PROVIDER_NAME", "HF_PROVIDER_CONFDIR",
        "HF_PROVIDER_WORKDIR", "HF_PROVIDER_LOGDIR", "PATH", "LC_ALL", "SITE", "XCE_REQUEST_TAG",
        call.MARK,
    }  # fmt: skip
    assert expected <= found.keys()
    assert found.keys() - expected <= {"PWD", "OLDPWD", "SHLVL", "_"}
    assert (found["XCE_REQUEST_TAG"], found["SCRIPT_OPTIONS"]) == ("R1", "-x")
    assert Path(found["PRO_LSF_LOGDIR"]).is_dir()


def test_a_script_finds_the_tag_of_its_own_request_and_of_no_other(tmp_path: Path) -> None:
    noted = 'echo "$(basename "$0") <$XCE_REQUEST_TAG>" >>"$PRO_DATA_DIR/tags"; '
    returned = """echo '{"requestId": "ret-1", "message": ""}'"""
    scripts = {
        "requestMachines": noted + ACCEPTS,
        "getRequestStatus": noted + prints(status_of([])),
        "requestReturnMachines": noted + returned,
    }
    made = provider(tmp_path, scripts)

    made.ask(hosts(1, "R1"), NOW)
    made.status("add-1", NOW)
    made.give_back("B1", ("vm-1",), (), NOW)
    made.ask(hosts(1, "R2"), NOW)

    assert (tmp_path / "kept/data/tags").read_text().splitlines() == [
        "requestMachines.sh <R1>",
        "getRequestStatus.sh <>",
        "requestReturnMachines.sh <>",
        "requestMachines.sh <R2>",
    ]


def test_scripts_are_found_with_and_without_ending_and_folder(tmp_path: Path) -> None:
    made = provider(tmp_path, {})
    bare = tmp_path / "provider" / "requestMachines"
    bare.write_text("#!/bin/sh\n" + ACCEPTS)
    bare.chmod(0o755)

    again = provider(tmp_path, {})

    assert made.ask(hosts(), NOW) == Refused("ScriptMissing", "there is no script requestMachines")
    assert again.ask(hosts(), NOW) == Accepted("add-1")


# ------------------------------------------------------------------------------ answers
def test_an_accepted_ask_has_the_providers_id(tmp_path: Path) -> None:
    assert provider(tmp_path, {"requestMachines": ACCEPTS}).ask(hosts(), NOW) == Accepted("add-1")


@pytest.mark.parametrize(
    ("text", "exit_code", "code", "why"),
    [
        ('{"message": "Error Code: InsufficientCapacity no room"}', 1, "InsufficientCapacity", "Error Code: InsufficientCapacity no room"),
        ("plain words", 1, "Failed", "plain words"),
        ("", 3, "Failed", "exit code 3"),
        ('{"message": "quota"}', 0, "Failed", "quota"),
        ('{"requestId": "", "message": "Error Code: cannot_start_network"}', 0, "cannot_start_network", "Error Code: cannot_start_network"),
    ],
)  # fmt: skip
def test_a_failure_is_a_refusal_with_its_code_and_words(
    tmp_path: Path, text: str, exit_code: int, code: str, why: str
) -> None:
    made = provider(tmp_path, {"requestMachines": prints(text, exit_code)})

    answer = made.ask(hosts(), NOW)

    assert isinstance(answer, Refused)
    assert (answer.code, answer.why.strip()) == (code, why)


@pytest.mark.parametrize(
    "body",
    [
        "true",
        "echo no json",
        prints('{"requestId": "a"}\n{"requestId": "b"}'),
        prints("{}"),
        "kill -9 $$",
        prints('{"requestId": "a\\nb"}'),
    ],
)
def test_an_answer_that_cannot_be_read_is_unknown_and_is_not_asked_again(
    tmp_path: Path, body: str
) -> None:
    made = provider(tmp_path, {"requestMachines": COUNT + body})

    for _ in range(2):
        with pytest.raises(OutcomeUnknownError) as caught:
            made.ask(hosts(), NOW)
        assert caught.value.suspect is None

    assert runs(tmp_path) == 1


def test_an_id_beside_a_failure_is_suspect(tmp_path: Path) -> None:
    made = provider(tmp_path, {"requestMachines": COUNT + prints('{"requestId": "add-7"}', 1)})

    for _ in range(2):
        with pytest.raises(OutcomeUnknownError) as caught:
            made.ask(hosts(), NOW)
        assert caught.value.suspect == "add-7"

    assert runs(tmp_path) == 1


def test_with_request_tags_an_unknown_ask_is_repeated_under_its_tag(tmp_path: Path) -> None:
    body = (
        COUNT
        + 'if [ "$(wc -l <"$PRO_DATA_DIR/runs")" = 1 ]; then exit 0; fi; '
        + prints('{"requestId": "add-1"}')
    )
    made = provider(
        tmp_path,
        {"requestMachines": body},
        description={"name": "p", "capabilities": {"requestTag": True}},
    )

    with pytest.raises(OutcomeUnknownError):
        made.ask(hosts(), NOW)

    assert made.ask(hosts(), NOW) == Accepted("add-1")
    assert runs(tmp_path) == 2


# ------------------------------------------------------------------------------- limits
def test_a_script_that_never_ends_is_killed_with_its_children(tmp_path: Path) -> None:
    body = 'sleep 600 & setsid sleep 600 & echo $! >"$PRO_DATA_DIR/child"; wait'
    made = provider(tmp_path, {"getRequestStatus": body}, call_limit="1s")

    with pytest.raises(TransientError, match="no end after 1 s"):
        made.status("add-1", NOW)

    child = int((tmp_path / "kept/data/child").read_text())
    assert not _lives(child)


def test_a_script_that_prints_without_end_is_stopped_at_the_limit(tmp_path: Path) -> None:
    made = provider(tmp_path, {"getRequestStatus": "yes"}, output_limit=100_000)

    with pytest.raises(TransientError, match="more than 100000 bytes on stdout"):
        made.status("add-1", NOW)


def test_three_megabytes_of_machines_are_read(tmp_path: Path) -> None:
    machines: list[dict[str, object]] = [
        {"machineId": f"vm-{n}", "name": f"n{n}", "result": "succeed", "more": "x" * 500}
        for n in range(5000)
    ]
    (tmp_path / "answer").write_text(status_of(machines))
    made = provider(tmp_path, {"getRequestStatus": f"cat {tmp_path}/answer"})

    assert len(made.status("add-1", NOW).machines) == 5000


# ------------------------------------------------------------------------------- status
def test_what_existing_scripts_print_is_understood(tmp_path: Path) -> None:
    text = """{'requests': {'requestId': 'add-1', 'status': 'complete_with_error', 'message': None, 'machines': [
        {'machineId': 'vm-1', 'name': 'n1', 'result': 'succeed', 'launchtime': '1770000000', 'rcAccount': 'x'},
        {'machineId': 'vm-1', 'name': 'n1', 'result': 'succeed', 'launchtime': ''},
        {'machineId': 'vm-2', 'name': '', 'result': 'executing', 'launchtime': 1770000000},
        {'machineId': '', 'name': 'n3', 'result': 'executing'},
        {'machineId': 'vm-4', 'name': 'n4', 'result': 'fail', 'message': 'bad \\x1b[31mdisk'},]}}"""
    made = provider(tmp_path, {"getRequestStatus": prints(text)})

    answer = made.status("add-1", NOW)

    assert answer.status is RequestStatus.COMPLETE_WITH_ERROR
    assert [(one.machine, one.name, one.result.value) for one in answer.machines] == [
        ("vm-1", "n1", "succeed"),
        ("vm-2", "vm-2", "executing"),
        ("vm-4", "n4", "fail"),
    ]
    assert answer.machines[0].launched_at is not None
    assert answer.machines[2].message == "bad disk"


def test_a_terminal_answer_is_asked_for_once_also_after_a_restart(tmp_path: Path) -> None:
    scripts = {
        "getRequestStatus": COUNT
        + prints(status_of([{"machineId": "vm-1", "name": "n1", "result": "succeed"}]))
    }
    first = provider(tmp_path, scripts).status("add-1", NOW)
    again = provider(tmp_path, scripts).status("add-1", NOW)

    assert first == again
    assert first.machines == (MachineReport("vm-1", "n1", MachineResult.SUCCEED),)
    assert runs(tmp_path) == 1


def test_one_bad_id_does_not_spoil_the_others(tmp_path: Path) -> None:
    body = COUNT + (
        'if grep -q bad "$2"; then echo "no such request"; exit 1; fi; '
        'id=$(sed "s/.*requestId\\":\\"\\([a-z0-9-]*\\)\\".*/\\1/" "$2"); '
        'echo "{\\"requests\\": [{\\"requestId\\": \\"$id\\", \\"status\\": \\"running\\"}]}"'
    )
    made = provider(tmp_path, {"getRequestStatus": body})

    answers = made.statuses(["add-1", "bad", "add-2"], NOW)

    assert isinstance(answers["bad"], TransientError)
    assert [type(answers[one]).__name__ for one in ("add-1", "add-2")] == ["StatusAnswer"] * 2
    assert runs(tmp_path) == 4


def test_at_most_a_hundred_ids_go_into_one_call(tmp_path: Path) -> None:
    body = 'grep -o requestId "$2" | wc -l >>"$PRO_DATA_DIR/sizes"; echo \'{"requests": []}\''
    made = provider(tmp_path, {"getRequestStatus": body})

    made.statuses([f"add-{n}" for n in range(250)], NOW)

    assert (tmp_path / "kept/data/sizes").read_text().split() == ["100", "100", "50"]


def test_two_different_answers_to_one_id_are_none(tmp_path: Path) -> None:
    text = json.dumps({"requests": [
        {"requestId": "add-1", "status": "running"}, {"requestId": "add-1", "status": "complete"}
    ]})  # fmt: skip
    made = provider(tmp_path, {"getRequestStatus": prints(text)})

    with pytest.raises(TransientError, match="two different things"):
        made.status("add-1", NOW)


# ------------------------------------------------------------------------------ returns
RETURNS = {
    "requestReturnMachines": 'cp "$2" "$PRO_DATA_DIR/returned"; '
    + COUNT
    + """echo '{"requestId": "ret-1", "message": ""}'""",
    "getRequestStatus": """echo '{"requests": [{"requestId": "ret-1", "status": "complete", "machines": []},
        {"requestId": "add-1", "status": "complete", "machines": [{"machineId": "vm-1", "name": "Node1", "result": "succeed"}]}]}'""",
}


def test_a_machine_goes_back_by_the_name_and_id_that_the_provider_reported(tmp_path: Path) -> None:
    made = provider(tmp_path, RETURNS)
    made.status("add-1", NOW)

    assert made.give_back("B1", ("vm-1",), (), NOW) == Accepted("ret-1")
    assert json.loads((tmp_path / "kept/data/returned").read_text()) == {
        "machines": [{"name": "Node1", "machineId": "vm-1"}]
    }
    assert made.return_status("B1", NOW).gone == {"vm-1"}


def test_an_accepted_return_is_not_made_again_and_a_refused_one_is(tmp_path: Path) -> None:
    made = provider(tmp_path, RETURNS)
    made.give_back("B1", ("vm-1",), (), NOW)
    made.give_back("B1", ("vm-1",), (), NOW)
    assert runs(tmp_path) == 1

    refusing = provider(tmp_path, {"requestReturnMachines": COUNT + prints("busy", 1)})
    for _ in range(2):
        assert refusing.give_back("B2", ("vm-1",), (), NOW) == Refused("Failed", "busy")
    assert runs(tmp_path) == 3


def test_a_return_made_elsewhere_is_asked_after_by_the_providers_id(tmp_path: Path) -> None:
    made = provider(tmp_path, RETURNS)

    assert made.return_status("B9", NOW, theirs="ret-1").status is RequestStatus.COMPLETE
    assert made.return_status("B9", NOW).gone == frozenset()


def test_many_machines_go_back_in_parts_under_one_id(tmp_path: Path) -> None:
    body = COUNT + 'n=$(wc -l <"$PRO_DATA_DIR/runs"); echo "{\\"requestId\\": \\"ret-$n\\"}"'
    status = (
        'sed "s/{\\"requestId\\":\\"\\([a-z0-9-]*\\)\\"}/'
        '{\\"requestId\\":\\"\\1\\",\\"status\\":\\"complete\\"}/g" "$2"'
    )
    made = provider(tmp_path, {"requestReturnMachines": body, "getRequestStatus": status})
    machines = tuple(f"vm-{n}" for n in range(150))

    answer = made.give_back("B1", machines, (), NOW)

    assert answer == Accepted('["ret-1", "ret-2"]')
    assert made.return_status("B1", NOW).gone == set(machines)


def test_nothing_is_never_given_back(tmp_path: Path) -> None:
    made = provider(tmp_path, RETURNS)

    assert isinstance(made.give_back("B1", (), (), NOW), Refused)
    assert runs(tmp_path) == 0


def test_without_the_script_amounts_are_refused(tmp_path: Path) -> None:
    answer = provider(tmp_path, {}).give_back("B1", (), (GrantBack("g", 1),), NOW)

    assert answer == Refused("ScriptMissing", "there is no script requestReturnResources")


def test_take_backs_are_known_by_id_or_name_and_may_be_of_others(tmp_path: Path) -> None:
    text = json.dumps({"requests": [
        {"machine": "Node1", "gracePeriod": "120"}, {"machine": "alien"}, {"machineId": "vm-9"}, {"machine": ""}
    ]})  # fmt: skip
    made = provider(tmp_path, {"getReturnRequests": prints(text)})

    assert made.take_backs({"vm-1": "Node1"}, NOW) == (
        TakeBack("vm-1", 120),
        TakeBack("alien"),
        TakeBack("vm-9"),
    )
    assert provider(tmp_path / "other", {}).take_backs({"vm-1": "Node1"}, NOW) == ()


# -------------------------------------------------------------------------- description
TEMPLATES = """{"templates": [
    {"templateId": "t1", "maxNumber": "-1", "priority": "3", "priceInfo": "price:0.17,unit:hour",
     "attributes": {"ncpus": ["Numeric", "2"], "ncores": ["Numeric", 4], "mem": ["Numeric", "8192"],
                    "type": ["String", "X86"], "burst": ["Boolean", "1"]}, "vmType": "m5"},
    {"templateId": "bad", "attributes": {"ncpus": "4"}, "maxNumber": "many"}]}"""


def test_templates_become_offers_and_a_bad_one_is_left_out(tmp_path: Path) -> None:
    described = provider(tmp_path, {"getAvailableTemplates": prints(TEMPLATES)}).describe(NOW)

    assert described is not None
    (offer,) = described.templates
    assert (described.contract, offer.template_id, offer.max_number, offer.priority) == (
        1,
        "t1",
        -1,
        3,
    )
    assert offer.provides == {"slots": 8, "mem": 8192}
    assert offer.attributes == {"ncpus": 2, "ncores": 4, "mem": 8192, "type": "X86", "burst": True}
    assert str(offer.price_per_hour) == "0.17"


@pytest.mark.parametrize("later", ['{"templates": []}', "garbage", '{"message": "down"}'])
def test_a_failure_or_an_empty_list_keeps_the_last_good_list(tmp_path: Path, later: str) -> None:
    provider(tmp_path, {"getAvailableTemplates": prints(TEMPLATES)}).describe(NOW)
    made = provider(tmp_path, {"getAvailableTemplates": prints(later)})

    assert made.describe(NOW) is None


def test_what_the_settings_say_wins_over_the_scripts(tmp_path: Path) -> None:
    made = provider(
        tmp_path,
        {
            "getAvailableTemplates": prints(TEMPLATES),
            "getProviderDescription": prints(
                '{"contract": 2, "kinds": ["host"], "capabilities": {"requestTag": true}, "leadTime": {"p50": 60, "p95": "2m"}, "rack": "A7"}'
            ),
        },
        description={
            "name": "p",
            "capacity": 7,
            "templates": [{"templateId": "t1", "pricePerHour": "0.20"}],
        },
    )

    described = made.describe(NOW)

    assert described is not None
    assert (described.contract, described.capacity) == (2, 7)
    assert described.capabilities.request_tag
    assert described.lead_time.p95.total_seconds() == 120
    assert described.attributes == {"rack": "A7"}
    assert (str(described.templates[0].price_per_hour), described.templates[0].priority) == (
        "0.20",
        3,
    )


def test_a_version_2_script_gets_the_tag_in_its_input(tmp_path: Path) -> None:
    made = provider(
        tmp_path,
        {
            "getProviderDescription": prints('{"contract": 2}'),
            "getAvailableTemplates": prints(TEMPLATES),
            "requestMachines": 'cp "$2" "$PRO_DATA_DIR/in"; ' + ACCEPTS,
        },
    )
    made.describe(NOW)

    made.ask(hosts(), NOW)

    assert json.loads((tmp_path / "kept/data/in").read_text())["requestTag"] == "R1"


def test_without_a_list_holdings_are_unknown_and_not_nothing(tmp_path: Path) -> None:
    assert provider(tmp_path, {}).holdings(NOW) is None
    listing = {"listMachines": prints('{"machines": []}')}
    assert provider(tmp_path / "other", listing).holdings(NOW) == ()
    broken = {"listMachines": prints("too many requests", 1)}
    with pytest.raises(TransientError):
        provider(tmp_path / "third", broken).holdings(NOW)


# ----------------------------------------------------------------------------- evidence
def test_evidence_has_no_secret_no_terminal_code_and_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_TOKEN", "s3cr3t-value")
    heard: list[Evidence] = []
    body = (
        'printf "token is %s \\033[31m\\nforged: line" "$CLOUD_TOKEN" >&2; '
        'echo "password=hunter22"; yes abcdefgh | head -c 20000; ' + ACCEPTS
    )
    made = provider(
        tmp_path,
        {"requestMachines": body},
        secrets=["CLOUD_TOKEN"],
        evidence_limit=1000,
        on_call=heard.append,
    )

    made.ask(hosts(), NOW)

    (one,) = heard
    assert (one.script, one.subject, one.exit_code, one.step) == (
        "requestMachines",
        "R1",
        0,
        "outermost object",
    )
    assert one.log == f"token is {HIDDEN} \nforged: line"
    assert one.output.startswith(f"password={HIDDEN}")
    assert len(one.output) < 1010
    assert len(one.digest) == 64
    assert one.seconds is not None


def test_a_secret_that_is_not_set_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="XCE_TEST_NOT_SET"):
        provider(tmp_path, {}, secrets=["XCE_TEST_NOT_SET"])


def test_countable_resources_are_asked_for_by_tag(tmp_path: Path) -> None:
    made = provider(tmp_path, {"requestResources": 'cp "$2" "$PRO_DATA_DIR/in"; ' + ACCEPTS})

    assert made.ask(Ask("R1", Kind.COUNTABLE, "lic", 5, 2), NOW) == Accepted("add-1")
    assert json.loads((tmp_path / "kept/data/in").read_text()) == {
        "resource": "lic",
        "amount": 5,
        "leastUseful": 2,
        "requestTag": "R1",
    }


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# ------------------------------------------------------------------- ids used again
def test_an_id_that_a_provider_uses_again_is_asked_after_again(tmp_path: Path) -> None:
    """Its counter began anew: what it said of the earlier request says nothing of this one."""
    status = (
        'n=$(wc -l <"$PRO_DATA_DIR/runs"); echo "{\\"requests\\": [{\\"requestId\\": \\"add-1\\", \\"status\\": \\"complete\\",'
        ' \\"machines\\": [{\\"machineId\\": \\"vm-$n\\", \\"name\\": \\"n\\", \\"result\\": \\"succeed\\"}]}]}"'
    )
    made = provider(tmp_path, {"requestMachines": ACCEPTS, "getRequestStatus": status})
    brought: list[str] = []
    for tag in ("R1", "R2", "R3"):
        assert made.ask(hosts(tag=tag), NOW) == Accepted("add-1")
        assert made.recall(tag) == Accepted("add-1")
        brought += [one.machine for one in made.status("add-1", NOW).machines]
        brought += [one.machine for one in made.status("add-1", NOW).machines]

    assert brought == ["vm-1", "vm-1", "vm-2", "vm-2", "vm-3", "vm-3"]


def test_an_id_of_a_return_that_a_provider_uses_again_is_asked_after_again(tmp_path: Path) -> None:
    status = 'echo "{\\"requests\\": [{\\"requestId\\": \\"ret-1\\", \\"status\\": \\"$(cat "$PRO_DATA_DIR/state")\\"}]}"'
    made = provider(tmp_path, {**RETURNS, "getRequestStatus": status})
    state = tmp_path / "kept" / "data" / "state"
    for return_id, machine in (("B1", "vm-1"), ("B2", "vm-2")):
        state.write_text("running")
        made.give_back(return_id, (machine,), (), NOW)
        assert made.return_status(return_id, NOW).gone == frozenset()
        state.write_text("complete")
        assert made.return_status(return_id, NOW).gone == {machine}


# ------------------------------------------------------------------- health checks
REPORTED = (
    ReportedMachine("i-1", "node-1", "n1", "t1"),
    ReportedMachine("i-2", "node-2", "n2", "t1"),
)
ONE_TEMPLATE = prints('{"templates": [{"templateId": "t1", "attributes": {}}]}')


def test_a_check_is_told_machines_and_hosts_and_says_which_are_in_order(tmp_path: Path) -> None:
    said = (
        '{"machines": [{"machineId": "i-1", "result": "succeed"}, '
        '{"machineId": "i-2", "result": "fail", "message": "no /scratch"}]}'
    )
    body = 'cp "$2" "$PRO_DATA_DIR/in"; ' + prints(said)
    made = provider(tmp_path, {"checkMachines": body})

    found = made.check(REPORTED, NOW)

    assert found.results == (
        ("i-1", MachineResult.SUCCEED, ""),
        ("i-2", MachineResult.FAIL, "no /scratch"),
    )
    given = json.loads((tmp_path / "kept" / "data" / "in").read_text())
    assert given["machines"][0] == {
        "name": "node-1", "machineId": "i-1", "host": "n1", "templateId": "t1",
    }  # fmt: skip


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$", "echo no json", prints("{}")])
def test_a_check_that_itself_fails_says_nothing_of_any_machine(tmp_path: Path, body: str) -> None:
    made = provider(tmp_path, {"checkMachines": body})

    with pytest.raises(TransientError, match="checkMachines"):
        made.check(REPORTED, NOW)


def test_a_provider_checks_hosts_where_there_is_a_program_that_does(tmp_path: Path) -> None:
    scripts = {"getAvailableTemplates": ONE_TEMPLATE}
    none = provider(tmp_path / "none", scripts).describe(NOW)
    own = provider(tmp_path / "own", {**scripts, "checkMachines": "true"}).describe(NOW)
    program = tmp_path / "check"
    program.write_text("#!/bin/sh\n" + prints('{"machines": [{"machineId": "i-1"}]}'))
    program.chmod(0o755)
    other = provider(tmp_path / "other", scripts, health_check=str(program))
    described = other.describe(NOW)

    assert none is not None
    assert own is not None
    assert described is not None
    assert [one.checks("t1") for one in (none, own, described)] == [False, True, True]
    assert other.check(REPORTED, NOW).results == (("i-1", MachineResult.EXECUTING, ""),)
    assert provider(tmp_path / "none", scripts).check(REPORTED, NOW).results == ()

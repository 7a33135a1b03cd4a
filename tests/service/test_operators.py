"""``xcecli`` against a real controller: what it lists, what it does, how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.service.running import TOKENS
from tests.service.test_rest import good, open_request, order
from tests.service.test_scheduler import Site, check_hosts, site, start_drain, with_an_idle_host
from xce.adapters.cli import exit_codes
from xce.adapters.cli.operators import showing
from xce.adapters.cli.operators.main import app
from xce.domain.engine.messages import Role
from xce.domain.errors import XceError

__all__ = ["site"]
LIC = {"owned": 2, "provider": None, "max_borrow": 0, "step": 1, "idle_return_after": "1h", "min_hold": "0s"}  # fmt: skip


class Operator:
    """A person at a terminal."""

    def __init__(self, address: str, role: Role = Role.ADMIN) -> None:
        self._environment = {"XCE_ADDRESS": address, "XCE_TOKEN": TOKENS[role], "HOME": "/nowhere"}

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, list(words), env=self._environment)

    def says(self, *words: str) -> str:
        result = self.run(*words)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.says(*words, "--json"))

    def code(self, *words: str) -> tuple[int, str]:
        """The exit code, and why."""
        result = self.run(*words)
        if isinstance(result.exception, XceError):
            return exit_codes.exit_code_of(result.exception), str(result.exception)
        return result.exit_code, result.output


@pytest.fixture
def admin(site: Site) -> Operator:
    return Operator(site.running.address)


LISTS = (
    "demand", "providers", "requests", "instances", "grants", "shared", "leases", "costs", "decisions", "orphans", "drains",
    "audit", "status", "alerts",
)  # fmt: skip


def busy(site: Site) -> str:
    """Something in every list; the provisioned host's name."""
    good(site.running.admin.put("/v1/shared/lic", json=LIC))
    name = with_an_idle_host(site)
    site.submit(6)
    site.round()
    start_drain(site)
    site.round()
    found = {
        "provider": "cloud",
        "theirs": "m9",
        "kind": "unknown_to_us",
        "tag": None,
        "why": "listed",
    }
    order(site.cloud, {"command": "report-orphan", **found})
    decision = {
        "command": "record-decision", "decision": "D1", "provider": "cloud", "deed": "request", "item": "c4", "amount": 1,
        "reason": "jobs wait", "jobs": ["6"], "demand_position": 1, "demand_digest": None, "cost_per_hour": "0.34",
        "led_to": ["request:R1"],
    }  # fmt: skip
    order(site.cloud, decision)
    return name


def test_every_list_answers_people_and_programs_also_when_it_is_empty(
    site: Site, admin: Operator
) -> None:
    for name in LISTS:
        admin.says(name)
        assert isinstance(admin.json(name), dict)
    name = busy(site)
    words = {
        "demand": "hosts c4", "providers": "c4 (up to 5)", "requests": "R1", "instances": name, "shared": "lic",
        "leases": "provisioner-1", "costs": "0.17", "decisions": "jobs wait", "orphans": "cloud/m9",
        "audit": "orphan.found", "status": "position",
    }  # fmt: skip
    for command, word in words.items():
        assert word in admin.says(command), command


def test_a_document_has_what_the_interface_gives(site: Site, admin: Operator) -> None:
    busy(site)

    for name in ("providers", "requests", "instances", "shared", "orphans", "decisions"):
        assert admin.json(name) == good(site.cloud.get(f"/v1/{name}")), name


def test_times_name_their_zone(site: Site, admin: Operator) -> None:
    busy(site)

    assert " UTC" in admin.says("instances")
    assert admin.run("--local", "instances").exit_code == 0


def test_a_waiting_job_is_followed_from_its_reason_to_what_is_expected(
    site: Site, admin: Operator
) -> None:
    site.submit(2)
    site.round()
    assert admin.says("why", "1").splitlines() == ["job 1 starts on own-1"]

    text = admin.says("why", "2")
    assert "job 2 waits: no_resource" in text
    assert "would help: 1 new host of c4" in text
    assert "nothing has been asked for it yet" in text

    hold = {
        "kind": "hold",
        "reason": "budget site: 10 of 10 used",
        "template": "c4",
        "count": 1,
        "jobs": ["2"],
    }
    good(
        site.cloud.put(
            "/v1/standing", json={"holds": [hold, hold | {"jobs": ["9"], "reason": "other"}]}
        )
    )
    text = admin.says("why", "2")
    assert "  held: budget site: 10 of 10 used\n  nothing has been asked for it yet" in text
    assert "other" not in text
    assert admin.json("why", "2")["held"] == ["budget site: 10 of 10 used"]

    request = {"jobs": ["2"], "demand_position": 1}
    site.obtain("R1", "m1", **request)
    site.round()
    text = admin.says("why", "2")
    assert "asked: 1 of c4 at cloud as R1" in text
    assert "cloud/m1 is starting" in text
    assert "on its way: cloud/m1" in text
    site.round()
    assert "starts on n-m1" in admin.says("why", "2")
    assert admin.json("why", "2")["requests"][0]["instances"][0]["state"] == "joined"
    site.round()
    assert "job 2 runs on n-m1" in admin.says("why", "2")
    code, why = admin.code("why", "4711")
    assert (code, "job 4711 is not known here" in why) == (3, True)


def test_a_host_that_is_checked_is_shown_as_that(site: Site, admin: Operator) -> None:
    check_hosts(site)
    site.submit(2)
    site.round()
    site.obtain("R1", "m1", jobs=["2"], demand_position=1)
    for _ in range(3):
        site.round()

    (row,) = [line for line in admin.says("instances").splitlines() if "cloud/m1" in line]
    assert "n-m1" in row
    assert "checked" in row
    assert "cloud/m1 is starting, in its health check since " in admin.says("why", "2")
    (entry,) = admin.json("instances")["items"]
    assert (entry["state"], entry["reported_as"]) == ("starting", "n-m1")


def test_a_freeze_is_shown_where_it_matters(site: Site, admin: Operator) -> None:
    site.submit(2)
    site.round()
    assert "frozen" in admin.says("freeze", "--why", "audit week")
    assert "frozen already" in admin.says("freeze")

    assert "by admin/admin-1: audit week" in admin.says("status")
    assert "but the site is frozen: audit week" in admin.says("why", "2")
    assert "acts again" in admin.says("unfreeze")


def test_a_host_is_drained_opened_and_given_back(site: Site, admin: Operator) -> None:
    name = with_an_idle_host(site)
    said = admin.says("drain", name, "--why", "disk")
    assert "asked: takes no new work once the scheduler has obeyed" in said
    assert "confirmed" not in said, "the scheduler has told of it"
    (drain,) = admin.json("drains")["items"]
    assert (drain["host"], drain["why"], drain["by"]) == (name, "disk", "admin/admin-1")
    assert "already" in admin.says("drain", name)
    assert "asked: takes work again once the scheduler has obeyed" in admin.says("open", name)

    assert "goes back when it is empty" in admin.says(
        "return", "cloud/m1", "--deadline", "30min", "--at-deadline", "requeue"
    )

    (drain,) = admin.json("drains")["items"]
    assert (drain["instance"], drain["at_deadline"]) == ("cloud/m1", "requeue")
    assert admin.json("instances")["items"][0]["state"] == "draining"


def test_a_host_that_the_cluster_does_not_have_is_not_drained_and_near_names_are_told(
    site: Site, admin: Operator
) -> None:
    name = with_an_idle_host(site)

    code, why = admin.code("drain", "OWN-2")
    assert (code, "has no host OWN-2; did you mean own-1?" in why) == (3, True)
    code, why = admin.code("open", "nowhere.example")
    assert (code, why.endswith("has no host nowhere.example")) == (3, True)

    assert admin.json("drains")["items"] == []
    assert admin.json("drain", name)["confirmed"] is True
    assert admin.json("open", name)["confirmed"] is True
    assert "never drained" in admin.code("open", "own-1")[1]


def test_before_a_scheduler_has_told_of_hosts_a_drain_says_that_nobody_has_confirmed_it(
    site: Site, admin: Operator
) -> None:
    said = admin.says("drain", "own-2")

    assert "nobody has confirmed that the cluster has a host own-2" in said
    assert admin.json("drain", "own-2") | {"versions": {}} == {
        "changed": False, "versions": {}, "epochs": {}, "confirmed": False,
    }  # fmt: skip
    site.round()
    assert "asked" in admin.says("open", "own-2"), "what drains is opened, also when it is unknown"
    assert admin.code("drain", "own-2")[0] == 3


def test_a_provider_is_paused_and_resumed(site: Site, admin: Operator) -> None:
    assert "nothing is asked of c4 at cloud until" in admin.says(
        "provider", "pause", "cloud", "--item", "c4", "--for", "2h", "--why", "prices"
    )
    assert "prices" in admin.says("providers")
    code, why = admin.code("provider", "pause", "cloud", "--item", "c40")
    assert (code, "cloud offers no c40; it offers c4" in why) == (3, True)
    assert "there is no provider clod" in admin.code("provider", "pause", "clod", "--item", "c4")[1]
    assert "--item ends the pause of one template" in admin.says("provider", "resume", "cloud")
    assert "may be asked again" in admin.says("provider", "resume", "cloud", "--item", "c4")
    assert "was not paused" in admin.says("provider", "resume", "cloud", "--item", "c4")


def test_the_help_of_resume_says_which_pause_ends_without_an_item(admin: Operator) -> None:
    said = " ".join(admin.says("provider", "resume", "--help").replace("│", " ").split())

    assert "else only the pause of the whole provider ends" in said
    assert "all of it" not in said


def test_a_long_reason_for_a_pause_is_cut_for_people_and_whole_for_programs(
    site: Site, admin: Operator
) -> None:
    why = "Traceback (most recent call last):\n" + 40 * "  in call_that_failed\n"
    admin.says("provider", "pause", "cloud", "--item", "c4", "--why", why)

    (row,) = [line for line in admin.says("providers").splitlines() if "c4 until" in line]

    assert row.rstrip().endswith("…")
    assert len(row[row.index("Traceback") :].rstrip()) <= showing.BRIEF
    assert admin.json("providers")["items"][0]["pauses"][0]["why"] == why
    admin.says("provider", "pause", "cloud", "--why", "out")
    (row,) = [line for line in admin.says("providers").splitlines() if " until " in line]
    assert "all of it until" in row
    assert row.rstrip().endswith(": out and 1 more")


def test_orphans_are_dismissed_and_asks_given_up(site: Site, admin: Operator) -> None:
    busy(site)
    assert "not reported again" in admin.says("orphan", "dismiss", "cloud/m9")
    assert admin.json("orphans")["items"] == []
    order(site.cloud, open_request("R9"))
    assert "request R9 is given up" in admin.says("cancel", "R9")
    assert admin.code("cancel", "R1")[0] == 3


def test_costs_are_put_down_to_whose_jobs_run_there(site: Site, admin: Operator) -> None:
    with_an_idle_host(site)
    assert admin.json("costs", "--by", "user")["items"] == [
        {"user": "(nobody: idle)", "per_hour": "0.1700"}
    ]
    site.submit(3)
    site.round()
    site.round()

    assert admin.json("costs", "--by", "user")["items"] == [
        {"user": "nobody", "per_hour": "0.1700"}
    ]
    assert "  0.17\n" in admin.says("costs", "--by", "project")


def test_costs_are_shown_by_day_and_month(site: Site, admin: Operator) -> None:
    assert "nothing was spent" in admin.says("costs", "--by", "day")
    with_an_idle_host(site)

    (day,) = admin.json("costs", "--by", "day", "--zone", "Europe/Berlin")["items"]
    assert [line["item"] for line in day["lines"]] == ["c4"]
    assert "c4" in admin.says("costs", "--by", "month")
    assert admin.code("costs", "--by", "day", "--zone", "Mars")[0] != 0


def test_the_newest_events_are_filtered(site: Site, admin: Operator) -> None:
    busy(site)

    items = admin.json("audit", "--kind", "instance", "--limit", "1")["items"]

    assert [one["name"] for one in items] == ["xce.instance.drain-started"]
    assert admin.json("audit", "--of", "orphan:cloud/m9")["items"][0]["data"]["why"] == "listed"
    assert admin.json("audit", "--by", "nobody")["items"] == []


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("drain", "h", "--at-deadline", "requeue"), 2, "needs --deadline"),
        (("drain", "h", "--deadline", "soon"), 2, "soon"),
        (("open", "own-9"), 3, "never drained"),
        (("return", "cloud/m7"), 3, "no instance cloud/m7"),
        (("provider", "pause", "cloud", "--for", "0s"), 2, "above 0"),
        (("orphan", "dismiss", "x"), 3, "no open orphan"),
        (("nonsense",), 2, "nonsense"),
        (("--address", "localhost", "status"), 2, "wanted one such as"),
        (("--token-file", "/nowhere", "status"), 2, "cannot be read"),
        (("--config", "/nowhere", "status"), 2, "cannot be read"),
    ],
)
def test_mistakes_end_with_the_code_of_their_kind(
    site: Site, admin: Operator, words: tuple[str, ...], code: int, why: str
) -> None:
    assert admin.code(*words)[0] == code
    assert why in admin.code(*words)[1]


def test_who_may_not_is_told_so_and_nobody_is_asked_who_they_are(site: Site) -> None:
    code, why = Operator(site.running.address, Role.VIEWER).code("freeze")
    assert (code, "the role viewer may not freeze" in why) == (3, True)
    env = {"HOME": "/nowhere", "XCE_TOKEN": ""}
    result = CliRunner().invoke(app, ["status"], env={**env, "XCE_TOKEN": None})
    assert isinstance(result.exception, XceError)
    assert "who asks?" in str(result.exception)


def test_a_controller_that_is_away_is_worth_another_try() -> None:
    code, why = Operator("http://127.0.0.1:1").code("status")

    assert code == 75
    assert "127.0.0.1" in why or "Connect" in why


def test_the_file_of_ones_own_says_where_and_who(site: Site, tmp_path: Path) -> None:
    own = tmp_path / "xce" / "xcecli.yaml"
    own.parent.mkdir()
    own.with_name("mine.token").write_text(f"token (shown once): {TOKENS[Role.VIEWER]}\n")
    own.write_text(f"addresses: [{site.running.address}/]\ntoken_file: mine.token\n")
    env = {"XDG_CONFIG_HOME": str(tmp_path), "XCE_TOKEN": None, "XCE_ADDRESS": None}

    result = CliRunner().invoke(app, ["status"], env=env)

    assert "position" in result.stdout
    own.write_text("adresses: []\n")
    wrong = CliRunner().invoke(app, ["status"], env=env)
    assert "did you mean addresses" in str(wrong.exception)


def test_watching_shows_it_again_until_it_is_interrupted() -> None:
    shown: list[int] = []

    def sleep(length: float) -> None:
        assert length == 2.0
        if len(shown) == 3:
            raise KeyboardInterrupt

    showing.again(lambda: shown.append(1), 2.0, as_json=True, sleep=sleep)

    assert len(shown) == 3

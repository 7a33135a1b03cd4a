"""Tokens move between clusters of one slurmdbd, whatever call is the last one before a kill."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xce.adapters.providers.slurm_commands import SlurmError
from xce.adapters.providers.slurm_licences import pools, scripts

NAME = "tool@srv"
#: More commands than the story below takes.
COMMANDS = 76


class KilledError(BaseException):
    """The script is killed here."""


@dataclass
class FakeSlurm:
    """Two clusters, their slurmctld, and the slurmdbd before them; it counts commands, and may kill who gave one."""

    count: int = 100
    parts: dict[str, int] = field(default_factory=lambda: {"a": 2, "b": 90})
    used: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    #: What squeue says of each cluster.
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    commands: int = 0
    kill_at: int | None = None
    kill_after: bool = False
    away: bool = False
    #: It is away after the next change.
    goes_away: bool = False
    #: Jobs of a cluster that start when its part is next changed.
    rush: dict[str, int] = field(default_factory=dict[str, int])
    #: Every state of the parts that there was.
    seen: list[dict[str, int]] = field(default_factory=list[dict[str, int]])

    def run(self, conf: str, *words: str) -> str:
        self.commands += 1
        here = self.commands == self.kill_at
        if here and not self.kill_after:
            raise KilledError
        if self.away:
            raise SlurmError(f"{words[0]}: Unable to contact")
        answer = self._answer(conf, words)
        if here:
            raise KilledError
        return answer

    def _answer(self, conf: str, words: Sequence[str]) -> str:
        if words[0] == "squeue":
            return self.waiting.get(conf, "")
        if words[0] == "scontrol":
            used = self.used[conf]
            return f"LicenseName={NAME} Total={self.total(conf)} Used={used} Free=0 Reserved=0 Remote=yes\n"
        if "show" in words:
            return "".join(f"{self.count}|{name}|{part}\n" for name, part in self.parts.items())
        told = dict(word.split("=", 1) for word in words if "=" in word)
        cluster, level = told["cluster"], int(told["percentallowed"])
        if sum(self.parts.values()) - self.parts[cluster] + level > 100:
            raise SlurmError("more than 100 percent")
        self.used[cluster] += self.rush.pop(cluster, 0)
        self.parts[cluster] = level
        self.seen.append(dict(self.parts))
        self.away, self.goes_away = self.goes_away, False
        return ""

    def total(self, cluster: str) -> int:
        return self.count * self.parts[cluster] // 100


@dataclass
class Provider:
    """The scripts, called one at a time."""

    folder: Path
    slurm: FakeSlurm
    capsys: pytest.CaptureFixture[str]

    def call(self, script: str, **given: Any) -> dict[str, Any]:
        place = self.folder / "input.json"
        place.write_text(json.dumps(given))
        self.code = scripts.main([script, "-f", str(place)])
        answer: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return answer

    def status(self, request: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("getRequestStatus", requests=[{"requestId": request}])
        one: dict[str, Any] = answer["requests"][0]
        return one

    def borrow(self, amount: int, tag: str = "R1") -> dict[str, Any]:
        return self.call("requestResources", resource=NAME, amount=amount, requestTag=tag)

    def give_back(self, grant: str, amount: int, tag: str = "B1") -> dict[str, Any]:
        parts = [{"grantId": grant, "amount": amount}]
        return self.call("requestReturnResources", grants=parts, requestTag=tag)

    def lent(self) -> int:
        return sum(one["amount"] for one in self.call("listGrants")["grants"])


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def provider(
    slurm: FakeSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Provider:
    conf = {"licences": [{"name": NAME, "taker": "a", "clusters": {"a": "a", "b": "b"}, "keep": {"b": 10}}]}  # fmt: skip
    (tmp_path / "slurm-licences.json").write_text(json.dumps(conf))
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PRO_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PRO_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(pools, "run", slurm.run)
    monkeypatch.setattr(pools, "_SETTLE_S", 0.0)
    monkeypatch.setattr("os.fsync", int)  # nothing: the machine does not die here
    return Provider(tmp_path, slurm, capsys)


def test_what_nobody_has_comes_first_then_what_a_giver_does_not_use(
    provider: Provider, slurm: FakeSlurm
) -> None:
    request = provider.borrow(12)["requestId"]

    status = provider.status(request)
    assert (status["status"], status["grants"][0]["amount"]) == ("complete", 12)
    assert slurm.parts == {"a": 14, "b": 86}


def test_a_giver_keeps_what_its_jobs_hold_and_what_it_is_promised(
    provider: Provider, slurm: FakeSlurm
) -> None:
    slurm.used["b"] = 60
    offered = provider.call("getAvailableResources")["resources"]
    assert offered == [{"name": NAME, "capacity": 38, "headroom": 38}]  # 8 of nobody and 30 of b

    provider.borrow(100)
    assert slurm.parts == {"a": 40, "b": 60}

    slurm.used["b"] = 0
    provider.borrow(100, "R2")
    assert slurm.parts == {"a": 90, "b": 10}


def test_what_jobs_of_a_giver_wait_for_is_theirs(provider: Provider, slurm: FakeSlurm) -> None:
    slurm.parts, slurm.used = {"a": 10, "b": 90}, {"a": 0, "b": 60}
    slurm.waiting["b"] = (
        f"Licenses {NAME}:20\nLicenses other,{NAME}\nResources {NAME}:50\nPriority \n"
    )

    provider.borrow(100)

    assert slurm.parts == {"a": 19, "b": 81}


def test_a_giver_is_lowered_before_the_taker_is_raised(
    provider: Provider, slurm: FakeSlurm
) -> None:
    slurm.parts = {"a": 10, "b": 90}
    provider.borrow(5)
    assert slurm.seen == [{"a": 10, "b": 85}, {"a": 15, "b": 85}]


def test_a_job_of_the_giver_that_starts_meanwhile_keeps_its_tokens(
    provider: Provider, slurm: FakeSlurm
) -> None:
    slurm.parts = {"a": 10, "b": 90}
    slurm.rush = {"b": 88}

    status = provider.status(provider.borrow(5)["requestId"])

    assert (status["status"], status["grants"]) == ("complete_with_error", [])
    assert status["message"] == "b uses it now"
    assert slurm.parts == {"a": 10, "b": 90}


def test_tokens_that_jobs_hold_do_not_go_back(provider: Provider, slurm: FakeSlurm) -> None:
    slurm.parts = {"a": 10, "b": 90}
    grant = provider.status(provider.borrow(5)["requestId"])["grants"][0]["grantId"]
    slurm.used["a"] = 12

    refused = provider.status(provider.give_back(grant, 5)["requestId"])
    taken = provider.status(provider.give_back(grant, 3, "B2")["requestId"])

    assert (refused["status"], refused["grants"][0]["result"]) == ("complete_with_error", "fail")
    assert (taken["status"], taken["grants"][0]["result"]) == ("complete", "succeed")
    assert (slurm.parts, provider.lent()) == ({"a": 12, "b": 88}, 2)


def test_a_part_is_a_whole_percent_and_tokens_are_rounded_down(
    provider: Provider, slurm: FakeSlurm
) -> None:
    slurm.count, slurm.parts = 30, {"a": 10, "b": 90}  # 3 and 27 tokens

    status = provider.status(provider.borrow(2)["requestId"])

    assert status["grants"][0]["amount"] == 2
    assert slurm.parts == {"a": 17, "b": 83}  # 5.1 and 24.9 tokens: one is nobody's
    grant = status["grants"][0]["grantId"]
    provider.give_back(grant, 2)
    assert (slurm.parts, provider.lent()) == ({"a": 10, "b": 90}, 0)


def test_nothing_is_made_where_nothing_is_free(provider: Provider, slurm: FakeSlurm) -> None:
    slurm.parts, slurm.used["b"] = {"a": 10, "b": 90}, 90
    answer = provider.borrow(1)
    assert (provider.code, "InsufficientCapacity" in answer["message"]) == (1, True)
    assert slurm.seen == []


def test_while_slurm_is_away_a_move_waits_and_is_then_ended(
    provider: Provider, slurm: FakeSlurm
) -> None:
    slurm.parts = {"a": 10, "b": 90}
    slurm.goes_away = True

    request = provider.borrow(5)["requestId"]
    assert (slurm.parts, slurm.away) == ({"a": 10, "b": 85}, True)
    assert provider.status(request)["status"] == "running"
    assert provider.borrow(5)["requestId"] == request
    assert provider.borrow(5, "R2")["message"].startswith("Error Code: Busy")

    slurm.away = False
    assert provider.status(request)["status"] == "complete"
    assert (slurm.parts, provider.lent()) == ({"a": 15, "b": 85}, 5)


@pytest.mark.parametrize("kill_after", [False, True])
@pytest.mark.parametrize("kill_at", range(1, COMMANDS))
def test_a_kill_at_any_command_gives_nothing_twice_and_loses_nothing(
    provider: Provider, slurm: FakeSlurm, kill_at: int, kill_after: bool
) -> None:
    slurm.kill_at, slurm.kill_after = kill_at, kill_after

    def surely(script: str, **given: Any) -> dict[str, Any]:
        """Call as the caller of scripts does: with the same tag, until there is an answer."""
        for _ in range(2):
            try:
                return provider.call(script, **given)
            except KilledError:
                continue
        raise AssertionError("killed twice")

    asked = surely("requestResources", resource=NAME, amount=12, requestTag="R1")
    status = surely("getRequestStatus", requests=[{"requestId": asked["requestId"]}])
    (grant,) = status["requests"][0]["grants"]
    assert grant["amount"] == 12
    assert slurm.parts == {"a": 14, "b": 86}

    parts = [{"grantId": grant["grantId"], "amount": 5}]
    back = surely("requestReturnResources", grants=parts, requestTag="B1")
    surely("getRequestStatus", requests=[{"requestId": back["requestId"]}])
    assert (slurm.total("a"), provider.lent()) == (9, 7)
    parts = [{"grantId": grant["grantId"], "amount": 7}]
    surely("requestReturnResources", grants=parts, requestTag="B2")

    assert (slurm.parts, provider.lent()) == ({"a": 2, "b": 90}, 0)
    assert max(sum(parts.values()) for parts in slurm.seen) <= 100
    assert slurm.commands < COMMANDS, "all are tried"


def test_the_local_amount_stands_in_slurm_conf(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "slurm.conf"
    place.write_text("ClusterName=a\nLicenses=other:3,tool:2\nNodeName=n1\n")
    one = {"name": "tool", "slurmConf": str(place), "capacity": 5}
    (tmp_path / "slurm-licences.json").write_text(json.dumps({"licences": [one]}))
    reread: list[str] = []

    def run(conf: str, *words: str) -> str:
        if words[1] == "reconfigure":
            reread.append(conf)
            return ""
        total = place.read_text().partition("tool:")[2].partition("\n")[0]
        return f"LicenseName=tool Total={total} Used=1 Free=0 Reserved=0 Remote=no\n"

    monkeypatch.setattr(pools, "run", run)

    asked = provider.call("requestResources", resource="tool", amount=9, requestTag="R1")
    grant = provider.status(asked["requestId"])["grants"][0]
    assert grant["amount"] == 3
    assert "\nLicenses=other:3,tool:5\nNodeName=n1\n" in place.read_text()
    provider.give_back(grant["grantId"], 3)
    assert "\nLicenses=other:3,tool:2\n" in place.read_text()
    assert reread == [str(place)] * 2

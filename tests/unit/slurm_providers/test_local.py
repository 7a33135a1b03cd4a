"""Hosts that are processes: made once, ended once, and their records are future again, whatever step is the last one before a kill."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from xce.adapters.providers.slurm_commands import SlurmError
from xce.adapters.providers.slurm_local import scripts
from xce.adapters.providers.slurm_local.settings import CONF, records

#: More steps than the story below takes.
STEPS = 48
TEMPLATE = {"templateId": "small", "nodes": "small[1-3]", "cpus": 2, "memory": 1000, "features": ["small"], "gres": {"gpu": 1}, "price": "0.10"}  # fmt: skip


class KilledError(BaseException):
    """The script is killed here."""


@dataclass
class Cluster:
    """Records of slurm.conf and slurmd processes; it counts steps, and may kill who takes one."""

    records: dict[str, dict[str, str]] = field(
        default_factory=lambda: {
            f"small{n}": {"State": "FUTURE", "CPUAlloc": "0", "Comment": ""} for n in range(1, 4)
        }
    )
    daemons: dict[int, str] = field(default_factory=dict[int, str])
    conf: str = "slurm.conf"
    started: int = 0
    steps: int = 0
    kill_at: int | None = None
    kill_after: bool = False
    away: bool = False
    now: float = 1000.0
    called: list[str] = field(default_factory=list[str])
    #: What is added to the number of a slurmd that is to register again: from 23.11 on it is another process.
    starts_anew: int = 0
    #: There is none for a moment then.
    away_meanwhile: bool = False
    requeued: list[str] = field(default_factory=list[str])

    def step(self, do: Callable[[], Any]) -> Any:
        self.steps += 1
        if self.steps == self.kill_at and not self.kill_after:
            raise KilledError
        if self.away:
            raise SlurmError("Unable to contact slurm controller")
        answer = do()
        if self.steps == self.kill_at:
            raise KilledError
        return answer

    def nodes(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = self.step(lambda: {n: dict(r) for n, r in self.records.items()})  # fmt: skip
        return found

    def update(self, node: str, *settings: str) -> None:
        def do() -> None:
            told = dict(one.split("=", 1) for one in settings)
            record = self.records[node]
            if "comment" in told:
                record["Comment"] = told["comment"]
            state = told.get("state")
            if state == "drain":
                record["State"] = f"{'ALLOCATED' if record['CPUAlloc'] != '0' else 'IDLE'}+DRAIN"
            elif state == "resume":
                record["State"] = record["State"].removesuffix("+DRAIN")
            elif state == "down":
                record["State"] = "DOWN+DRAIN"
                self.requeued += [node] * (record["CPUAlloc"] != "0")
                record["CPUAlloc"] = "0"
            elif state == "future":
                assert node not in self.daemons.values(), "it still runs"
                assert record["CPUAlloc"] == "0", "a job runs there"
                record["State"] = "FUTURE"

        self.step(do)

    def daemon_of(self, node: str) -> int | None:
        return next((pid for pid, name in self.daemons.items() if name == node), None)

    def start(self, node: str) -> int:
        def do() -> int:
            assert node not in self.daemons.values(), "it runs twice"
            self.started += 1
            self.daemons[self.started] = node
            self.records[node]["State"] = "IDLE"
            return self.started

        pid: int = self.step(do)
        return pid

    def is_slurmd(self, pid: int) -> bool:
        return pid in self.daemons

    def end_process(self, pid: int, _is_it: object) -> None:
        self.step(lambda: self.daemons.pop(pid, None))

    def end_steps(self, _conf: str, _node: str) -> None:
        self.step(lambda: None)

    def call_again(self, pid: int) -> None:
        def do() -> None:
            node = self.daemons.pop(pid)
            self.called.append(node)
            if not self.away_meanwhile:
                self.daemons[pid + self.starts_anew] = node
            self.records[node]["State"] = "IDLE"

        self.step(do)

    def forget(self, node: str) -> None:
        """Be killed before a node was saved: its record is as slurm.conf says it."""
        self.records[node] = {"State": "FUTURE", "CPUAlloc": "0", "Comment": ""}


@dataclass
class Provider:
    """The scripts, called one at a time."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def call(self, script: str, **given: Any) -> dict[str, Any]:
        place = self.folder / "input.json"
        place.write_text(json.dumps(given))
        scripts.main([script, "-f", str(place)])
        answer: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return answer

    def surely(self, script: str, **given: Any) -> dict[str, Any]:
        """Call as the caller of scripts does: with the same tag, until there is an answer."""
        for _ in range(2):
            try:
                return self.call(script, **given)
            except KilledError:
                continue
        raise AssertionError("killed twice")

    def ask(self, count: int, tag: str = "R1") -> dict[str, Any]:
        template = {"templateId": "small", "machineCount": count}
        return self.surely("requestMachines", template=template, requestTag=tag)

    def status(self, request: str) -> dict[str, Any]:
        answer = self.surely("getRequestStatus", requests=[{"requestId": request}])
        one: dict[str, Any] = answer["requests"][0]
        return one

    def give_back(self, machines: list[dict[str, Any]]) -> dict[str, Any]:
        named = [{"machineId": one["machineId"], "name": one["name"]} for one in machines]
        request = self.surely("requestReturnMachines", machines=named)["requestId"]
        return self.status(request)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    def known(conf: str) -> Cluster:
        assert conf == made.conf
        return made

    monkeypatch.setattr(scripts, "Slurm", known)
    for name in ("is_slurmd", "end_process", "end_steps", "call_again"):
        monkeypatch.setattr(scripts, name, getattr(made, name))
    monkeypatch.setattr("time.time", lambda: made.now)
    monkeypatch.setattr("os.fsync", int)  # nothing: the machine does not die here
    return made


@pytest.fixture
def provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Provider:
    conf = {"slurmConf": "slurm.conf", "templates": [TEMPLATE]}
    (tmp_path / "slurm-local.json").write_text(json.dumps(conf))
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PRO_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PRO_DATA_DIR", str(tmp_path / "data"))
    return Provider(tmp_path, capsys)


def test_a_template_is_what_slurm_will_show_of_the_host(provider: Provider) -> None:
    (template,) = provider.call("getAvailableTemplates")["templates"]
    assert template["maxNumber"] == 3
    assert template["attributes"] == {
        "ncpus": ["Numeric", "2"],
        "ncores": ["Numeric", "1"],
        "mem": ["Numeric", "1000"],
        "small": ["Boolean", "1"],
        "gpu": ["Numeric", "1"],
    }


def test_the_records_have_a_name_and_a_port_for_each_host_there_may_be() -> None:
    assert next(records(CONF, "here")) == (
        "NodeName=small[1-4] NodeHostname=here NodeAddr=127.0.0.1 Port=[17001-17004] CPUs=2 RealMemory=2000 "
        "Feature=small State=FUTURE"
    )
    assert list(records({"templates": [TEMPLATE]})) == [
        "NodeName=small[1-3] CPUs=2 RealMemory=1000 Feature=small Gres=gpu:1 State=FUTURE"
    ]


def test_a_machine_says_in_slurm_which_one_it_is(provider: Provider, cluster: Cluster) -> None:
    machines = provider.status(provider.ask(2)["requestId"])["machines"]
    assert [cluster.records[one["name"]]["Comment"] for one in machines] == [
        f"xce:{one['machineId']}" for one in machines
    ]
    cluster.records["small1"]["Comment"] = ""  # a slurmctld that was killed has forgotten
    provider.call("listMachines")
    assert cluster.records["small1"]["Comment"] == f"xce:{machines[0]['machineId']}"


def test_a_live_machine_that_slurm_has_forgotten_registers_again(
    provider: Provider, cluster: Cluster
) -> None:
    request = provider.ask(2)["requestId"]
    machines = provider.status(request)["machines"]
    cluster.forget("small1")
    cluster.now += scripts.JOIN_S

    assert [one["result"] for one in provider.status(request)["machines"]] == ["succeed"] * 2
    assert (cluster.called, cluster.records["small1"]["State"]) == (["small1"], "IDLE")
    provider.call("listMachines")
    assert cluster.called == ["small1"], "once is enough"
    assert cluster.records["small1"]["Comment"] == f"xce:{machines[0]['machineId']}"
    assert cluster.started == 2


def test_a_slurmd_that_registers_again_as_another_process_is_the_same_machine(
    provider: Provider, cluster: Cluster
) -> None:
    (machine,) = provider.status(provider.ask(1)["requestId"])["machines"]
    cluster.forget("small1")
    cluster.now += scripts.JOIN_S
    cluster.starts_anew = 100
    cluster.away_meanwhile = True
    provider.call("listMachines")
    assert [one["machineId"] for one in provider.call("listMachines")["machines"]] == [machine["machineId"]]  # fmt: skip

    cluster.daemons[101] = "small1"
    provider.call("listMachines")
    assert cluster.called == ["small1"]
    assert provider.give_back([machine])["status"] == "complete"
    assert cluster.daemons == {}


def test_a_slurmd_that_does_not_come_back_is_a_machine_that_has_ended(
    provider: Provider, cluster: Cluster
) -> None:
    provider.ask(1)
    cluster.forget("small1")
    cluster.now += scripts.JOIN_S
    cluster.away_meanwhile = True
    provider.call("listMachines")
    cluster.now += scripts.JOIN_S

    assert provider.call("listMachines")["machines"] == []


def test_a_machine_that_has_just_started_has_time_to_register(
    provider: Provider, cluster: Cluster
) -> None:
    provider.ask(1)
    cluster.forget("small1")  # or it has not registered yet
    cluster.now += scripts.JOIN_S - 1
    provider.call("listMachines")
    assert cluster.called == []

    cluster.now += 1
    provider.call("listMachines")
    cluster.forget("small1")
    provider.call("listMachines")
    assert cluster.called == ["small1"], "it has time again"
    cluster.now += scripts.JOIN_S
    provider.call("listMachines")
    assert cluster.called == ["small1", "small1"]


def test_a_forgotten_machine_that_goes_back_is_not_called_again(
    provider: Provider, cluster: Cluster
) -> None:
    machines = provider.status(provider.ask(1)["requestId"])["machines"]
    cluster.forget("small1")
    cluster.now += scripts.JOIN_S

    cluster.kill_at = cluster.steps + 2  # its record is looked at, then it is to end
    assert provider.give_back(machines)["status"] == "complete"

    assert (cluster.called, cluster.daemons) == ([], {})
    assert cluster.records["small1"]["State"] == "FUTURE"


def test_a_machine_whose_record_is_no_more_is_left_alone(
    provider: Provider, cluster: Cluster
) -> None:
    provider.ask(1)
    del cluster.records["small1"]
    cluster.now += scripts.JOIN_S
    assert len(provider.call("listMachines")["machines"]) == 1
    assert cluster.called == []


def test_the_same_tag_makes_nothing_new_and_what_is_full_refuses(
    provider: Provider, cluster: Cluster
) -> None:
    first = provider.ask(5)
    assert provider.ask(5) == {**first, "message": "known by its tag"}
    assert cluster.started == 3
    assert "InsufficientCapacity" in provider.ask(1, "R2")["message"]


def test_a_host_with_a_job_does_not_go_back_and_takes_work_again(
    provider: Provider, cluster: Cluster
) -> None:
    machines = provider.status(provider.ask(2)["requestId"])["machines"]
    cluster.records["small1"] |= {"State": "ALLOCATED", "CPUAlloc": "2"}

    back = provider.give_back(machines)

    assert back["status"] == "complete_with_error"
    assert [one["result"] for one in back["machines"]] == ["fail", "succeed"]
    assert back["machines"][0]["message"] == "a job runs on small1"
    assert cluster.records["small1"]["State"] == "ALLOCATED"
    assert cluster.records["small2"]["State"] == "FUTURE"


def test_a_machine_that_ended_by_itself_is_gone_and_its_job_waits_again(
    provider: Provider, cluster: Cluster
) -> None:
    (machine,) = provider.status(provider.ask(1)["requestId"])["machines"]
    cluster.records["small1"] |= {"State": "ALLOCATED", "CPUAlloc": "2"}
    cluster.daemons.clear()

    assert provider.call("listMachines")["machines"] == []
    gone = provider.call("getReturnRequests", machines=[machine])["requests"]
    assert gone == [{"machine": "small1", "machineId": machine["machineId"]}]
    assert cluster.requeued == ["small1"]
    assert cluster.records["small1"] == {"State": "FUTURE", "CPUAlloc": "0", "Comment": ""}


def test_a_record_is_used_again_last_and_by_a_new_machine(
    provider: Provider, cluster: Cluster
) -> None:
    first = provider.status(provider.ask(1)["requestId"])["machines"]
    provider.give_back(first)
    names = [provider.status(provider.ask(1, f"R{n}")["requestId"])["machines"][0] for n in "234"]
    assert [one["name"] for one in names] == ["small2", "small3", "small1"]
    assert names[-1]["machineId"] != first[0]["machineId"]


def test_while_slurmctld_is_away_a_return_goes_on_later(
    provider: Provider, cluster: Cluster
) -> None:
    machines = provider.status(provider.ask(1)["requestId"])["machines"]
    cluster.away = True
    assert "Unable to contact" in provider.call("requestReturnMachines", machines=machines)["message"]  # fmt: skip
    assert cluster.daemons
    cluster.away = False
    assert provider.give_back(machines)["status"] == "complete"
    assert not cluster.daemons


@pytest.mark.parametrize("kill_after", [False, True])
@pytest.mark.parametrize("kill_at", range(1, STEPS))
def test_a_kill_at_any_step_makes_nothing_twice_and_leaves_nothing(
    provider: Provider, cluster: Cluster, kill_at: int, kill_after: bool
) -> None:
    cluster.kill_at, cluster.kill_after = kill_at, kill_after

    machines = provider.status(provider.ask(2)["requestId"])["machines"]
    assert [one["result"] for one in machines] == ["succeed"] * 2
    assert sorted(cluster.daemons.values()) == ["small1", "small2"]
    back = provider.give_back(machines)

    assert back["status"] == "complete"
    assert provider.surely("listMachines")["machines"] == []
    assert not cluster.daemons
    assert {(one["State"], one["Comment"]) for one in cluster.records.values()} == {("FUTURE", "")}
    assert cluster.steps < STEPS, "all are tried"


def test_no_command_of_ours_deletes_a_node() -> None:
    for place in (ROOT / "adapters" / "providers").glob("slurm_*/*.py"):
        assert '"delete"' not in place.read_text(encoding="utf-8")

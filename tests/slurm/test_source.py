"""The source: what is read in which order, what is written, what is only said, and what differs."""

import os
import stat
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.slurm.made import CONFIG, NOW, Slurm, job, node, running
from xce.adapters.schedulers.slurm.commands import Commands
from xce.adapters.schedulers.slurm.facts import LicenceFact
from xce.adapters.schedulers.slurm.reader import Reader, least_used, version_of
from xce.adapters.schedulers.slurm.source import SlurmScheduler
from xce.domain.errors import PermanentError, TransientError
from xce.domain.formats.snapshot import HostState
from xce.domain.ports import SchedulerOrders, SchedulerSource
from xce.domain.scheduling.session import run_session

ORDERS = SchedulerOrders(
    position=1,
    close=("n1", "n2"),
    open=("n3",),
    remove=("n1", "dyn", "cloud"),
    requeue=("7", "?n1", "11_2"),
)


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at


def source_of(slurm: Slurm, **changes: Any) -> SlurmScheduler:
    made: SchedulerSource = SlurmScheduler(
        Reader(slurm), slurm, Clock(), wait=lambda _: None, **changes
    )
    assert isinstance(made, SlurmScheduler)
    return made


def written(slurm: Slurm) -> list[str]:
    return [
        " ".join(call)
        for call in slurm.called
        if call[0] == "scontrol" and call[1] in ("update", "delete", "requeue")
    ]


# ---------------------------------------------------------------------------- reading
def test_nodes_are_read_before_jobs_and_licences_around_them() -> None:
    slurm = Slurm([job(1)])

    source_of(slurm).view()

    order = [call[0] if call[0] in ("squeue", "sinfo") else call[-1] for call in slurm.called]
    assert order.index("sinfo") < order.index("squeue")
    assert [n for n, what in enumerate(order) if what == "lic"] == [
        order.index("sinfo") - 1,
        order.index("squeue") + 1,
    ]


def test_a_host_that_joined_between_two_readings_is_looked_up() -> None:
    class Grows(Slurm):
        def __call__(self, command: Sequence[str]) -> bytes:
            found = super().__call__(command)
            if command[0] == "squeue":
                self.nodes = [node("n1", state="allocated"), node("n2"), node("n3")]
            return found

    slurm = Grows([running(1, "n2")], [node("n1")])
    hosts = {host.name: host.state for host in source_of(slurm).view().hosts}

    assert hosts == {"n1": HostState.OPEN, "n2": HostState.OPEN}  # n3 is of the next view


def test_the_lesser_use_of_a_licence_counts() -> None:
    def licence(used: int | None) -> tuple[LicenceFact, ...]:
        return (LicenceFact("sim", 4, used, 0, False),)

    assert least_used(licence(3), licence(1)) == licence(1)
    assert least_used(licence(1), licence(3)) == licence(1)
    assert least_used(licence(1), licence(None)) == licence(None)


def test_limits_are_kept_while_slurmdbd_is_away() -> None:
    slurm = Slurm([job(1, qos="q")])
    slurm.text["qos"] = "Name|GrpTRES\nq|cpu=1\n"
    clock = Clock()
    source = SlurmScheduler(Reader(slurm), slurm, clock, wait=lambda _: None)
    before = source.view()
    slurm.fails["sacctmgr"] = TransientError("sacctmgr: connection refused")
    clock.at += timedelta(minutes=5)

    with capture_logs() as logs:
        after = source.view()

    assert before.limits == after.limits != ()
    assert "connection refused" in str(logs)


def test_without_limits_ever_read_there_is_no_view() -> None:
    slurm = Slurm([job(1)])
    slurm.fails["sacctmgr"] = TransientError("sacctmgr: connection refused")

    with pytest.raises(TransientError, match="refused"):
        source_of(slurm).view()


def test_an_output_that_is_not_understood_is_a_round_less() -> None:
    slurm = Slurm([running(1, "n1") | {"nodes": 5}])

    with pytest.raises(TransientError, match=r"squeue --json: jobs\[0\]\.nodes: found 5"):
        source_of(slurm).view()


def test_a_slurm_without_json_is_read_as_text_and_not_asked_again() -> None:
    slurm = Slurm()
    slurm.fails["--json"] = TransientError("sinfo --json: sinfo: unrecognized option '--json'")
    slurm.text["node"] = "NodeName=n1 CPUTot=4 RealMemory=4000 State=IDLE Partitions=main\n"
    slurm.text["job"] = "No jobs in the system\n"
    source = source_of(slurm)

    source.view()
    source.view()

    assert [call for call in slurm.called if "--json" in call] == [("sinfo", "--json")]


def test_a_newer_slurm_is_asked_where_its_nodes_are() -> None:
    slurm = Slurm()
    slurm.text["config"] = CONFIG.replace("22.05.8", "24.05.1")
    slurm.text["node"] = '{"nodes": [{"name": "n1", "state": ["IDLE"], "cpus": 4}]}'

    assert [host.name for host in source_of(slurm).view().hosts] == ["n1"]
    assert ("scontrol", "show", "node", "--json") in slurm.called
    assert version_of("24.05.1-2") == (24, 5, 1)


def test_troubles_are_said_once_for_as_long_as_they_last() -> None:
    slurm = Slurm([job(1, features="[a*1&b*1]")])
    source = source_of(slurm)

    with capture_logs() as logs:
        source.view()
        source.view()

    assert len([entry for entry in logs if entry["event"] == "not used"]) == 1


# ---------------------------------------------------------------------------- writing
def test_orders_are_few_commands_and_nothing_of_slurm_conf_is_deleted() -> None:
    slurm = Slurm(
        nodes=[
            *(node(f"n{n}") for n in (1, 2, 3)),
            node("dyn", state_flags=["DYNAMIC_NORM"]),
            node("cloud", state_flags=["CLOUD"]),
        ]
    )
    source = source_of(slurm)
    source.view()

    source.obey(ORDERS)

    assert written(slurm) == [
        "scontrol update nodename=n1,n2 state=drain reason=xce: closed",
        "scontrol update nodename=n3 state=undrain",
        "scontrol delete nodename=dyn",
        "scontrol update nodename=n1 state=future comment=",
        "scontrol update nodename=cloud state=power_down",
        "scontrol requeue 7,11_2",
    ]


def test_observe_only_says_what_would_be_written_and_writes_nothing() -> None:
    slurm = Slurm(nodes=[node(f"n{n}") for n in (1, 2, 3)])
    source = source_of(slurm, observe_only=True)
    source.view()

    with capture_logs() as logs:
        source.obey(ORDERS)

    assert written(slurm) == []
    assert len([entry for entry in logs if entry["event"] == "would run"]) == 4


def test_an_order_that_fails_does_not_keep_the_others_back() -> None:
    slurm = Slurm(nodes=[node(f"n{n}") for n in (1, 2, 3)])
    source = source_of(slurm)
    source.view()
    slurm.fails["state=drain"] = TransientError("scontrol update: slurmctld is away")

    with pytest.raises(TransientError, match="away"):
        source.obey(ORDERS)

    assert len(written(slurm)) == 4


# ------------------------------------------------------------------------ differences
def test_a_job_that_slurm_does_not_start_is_reported_with_what_differs() -> None:
    slurm = Slurm(
        [job(1, cpus=2, state_reason="Resources")],
        [node("n1", alloc_cpus=3, state="mixed", state_flags=["PLANNED"])],
    )
    clock = Clock()
    source = SlurmScheduler(Reader(slurm), slurm, clock, wait=lambda _: None)

    told: list[list[Any]] = []
    for _ in range(4):
        with capture_logs() as logs:
            result = run_session(source.view())
            source.obey(SchedulerOrders(position=1, start=result.allocations))
        told.append([entry for entry in logs if entry["event"] == "Slurm does not start it"])
        clock.at += timedelta(seconds=40)

    assert [len(entries) for entries in told] == [0, 0, 1, 0]
    (entry,) = told[2]
    assert (entry["job"], entry["reason"], entry["hosts"]) == ("1", "Resources", ("n1",))
    assert entry["seen"] == (
        "node n1 has 1 cpus free by its own count; wanted 2",
        "node n1 is planned for another job",
    )


def test_a_job_that_starts_or_stops_fitting_is_forgotten() -> None:
    slurm = Slurm([job(1)])
    clock = Clock()
    source = SlurmScheduler(
        Reader(slurm), slurm, clock, wait=lambda _: None, differences_after=timedelta(0)
    )
    with capture_logs() as logs:
        for starts in (True, False, True):
            result = run_session(source.view())
            source.obey(SchedulerOrders(1, start=result.allocations if starts else ()))

    assert [entry["event"] for entry in logs].count("Slurm does not start it") == 2


# --------------------------------------------------------------------------- commands
def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_commands_get_a_plain_environment_and_tell_why_they_failed(tmp_path: Path) -> None:
    program(tmp_path, "squeue", 'echo "$TZ $SLURM_CONF [$SQUEUE_FORMAT]"')
    program(tmp_path, "sinfo", "echo 'sinfo: error: no contact' >&2; exit 1")
    environment = {"PATH": os.environ["PATH"], "SQUEUE_FORMAT": "%i", "TZ": "Asia/Tokyo"}
    run = Commands(conf="/etc/s.conf", folder=str(tmp_path), environment=environment)

    assert run(["squeue"]) == b"UTC /etc/s.conf []\n"
    with pytest.raises(TransientError, match="sinfo -N: sinfo: error: no contact"):
        run(["sinfo", "-N"])
    with pytest.raises(PermanentError, match="cannot be run"):
        run(["sacctmgr"])


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    program(tmp_path, "squeue", "exec sleep 600")

    with pytest.raises(TransientError, match="no answer within"):
        Commands(folder=str(tmp_path), timeout_s=0.2)(["squeue"])

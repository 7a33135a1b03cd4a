"""Against real Slurm daemons: JSON, text and slurmrestd say the same, orders are carried out, a plain user can write nothing.

They need root and Debian's slurmctld, slurmd, slurm-client and munge; without them they are skipped, and fail where ``XCE_REQUIRE_SLURM`` is set.
"""

import os
import shutil
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs
from tools.slurm_lab.lab import Cluster, Lab, wait_for

from tests.slurm_e2e.ground import free_span, need_slurm, short_folder
from xce.adapters.clock import SystemClock
from xce.adapters.schedulers.slurm.build import View, view_of
from xce.adapters.schedulers.slurm.commands import Commands
from xce.adapters.schedulers.slurm.reader import Reader, version_of
from xce.adapters.schedulers.slurm.source import SlurmScheduler
from xce.domain.errors import TransientError
from xce.domain.formats.snapshot import HostState
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.ports import SchedulerOrders
from xce.domain.scheduling.session import run_session

#: A user who may ask and may change nothing.
PLAIN = 65534


@contextmanager
def started(nodes: int) -> Generator[Lab]:
    """Run a cluster of its own nodes, four cpus each."""
    need_slurm(database=False)
    cluster = Cluster("ca", own_nodes=nodes, own_cpus=4, licences="tok:3")
    with short_folder() as folder, free_span() as port:
        made = Lab(folder / "lab", port, (cluster,))
        made.start()  # one that fails leaves nothing
        try:
            yield made
        finally:
            made.kill("ca/pids/slurmctld", "slurmctld")  # it would first wait for its jobs
            made.stop()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with started(2) as made:
        yield made


def source_of(lab: Lab, *, json: bool = True, observe_only: bool = False) -> SlurmScheduler:
    run = Commands(conf=str(lab.conf("ca")))
    return SlurmScheduler(
        Reader(run, json=json), run, SystemClock(), wait=lambda _: None, observe_only=observe_only
    )


def read(lab: Lab, *, json: bool) -> View:
    run = Commands(conf=str(lab.conf("ca")))
    return view_of(Reader(run, json=json).read(SystemClock().now()))


@pytest.fixture(scope="module")
def jobs(lab: Lab) -> Mapping[str, str]:
    """Jobs of every kind: two run and fill both nodes, the others wait."""
    submitted = {
        "spread": lab.submit("ca", "sleep 600", "-N2", "-n5", "-t10", "-L", "tok:1"),
        "fill": lab.submit("ca", "sleep 600", "-n1", "-c3", "-t10"),
    }
    wait_for(lambda: {lab.jobs("ca")[n] for n in submitted.values()} == {"RUNNING"}, "two jobs run")
    options: dict[str, Sequence[str]] = {
        "tasks": ("-n3", "-c2", "--mem-per-cpu=50"),
        "nodes": ("-N2", "-n4", "--mem=1G"),
        "alone": ("--exclusive",),
        "memory": ("--mem=0",),
        "array": ("--array=1-4%2",),
        "held": ("-H",),
        "later": ("--begin=now+3600",),
        "after": (f"--dependency=afterok:{submitted['fill']}",),
        "token": ("-L", "tok:3"),
    }
    for name, words in options.items():
        submitted[name] = lab.submit("ca", "sleep 600", "-t10", *words)
    waits = f"{submitted['array']}_[1-4%2]"
    wait_for(lambda: lab.jobs("ca").get(waits) == "PENDING", "all of them wait")
    return submitted


def test_json_and_text_of_a_living_slurm_say_the_same(lab: Lab, jobs: Mapping[str, str]) -> None:
    of_json, of_text = read(lab, json=True).snapshot, read(lab, json=False).snapshot

    assert of_json.running == of_text.running
    assert of_json.pending == of_text.pending
    assert of_json.shared == of_text.shared
    assert list(contradictions(of_json)) == []


def test_what_it_shows_is_what_was_submitted(lab: Lab, jobs: Mapping[str, str]) -> None:
    view = read(lab, json=True)
    pending = {job.id: job for job in view.snapshot.pending}
    running = {job.id: job for job in view.snapshot.running}

    assert view.troubles == ()
    assert sum(use.uses["slots"] for use in running[jobs["spread"]].hosts) == 5
    assert running[jobs["spread"]].shared == {"tok": 1}
    assert pending[jobs["tasks"]].resreq == "rusage[slots=2, mem=100MiB]"
    assert pending[jobs["nodes"]].resreq == "rusage[mem=1024MiB/host] span[ptile=2]"
    assert pending[jobs["alone"]].exclusive
    assert pending[jobs["memory"]].exclusive
    assert [pending[f"{jobs['array']}_{n}"].held for n in range(1, 5)] == [False] * 4
    assert pending[jobs["held"]].held
    assert pending[jobs["later"]].held
    assert pending[jobs["after"]].waits_for == (jobs["fill"],)
    assert pending[jobs["token"]].resreq == "rusage[mem=100MiB, tok=3/job]"
    assert run_session(view.snapshot).allocations == ()


def test_slurmrestd_says_the_same(lab: Lab, jobs: Mapping[str, str]) -> None:
    program = shutil.which("slurmrestd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        assert not os.environ.get("XCE_REQUIRE_SLURM"), "slurmrestd is not installed"
        pytest.skip("slurmrestd is not installed")
    from xce.adapters.schedulers.slurm.rest import SlurmRest

    version = version_of(lab.run("ca", "scontrol", "--version").split()[-1])
    # without accounting its interface to slurmdbd does not load
    interface = "openapi/slurmctld" if version >= (23, 11) else "openapi/v0.0.38"
    folder = lab.folder / "rest"
    folder.mkdir(exist_ok=True)
    os.chown(folder, PLAIN, PLAIN)
    place = folder / "socket"
    daemon = subprocess.Popen(
        [program, "-f", str(lab.conf("ca")), "-a", "rest_auth/local", "-s", interface, f"unix:{place}"],
        env=lab.environment("ca"), cwd=folder, user=PLAIN, group=PLAIN, extra_groups=[], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    rest = SlurmRest(f"unix:{place}")
    try:
        wait_for(place.exists, "slurmrestd listens")
        run = Commands(conf=str(lab.conf("ca")))
        by_rest = view_of(Reader(run, rest=rest).read(SystemClock().now())).snapshot
    finally:
        rest.close()
        daemon.kill()
        daemon.wait()
    by_commands = read(lab, json=True).snapshot

    assert by_rest.running == by_commands.running
    assert by_rest.pending == by_commands.pending
    assert by_rest.shared == by_commands.shared


class AsPlainUser:
    """Slurm's commands as somebody who may change nothing."""

    def __init__(self, lab: Lab) -> None:
        self._environment = lab.environment("ca") | {"TZ": "UTC", "SLURM_BITSTR_LEN": "0"}

    def __call__(self, command: Sequence[str]) -> bytes:
        done = subprocess.run(
            command, env=self._environment, user=PLAIN, group=PLAIN, extra_groups=[], cwd="/", timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise TransientError(done.stderr.decode())
        return done.stdout


def test_a_plain_user_can_observe_and_nothing_is_written(lab: Lab, jobs: Mapping[str, str]) -> None:
    run = AsPlainUser(lab)
    names = tuple(host.name for host in read(lab, json=True).snapshot.hosts)
    orders = SchedulerOrders(position=1, close=names, requeue=(jobs["fill"],))
    before = (lab.nodes("ca"), lab.jobs("ca"))

    observing = SlurmScheduler(
        Reader(run), run, SystemClock(), wait=lambda _: None, observe_only=True
    )
    seen = observing.view()
    with capture_logs() as logs:
        observing.obey(orders)
    writing = SlurmScheduler(Reader(run), run, SystemClock(), wait=lambda _: None)
    with pytest.raises(TransientError):  # and it could not, if it would
        writing.obey(orders)

    assert {job.id for job in seen.running} == {jobs["spread"], jobs["fill"]}
    assert [entry["event"] for entry in logs] == ["would run"] * 2
    assert (lab.nodes("ca"), lab.jobs("ca")) == before


def test_drains_are_obeyed_and_ended_and_those_of_an_admin_left_alone() -> None:
    with started(2) as lab:
        source = source_of(lab)

        def states() -> dict[str, HostState]:
            return {host.name: host.state for host in source.view().hosts}

        ours, theirs = sorted(states())
        job = lab.submit("ca", "sleep 600", "-w", ours)
        wait_for(lambda: job in {one.id for one in source.view().running}, "the job runs")
        lab.run("ca", "scontrol", "update", f"nodename={theirs}", "state=drain", "reason=disk")
        source.obey(SchedulerOrders(position=1, close=(ours,)))
        assert states() == {ours: HostState.DRAINING, theirs: HostState.CLOSED}

        source.obey(SchedulerOrders(position=2, open=(ours,)))
        wait_for(lambda: states()[ours] is HostState.OPEN, "the drain is over")
        assert states()[theirs] is HostState.CLOSED

        source.obey(SchedulerOrders(position=3, requeue=(job,)))
        wait_for(lambda: job in {one.id for one in source.view().pending}, "it waits once more")

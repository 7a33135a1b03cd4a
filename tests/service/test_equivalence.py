"""Driver equivalence on a live run (SPEC R2): controller, provisioner with its scripts, and scheduler driver are processes, jobs come and
go, hosts and licences are obtained and given back; what the daemons recorded says the same again, and a rule that is changed on purpose is
found where it first matters.

``XCE_LIVE_SESSIONS`` says how many sessions the run has at least.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.replay.rules import RULES
from tests.service.running import NAMES, TOKENS, write_tokens
from xce.adapters.cli.main import app
from xce.adapters.clock import SystemClock
from xce.adapters.providers.install import SIMULATED_CONF, Comes, install
from xce.adapters.recordings import read_lines
from xce.adapters.schedulers import fake_state
from xce.adapters.schedulers.fake import FakeFile
from xce.adapters.store.open import open_log
from xce.domain.engine import scheduler
from xce.domain.engine.messages import Role
from xce.domain.formats.event_entry import event_entry
from xce.domain.formats.policy import DecisionKind
from xce.domain.formats.snapshot import Host, PendingJob, Settings
from xce.domain.sharing.window import PeakWindow
from xce.replay.recording import Entry, Other, RecordedSession, RecordingReader
from xce.replay.rounds import RecordedRound
from xce.replay.verification import Verdict, verify
from xce.replay.views import Seen

SESSIONS = int(os.environ.get("XCE_LIVE_SESSIONS", "40"))
#: A session a second, on a machine that has other things to do too.
PATIENCE_S = 180.0 + 10.0 * SESSIONS

CONTROLLER = """
log: events.db
tokens: tokens.txt
listen: {{port: {port}}}
request_log: false
limits: {{calls_per_second: 100000, calls_burst: 100000}}
shared:
  - {{name: lic_sim, owned: 1, provider: cloud, max_borrow: 4, step: 1, idle_return_after: 3s}}
"""
SCHEDULER = """
controller: {{addresses: ["http://127.0.0.1:{port}"], token_file: scheduler.token}}
source: {{fake: {{path: batch.json, boot_time: 1s}}}}
session_interval: 1s
session_spacing: 1s
trace: true
record: scheduler.rec.gz
"""
PROVISIONER = """
name: {name}
controller: {{addresses: ["http://127.0.0.1:{port}"], token_file: provisioner.token}}
state: state
scripts:
  - {{name: cloud, folder: cloud}}
rhythm: {{poll: 1s, round: 1s, review: 2s, reconcile: 5s}}
policy:
  budgets: [{{name: rent, max_hosts: 4}}]
record: provisioner.rec.gz
"""
KINDS = {"controller": CONTROLLER, "provisioner": PROVISIONER, "scheduler": SCHEDULER}
NEEDS = ("", "rusage[mem=4096]", "rusage[lic_sim=1]", "rusage[mem=3000,lic_sim=1]")


@contextmanager
def daemon(folder: Path, kind: str) -> Generator[None]:
    """Run a daemon until the block ends; SIGTERM ends it cleanly."""
    words = [sys.executable, "-m", "xce.adapters.cli.main", kind, "--config", f"{kind}.yaml"]
    with (folder / f"{kind}.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stderr=log)
        try:
            yield
            process.send_signal(signal.SIGTERM)
            code = process.wait(180)
        except BaseException:
            process.kill()
            process.wait()
            raise
    assert code == 0, (folder / f"{kind}.log").read_text()


def write_site(folder: Path) -> FakeFile:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    write_tokens(folder)
    for kind, text in KINDS.items():
        made = text.format(port=port, name=NAMES[Role.PROVISIONER])
        (folder / f"{kind}.yaml").write_text(made, encoding="utf-8")
        (folder / f"{kind}.token").write_text(
            TOKENS.get(Role(kind), "") if kind != "controller" else ""
        )
    install(Comes.SIMULATED, folder / "cloud", conf=SIMULATED_CONF | {"bootSeconds": 1})
    file = FakeFile(folder / "batch.json")
    own = Host(name="own-1", total={"slots": 2, "mem": 8192})
    settings = Settings(idle_host_after=timedelta(seconds=1))
    file.change(
        lambda state: fake_state.with_host(state, own),
        lambda state: state.with_(settings=settings),
    )
    return file


def sessions_in(folder: Path) -> int:
    log = (folder / "scheduler.log").read_text(encoding="utf-8")
    return log.count('"event": "session"')


def work(file: FakeFile, folder: Path) -> None:
    """Let jobs come, in bursts and with quiet times in between, until there were enough sessions."""
    chance = random.Random(7)
    deadline = time.monotonic() + PATIENCE_S
    before = 0
    while (done := sessions_in(folder)) < SESSIONS:
        assert time.monotonic() < deadline, f"{done} sessions of {SESSIONS}"
        before, is_new = done, done > before
        if is_new and done % 15 < 6:
            needs = chance.choice(NEEDS)
            user = chance.choice(("ann", "bob"))
            jobs = [PendingJob(id="new", user=user, resreq=needs)] * chance.randint(1, 4)
            length, now = timedelta(seconds=chance.randint(1, 3)), SystemClock().now()
            file.change(
                lambda state, jobs=jobs, length=length, now=now: fake_state.submitted(  # type: ignore[misc]  # bound now
                    state, jobs, length, now
                )
            )
        time.sleep(0.2)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what three daemons left behind."""
    folder = tmp_path_factory.mktemp("site")
    file = write_site(folder)
    with ExitStack() as stack:
        for kind in KINDS:  # the scheduler ends first, then the provisioner, then the controller
            stack.enter_context(daemon(folder, kind))
        work(file, folder)
    words = [
        str(folder / name) for name in ("all.rec.gz", "scheduler.rec.gz", "provisioner.rec.gz")
    ]
    done = CliRunner().invoke(app, ["recording", "join", *words])
    assert done.exit_code == 0, done.output
    return folder


def entries(folder: Path) -> Iterator[Entry]:
    return RecordingReader("all").entries(read_lines(folder / "all.rec.gz"))


def rounds(folder: Path) -> Iterator[RecordedRound]:
    return (entry for entry in entries(folder) if isinstance(entry, RecordedRound))


def verdict_of(folder: Path) -> Verdict:
    return verify(read_lines(folder / "all.rec.gz"), "all")


def test_every_session_and_every_round_of_a_live_run_says_the_same_again(
    site: Path, record_property: Callable[[str, object], None]
) -> None:
    for name in ("scheduler", "provisioner", "all"):
        verdict = verify(read_lines(site / f"{name}.rec.gz"), name)
        assert verdict.mismatch is None
        assert verdict.whole

    kinds = Counter(type(entry) for entry in entries(site))
    assert kinds[Seen] >= kinds[RecordedSession]
    counts = verdict_of(site).counts
    for name, count in counts.document().items():
        record_property(name, count)
    assert counts.sessions >= SESSIONS
    assert counts.rounds >= SESSIONS / 4
    assert counts.answers > 0


def test_the_run_was_no_idle_one(site: Path) -> None:
    """Jobs started, waited, and were demand; hosts and licences were asked for, came, and went back."""
    sessions = [entry for entry in entries(site) if isinstance(entry, RecordedSession)]
    kinds = Counter(one.kind for entry in rounds(site) for one in entry.decisions)
    items = {one.template or one.resource for entry in rounds(site) for one in entry.decisions}

    assert sum(len(entry.result["allocations"]) for entry in sessions) > 10
    assert any(entry.result["demand"]["hosts"] for entry in sessions)
    assert any(entry.result["demand"]["countable"] for entry in sessions)
    assert any(entry.result["idle"]["hosts"] for entry in sessions)
    assert all(entry.result["trace"] is not None for entry in sessions)
    assert kinds[DecisionKind.REQUEST] > 1
    assert kinds[DecisionKind.RETURN] > 0
    assert {"std4", "lic_sim"} <= items


def test_the_policy_was_given_the_demand_of_recorded_sessions(site: Path) -> None:
    tied = [entry.session is not None for entry in rounds(site) if entry.digest is not None]

    assert (
        sum(tied) >= len(tied) * 0.9
    )  # the last session may not be recorded before its demand is heard
    assert sum(tied) > SESSIONS / 4


def test_the_events_are_those_of_the_log(site: Path) -> None:
    found = [e.document for e in entries(site) if isinstance(e, Other) and e.kind == "event"]

    with open_log(site / "events.db", read_only=True) as log:
        read = log.read(0, found[-1]["position"])
        recorded = {one.position: event_entry(one).name for one in read}
    assert {one["position"]: one["name"] for one in found} == recorded


def test_no_session_was_shown_how_long_a_job_runs(site: Path) -> None:
    """The batch system knows it; what a job asked for as a limit is another thing, and nobody asked."""
    for entry in entries(site):
        if isinstance(entry, RecordedSession):
            text = entry.snapshot.to_json()
            assert "run_time" not in text
            assert "ends_at" not in text
            assert all(job.run_limit is None for job in entry.snapshot.pending)


def no_drains(patch: pytest.MonkeyPatch) -> None:
    """A host takes work until the batch system itself has closed it."""

    def nobody(supply: object) -> set[str]:
        return set()

    patch.setattr(scheduler, "_draining", nobody)


def longer_window(patch: pytest.MonkeyPatch) -> None:
    """Tokens are needed that nobody has needed."""
    peak = PeakWindow.peak

    def one_more(window: PeakWindow, now: datetime) -> int | None:
        return 1 + (peak(window, now) or 0)

    patch.setattr(PeakWindow, "peak", one_more)


def one_of(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    return next(rule.change for rule in RULES if rule.name == name)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (no_drains, "snapshot.hosts["),
        (longer_window, "snapshot.shared[0].peak_need"),
        (one_of("hosts are filled in the opposite order"), ""),
        (one_of("hosts that are spare are not dropped"), "demand"),
        (one_of("one step more is asked"), "decisions["),
    ],
    ids=("drains", "window", "host-order", "tightness", "amount"),
)
def test_a_rule_that_is_changed_is_found_in_the_live_run(
    site: Path, change: Callable[[pytest.MonkeyPatch], None], path: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        found = verdict_of(site).mismatch

    assert found is not None
    assert found.path.startswith(path)
    assert found.session > 0


def test_a_recording_without_names_says_the_same(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "anonymous.rec.gz"
    run = CliRunner().invoke

    done = run(app, ["recording", "anonymise", str(site / "all.rec.gz"), str(out)])

    assert done.exit_code == 0, done.output
    verdict = json.loads(run(app, ["replay", "verify", str(out), "--json"]).stdout)
    assert verdict["verified"]
    assert verdict["rounds"] == verdict_of(site).counts.rounds
    assert '"ann"' not in "".join(read_lines(out))

"""xce beside a real Slurm: hosts and licences follow its queue, whatever is killed on the way.

It needs Slurm, slurmdbd and MariaDB, and root. Where they are not there it is skipped; with ``XCE_REQUIRE_SLURM`` set it fails then.
"""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

import pytest
from tools.slurm_lab.site import DAEMONS, OTHERS, OURS, OWNED, Site

from tests.slurm_e2e.ground import free_span, need_slurm, short_folder
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify as verify_log
from xce.domain.errors import XceError
from xce.domain.events.base import DomainEvent
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request

pytestmark = pytest.mark.slow

#: A bound only: on an idle machine each wait is over in seconds.
PATIENCE_S = 150.0
OWN = f"{OURS}own1"


class Story:
    """A site, and what the tests do with it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.lab = site.lab

    def until(self, holds: Callable[[], bool], what: str, *, every_s: float = 0.2) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            self.site.keep_alive()
            if time.monotonic() > end:
                raise AssertionError(f"it never came to this: {what}; {self.shown()}")
            time.sleep(every_s)  # between looks, never instead of one

    def shown(self) -> str:
        jobs = self.lab.run(OURS, "squeue", "-h", "-o", "%i:%T:%r", check=False).split()
        nodes = self.lab.run(OURS, "sinfo", "-h", "-N", "-o", "%N:%T:%E", check=False).splitlines()
        slurm = (self.lab.folder / OURS / "log" / "slurmctld.log").read_text(errors="replace")[
            -6000:
        ]
        logs = {
            kind: (self.site.folder / f"{kind}.log").read_text(errors="replace")[-1500:]
            for kind in DAEMONS
        }
        return f"jobs {jobs}, nodes {nodes}, tokens {self.site.tokens()}, {self.site.instances()}; {logs}; {slurm}"

    def submit(self, seconds: float, *options: str) -> str:
        return self.lab.submit(OURS, f"sleep {seconds:g}", *options)

    def of_job(self, job: str, field: str) -> str:
        text = self.lab.run(OURS, "scontrol", "-o", "show", "job", job, check=False)
        found = re.search(rf"\b{field}=(\S*)", text)
        return found[1] if found else ""

    def ended(self, *jobs: str) -> bool:
        states = {self.of_job(job, "JobState") for job in jobs}
        assert states <= {"PENDING", "RUNNING", "COMPLETING", "COMPLETED", "CONFIGURING", ""}, states  # fmt: skip
        return states == {"COMPLETED"}

    def ended_soon(self, *jobs: str) -> bool:
        """See ``ended``. A job that slurmctld has put back into its queue, it holds back for two minutes: that wait is cut short."""
        for job in jobs:
            if self.of_job(job, "Restarts") > "0" and self.of_job(job, "Reason") == "BeginTime":
                self.lab.run(
                    OURS, "scontrol", "update", f"jobid={job}", "starttime=now", check=False
                )
        return self.ended(*jobs)

    def runs(self, job: str) -> bool:
        return self.of_job(job, "JobState") == "RUNNING"

    def nodes(self) -> dict[str, str]:
        text = self.lab.run(OURS, "sinfo", "-h", "-N", "-o", "%N %T", check=False)
        return dict(line.split(" ", 1) for line in text.splitlines())

    def is_saved(self, what: str) -> None:
        """Wait until slurmctld has written its ``job`` or ``node`` states: a kill takes away what it has only in memory."""
        file = self.lab.folder / OURS / "state" / f"{what}_state"
        since = time.time()
        self.until(lambda: file.exists() and file.stat().st_mtime > since, f"{what}s are saved")

    def crash(self, pid_file: str, program: str) -> None:
        self.lab.kill(f"{OURS}/pids/{pid_file}" if "/" not in pid_file else pid_file, program)


@pytest.fixture
def story() -> Iterator[Story]:
    need_slurm(database=True)
    with short_folder() as folder, free_span() as port:
        site = Site(folder, port)
        site.prepare()
        try:
            site.lab.run(
                OURS, "scontrol", "reconfigure"
            )  # saves what a newer one does not start without
            for kind in DAEMONS:
                site.start(kind)
            yield Story(site)
        finally:
            site.end()
            site.lab.stop(keep=True)


def nothing_is_open(site: Site) -> bool:
    """Return whether the log has no open request."""
    try:
        with site.client() as client:
            return not list(client.requests())
    except XceError:
        return False


def a_job_lands_between_idle_and_drain(story: Story) -> str:
    """Submit one to a host that is to go and that Slurm has not drained yet; return it."""
    scheduler = story.site.running["scheduler"]

    def draining() -> str | None:
        states = story.site.instances()
        return next((id_ for id_, state in states.items() if state == "draining"), None)

    for _ in range(10):
        first = story.submit(0, "-C", "small")
        story.until(partial(story.ended, first), "a job brings a host")
        story.until(lambda: draining() is not None, "it is to go", every_s=0.02)
        scheduler.send_signal(signal.SIGSTOP)
        instance = draining()
        try:
            if instance is None:
                continue
            node = instance.partition("/")[2].partition(".")[0]
            if story.nodes().get(node) != "idle":  # drained already: once more
                continue
            late = story.submit(4, "-C", "small", "-w", node)
            story.until(partial(story.runs, late), "it has started there")
            assert story.site.instances()[instance] == "draining"
            return late
        finally:
            scheduler.send_signal(signal.SIGCONT)
    raise AssertionError("the drain was always quicker")


def both_or_none(events: Iterable[DomainEvent], wide: Collection[str]) -> bool:
    """Return whether each ask for large hosts for a job of two, with the large hosts there are by then, is enough for it."""
    there: set[str] = set()
    enough: list[bool] = []
    for event in events:
        if isinstance(event, Instance.Granted) and event.template == "large":
            there.add(event.originator_id)
        elif isinstance(event, Instance.DrainStarted | Instance.Lost):
            there.discard(event.originator_id)
        elif (
            isinstance(event, Request.Intended)
            and event.item == "large"
            and {*wide} & {*event.jobs}
        ):
            enough.append(len(there) + event.amount >= 2)
    return bool(enough) and all(enough)


def test_hosts_and_licences_follow_the_queue_whatever_is_killed(story: Story) -> None:
    site, lab = story.site, story.lab

    # Jobs that no host would help: held, dependent, limited, later, too wide for the partition.
    lab.manage(OURS, "add", "qos", "capped")
    lab.manage(OURS, "modify", "qos", "capped", "set", "grptres=cpu=1")
    lab.manage(OURS, "modify", "user", "root", "set", "qos+=capped")
    held = story.submit(1, "-C", "large", "-H")
    no_demand = {
        held,
        story.submit(1, "-C", "large", "-d", f"afterok:{held}"),
        story.submit(1, "-C", "large", "-c2", "--qos=capped"),
        story.submit(1, "-C", "large", "--begin=now+1hour"),
        story.submit(1, "-N50"),
    }

    # Jobs that need hosts: one small, and two of two large nodes each, where there may be three.
    small = story.submit(3, "-C", "small", "-c2")
    wide = [story.submit(3, "-C", "large", "-N2", "-c4") for _ in range(2)]
    story.is_saved("job")
    story.until(lambda: len(story.nodes()) > 1, "hosts come")
    story.is_saved("node")
    story.crash("slurmctld", "slurmctld")
    site.kill("provisioner")
    lab.start_slurmctld(OURS)
    story.until(lambda: story.ended_soon(small, *wide), "the jobs that need hosts run")
    for job in wide:
        assert story.of_job(job, "NumNodes") == "2"

    # Jobs that need tokens which the other cluster does not use.
    bound = [story.submit(8, "-L", "tool@srv:1") for _ in range(8)]
    story.until(lambda: site.tokens()[0] > OWNED, "tokens come")
    story.crash("dbd/pid", "slurmdbd")
    site.kill("controller")
    lab.start_slurmdbd()
    story.until(lambda: story.ended(*bound), "the jobs that need tokens run")

    # A host dies with a job on it.
    lost = story.submit(15, "-C", "small", "-c2")
    story.until(lambda: story.runs(lost), "it runs on a host")
    story.crash(f"slurmd-{story.of_job(lost, 'NodeList')}", "slurmd")
    site.kill("scheduler")
    story.until(lambda: story.of_job(lost, "JobState") == "PENDING", "it waits again")
    story.until(lambda: story.ended_soon(lost), "it runs again, to its end")

    late = a_job_lands_between_idle_and_drain(story)
    story.until(lambda: story.ended(late), "the job that came late runs to its end")
    assert story.of_job(late, "Restarts") == "0"

    story.until(lambda: set(story.nodes()) == {OWN}, "all hosts went back")
    story.until(lambda: site.tokens() == (OWNED, OTHERS), "all tokens went back")
    story.until(lambda: not site.instances() and nothing_is_open(site), "the log says so too")
    for job in no_demand:
        assert story.of_job(job, "JobState") == "PENDING"
    with site.client() as client:
        assert not list(client.orphans())

    assert set(site.end().values()) == {0}
    with open_log(str(site.folder / "events.db"), read_only=True) as log:
        report = verify_log(log)
        assert report.passed, [finding for check in report.checks for finding in check.findings]
        events = [one.event for one in log.read()]
    asks = [event for event in events if isinstance(event, Request.Intended)]
    assert not no_demand & {job for ask in asks for job in ask.jobs}
    assert both_or_none(events, wide), [(a.amount, a.jobs) for a in asks if a.item == "large"]
    recordings = sorted(site.folder.glob("r*.rec.gz"))
    assert len(recordings) > 3, "driver and provisioner were killed, and recorded on"
    for recording in recordings:
        ran = subprocess.run(
            [sys.executable, "-m", "xce.adapters.cli.main", "replay", "verify", recording],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, (recording, ran.stdout, ran.stderr)

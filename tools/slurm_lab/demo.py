"""One command to try it: a real Slurm with two clusters, xce beside it, and jobs; everything ends and is removed at the end.

python -m tools.slurm_lab.demo [--install] [--folder DIR] [--port N]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tools.slurm_lab.lab import LabError, lacking
from tools.slurm_lab.site import DAEMONS, OTHER, OTHERS, OURS, OWNED, Site

from xce.adapters.recordings import read_lines
from xce.domain.errors import XceError
from xce.replay.verification import verify

PACKAGES: Final = Path(__file__).with_name("packages.sh")
_PATIENCE_S: Final = 180.0


class Demo:
    """Says what it sees, each time that something has changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lab = site.lab
        self._begun = time.monotonic()
        self._seen: tuple[str, ...] = ()

    def say(self, what: str) -> None:
        """Print a line with the seconds since the beginning."""
        print(f"{time.monotonic() - self._begun:6.1f}  {what}", flush=True)

    def run(self) -> None:
        """Go through it."""
        self.say("packages are here; starting MariaDB, slurmdbd, two slurmctld and a node for each")
        self._site.prepare()
        self.say(
            f"{OURS} may use {OWNED} of 100 tokens, {OTHER} has {OTHERS}; no cloud host exists"
        )
        for kind in DAEMONS:
            self._site.start(kind)
        self._until(self._holds_leases, "the daemons work")
        self.say("controller, scheduler driver and provisioner work")
        jobs = [
            self._submit("one small host", 6, "-C", "small", "-c2"),
            self._submit("two large hosts at once, or none", 6, "-C", "large", "-N2", "-c4"),
            self._submit("a job that is held: no demand", 1, "-C", "large", "-H"),
        ]
        held = jobs.pop()
        for _ in range(6):
            jobs.append(self._submit("a licence token", 12, "-L", "tool@srv:1"))
        self._until(lambda: self._ended(jobs), "all of them run")
        self.say("all jobs that could run have run; what was got for them is idle now")
        self._until(self._all_back, "everything goes back")
        self._lab.run(OURS, "scancel", held)
        self.say("all hosts and tokens are back")

    def _submit(self, what: str, seconds: int, *options: str) -> str:
        job = self._lab.submit(OURS, f"sleep {seconds}", *options)
        self.say(f"sbatch {' '.join(options)}: job {job}, {what}")
        return job

    def _holds_leases(self) -> bool:
        try:
            with self._site.client() as client:
                return len(list(client.leases())) == 2
        except XceError:
            return False

    def _ended(self, jobs: Sequence[str]) -> bool:
        states = self._lab.jobs(OURS)
        return all(states.get(job) == "COMPLETED" for job in jobs)

    def _all_back(self) -> bool:
        nodes = self._lab.nodes(OURS)
        tokens = self._site.tokens()
        return len(nodes) == 1 and tokens == (OWNED, OTHERS) and not self._site.instances()

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not holds():
            self._look()
            self._site.keep_alive()
            if time.monotonic() > end:
                raise LabError(f"it never came to this: {what}; see {self._site.folder}/*.log")
            time.sleep(0.3)
        self._look()

    def _look(self) -> None:
        states = list(self._lab.jobs(OURS).values())
        nodes = self._lab.nodes(OURS)
        count = {state: states.count(state) for state in ("PENDING", "RUNNING", "COMPLETED")}
        hosts = ", ".join(f"{name} {state}" for name, state in nodes.items())
        ours, theirs = self._site.tokens()
        seen = (
            f"jobs {count['PENDING']} wait, {count['RUNNING']} run, {count['COMPLETED']} done",
            f"nodes {hosts}",
            f"tokens {OURS} {ours}, {OTHER} {theirs}",
        )
        if seen != self._seen:
            self.say(" | ".join(seen))
        self._seen = seen


def install_packages() -> None:
    """Install what the lab needs from Debian or Ubuntu; what is there is left as it is.

    Raises:
        LabError: it cannot be; what the script says has been shown.
    """
    if subprocess.run([PACKAGES], stdin=subprocess.DEVNULL, check=False).returncode:
        raise LabError("the packages could not be installed")


def main(arguments: Sequence[str]) -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="slurm-demo", description="xce beside a real Slurm.")
    parser.add_argument("--install", action="store_true", help="install missing packages")
    parser.add_argument("--folder", type=Path, help="kept at the end; default: one that is removed")
    parser.add_argument("--port", type=int, default=18800, help="the first of a few hundred")
    told = parser.parse_args(arguments)
    made = None if told.folder else Path(tempfile.mkdtemp(prefix="xce-slurm-"))
    folder: Path = made or told.folder.absolute()
    site = Site(folder, told.port)
    demo = Demo(site)
    try:
        if told.install and lacking(database=True):
            print("installing packages of Slurm and MariaDB", flush=True)
            install_packages()
        if missing := lacking(database=True):
            raise LabError(missing)
        demo.run()
        codes = site.end()
        recordings = [verify(read_lines(p), p.name) for p in sorted(folder.glob("r*.rec.gz"))]
        right = all(one.mismatch is None for one in recordings)
        demo.say(f"daemons ended with {sorted(codes.values())}; recordings {'verified' if right else 'differ'}")  # fmt: skip
        return 0 if right and not any(codes.values()) else 3
    except (LabError, XceError, OSError) as error:
        print(f"slurm-demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        site.end()
        site.lab.stop(keep=made is None)
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""xce beside a Slurm of the lab: two clusters that share licences, slurmd processes as cloud hosts, and the three daemons."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tools.slurm_lab.lab import PATIENCE_S, Cluster, Lab

from xce.adapters.client import Client
from xce.adapters.controller.access import token_line
from xce.adapters.providers.install import Comes, install
from xce.adapters.providers.slurm_local.settings import records
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import XceError

#: The cluster that xce serves, and one that has tokens to spare.
OURS: Final = "ca"
OTHER: Final = "cb"
LICENCE: Final = "tool@srv"
#: Tokens of the pool, so that one percent is one; and what each cluster has of them at the beginning.
POOL: Final = 100
OWNED: Final = 2
OTHERS: Final = 98
DAEMONS: Final = ("controller", "scheduler", "provisioner")

_CONTROLLER: Final = """
log: events.db
tokens: tokens.txt
listen: {{port: {port}}}
request_log: false
detection: 2s
shared:
  - name: {licence}
    owned: {owned}
    provider: licences
    max_borrow: 20
    step: 1
    idle_return_after: 4s
    settle_time: 1s
"""
_SCHEDULER: Final = """
controller: {{addresses: ["http://127.0.0.1:{port}"], token_file: scheduler.token}}
source:
  slurm: {{conf: {conf}, limits_every: 5s, idle_host_after: 3s}}
session_interval: 1s
record: run.rec.gz
"""
_PROVISIONER: Final = """
name: provisioner-1
controller: {{addresses: ["http://127.0.0.1:{port}"], token_file: provisioner.token}}
state: state
record: rounds.rec.gz
scripts:
  - {{name: local, folder: local, path: {path}}}
  - {{name: licences, folder: licences, path: {path}}}
lifecycle: {{lookup_settle: 5s}}
policy: {{pause_after_refusal: 5s, join_limit: 1min}}
rhythm: {{poll: 1s, round: 1s, review: 1s, reconcile: 3s, lease_term: 3s}}
"""


@dataclass
class Site:
    """A lab, and xce beside its first cluster, all below one folder."""

    folder: Path
    port: int
    running: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, subprocess.Popen[bytes]]
    )

    @property
    def lab(self) -> Lab:
        """Return the lab."""
        lines = tuple(records(self._hosts()))
        clusters = (Cluster(OURS, own_nodes=1, own_cpus=8, lines=lines), Cluster(OTHER))
        return Lab(self.folder / "lab", self.port, clusters, database=True)

    @property
    def address(self) -> str:
        """Return where the controller listens."""
        return f"http://127.0.0.1:{self.port + 5}"

    def _hosts(self) -> dict[str, Any]:
        """Return the configuration of the cloud: two kinds of host."""
        kinds = (("small", 2, 1000, "0.10"), ("large", 4, 2000, "0.40"))
        return {
            "slurmConf": str(self.folder / "lab" / OURS / "slurm.conf"),
            "templates": [
                {
                    "templateId": name, "nodes": f"{name}[1-3]", "port": self.port + 60 + 10 * number,
                    "cpus": cpus, "memory": memory, "features": [name], "price": price,
                }
                for number, (name, cpus, memory, price) in enumerate(kinds)
            ],
        }  # fmt: skip

    # --------------------------------------------------------------------- begin and end
    def prepare(self) -> None:
        """Start the lab and write everything that xce needs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        lab = self.lab
        lab.start()
        name, _, server = LICENCE.partition("@")
        lab.manage(
            OURS, "add", "resource", f"name={name}", f"server={server}", "servertype=flexlm", f"count={POOL}",
            "type=license", f"cluster={OURS}", f"percentallowed={OWNED}",
        )  # fmt: skip
        lab.manage(
            OURS, "add", "resource", f"name={name}", f"server={server}",
            f"cluster={OTHER}", f"percentallowed={OTHERS}",
        )  # fmt: skip
        lines: list[str] = []
        for role, who in ((Role.ADMIN, "alice"), (Role.SCHEDULER, "s1"), (Role.PROVISIONER, "provisioner-1")):  # fmt: skip
            secret = f"xce_{secrets.token_urlsafe(24)}"
            lines.append(token_line(Caller(role, who), secret))
            place = self.folder / f"{role}.token"
            place.touch(0o600)
            place.write_text(secret)
        (self.folder / "tokens.txt").write_text("\n".join(lines) + "\n")
        install(Comes.SLURM_LOCAL, self.folder / "local", conf=self._hosts())
        clusters = {each.name: str(lab.conf(each.name)) for each in lab.clusters}
        conf = {"licences": [{"name": LICENCE, "taker": OURS, "clusters": clusters, "keep": {OTHER: 10}}]}  # fmt: skip
        install(Comes.SLURM_LICENCES, self.folder / "licences", conf=conf)
        told = {
            "port": self.port + 5, "licence": json.dumps(LICENCE), "owned": OWNED, "conf": lab.conf(OURS),
            "path": json.dumps(os.environ["PATH"]),  # where this Slurm is
        }  # fmt: skip
        for kind, text in zip(DAEMONS, (_CONTROLLER, _SCHEDULER, _PROVISIONER), strict=True):
            (self.folder / f"{kind}.yaml").write_text(text.format(**told), encoding="utf-8")

    def start(self, kind: str) -> None:
        """Start one of our daemons."""
        with (self.folder / f"{kind}.log").open("ab") as log:
            self.running[kind] = subprocess.Popen(
                [sys.executable, "-m", "xce.adapters.cli.main", kind, "--config", f"{self.folder}/{kind}.yaml"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self, kind: str) -> None:
        """Kill one of our daemons as a power cut would."""
        self.running[kind].kill()
        self.running[kind].wait()

    def keep_alive(self) -> None:
        """Do what a service manager does: start again what has ended."""
        for kind, process in list(self.running.items()):
            if process.poll() is not None:
                self.start(kind)

    def end(self, kinds: Iterable[str] = tuple(reversed(DAEMONS))) -> dict[str, int]:
        """End our daemons in order; return their exit codes."""
        codes: dict[str, int] = {}
        for kind in kinds:
            process = self.running.pop(kind, None)
            if process is None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                codes[kind] = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                codes[kind] = process.wait()
        return codes

    # ---------------------------------------------------------------------------- look
    def client(self) -> Client:
        """Return a client with the rights of an admin."""
        secret = (self.folder / f"{Role.ADMIN}.token").read_text()
        return Client(self.address, token=secret, attempts=3)

    def instances(self) -> dict[str, str]:
        """Return what the log has of machines that exist, by id; nothing while the controller is away."""
        try:
            with self.client() as client:
                return {one.id: str(one.state) for one in client.instances()}
        except XceError:
            return {}

    def tokens(self) -> tuple[int, int]:
        """Return what each cluster may use of the pool, as slurmctld counts."""
        found: list[int] = []
        for cluster in (OURS, OTHER):
            text = self.lab.run(cluster, "scontrol", "-o", "show", "lic", check=False)
            total = text.partition("Total=")[2].split(" ")[0]
            found.append(int(total or -1))
        return found[0], found[1]

"""A real Slurm on this machine, for trying out and for tests: clusters on loopback, without systemd and without containers.

    python tools/slurm_lab/lab.py start DIR [--clusters ca,cb] [--port 18800] [--database]
    python tools/slurm_lab/lab.py stop DIR

Everything is below DIR and ends with it. packages.sh installs what it needs from Debian or Ubuntu. It must run as root, as slurmd does.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

NEEDED: Final = ("munged", "slurmctld", "slurmd", "scontrol", "sbatch", "squeue", "sinfo")
NEEDED_BY_DATABASE: Final = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db", "mariadb")
PATIENCE_S: Final = 60.0
#: Ports of one cluster: the controller's, those of its own nodes, and those of its records.
_STRIDE: Final = 100


class LabError(Exception):
    """The lab cannot do it; the message says why."""


@dataclass(frozen=True)
class Cluster:
    """One slurmctld, its own nodes, and lines of the administrator's."""

    name: str
    own_nodes: int = 1
    own_cpus: int = 2
    #: Further lines of slurm.conf, such as records of hosts that do not exist yet.
    lines: tuple[str, ...] = ()
    licences: str = ""


@dataclass(frozen=True)
class Lab:
    """Clusters below one folder, with one database or none."""

    folder: Path
    port: int
    clusters: tuple[Cluster, ...] = field(default_factory=tuple[Cluster, ...])
    database: bool = False

    # ------------------------------------------------------------------ where things are
    def conf(self, cluster: str) -> Path:
        """Return the slurm.conf of a cluster."""
        return self.folder / cluster / "slurm.conf"

    def environment(self, cluster: str) -> dict[str, str]:
        """Return the environment in which Slurm's commands are about a cluster."""
        return {**os.environ, "SLURM_CONF": str(self.conf(cluster)), "LC_ALL": "C.UTF-8"}

    def first_port(self, cluster: str) -> int:
        """Return where the ports of a cluster begin."""
        names = [each.name for each in self.clusters]
        return self.port + 10 + names.index(cluster) * _STRIDE

    @property
    def _socket(self) -> Path:
        return self.folder / "munge" / "socket"

    @staticmethod
    def program(name: str) -> str:
        """Return where a program of Slurm's is.

        Raises:
            LabError: it is not installed.
        """
        return _program(name)

    # ------------------------------------------------------------------ commands
    def run(self, cluster: str, *words: str, check: bool = True) -> str:
        """Run one of Slurm's commands about a cluster and return what it prints.

        Raises:
            LabError: it failed.
        """
        ran = subprocess.run(
            words,
            env=self.environment(cluster),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if check and ran.returncode:
            raise LabError(f"{' '.join(words)}: {ran.stderr.strip() or ran.stdout.strip()}")
        return ran.stdout

    def submit(self, cluster: str, run: str, *options: str) -> str:
        """Submit a job that runs a shell command; return its number."""
        out = f"{self.folder}/{cluster}/out/%j"
        return self.run(
            cluster, "sbatch", "--parsable", "-D", "/", "-o", out, *options, "--wrap", run
        ).strip()

    def jobs(self, cluster: str) -> dict[str, str]:
        """Return the state of each job that slurmctld remembers."""
        text = self.run(cluster, "squeue", "-h", "-t", "all", "-o", "%i %T")
        return dict(line.split(" ", 1) for line in text.splitlines())

    def nodes(self, cluster: str) -> dict[str, str]:
        """Return the state of each visible node."""
        text = self.run(cluster, "sinfo", "-h", "-N", "-o", "%N %T")
        return dict(line.split(" ", 1) for line in text.splitlines())

    # ------------------------------------------------------------------ start
    def start(self) -> None:
        """Start everything; what a start that failed left is stopped.

        Raises:
            LabError: a package is missing, or something does not come up.
        """
        missing = lacking(database=self.database)
        if missing:
            raise LabError(missing)
        firsts = [self.first_port(cluster.name) for cluster in self.clusters]
        taken = [port for port in (self.port + 1, self.port + 2, *firsts) if _listens(port)]
        if taken:
            raise LabError(f"port {taken[0]} is in use: another lab? choose another first port")
        try:
            self._lay_out()
            self.start_munge()
            if self.database:
                self._start_mariadb()
                self.start_slurmdbd()
                self._accounts()
            for cluster in self.clusters:
                self.start_slurmctld(cluster.name)
                for name in self._own_nodes(cluster):
                    self.start_slurmd(cluster.name, name)
            for cluster in self.clusters:
                wait_for(partial(self._serves, cluster), f"{cluster.name} comes up")
        except BaseException:
            self.stop()
            raise

    def _serves(self, cluster: Cluster) -> bool:
        nodes = self.nodes(cluster.name)
        return all(nodes.get(name) == "idle" for name in self._own_nodes(cluster))

    @staticmethod
    def _own_nodes(cluster: Cluster) -> list[str]:
        return [f"{cluster.name}own{number + 1}" for number in range(cluster.own_nodes)]

    def _lay_out(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        munge = self.folder / "munge"
        munge.mkdir(exist_ok=True)
        munge.chmod(0o711)  # munged wants everybody to pass
        key = munge / "key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        for cluster in self.clusters:
            for name in ("state", "spool", "log", "pids", "out"):
                (self.folder / cluster.name / name).mkdir(parents=True, exist_ok=True)
            self.conf(cluster.name).write_text(self._slurm_conf(cluster), encoding="utf-8")
        told = {**asdict(self), "folder": str(self.folder)}
        (self.folder / "lab.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")

    def _slurm_conf(self, cluster: Cluster) -> str:
        here, host = self.folder / cluster.name, socket.gethostname().split(".")[0]
        port, me = self.first_port(cluster.name), _me()
        lines = [
            f"ClusterName={cluster.name}",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={port}",
            f"SlurmdPort={port + 1}",
            f"SlurmUser={me}",
            f"SlurmdUser={me}",
            "AuthType=auth/munge",
            f"AuthInfo=socket={self._socket}",
            "CredType=cred/munge",
            "MpiDefault=none",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "DefMemPerCPU=100",
            "SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=100000",
            "ReturnToService=2",
            "SlurmdParameters=config_overrides",
            "MaxNodeCount=64",
            "TreeWidth=65533",
            "DebugFlags=NO_CONF_HASH",
            f"SlurmctldPidFile={here}/pids/slurmctld",
            f"SlurmctldLogFile={here}/log/slurmctld.log",
            f"SlurmdPidFile={here}/pids/slurmd-%n",
            f"SlurmdLogFile={here}/log/slurmd-%n.log",
            f"SlurmdSpoolDir={here}/spool/%n",
            f"StateSaveLocation={here}/state",
            "SlurmctldTimeout=10",
            "SlurmdTimeout=20",
            "MinJobAge=3600",
            "KillWait=2",
        ]
        if cluster.licences:
            lines.append(f"Licenses={cluster.licences}")
        if self.database:
            lines += [
                "AccountingStorageType=accounting_storage/slurmdbd",
                "AccountingStorageHost=127.0.0.1",
                f"AccountingStoragePort={self.port + 1}",
                f"AccountingStoragePass={self._socket}",
                "AccountingStorageEnforce=associations,limits,qos",
            ]
        lines += [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 11 + number} "
            f"CPUs={cluster.own_cpus} RealMemory=2000 State=UNKNOWN"
            for number, name in enumerate(self._own_nodes(cluster))
        ]
        lines += cluster.lines
        lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
        return "\n".join(lines) + "\n"

    def start_munge(self) -> None:
        """Start the daemon that signs messages."""
        munge = self.folder / "munge"
        _call(
            "munged", "--num-threads=4", f"--key-file={munge}/key", f"--socket={self._socket}",
            f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed",
        )  # fmt: skip

    def start_slurmctld(self, cluster: str) -> None:
        """Start a cluster's controller."""
        _call("slurmctld", "-f", str(self.conf(cluster)))

    def start_slurmd(self, cluster: str, node: str) -> None:
        """Start the daemon of a cluster's own node."""
        _call("slurmd", "-f", str(self.conf(cluster)), "-N", node)

    def start_slurmdbd(self) -> None:
        """Start the daemon before the database."""
        place = self.folder / "dbd" / "slurmdbd.conf"
        # It looks for its configuration beside SLURM_CONF.
        _call("slurmdbd", environment={**os.environ, "SLURM_CONF": str(place)})
        wait_for(lambda: _listens(self.port + 1), "slurmdbd listens")

    def _start_mariadb(self) -> None:
        here, me = self.folder / "db", _me()
        here.mkdir()
        cheap = ("--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0")
        _call(
            "mariadb-install-db", "--no-defaults", f"--user={me}", f"--datadir={here}/data",
            "--auth-root-authentication-method=normal", "--skip-test-db", *cheap,
        )  # fmt: skip
        words = (
            _program("mariadbd"), "--no-defaults", f"--user={me}", f"--datadir={here}/data",
            f"--socket={here}/sock", f"--pid-file={here}/pid", "--bind-address=127.0.0.1",
            f"--port={self.port + 2}", "--innodb-buffer-pool-size=64M", *cheap,
            "--innodb-lock-wait-timeout=900", "--skip-log-bin", "--skip-name-resolve",
        )  # fmt: skip
        # It does not go into the background by itself.
        _call("sh", "-c", 'log=$1; shift; setsid "$@" >"$log" 2>&1 &', "sh", f"{here}/log", *words)
        sock = here / "sock"
        wait_for(lambda: sock.exists() and _listens(self.port + 2), "mariadb listens")
        password = secrets.token_hex(12)
        _call(
            "mariadb", "--no-defaults", "-S", f"{here}/sock", "-u", "root", "-e",
            f"create database acct; create user s@'127.0.0.1' identified by '{password}'; "
            "grant all on acct.* to s@'127.0.0.1'",
        )  # fmt: skip
        place = self.folder / "dbd" / "slurmdbd.conf"
        place.parent.mkdir()
        place.touch(0o600)
        lines = (
            "AuthType=auth/munge",
            f"AuthInfo=socket={self._socket}",
            f"DbdHost={socket.gethostname().split('.')[0]}",
            "DbdAddr=127.0.0.1",
            f"DbdPort={self.port + 1}",
            f"SlurmUser={me}",
            f"LogFile={place.parent}/log",
            f"PidFile={place.parent}/pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=127.0.0.1",
            f"StoragePort={self.port + 2}",
            "StorageUser=s",
            f"StoragePass={password}",
            "StorageLoc=acct",
        )
        place.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _accounts(self) -> None:
        names = [cluster.name for cluster in self.clusters]
        first, everywhere = names[0], f"cluster={','.join(names)}"
        for name in names:
            self.manage(first, "add", "cluster", name)
        self.manage(first, "add", "account", "proj", everywhere)
        self.manage(first, "add", "user", _me(), "account=proj", everywhere)

    def manage(self, cluster: str, *words: str) -> None:
        """Change what slurmdbd holds."""
        self.run(cluster, "sacctmgr", "-i", "-Q", *words)

    # ------------------------------------------------------------------ kill and stop
    def kill(self, pid_file: str, program: str) -> None:
        """Kill a daemon as a power cut would: by the file with its number, below the folder."""
        pid = _pid_of(self.folder / pid_file, program)
        if pid is None:
            raise LabError(f"{program} does not run")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), f"{program} ends")

    def stop(self, *, keep: bool = False) -> None:
        """End everything that was started here, jobs included, and remove the folder."""
        for cluster in self.clusters:
            if _pid_of(self.folder / cluster.name / "pids" / "slurmctld", "slurmctld"):
                self.run(cluster.name, "scancel", "-u", _me(), check=False)
        for cluster in self.clusters:
            pids = self.folder / cluster.name / "pids"
            _end(pids / "slurmctld", "slurmctld")
            for place in sorted(pids.glob("slurmd-*")):
                _end(place, "slurmd")
        self._end_steps()
        for name, program in (
            ("dbd/pid", "slurmdbd"),
            ("db/pid", "mariadbd"),
            ("munge/pid", "munged"),
        ):
            _end(self.folder / name, program)
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end_steps(self) -> None:
        """End job processes that outlive slurmd; only step daemons are looked at."""
        ours = [f"SLURM_CONF={self.conf(cluster.name)}" for cluster in self.clusters]
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if (place / "comm").read_text().strip() != "slurmstepd":
                    continue
                words = (place / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if any(word in ours for word in words):
                for pid in (*_below(int(place.name)), int(place.name)):
                    _signal(pid, signal.SIGKILL)


def lacking(*, database: bool) -> str | None:
    """Return why there can be no lab here; None: there can."""
    if os.geteuid():
        return "the lab needs root, as slurmd does"
    wanted = (*NEEDED, *(NEEDED_BY_DATABASE if database else ()))
    missing = [name for name in wanted if shutil.which(name, path=_path()) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def load(folder: Path) -> Lab:
    """Return a lab that was started in a folder."""
    told = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
    clusters = tuple(
        Cluster(c["name"], c["own_nodes"], c["own_cpus"], tuple(c["lines"]), c["licences"])
        for c in told["clusters"]
    )
    return Lab(folder, told["port"], clusters, told["database"])


def wait_for(holds: Callable[[], bool], what: str, *, patience_s: float = PATIENCE_S) -> None:
    """Return when something holds.

    Raises:
        LabError: it does not come to hold.
    """
    end = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end:
            raise LabError(f"it never came to this: {what}")
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that ended and was not reaped does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def _me() -> str:
    return "root" if os.geteuid() == 0 else os.environ["USER"]


def _path() -> str:
    return f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"


def _program(name: str) -> str:
    found = shutil.which(name, path=_path())
    if found is None:
        raise LabError(f"{name} is not installed")
    return found


def _call(program: str, *words: str, environment: dict[str, str] | None = None) -> None:
    ran = subprocess.run(
        [_program(program), *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if ran.returncode:
        raise LabError(f"{program} failed: {ran.stderr.strip()}")


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0):
            return True
    except OSError:
        return False


def _pid_of(place: Path, program: str) -> int | None:
    try:
        pid = int(place.read_text())
        if Path(f"/proc/{pid}/comm").read_text().strip() == program and alive(pid):
            return pid
    except (OSError, ValueError):
        return None
    return None


def _end(place: Path, program: str) -> None:
    pid = _pid_of(place, program)
    if pid is None:
        return
    _signal(pid, signal.SIGTERM)
    try:
        wait_for(lambda: not alive(pid), f"{program} ends", patience_s=10.0)
    except LabError:
        _signal(pid, signal.SIGKILL)


def _below(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in children for each in (*_below(int(child)), int(child))]


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def main(arguments: Sequence[str]) -> int:
    """Start or stop a lab from the command line."""
    parser = argparse.ArgumentParser(prog="lab.py", description="A real Slurm on this machine.")
    parser.add_argument("what", choices=("start", "stop"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clusters", default="ca", help="names, with commas")
    parser.add_argument("--port", type=int, default=18800, help="the first of a few hundred")
    parser.add_argument("--database", action="store_true", help="with slurmdbd and MariaDB")
    told = parser.parse_args(arguments)
    folder: Path = told.folder.absolute()
    try:
        if told.what == "start":
            clusters = tuple(Cluster(name) for name in told.clusters.split(","))
            Lab(folder, told.port, clusters, told.database).start()
            for cluster in clusters:
                print(f"export SLURM_CONF={folder}/{cluster.name}/slurm.conf")
        else:
            load(folder).stop()
    except (LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""A Slurm as the batch system of the live driver: it is read, told of drains, and places its jobs itself."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from xce.adapters.files import why_unread
from xce.adapters.schedulers.slurm.build import UNSEEN, View, view_of
from xce.adapters.schedulers.slurm.commands import Commands, Run
from xce.adapters.schedulers.slurm.differences import Differences
from xce.adapters.schedulers.slurm.facts import NodeFact, Readings
from xce.adapters.schedulers.slurm.hosts import OURS
from xce.adapters.schedulers.slurm.reader import Reader
from xce.adapters.schedulers.slurm.rest import SlurmRest
from xce.domain.errors import InputError, TransientError
from xce.domain.formats.scheduler_config import SlurmSource
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import Clock, SchedulerOrders

#: Nodes and jobs of one command.
AT_ONCE: Final = 200
#: Troubles of one reading that are said one by one.
TROUBLES_MAX: Final = 20
_LOG = structlog.get_logger("xce.scheduler")


def reader_of(config: SlurmSource) -> tuple[Reader, Commands, SlurmRest | None]:
    """Return what reads a Slurm, what calls its commands, and its slurmrestd if there is one.

    Raises:
        InputError: the file with the token cannot be read.
    """
    timeout_s = config.timeout.total_seconds()
    run = Commands(conf=config.conf, folder=config.commands, timeout_s=timeout_s)
    rest = None
    if config.rest is not None:
        path = None if config.rest_token_file is None else Path(config.rest_token_file)

        def token() -> str | None:
            if path is None:
                return None
            try:
                return path.read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InputError.of(str(path), why_unread(error)) from None

        rest = SlurmRest(config.rest, token=token, timeout_s=timeout_s)
    reader = Reader(run, rest=rest, json=config.json_output, limits_every=config.limits_every)
    return reader, run, rest


class SlurmScheduler:
    """One Slurm cluster as a source. What it starts, it starts by itself: orders to start only tell where our model differs."""

    def __init__(
        self,
        reader: Reader,
        run: Run,
        clock: Clock,
        *,
        wait: Callable[[float], object],
        observe_only: bool = False,
        differences_after: timedelta = timedelta(minutes=1),
        idle_host_after: timedelta = timedelta(hours=1),
        close: Callable[[], object] = lambda: None,
    ) -> None:
        """Read by ``reader`` and write by ``run``; ``observe_only``: say what would be written instead."""
        self._reader = reader
        self._run = run
        self._clock = clock
        self._wait = wait
        self._observe_only = observe_only
        self._differences = Differences(differences_after)
        self._idle_host_after = idle_host_after
        self._close = close
        self._view: View | None = None
        self._nodes: tuple[NodeFact, ...] = ()
        self._said: set[str] = set()

    def view(self) -> Snapshot:
        """Return what it shows now.

        Raises:
            TransientError: it cannot be read, or not understood: what runs would seem not to.
        """
        try:
            readings = self._reader.read(self._clock.now())
        except InputError as error:
            raise TransientError(f"Slurm is not understood: {str(error).splitlines()[0]}") from None
        self._view = view_of(readings)
        self._nodes = readings.nodes
        self._tell(self._view, readings)
        snapshot = self._view.snapshot
        told = {"idle_host_after": self._idle_host_after}
        settings = snapshot.settings.model_copy(update=told)
        return snapshot.model_copy(update={"settings": settings})

    def obey(self, orders: SchedulerOrders) -> None:
        """Drain, open, take back and requeue; report jobs that our model would start and Slurm does not.

        Raises:
            TransientError: a command failed; those after it were tried all the same.
        """
        if self._view is not None:
            for one in self._differences.note(self._view, self._nodes, orders.start):
                _LOG.warning(
                    "Slurm does not start it", job=one.job, reason=one.reason, hosts=one.hosts,
                    since=one.since.isoformat(), seen=one.seen,
                )  # fmt: skip
        failed: TransientError | None = None
        for command in commands_of(orders, self._nodes):
            if self._observe_only:
                _LOG.info("would run", command=" ".join(command))
                continue
            try:
                self._run(command)
                _LOG.info("ran", command=" ".join(command))
            except TransientError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def wait(self, timeout_s: float) -> None:
        """Return after the time: Slurm tells nobody when something changes."""
        self._wait(timeout_s)

    def close(self) -> None:
        """Let go of slurmrestd."""
        self._close()

    def _tell(self, view: View, readings: Readings) -> None:
        """Say each trouble once, for as long as it lasts."""
        now = {f"{source}: {problem}" for source, problem in view.troubles}
        new = sorted(now - self._said)
        for line in new[:TROUBLES_MAX]:
            _LOG.warning("not used", what=line)
        if len(new) > TROUBLES_MAX:
            _LOG.warning("not used", what=f"and {len(new) - TROUBLES_MAX} more of these")
        if new:
            _LOG.info("read", cluster=readings.settings.cluster, version=readings.settings.version)
        self._said = now


def commands_of(orders: SchedulerOrders, nodes: Sequence[NodeFact]) -> list[tuple[str, ...]]:
    """Return the commands that carry orders out.

    A node goes the way it came: one that scontrol created is deleted, a cloud record is powered down, and one of slurm.conf is set back to
    future. A node that stands in slurm.conf is never deleted: slurmctld would not survive its next reconfiguration.
    """
    known = {node.name: node for node in nodes}
    made: list[tuple[str, ...]] = []
    for names in _parts(orders.close):
        made.append((*_update(names), "state=drain", f"reason={OURS} closed"))
    for names in _parts(orders.open):
        made.append((*_update(names), "state=undrain"))
    by_way: dict[tuple[str, ...], list[str]] = {}
    for name in orders.remove:
        states = known[name].states if name in known else frozenset[str]()
        if "DYNAMIC_NORM" in states:
            made.append(("scontrol", "delete", f"nodename={name}"))
        else:
            way: tuple[str, ...] = ("state=future", "comment=")
            if "CLOUD" in states:
                way = ("state=power_down",)
            by_way.setdefault(way, []).append(name)
    for way, several in by_way.items():
        for names in _parts(several):
            made.append((*_update(names), *way))
    for jobs in _parts([job for job in orders.requeue if not job.startswith(UNSEEN)]):
        made.append(("scontrol", "requeue", jobs))
    return made


def _update(names: str) -> tuple[str, ...]:
    return ("scontrol", "update", f"nodename={names}")


def _parts(names: Sequence[str]) -> Iterator[str]:
    for begin in range(0, len(names), AT_ONCE):
        yield ",".join(names[begin : begin + AT_ONCE])

"""Runs of many seeds, in several processes, that can be taken up again; and what failed, made small and told as one command."""

import json
import os
import re
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from logging import CRITICAL
from pathlib import Path
from typing import Final

import structlog
from pydantic import TypeAdapter

from xce.adapters.faults.kept_lines import KeptLines
from xce.adapters.faults.life import RealLife, supply_of_node
from xce.adapters.faults.processes import in_processes
from xce.domain.errors import InputError
from xce.replay.faults.shrink import shrink
from xce.replay.faults.world import Outcome, World

#: Seeds that a process takes at once.
TOGETHER: Final = 50
_FAULT: Final = re.compile(r"[a-z ]+:[1-9][0-9]*")


@contextmanager
def quiet() -> Generator[None]:
    """Keep the daemons' log lines to themselves: a run makes thousands, and its faults are all on purpose."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(CRITICAL))
    try:
        yield
    finally:
        if before is None:
            structlog.reset_defaults()
        else:
            structlog.configure(**before)


def run_seed(seed: int, only: Collection[str] | None = None) -> Outcome:
    """Run the site of a seed; ``only``: with these faults and no others."""
    return World(seed, RealLife, supply_of_node, only).run()


def shrunk(failed: Outcome) -> Outcome:
    """Return a smaller run that breaks the same promise."""
    return shrink(failed, lambda only: run_seed(failed.seed, only))


def command_of(outcome: Outcome) -> str:
    """Return the command that shows an outcome again."""
    only = ",".join(fault.replace(" ", "-") for fault in outcome.faults)
    return f"xce sim faults --seed {outcome.seed} --only '{only}'"


def faults_of(text: str) -> tuple[str, ...]:
    """Return the faults that ``command_of`` has written.

    Raises:
        InputError: it has not written that.
    """
    faults = tuple(one.strip().replace("-", " ") for one in text.split(",") if one.strip())
    for fault in faults:
        if _FAULT.fullmatch(fault) is None:
            raise InputError.of(
                "--only", f"{fault!r} names no fault; wanted its kind and number, such as kill:4"
            )
    return faults


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a campaign is.

    Attributes:
        failed: outcomes that broke a promise, by seed.
    """

    runs: int
    events: int
    faults: int
    failed: tuple[Outcome, ...]


class Campaign:
    """Seeds from ``first`` on; what was done is kept in a file of JSON lines, so that it goes on where it was."""

    def __init__(self, first: int, runs: int, file: Path | None) -> None:
        self._first = first
        self._runs = runs
        self._starts = range(first, first + runs, TOGETHER)
        self._file = None if file is None else KeptLines(file)
        self._done: dict[int, _Part] = {}
        self._failed: dict[int, Outcome] = {}
        if self._file is not None:
            for number, line in self._file.read():
                self._take_up(f"{file}:{number}", line)

    @property
    def progress(self) -> Progress:
        """How far it is."""
        done = self._done.values()
        failed = tuple(self._failed[seed] for seed in sorted(self._failed))
        return Progress(
            sum(part.runs for part in done),
            sum(part.events for part in done),
            sum(part.faults for part in done),
            failed,
        )

    def run(self, processes: int, told: Callable[[Progress], None]) -> Progress:
        """Run what is missing; ``told`` after each part.

        Raises:
            XceError: the file cannot be written, or a process came to an end.
        """
        if self._file is not None:
            self._file.begin()
        for part in in_processes(_run_part, self._missing(), processes):
            self._take(part)
            told(self.progress)
        return self.progress

    def _missing(self) -> Sequence[tuple[int, int]]:
        """Return where parts begin, and how many seeds they have, of which fewer have been run."""
        end = self._first + self._runs
        parts = [(start, min(TOGETHER, end - start)) for start in self._starts]
        return [
            (start, size)
            for start, size in parts
            if start not in self._done or self._done[start].runs < size
        ]

    def _take(self, part: "_Part") -> None:
        self._keep(part)
        if self._file is not None:
            self._file.add(json.dumps(asdict(part), separators=(",", ":")))

    def _keep(self, part: "_Part") -> None:
        known = self._done.get(part.start)
        if known is None or known.runs < part.runs:
            self._done[part.start] = part
        for outcome in part.failed:
            self._failed[outcome.seed] = outcome

    def _take_up(self, place: str, line: str) -> None:
        """Keep a part that was run before; what begins elsewhere is of another campaign, which may use the file too."""
        try:
            part = _PARTS.validate_json(line)
        except ValueError:
            raise InputError.of(place, "is no line of a campaign") from None
        if part.start in self._starts:
            self._keep(part)


@dataclass(frozen=True, slots=True)
class _Part:
    """What came of a part; ``runs``: releases that did not say it have nearly always run as many."""

    start: int
    events: int
    faults: int
    failed: tuple[Outcome, ...]
    runs: int = TOGETHER


_PARTS: Final = TypeAdapter(_Part)


def _run_part(part: tuple[int, int], parent: int) -> _Part:
    """Run the seeds of a part, in a process of its own; without its parent, end."""
    start, size = part
    outcomes: list[Outcome] = []
    with quiet():
        for seed in range(start, start + size):
            if os.getppid() != parent:
                os._exit(1)
            outcomes.append(run_seed(seed))
    return _Part(
        start,
        sum(one.events for one in outcomes),
        sum(len(one.faults) for one in outcomes),
        tuple(one for one in outcomes if one.promise is not None),
        size,
    )

"""Runs of many seeds, in several processes, that can be taken up again; and what failed, made small and told as one command."""

import json
from collections.abc import Callable, Collection, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from logging import CRITICAL
from pathlib import Path
from typing import Final

import structlog
from pydantic import TypeAdapter

from xce.adapters.faults.life import RealLife, supply_of_node
from xce.domain.errors import InputError
from xce.replay.faults.shrink import shrink
from xce.replay.faults.world import Outcome, World

#: Seeds that a process takes at once.
TOGETHER: Final = 50


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
    """Return the faults that ``command_of`` has written."""
    return tuple(one.replace("-", " ") for one in text.split(",") if one)


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
        self._file = file
        self._done: dict[int, tuple[int, int]] = {}
        self._failed: dict[int, Outcome] = {}
        if file is not None and file.exists():
            self._read(file)

    @property
    def progress(self) -> Progress:
        """How far it is."""
        runs = sum(self._size(start) for start in self._done)
        events = sum(events for events, _ in self._done.values())
        faults = sum(faults for _, faults in self._done.values())
        failed = tuple(self._failed[seed] for seed in sorted(self._failed))
        return Progress(runs, events, faults, failed)

    def run(self, processes: int, told: Callable[[Progress], None]) -> Progress:
        """Run what is missing; ``told`` after each part."""
        starts = range(self._first, self._first + self._runs, TOGETHER)
        missing = iter([start for start in starts if start not in self._done])
        with ProcessPoolExecutor(processes, initializer=_silence) as pool:
            pending: set[Future[_Part]] = set()
            while True:
                while len(pending) < 2 * processes:
                    start = next(missing, None)
                    if start is None:
                        break
                    pending.add(pool.submit(_run_part, start, self._size(start)))
                if not pending:
                    return self.progress
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for one in done:
                    self._take(one.result())
                told(self.progress)

    def _size(self, start: int) -> int:
        return min(TOGETHER, self._first + self._runs - start)

    def _take(self, part: "_Part") -> None:
        self._keep(part)
        if self._file is not None:
            line = json.dumps(asdict(part), separators=(",", ":"))
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def _keep(self, part: "_Part") -> None:
        self._done[part.start] = (part.events, part.faults)
        for outcome in part.failed:
            self._failed[outcome.seed] = outcome

    def _read(self, file: Path) -> None:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            try:
                self._keep(_PARTS.validate_json(line))
            except ValueError:
                raise InputError.of(f"{file}:{number}", "is no line of a campaign") from None


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    events: int
    faults: int
    failed: tuple[Outcome, ...]


_PARTS: Final = TypeAdapter(_Part)


def _silence() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(CRITICAL))


def _run_part(start: int, size: int) -> _Part:
    outcomes = [run_seed(seed) for seed in range(start, start + size)]
    return _Part(
        start,
        sum(one.events for one in outcomes),
        sum(len(one.faults) for one in outcomes),
        tuple(one for one in outcomes if one.promise is not None),
    )

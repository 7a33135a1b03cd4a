"""Audit and time travel on a long log: ``python -m benchmarks.audit [--json] [--events N] [--folder DIR]``.

Makes a log (or takes the one that an earlier run left in ``--folder``), the read models and the checkpoints, and measures: making them from nothing,
catching up, the questions of docs/how-to/question-a-log.md, the state at ten positions, a difference, a backup. Seconds of wall time, with CPU
seconds of this process beside them; imports are not in it.
"""

import argparse
import json
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.histories import write_history

from xce.adapters.store import audit
from xce.adapters.store.backup import backup
from xce.adapters.store.checkpoints import CheckpointFile, checkpoints_of
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.replay.differences import difference
from xce.replay.time_travel import CHECKPOINT_EVERY, Moment, TimeTravel

PAGE: Final = Path(__file__).parents[1] / "docs" / "how-to" / "question-a-log.md"
#: The names of the page, which are the demo's, and those of the long log.
NAMES: Final = {
    "'m8-r1-1'": "'ip-r17-0'",
    "'29'": "'100136'",
    "'request:R1'": "'request:R17'",
    "'xce sim'": "'admin/alice'",
    "'cloud'": "'aws'",
    "'2026-03-02T17:00:00Z'": "'2026-03-01T17:00:00Z'",
}
_QUESTION: Final = re.compile(r"^## \d+\. (.*?)\n.*?^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Measured:
    """One line of the result."""

    what: str
    wall_s: float
    cpu_s: float
    count: int


def questions(names: dict[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield the questions of the page with their SQL, about other names where these are given."""
    for title, sql in _QUESTION.findall(PAGE.read_text(encoding="utf-8")):
        for name, other in (names or {}).items():
            sql = sql.replace(name, other)
        yield title, sql


def measured(what: str, work: Callable[[], int]) -> Measured:
    """Return how long a work takes; it returns what it counted."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = work()
    return Measured(what, time.perf_counter() - wall, time.process_time() - cpu, count)


def measure(folder: Path, events: int) -> Iterator[Measured]:
    """Yield the lines, one after the other."""
    path = folder / f"history-{events}.db"
    if not path.exists():
        with open_log(path) as log:
            write_history(log, events)
    with open_log(path, read_only=True) as log:
        yield from _audit(log, str(path))
        yield from _travel(log, str(path))
    copy = folder / "copy.db"
    copy.unlink(missing_ok=True)
    yield measured("backup, unchecked", lambda: backup(str(path), str(copy), check=False).position)
    copy.unlink()


def _audit(log: StoredLog, path: str) -> Iterator[Measured]:
    database = audit.database_of(path)
    Path(database).unlink(missing_ok=True)
    yield measured("read models from nothing", lambda: audit.rebuild(log, database))
    yield measured("catching up with nothing new", lambda: audit.catch_up(log, database).added)
    for title, sql in questions(NAMES):

        def ask(sql: str = sql) -> int:
            return len(audit.query(database, sql).rows)

        yield measured(f"question: {title}", ask)


def _travel(log: StoredLog, path: str) -> Iterator[Measured]:
    Path(checkpoints_of(path)).unlink(missing_ok=True)
    end = log.head().position

    def at(position: int) -> Moment:
        with CheckpointFile(log, checkpoints_of(path)) as file:
            return TimeTravel(log, file).at(position)

    def states(position: int) -> int:
        return sum(at(position).states.values())

    yield measured("the end, and all checkpoints", lambda: states(end))
    for part in range(1, 11):
        # As far behind a checkpoint as can be.
        position = end * part // 10 // CHECKPOINT_EVERY * CHECKPOINT_EVERY - 1
        if position < 1:
            continue
        yield measured(f"at {position:,}", partial(states, position))

    def changes() -> int:
        with CheckpointFile(log, checkpoints_of(path)) as file:
            travel = TimeTravel(log, file)
            return sum(1 for _ in difference(travel.at(end - 10_000), travel.at(end)).changes())

    yield measured("what changed in the last 10,000", changes)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the log is, or will be left")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        lines: list[Measured] = []
        for line in measure(arguments.folder or Path(temporary), arguments.events):
            lines.append(line)
            if not arguments.json:
                print(
                    f"{line.what:<72} {line.wall_s:8.2f} s {line.cpu_s:8.2f} cpu {line.count:>10,}"
                )
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if arguments.json:
        lines_json = [asdict(line) for line in lines]
        print(
            json.dumps(
                {"events": arguments.events, "memory_mib": memory_mib, "lines": lines_json},
                indent=1,
            )
        )
    else:
        print(f"memory at most {memory_mib:.0f} MiB")


if __name__ == "__main__":
    main()

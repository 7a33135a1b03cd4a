"""How fast the log is beside plain SQLite: ``python -m benchmarks.log [--json] [--events N] [--folder DIR]``.

Durable appends, one event and a hundred in a save, against raw inserts of the same rows with the same settings and indices (WAL, synchronous
FULL), in turns, so that a slow spell of the disk meets both. Then reading, folding and verifying. Rates are events per second of wall time; "cpu"
is per CPU second of this process. Making the commands' events is part of an append, since nobody can append without it.
"""

import argparse
import json
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from xce.adapters.store.audit import rebuild
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.recorder import Row
from xce.adapters.store.sqlite import CHECKPOINT_PAGES, create_schema
from xce.adapters.store.verify import verify
from xce.domain.events.base import Aggregate
from xce.domain.formats.provider import Kind, ProviderDescription, TemplateOffer
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request

AT: Final = datetime(2026, 3, 1, tzinfo=UTC)
#: Events of one request in the long log: an intent, an acceptance and hosts that fell short one by one.
STREAM: Final = 10
ROUNDS: Final = 5


@dataclass(frozen=True)
class Measured:
    """One line of the result."""

    what: str
    events_per_s: float
    cpu_events_per_s: float
    raw_events_per_s: float | None = None

    @property
    def ratio(self) -> float | None:
        """Of the raw rate; None where there is none."""
        return None if self.raw_events_per_s is None else self.events_per_s / self.raw_events_per_s


@dataclass(frozen=True)
class _Spent:
    wall: float
    cpu: float


def _spend(work: Callable[[], object]) -> _Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return _Spent(time.perf_counter() - wall, time.process_time() - cpu)


def _request(number: int, events: int) -> Request:
    request = Request.intend(
        request=f"R{number}", provider="aws", kind=Kind.HOST, item="c4", amount=2**20, price_per_hour=Decimal("0.17"),
        deadline=AT + timedelta(hours=1), reason="3 jobs wait", jobs=("101", "102"), demand_position=0,
        hold=timedelta(0), at=AT, by="provisioner/p1", epoch=1,
    )  # fmt: skip
    for failed in range(1, events):
        request.fall_short(
            failed=failed, why="InsufficientCapacity", at=AT, by="provisioner/p1", epoch=1
        )
    return request


def _setting(log: StoredLog) -> None:
    description = ProviderDescription(name="aws", templates=(TemplateOffer(template_id="c4"),))
    lease = ProviderLease.grant(
        provider="aws", holder="p1", term=timedelta(seconds=30), at=AT, by="admin/alice"
    )
    log.append([Provider.describe_first(description=description, at=AT, by="admin/alice"), lease])


# ----------------------------------------------------------------------- appends
def measure_appends(folder: Path, batch: int, saves: int) -> Measured:
    """Return the rate of saves of ``batch`` events, in turns with raw inserts of rows of the same size."""
    numbers = count()
    ours: list[_Spent] = []
    raw: list[_Spent] = []
    with (
        open_log(folder / f"ours-{batch}.db") as log,
        closing(_raw_database(folder / f"raw-{batch}.db")) as connection,
    ):
        _setting(log)
        for _ in range(ROUNDS):
            first = log.head().position

            def append() -> None:
                for _ in range(saves):
                    log.append([_request(next(numbers), batch)], fences={"lease:aws": 1})

            ours.append(_spend(append))
            rows = list(log.recorder.rows(after=first))
            parts = [rows[start : start + batch] for start in range(0, len(rows), batch)]
            raw.append(_spend(partial(_insert, connection, parts)))
    events = batch * saves
    return Measured(
        f"append, {batch} a save",
        events / statistics.median(spent.wall for spent in ours),
        events / statistics.median(spent.cpu for spent in ours),
        events / statistics.median(spent.wall for spent in raw),
    )


def _raw_database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    create_schema(connection)
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection


def _insert(connection: sqlite3.Connection, parts: Sequence[Sequence[Row]]) -> None:
    for rows in parts:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")


# ------------------------------------------------------------------------ replay
def measure_replay(folder: Path, events: int) -> list[Measured]:
    """Return the rates of what is done with a whole log of about ``events`` events."""
    path = folder / "long.db"
    with open_log(path) as log:
        _setting(log)
        for start in range(0, events // STREAM, 100):
            log.append([_request(start + number, STREAM) for number in range(100)])
        total = log.head().position
    with open_log(path, read_only=True) as log:
        works: list[tuple[str, Callable[[], object]]] = [
            ("read raw rows", lambda: sum(1 for _ in log.recorder.rows())),
            ("read and decode", lambda: sum(1 for _ in log.read())),
            ("read, decode and fold all aggregates", lambda: _fold(log)),
            ("load each aggregate by itself", lambda: _load(log, events // STREAM)),
            ("verify", lambda: verify(log)),
            ("rebuild the audit read models", lambda: rebuild(log, str(folder / "audit.db"))),
        ]
        return [
            Measured(what, total / spent.wall, total / spent.cpu)
            for what, work in works
            for spent in [_spend(work)]
        ]


def _fold(log: StoredLog) -> dict[str, Aggregate[Any]]:
    aggregates: dict[str, Aggregate[Any]] = {}
    for recorded in log.read():
        event = recorded.event
        after = event.mutate(aggregates.get(event.originator_id))
        assert after is not None
        aggregates[event.originator_id] = after
    return aggregates


def _load(log: StoredLog, requests: int) -> None:
    for number in range(requests):
        log.get(Request, f"request:R{number}")


# ------------------------------------------------------------------------ output
def main() -> None:
    """Measure, and print a table or a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--events", type=int, default=100_000, help="length of the long log")
    parser.add_argument("--folder", help="where the logs are made; the disk that is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        results = [
            measure_appends(folder, 1, 300),
            measure_appends(folder, 10, 200),
            measure_appends(folder, 100, 100),
            *measure_replay(folder, options.events),
        ]
        size = (folder / "long.db").stat().st_size / options.events
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if options.json:
        lines = [asdict(result) | {"ratio": result.ratio} for result in results]
        document = {"results": lines, "bytes_per_event": size, "max_rss_mib": memory}
        print(json.dumps(document, indent=2))
        return
    print(f"{'':42} {'events/s':>10} {'cpu':>10} {'raw':>10} {'ratio':>6}")
    for result in results:
        raw = "" if result.raw_events_per_s is None else f"{result.raw_events_per_s:10.0f}"
        ratio = "" if result.ratio is None else f"{result.ratio:6.2f}"
        print(
            f"{result.what:42} {result.events_per_s:10.0f} {result.cpu_events_per_s:10.0f} {raw:>10} {ratio:>6}"
        )
    print(f"{size:.0f} bytes an event; at most {memory:.0f} MiB of memory")


if __name__ == "__main__":
    main()

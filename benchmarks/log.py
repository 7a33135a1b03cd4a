"""How fast the log is beside plain inserts: ``python -m benchmarks.log [--json] [--events N] [--folder DIR] [--without-postgresql]``.

Durable appends, one event and a hundred in a save, against raw inserts of the same rows with the same settings and indices, in turns, so that a
slow spell of the disk meets both: SQLite (WAL, synchronous FULL), and PostgreSQL where its programs are installed (a server of its own in the
folder, fsync and synchronous_commit on; raw is a prepared INSERT, a hundred at once in a pipeline). Group commit with many threads. Then a long log:
reading, folding into all projections, verifying, and opening it with snapshots. Rates are events per second of wall time; "cpu" is per CPU second
of the process that does it. Making the commands' events is part of an append, since nobody can append without it. What must not profit from what
was done before it, or whose memory counts, runs in a process of its own.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import count, islice
from pathlib import Path
from threading import Thread
from typing import Any, Final, cast

import psycopg
from benchmarks.histories import write_history

from tests.postgresql import PASSWORD, programs, server
from xce.adapters.store.audit import rebuild
from xce.adapters.store.follower import Follower
from xce.adapters.store.group_commit import GroupCommit
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.recorder import NO_FENCING, NewRow, Row
from xce.adapters.store.side_files import code_digest
from xce.adapters.store.snapshots import EVERY, Snapshot, open_follower
from xce.adapters.store.sqlite import CHECKPOINT_PAGES, create_schema
from xce.adapters.store.verify import verify
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Head
from xce.domain.formats.provider import Kind, ProviderDescription, TemplateOffer
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request
from xce.projections.all import Projections

AT: Final = datetime(2026, 3, 1, tzinfo=UTC)
ROUNDS: Final = 5
#: By events in a save: how many saves a round.
SAVES: Final = {1: 300, 10: 200, 100: 100}
THREADS: Final = (8, 32)


@dataclass(frozen=True)
class Measured:
    """One line of the result."""

    what: str
    events_per_s: float
    cpu_events_per_s: float
    raw_events_per_s: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Of the raw rate; None where there is none."""
        return None if self.raw_events_per_s is None else self.events_per_s / self.raw_events_per_s


@dataclass(frozen=True)
class Opened:
    """How long a log took to be ready to serve."""

    what: str
    events: int
    behind: int
    snapshot_bytes: int
    seconds: float


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
Insert = Callable[[Sequence[Sequence[Row]]], object]


def measure_appends(store: str, place: str, insert: Insert, batch: int, saves: int) -> Measured:
    """Return the rate of saves of ``batch`` events, in turns with raw inserts of rows of the same size."""
    numbers = count()
    ours: list[_Spent] = []
    raw: list[_Spent] = []
    with open_log(place) as log:
        _setting(log)
        for _ in range(ROUNDS):
            first = log.head().position

            def append() -> None:
                for _ in range(saves):
                    log.append([_request(next(numbers), batch)], fences={"lease:aws": 1})

            ours.append(_spend(append))
            rows = list(log.recorder.rows(after=first))
            parts = [rows[start : start + batch] for start in range(0, len(rows), batch)]
            raw.append(_spend(partial(insert, parts)))
    events = batch * saves
    return Measured(
        f"{store}: append, {batch} a save",
        events / statistics.median(spent.wall for spent in ours),
        events / statistics.median(spent.cpu for spent in ours),
        events / statistics.median(spent.wall for spent in raw),
    )


def measure_group_commit(store: str, place: str, threads: int, saves: int) -> Measured:
    """Return the rate of single events that several threads append through one group commit."""
    numbers = count()
    with open_log(place) as log, GroupCommit(log) as commit:
        _setting(log)

        def append() -> None:
            for _ in range(saves):
                commit.append([_request(next(numbers), 1)], fences={"lease:aws": 1})

        def together() -> None:
            running = [Thread(target=append) for _ in range(threads)]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()

        spent = [_spend(together) for _ in range(ROUNDS)]
    events = threads * saves
    return Measured(
        f"{store}: group commit, {threads} threads",
        events / statistics.median(one.wall for one in spent),
        events / statistics.median(one.cpu for one in spent),
    )


@contextmanager
def _raw_sqlite(path: Path) -> Generator[Insert]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        create_schema(connection)
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")

        def insert(parts: Sequence[Sequence[Row]]) -> None:
            for rows in parts:
                connection.execute("BEGIN")
                connection.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?, ?)", rows)
                connection.execute("COMMIT")

        yield insert


@contextmanager
def _raw_postgresql(place: str) -> Generator[Insert]:
    from xce.adapters.store.postgresql.address import read_address

    address = read_address(place)
    open_log(place).close()
    statement = (
        f"INSERT INTO {address.schema}.stored_events VALUES (%s, %s, %s, %s, %s, %s)".encode()
    )
    with psycopg.connect(address.conninfo, autocommit=True, prepare_threshold=0) as connection:

        def insert(parts: Sequence[Sequence[Row]]) -> None:
            for rows in parts:
                if len(rows) == 1:
                    connection.execute(statement, rows[0])
                    continue
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany(statement, rows)

        yield insert


def measure_sqlite(folder: Path) -> list[Measured]:
    """Return what is measured of appends on SQLite."""
    found: list[Measured] = []
    for batch, saves in SAVES.items():
        with _raw_sqlite(folder / f"raw-{batch}.db") as insert:
            found.append(
                measure_appends("SQLite", str(folder / f"ours-{batch}.db"), insert, batch, saves)
            )
    for threads in THREADS:
        found.append(
            measure_group_commit("SQLite", str(folder / f"group-{threads}.db"), threads, 100)
        )
    return found


def measure_postgresql(place: Callable[[], str]) -> list[Measured]:
    """Return what is measured of appends on PostgreSQL."""
    found: list[Measured] = []
    for batch, saves in SAVES.items():
        with _raw_postgresql(place()) as insert:
            found.append(measure_appends("PostgreSQL", place(), insert, batch, saves))
    for threads in THREADS:
        found.append(measure_group_commit("PostgreSQL", place(), threads, 100))
    return found


# ---------------------------------------------------------------------- a long log
def measure_long_log(store: str, place: str, folder: Path) -> list[Measured]:
    """Return the rates of what is done with a whole log."""
    with open_log(place, read_only=True) as log:
        total = log.head().position
        works: list[tuple[str, Callable[[], object]]] = [
            ("read raw rows", lambda: sum(1 for _ in log.recorder.rows())),
            ("read and decode", lambda: sum(1 for _ in log.read())),
        ]
        if store == "SQLite":
            works += [
                ("read, decode and fold all aggregates", lambda: _fold(log)),
                ("verify", lambda: verify(log)),
                ("rebuild the audit read models", lambda: rebuild(log, str(folder / "audit.db"))),
            ]
        found = [
            Measured(f"{store}: {what}", total / spent.wall, total / spent.cpu)
            for what, work in works
            for spent in [_spend(work)]
        ]
    replayed = _apart("replay", place)
    found.append(
        Measured(
            f"{store}: replay into all projections",
            total / replayed["wall"],
            total / replayed["cpu"],
            note=f"at most {replayed['max_rss_mib']:.0f} MiB",
        )
    )
    return found


def measure_opening(store: str, place: str) -> list[Opened]:
    """Return how long a log takes to be ready to serve: as a crash leaves it, and after a clean stop."""
    found: list[Opened] = []
    with open_log(place) as log:
        for what, behind in (("crash", EVERY), ("clean stop", 0)):
            head = log.head()
            (row,) = log.recorder.page(head.position - behind - 1, None, 1)
            projections = Projections.rebuild(log, upto=row.position)
            snapshot = Snapshot(Head(row.position, row.digest), projections.keep())
            log.recorder.keep_snapshot(snapshot.rows(code_digest()))
            seconds = statistics.median(_apart("open", place)["wall"] for _ in range(ROUNDS))
            size = sum(map(len, snapshot.parts.values()))
            found.append(
                Opened(
                    f"{store}: ready to serve after a {what}", head.position, behind, size, seconds
                )
            )
    return found


def _fold(log: StoredLog) -> dict[str, Aggregate[Any]]:
    aggregates: dict[str, Aggregate[Any]] = {}
    for recorded in log.read():
        event = recorded.event
        after = event.mutate(aggregates.get(event.originator_id))
        assert after is not None
        aggregates[event.originator_id] = after
    return aggregates


def _apart(part: str, place: str) -> dict[str, float]:
    """Return what a process of its own measures."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.log", "--part", part, place],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return cast("dict[str, float]", json.loads(done.stdout))


def _part(part: str, place: str) -> None:
    """Do one part in this process, after imports, and print what it took."""
    if "://" in place:
        import xce.adapters.store.postgresql.factory  # imports do not count

        assert xce.adapters.store.postgresql.factory

    def replay() -> None:
        with open_log(place, read_only=True) as log:
            Follower(log).catch_up()

    def ready() -> None:
        with open_log(place) as log:
            follower = open_follower(log)
            assert follower.head == log.head()

    spent = _spend(replay if part == "replay" else ready)
    print(json.dumps(asdict(spent) | {"max_rss_mib": _peak_mib()}))


def _peak_mib() -> float:
    """Return the most memory of this program; what getrusage says is also that of whoever started it."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


# ------------------------------------------------------------------------ output
def main() -> None:
    """Measure, and print a table or a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--events", type=int, default=100_000, help="length of the long log")
    parser.add_argument("--folder", help="where the logs are made; the disk that is measured")
    parser.add_argument("--without-postgresql", action="store_true")
    parser.add_argument("--part", choices=["replay", "open"], help=argparse.SUPPRESS)
    parser.add_argument("place", nargs="?", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        _part(options.part, options.place)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        results = measure_sqlite(folder)
        long = str(folder / "long.db")
        with open_log(long) as log:
            write_history(log, options.events)
        size = Path(long).stat().st_size / options.events
        results += measure_long_log("SQLite", long, folder)
        opened = measure_opening("SQLite", long)
        if not options.without_postgresql and programs() is not None:
            os.environ["PGPASSWORD"] = PASSWORD
            running = stack.enter_context(contextmanager(server)(options.folder))
            results += measure_postgresql(running.address)
            place = running.address()
            _copy(long, place)
            results += measure_long_log("PostgreSQL", place, folder)
            opened += measure_opening("PostgreSQL", place)
    if options.json:
        lines = [asdict(result) | {"ratio": result.ratio} for result in results]
        document = {
            "results": lines,
            "opening": [asdict(one) for one in opened],
            "bytes_per_event": size,
        }
        print(json.dumps(document, indent=2))
        return
    print(f"{'':48} {'events/s':>10} {'cpu':>10} {'raw':>10} {'ratio':>6}")
    for result in results:
        raw = "" if result.raw_events_per_s is None else f"{result.raw_events_per_s:10.0f}"
        ratio = "" if result.ratio is None else f"{result.ratio:6.2f}"
        print(
            f"{result.what:48} {result.events_per_s:10.0f} {result.cpu_events_per_s:10.0f} {raw:>10} {ratio:>6}"
            f"  {result.note}".rstrip()
        )
    for one in opened:
        print(
            f"{one.what}: {one.seconds:.3f} s ({one.events} events, {one.behind} of them behind the snapshot of {one.snapshot_bytes} bytes)"
        )
    print(f"{size:.0f} bytes an event in the file")


def _copy(source: str, target: str) -> None:
    with open_log(source, read_only=True) as old, open_log(target) as new:
        rows = old.recorder.rows()
        while part := [NewRow(*row[1:5]) for row in islice(rows, 5000)]:
            new.recorder.append(part, NO_FENCING)
        assert new.head() == old.head(), "equal runs have equal digests"


if __name__ == "__main__":
    main()

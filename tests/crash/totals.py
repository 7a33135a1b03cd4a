"""The totals of shared resources at each position of a log, as the live controller shows them and as the simulator does."""

import json
from collections.abc import Iterable
from threading import Event, Thread

from xce.adapters.client import Client
from xce.adapters.controller.questions import supply_of
from xce.adapters.controller.views import Views
from xce.adapters.store.follower import Follower
from xce.domain.errors import XceError
from xce.domain.formats.config import SharedPool
from xce.domain.formats.rest import SharedEntry
from xce.domain.formats.snapshot import Shared
from xce.domain.ports import EventLog
from xce.projections.all import Projections
from xce.replay.shared_use import SharedUse
from xce.replay.time_travel import TimeTravel

#: What only the log changes.
LOGGED = ("total", "owned", "borrowed", "in_flight", "returning", "headroom", "max_borrow", "step")
#: What a session is shown of that.
SHOWN = ("total", "owned", "borrowed")


def totals_bytes(entries: Iterable[SharedEntry]) -> bytes:
    """Return the totals of resources as bytes."""
    return _bytes({one.name: {field: getattr(one, field) for field in LOGGED} for one in entries})


def shown_bytes(shown: Iterable[Shared]) -> bytes:
    """Return what a session is shown of totals as bytes."""
    return _bytes({one.name: {field: getattr(one, field) for field in SHOWN} for one in shown})


def _bytes(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


class Seen:
    """Asks a live controller again and again, and keeps what it showed at which position; it may go away and come back."""

    def __init__(self, address: str, token: str, elastic: Iterable[str]) -> None:
        self.totals: dict[int, bytes] = {}
        self.shown: dict[int, bytes] = {}
        self.contradictions: list[tuple[str, int]] = []
        self._elastic = frozenset(elastic)
        self._stopping = Event()
        self._client = Client(address, token=token, timeout_s=60, attempts=1)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(120)
        self._client.close()

    def _run(self) -> None:
        while not self._stopping.wait(0.2):
            try:
                supply = self._client.supply()
                self._keep("totals", self.totals, supply.position, totals_bytes(supply.shared))
                snapshot = self._client.snapshot()
                elastic = [one for one in snapshot.shared if one.name in self._elastic]
                self._keep("shown", self.shown, snapshot.position, shown_bytes(elastic))
            except XceError:
                continue  # it is down, or nothing was posted yet

    def _keep(self, what: str, kept: dict[int, bytes], position: int, found: bytes) -> None:
        """Keep what was found; a position that was looked at twice must have looked the same."""
        if kept.setdefault(position, found) != found:
            self.contradictions.append((what, position))


class Folded:
    """The same at every position, made of the log alone."""

    def __init__(self, log: EventLog, pools: tuple[SharedPool, ...]) -> None:
        #: By position: as the live controller's code shows it.
        self.live: dict[int, bytes] = {}
        #: As the simulator's projections have it, and as its sessions are shown it.
        self.simulated: dict[int, bytes] = {}
        self.shown: dict[int, bytes] = {}
        follower = Follower(log)
        projections = Projections()
        use = SharedUse(pools, (), lambda: projections)
        for recorded in log.read():
            follower.appended([recorded])
            projections.apply([recorded])
            at, now = recorded.position, recorded.event.timestamp
            supply = supply_of(Views(follower.projections, now, {}, {}, None), pools)
            assert supply.position == at
            self.live[at] = totals_bytes(supply.shared)
            self.simulated[at] = _of_projections(projections)
            if projections.totals.all():
                self.shown[at] = shown_bytes(use.shown(now))

    def differences(self, log: EventLog, seen: Seen) -> list[str]:
        """Return where two of them differ: nothing, if all is right."""
        travel = TimeTravel(log)
        found = [f"{what} at {at} looked different twice" for what, at in seen.contradictions]
        before = b""
        for at, live in self.live.items():
            travelled = live if live == before else _travelled(travel, at)
            before = live
            found += [
                f"{what} at {at}: {other!r} is not {live!r}"
                for what, other in (
                    ("simulated", self.simulated[at]),
                    ("time travel", travelled),
                    ("seen live", seen.totals.get(at, live)),
                )
                if other != live
            ]
        return found + [
            f"a live session at {at} was shown {shown!r}, a simulated one {self.shown.get(at)!r}"
            for at, shown in seen.shown.items()
            if shown != self.shown.get(at)
        ]


def _travelled(travel: TimeTravel, position: int) -> bytes:
    document = travel.at(position).views()["totals"]
    return _bytes({name: {field: row[field] for field in LOGGED} for name, row in document.items()})


def _of_projections(projections: Projections) -> bytes:
    return _bytes(
        {
            one.name: {field: getattr(one, field) for field in LOGGED}
            for one in projections.totals.all()
        }
    )

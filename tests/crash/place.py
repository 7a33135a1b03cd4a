"""A place where daemons die: a controller and provisioners as processes, a cloud whose truth is in a folder that outlives them, and a cluster."""

import fcntl
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.crash.doom import Doom
from tests.crash.nursery import Child, Nursery, wait_until_it_serves
from tests.crash.test_killed_controller import free_port, write_config
from tests.service.running import TOKENS, write_tokens
from xce.adapters.client import Client
from xce.adapters.providers.install import SIMULATED_CONF, Comes, Knows, install
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.commands import DismissOrphan
from xce.domain.engine.messages import Role
from xce.domain.errors import TransientError, XceError
from xce.domain.events.base import DomainEvent
from xce.domain.formats.rest import JoinReport, OrphanEntry
from xce.domain.formats.session_result import (
    Demand,
    HostDemand,
    Idle,
    IdleHost,
    JobHosts,
    SessionResult,
)
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import GIVEN_UP, OPEN, Request

PATIENCE_S = 180.0
#: Hosts that the cluster waits for before it works, and how many it asks for at most: the budget allows the first number only.
WANTED = 3
DEMANDED = 5
#: A person looks at what was reported so often.
LOOK_AFTER_S = 1.0
CALL_LIMIT_S = 60


class Cluster:
    """Plays the scheduler: it wants hosts, lets them join, finds them idle, looks at what drains, and begins again."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.wants = True
        #: How often it began anew, and how often it had what it wanted.
        self.rounds = self.filled = 0
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._filling = True
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert self.failure is None, self.failure

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.1):
                self._try(self.step)
        except BaseException as error:
            self.failure = error
            raise

    def step(self) -> None:
        supply = self.client.supply()
        up = 0
        for entry in supply.inventory.instances:
            if entry.state is InstanceState.STARTING and entry.machine is not None:
                report = JoinReport(
                    host=f"h-{entry.machine}", booted_at=datetime.now(UTC), machine=entry.machine
                )
                self._try(partial(self.client.join, report))
            elif entry.state is InstanceState.DRAINING and entry.host is not None:
                self._try(partial(self.client.looked, entry.host, ()))
            up += entry.state in (InstanceState.STARTING, InstanceState.JOINED)
        coming = sum(
            one.amount - one.granted - one.failed
            for one in supply.inventory.requests
            if one.state in OPEN
        )
        if self._filling and (up >= WANTED or not self.wants):
            self._filling = False
            self.filled += 1
        elif not self.wants:
            pass
        elif not self._filling and not supply.inventory.instances:
            self._filling = True
            self.rounds += 1
        short = max(0, DEMANDED - up - coming) if self._filling else 0
        self._try(lambda: self.client.publish_session(self._session(supply.position, short)))

    def _session(self, position: int, short: int) -> SessionResult:
        demand, idle = Demand(), Idle()
        if short:
            jobs = tuple(JobHosts(job=str(n), order=n, hosts=1) for n in range(1, short + 1))
            demand = Demand(
                hosts=(HostDemand(template="std4", count=short, jobs=jobs),),
                order=(("std4", short),),
            )
        elif not self._filling:
            idle = Idle(
                hosts=tuple(
                    IdleHost(
                        instance=one.id,
                        host=one.host or "",
                        idle_since=datetime.now(UTC) - timedelta(hours=1),
                    )
                    for one in self.client.instances()
                    if one.state is InstanceState.JOINED
                )
            )
        return SessionResult(position=position, demand=demand, idle=idle)

    @staticmethod
    def _try(act: Callable[[], object]) -> None:
        """Do something that may be late: the host is gone by now, the log has moved on, or the controller is dead."""
        try:
            act()
        except XceError:
            return


@dataclass
class Place:
    """Who is there. What a provider can be asked for is in ``knows``."""

    folder: Path
    address: str
    knows: Knows
    nursery: Nursery
    client: Client
    controller: Child
    #: The one that is to die, and what starts its successor.
    doomed: Child | None = None
    successor: Callable[[], Child] | None = None
    daemon: Child | None = None
    deaths: int = 0
    #: Machines that a person ended at the cloud: nobody owned them, and they had been reported.
    ended_by_hand: int = 0
    looked_s: float = float("-inf")

    @property
    def deadline(self) -> str:
        """When a request is given up: late enough not to be in anybody's way, but where it is the only end of a lost ask."""
        return "10min" if self.knows is Knows.TAGS else "12s"

    @property
    def cloud(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(
                (self.folder / "cloud-data" / "simulated.json").read_text()
            )
        except (FileNotFoundError, ValueError):
            return {"calls": {}, "machines": {}, "requests": {}}
        return state

    def present(self) -> list[dict[str, Any]]:
        return [one for one in self.cloud["machines"].values() if one["gone"] is None]

    def most_at_once(self) -> int:
        """Return how many machines there were at most, by what the cloud knows."""
        ends = [
            (at, step)
            for one in self.cloud["machines"].values()
            for at, step in ((one["launched"], 1), (one["gone"], -1))
            if at is not None
        ]
        there = most = 0
        for _, step in sorted(ends, key=lambda end: (end[0], end[1])):
            there += step
            most = max(most, there)
        return most

    def config(self, name: str, home: str) -> Path:
        path = self.folder / f"{name}.yaml"
        data = self.folder / "cloud-data"
        (self.folder / "token").write_text(TOKENS[Role.ADMIN])
        path.write_text(
            f"""name: {name}
controller: {{addresses: ["{self.address}"], token_file: token}}
state: {home}
scripts:
  - name: cloud
    folder: cloud
    call_limit: {CALL_LIMIT_S}s
    environment: {{PRO_DATA_DIR: {data}}}
policy: {{request_deadline: {self.deadline}, join_limit: 5min, pause_after_refusal: 0s, budgets: [{{name: all, max_hosts: {WANTED}}}]}}
lifecycle: {{lookup_settle: 2s}}
rhythm: {{lease_term: 3s, poll: 1s, reconcile: 2s, round: 1s, review: 1s}}
"""
        )
        return path

    def start(self, name: str, home: str, doom: Doom | None = None) -> Child:
        self.daemon = self.nursery.start(self.config(name, home), "provisioner", doom)
        return self.daemon

    def restart_controller(self, doom: Doom | None = None) -> Child:
        config = self.folder / "controller.yaml"
        self.controller = self.nursery.start(config, "controller", doom)
        return self.controller

    def look_after(self) -> None:
        """A person looks at what was reported, now and then: ends at the cloud what is there of it, and dismisses the asks that made no more."""
        if time.monotonic() < self.looked_s + LOOK_AFTER_S:
            return
        self.looked_s = time.monotonic()
        try:
            reported = self.orphans()
            owned = {one.machine for one in self.client.instances()}
            names = {one.theirs for one in reported}
            left = self._end_at_the_cloud(names, owned) if reported else set[str]()
            for one in reported:
                if one.theirs == one.tag and one.tag not in left:
                    nothing = DismissOrphan(one.provider, one.theirs, "nothing of it is left")
                    self.client.command(nothing)
        except XceError:
            return  # nobody answers now, or nobody acts on the provider: later, then

    def _end_at_the_cloud(self, names: set[str], owned: Container[str | None]) -> set[str]:
        """End the machines that nobody owns and that were reported, or whose asks were; return the tags of those."""
        data = self.folder / "cloud-data"
        tags: set[str] = set()
        with (data / "simulated.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.cloud
            for machine, one in state["machines"].items():
                if one["gone"] is None and machine not in owned and {machine, one["tag"]} & names:
                    one["gone"] = time.time()
                    tags.add(one["tag"])
                    self.ended_by_hand += 1
            if tags:
                part = data / "by-hand.part"
                part.write_text(json.dumps(state), encoding="utf-8")
                part.replace(data / "simulated.json")
        return tags

    def tend(self) -> None:
        """Start the successor of the one that has died meanwhile, and look after what was reported."""
        self.look_after()
        if self.doomed is None or not self.doomed.has_ended():
            return
        self.doomed, self.deaths = None, self.deaths + 1
        assert self.successor is not None
        self.successor()

    def until(self, what: str, true: Callable[[], bool], look_s: float = 0.05) -> None:
        """Wait for something; how long it takes says nothing."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._is(true):
            if time.monotonic() > deadline:
                logs = "\n".join(
                    f"{one.name}:\n{one.read_text()[-3000:]}" for one in self.folder.glob("*.log")
                )
                raise AssertionError(f"waited for: {what}\n{logs}")
            self.tend()
            time.sleep(look_s)

    @staticmethod
    def _is(true: Callable[[], bool]) -> bool:
        try:
            return true()
        except TransientError:
            return False  # the controller is dead, and will be started again

    # ------------------------------------------------------------------ how it ends
    def until_all_is_over(self) -> None:
        """Wait until no host is left, no request is open, and what nobody owned was reported and seen to."""
        self.until("all to be over", self._is_over)

    def _is_over(self) -> bool:
        return (
            not list(self.client.instances())
            and all(one.state not in OPEN for one in self.client.requests())
            and not self.unexplained()
            and not self.present()
            and not self.orphans()
        )

    def orphans(self) -> list[OrphanEntry]:
        return list(self.client.orphans())

    def unexplained(self) -> list[str]:
        """Return the machines that exist, are not owned, and were not reported, neither themselves nor the ask that made them.

        The truth knows the tag of each machine, also where the provider cannot be asked for it.
        """
        explained = {one.theirs for one in self.orphans()} | {
            one.machine for one in self.client.instances() if one.machine is not None
        }
        return [
            machine
            for machine, one in self.cloud["machines"].items()
            if one["gone"] is None and not {machine, one["tag"]} & explained
        ]

    def events(self) -> list[DomainEvent]:
        with open_log(self.folder / "events.db", read_only=True) as log:
            report = verify(log)
            assert report.passed, [str(f) for check in report.checks for f in check.findings]
            return [recorded.event for recorded in log.read()]

    def require_exact(self, where: str = "") -> None:
        """No ask was made twice, each had its intent, and there never were more machines than the budget has."""
        events = self.events()
        intents = {
            one.originator_id.removeprefix("request:")
            for one in events
            if isinstance(one, Request.Intended)
        }
        tags = Counter(one["tag"] for one in self.cloud["requests"].values())
        assert set(tags) <= intents, where
        assert set(tags.values()) <= {1}, f"{where}: asked twice: {tags}"
        given_up = sum(
            isinstance(one, Request.Closed) and one.outcome in GIVEN_UP for one in events
        )
        assert self.most_at_once() <= WANTED, f"{where}: over the budget"
        assert not given_up or self.knows is not Knows.TAGS, where

    def epoch(self) -> int:
        """Return the newest lease epoch."""
        return max((one.epoch for one in self.client.leases()), default=0)

    def holder(self) -> str:
        return next((one.holder for one in self.client.leases() if one.state == "held"), "")


@contextmanager
def place_with(folder: Path, knows: Knows) -> Generator[Place]:
    (folder / "cloud-data").mkdir(parents=True)
    install(Comes.SIMULATED, folder / "cloud", knows=knows, conf=SIMULATED_CONF | {"resources": []})
    write_tokens(folder)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    config = write_config(folder, "controller", "events.db", port, "detection: 60s\n")
    # Two attempts, no more: who waits for a dead controller does not start its successor.
    with Nursery() as nursery, Client(address, token=TOKENS[Role.ADMIN], attempts=2) as client:
        controller = nursery.start(config)
        wait_until_it_serves(address)
        place = Place(folder, address, knows, nursery, client, controller)
        try:
            yield place
        finally:
            for child in (place.daemon, place.controller):
                if child is not None:
                    end(child)


def end(child: Child) -> None:
    """End a child that may have ended, or be frozen."""
    if not child.has_ended():
        child.signal(signal.SIGCONT)
        child.signal(signal.SIGTERM)
        child.wait()


def stop(child: Child) -> None:
    child.signal(signal.SIGTERM)
    assert child.wait() == 0, "a stop by SIGTERM is a good end"


def calls_of(home: Path) -> Iterator[Path]:
    yield from (home / "cloud" / "calls").glob("request*/input.json")

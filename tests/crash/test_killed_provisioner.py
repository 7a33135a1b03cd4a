"""Real provisioners killed with kill -9, or frozen and woken, while demand comes and goes: nothing is lost, asked twice or left unowned.

``XCE_PROVISIONER_KILLS`` kills are shared by three kinds of providers: one that recognises request tags, one that only lists, without tags, and
one that does neither (contract version 1). Half of the restarts are elsewhere: without the folder that a predecessor has written.
"""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from tests.crash.nursery import Child, Nursery
from tests.service.running import TOKENS, running
from xce.adapters.client import Client
from xce.adapters.providers.install import SIMULATED_CONF, Comes, Knows, install
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.messages import Role
from xce.domain.errors import XceError
from xce.domain.events.base import DomainEvent
from xce.domain.formats.rest import JoinReport
from xce.domain.formats.session_result import (
    Demand,
    HostDemand,
    Idle,
    IdleHost,
    JobHosts,
    SessionResult,
)
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.request import OPEN, Request

KILLS = int(os.environ.get("XCE_PROVISIONER_KILLS", "20"))
PATIENCE_S = 180.0
WANTED = 3
CALL_LIMIT_S = 5


class Cluster:
    """Plays the scheduler: it wants hosts, lets them join, finds them idle, looks at what drains, and begins again."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.wants = True
        self.rounds = 0
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
                self.step()
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
        if (self._filling and up >= WANTED) or not self.wants:
            self._filling = False
        elif not self._filling and not supply.inventory.instances:
            self._filling = True
            self.rounds += 1
        short = max(0, WANTED - up - coming) if self._filling else 0
        self._try(lambda: self.client.publish_session(self._session(supply.position, short)))

    def _session(self, position: int, short: int) -> SessionResult:
        demand, idle = Demand(), Idle()
        if short:
            jobs = (JobHosts(job="7", order=1, hosts=short),)
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
        """Do something that may be late: the host is gone by now, or the log has moved on."""
        try:
            act()
        except XceError:
            return


@dataclass
class Place:
    """A controller, a cloud whose state is in a folder that outlives everybody, and provisioners."""

    folder: Path
    address: str
    nursery: Nursery
    client: Client
    homes: int = 0
    made: list[Child] = field(default_factory=list[Child])

    @property
    def cloud(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(
                (self.folder / "cloud-data" / "simulated.json").read_text()
            )
        except (FileNotFoundError, ValueError):
            return {"calls": {}, "machines": {}, "requests": {}}
        return state

    def calls(self, script: str) -> int:
        count: int = self.cloud["calls"].get(script, 0)
        return count

    def present(self) -> list[dict[str, Any]]:
        return [one for one in self.cloud["machines"].values() if one["gone"] is None]

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
policy: {{request_deadline: 8s, join_limit: 60s, pause_after_refusal: 0s}}
lifecycle: {{lookup_settle: 2s}}
rhythm: {{lease_term: 3s, poll: 1s, reconcile: 2s, round: 1s, review: 1s}}
"""
        )
        return path

    def start(self, name: str, home: str) -> Child:
        child = self.nursery.start(self.config(name, home), "provisioner")
        self.made.append(child)
        return child

    def events(self) -> list[DomainEvent]:
        with open_log(self.folder / "events.db", read_only=True) as log:
            report = verify(log)
            assert report.passed, [str(f) for check in report.checks for f in check.findings]
            return [recorded.event for recorded in log.read()]


@contextmanager
def place_with(folder: Path, knows: Knows) -> Generator[Place]:
    (folder / "cloud-data").mkdir()
    install(Comes.SIMULATED, folder / "cloud", knows=knows, conf=SIMULATED_CONF | {"resources": []})
    with (
        running(folder) as service,
        Nursery() as nursery,
        Client(service.address, token=TOKENS[Role.ADMIN]) as client,
    ):
        yield Place(folder, service.address, nursery, client)


def until(what: str, true: Callable[[], bool], place: Place, look_s: float = 0.05) -> None:
    """Wait for something; how long it takes says nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            logs = "\n".join(one.read_text()[-3000:] for one in place.folder.glob("p*.log"))
            raise AssertionError(f"waited for: {what}\n{logs}")
        time.sleep(look_s)


def stop(child: Child) -> None:
    child.signal(signal.SIGTERM)
    assert child.wait() == 0, "a stop by SIGTERM is a good end"


@pytest.mark.parametrize("knows", Knows)
def test_killed_at_random_moments_every_machine_is_owned_returned_or_reported(
    knows: Knows, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    moments = random.Random(f"kills of {knows}")
    with place_with(tmp_path, knows) as place:
        with Cluster(place.client) as cluster:
            child = place.start("p1", "home-0")
            for number in range(1 + KILLS // len(Knows)):
                time.sleep(
                    moments.uniform(0.3, 2.5)
                )  # the moment of the kill, not a synchronisation
                child.signal(signal.SIGKILL)
                child.wait()
                home = "home-0" if number % 2 else f"home-{number}"
                child = place.start("p1", home)
            done = cluster.rounds
            until("another round after the last kill", lambda: cluster.rounds > done, place)
            cluster.wants = False
            until("all hosts to go back", lambda: not list(place.client.instances()), place)
            until(
                "no request to be open",
                lambda: all(one.state not in OPEN for one in place.client.requests()),
                place,
            )
            until("what is left to be explained", lambda: not unexplained(place), place)
            # What carries a tag is found, also after its request was given up; what carries none is reported.
            if knows is Knows.TAGS:
                until("all machines to go back", lambda: not place.present(), place)
                until("no orphan to be left", lambda: not list(place.client.orphans()), place)
        stop(child)
    events = place.events()
    intents = [one for one in events if isinstance(one, Request.Intended)]
    said = [one for one in events if isinstance(one, Evidence.Kept)]
    assert {"requestMachines", "requestReturnMachines"} <= {one.call for one in said}
    asked = place.cloud["requests"].values()
    record_property("asks", len(asked))
    if knows is Knows.NEITHER:
        assert len(asked) <= len(intents), "an ask has its own intent"
    else:
        tags = Counter(one["tag"] for one in asked)
        assert set(tags.values()) == {1}, f"asked twice: {tags}"


def unexplained(place: Place) -> list[str]:
    """Return the machines that exist, are not owned, and were not reported, neither themselves nor the ask that made them.

    The truth knows the tag of each machine, also where the provider cannot be asked for it.
    """
    orphans = list(place.client.orphans())
    explained = {one.theirs for one in orphans} | {
        one.machine for one in place.client.instances() if one.machine is not None
    }
    return [
        machine
        for machine, one in place.cloud["machines"].items()
        if one["gone"] is None and not {machine, one["tag"]} & explained
    ]


def test_a_frozen_provisioner_does_nothing_when_it_wakes_and_another_one_has_taken_over(
    tmp_path: Path,
) -> None:
    with place_with(tmp_path, Knows.TAGS) as place:
        with Cluster(place.client) as cluster:
            frozen = place.start("p1", "home-1")
            until("a round of p1", lambda: cluster.rounds >= 1, place)
            other = place.start("p2", "home-2")
            time.sleep(random.Random(23).uniform(0.0, 1.0))
            frozen.signal(signal.SIGSTOP)
            until("p2 to hold the lease", lambda: holder(place) == "p2", place)
            taken_at = time.time()
            done = cluster.rounds
            until("a round of p2", lambda: cluster.rounds > done, place)
            frozen.signal(signal.SIGCONT)
            done = cluster.rounds
            until("a round after p1 woke", lambda: cluster.rounds > done, place)
            assert holder(place) == "p2"
            cluster.wants = False
            until("all hosts to go back", lambda: not list(place.client.instances()), place)
        stop(other)
        until("p1 to take over what p2 gave up", lambda: holder(place) == "p1", place)
        released_at = time.time()
        stop(frozen)
    grants = [one for one in place.events() if isinstance(one, (ProviderLease.Granted, ProviderLease.TakenOver, ProviderLease.Regranted))]  # fmt: skip
    assert [one.holder for one in grants] == ["p1", "p2", "p1"]
    late = [
        path.name
        for path in calls_of(tmp_path / "home-1")
        if taken_at + CALL_LIMIT_S < path.stat().st_mtime < released_at - 4
    ]
    assert late == [], "p1 called the provider while p2 was the one to act"
    assert list(calls_of(tmp_path / "home-2")), "p2 did"


def holder(place: Place) -> str:
    return next((one.holder for one in place.client.leases() if one.state == "held"), "")


def calls_of(home: Path) -> Iterator[Path]:
    yield from (home / "cloud" / "calls").glob("request*/input.json")

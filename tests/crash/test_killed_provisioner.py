"""Real provisioners killed with kill -9, or frozen and woken, while demand comes and goes: nothing is lost, asked twice or left unowned.

``XCE_PROVISIONER_KILLS`` kills are shared by three kinds of providers: one that recognises request tags, one that only lists, without tags, and
one that does neither (contract version 1). Half of the restarts are elsewhere: without the folder that a predecessor has written.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.doom import Doom
from tests.crash.nursery import Child
from tests.crash.place import Cluster, calls_of, place_with, stop
from xce.adapters.providers.install import Knows
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.lease import ProviderLease

KILLS = int(os.environ.get("XCE_PROVISIONER_KILLS", "20"))


@pytest.mark.parametrize("knows", Knows)
def test_killed_at_random_moments_every_machine_is_owned_returned_or_reported(
    knows: Knows, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    moments = random.Random(f"kills of {knows}")
    with place_with(tmp_path, knows) as place:
        with Cluster(place.client) as cluster:
            child, before = place.start("p1", "home-0"), 0
            for number in range(1 + KILLS // len(Knows)):
                # Every fourth lives long enough for two listings to agree: what was lost is found, and there is room for new asks.
                longest = 9.0 if number % 4 == 3 else 2.5
                time.sleep(moments.uniform(0.3, longest))  # the moment of the kill
                child.signal(signal.SIGKILL)
                child.wait()
                before = place.epoch()
                home = "home-0" if number % 2 else f"home-{number}"
                child = place.start("p1", home)
            place.until("the last one to act", lambda: place.epoch() > before)
            done = cluster.rounds
            place.until("another round after the last kill", lambda: cluster.rounds > done)
            cluster.wants = False
            place.until_all_is_over()
        stop(child)
    said = [one for one in place.events() if isinstance(one, Evidence.Kept)]
    assert {"requestMachines", "requestReturnMachines"} <= {one.call for one in said}
    record_property("asks", len(place.cloud["requests"]))
    record_property("reported and ended by hand", place.ended_by_hand)
    place.require_exact()


#: When a provisioner is frozen: at any time, or when it has made sure for the last time that it may ask, and has not asked.
ANY_TIME = "any time"
FROZEN = (ANY_TIME, "before:requestMachines", "before:requestReturnMachines")


@pytest.mark.parametrize("moment", FROZEN)
def test_a_frozen_provisioner_does_nothing_when_it_wakes_and_another_one_has_taken_over(
    moment: str, tmp_path: Path
) -> None:
    doom = Doom(tmp_path / "passed", moment, 1, signal.SIGSTOP)
    with place_with(tmp_path, Knows.LISTING) as place:
        with Cluster(place.client) as cluster:
            if moment == ANY_TIME:
                frozen = place.start("p1", "home-1")
                place.until("a round of p1", lambda: cluster.rounds >= 1)
                other = place.start("p2", "home-2")
                time.sleep(random.Random(23).uniform(0.0, 1.0))
                frozen.signal(signal.SIGSTOP)
            else:
                frozen = place.start("p1", "home-1", doom)
                place.until("p1 to be frozen", lambda: is_stopped(frozen))
                other = place.start("p2", "home-2")
            place.until("p2 to hold the lease", lambda: place.holder() == "p2")
            taken_at = time.time()
            done = cluster.rounds
            place.until("a round of p2", lambda: cluster.rounds > done)
            frozen.signal(signal.SIGCONT)
            done = cluster.rounds
            place.until("a round after p1 woke", lambda: cluster.rounds > done)
            assert place.holder() == "p2"
            cluster.wants = False
            place.until_all_is_over()
        stop(other)
        place.until("p1 to take over what p2 gave up", lambda: place.holder() == "p1")
        released_at = time.time()
        stop(frozen)
    grants = [one for one in place.events() if isinstance(one, (ProviderLease.Granted, ProviderLease.TakenOver, ProviderLease.Regranted))]  # fmt: skip
    assert [one.holder for one in grants] == ["p1", "p2", "p1"]
    late = [
        path.parent.name
        for path in calls_of(tmp_path / "home-1")
        if taken_at < path.stat().st_mtime < released_at - 4
    ]
    assert late == [], "p1 called the provider while p2 was the one to act"
    assert list(calls_of(tmp_path / "home-2")), "p2 did"
    place.require_exact()


def is_stopped(child: Child) -> bool:
    return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

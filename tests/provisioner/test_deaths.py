"""Death at every boundary: before and after each append, each call and each answer; then the next life goes on from the log alone.

A clean run counts the boundaries; then each is died at once. At the end every machine that the cloud has made is owned, returned, or
reported, and none was asked for twice where the cloud makes that possible. ``XCE_DEATHS`` sets how often each kind of boundary is
died at; 0: every time it is passed.
"""

import os
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.provisioner.rig import Process, Site, pass_time
from tests.provisioner.truth import DyingCloud, Fate, Killed, Means
from xce.adapters.store.verify import verify
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import OPEN

DEATHS = int(os.environ.get("XCE_DEATHS", "2"))
WANTED = 3
#: The first machine that is made never joins, the others do.
NEVER_JOINS = "m1"
BUSY_MINUTES = 45
MINUTES = 80
#: Between these an ask may have been made that nobody knows of; where it can be looked up by nothing, people are told.
LOST_OUTCOMES = frozenset({"after OpenRequest", "before ask", "after ask", "before AcceptRequest"})


@dataclass
class Run:
    """One story: three hosts are wanted, one of those that come never joins, after a while all are idle and go back."""

    means: Means
    die_at: int = 0

    def __post_init__(self) -> None:
        self.site = Site()
        self.fate = Fate(self.die_at)
        self.cloud = DyingCloud(self.means, lambda: self.fate)
        self.process = self._life()
        self.lives = 1

    def _life(self) -> Process:
        return Process(self.site, self.cloud, self.fate)

    def play(self) -> "Run":
        self._alive(lambda: self.process.begin())
        for minute in range(MINUTES):
            self._say(minute)
            self._alive(lambda: self.process.tick())
            for entry in self.site.inventory.instances:
                if entry.state is InstanceState.STARTING and entry.machine != NEVER_JOINS:
                    assert entry.machine is not None
                    self.site.join(entry.machine)
            self.site.look_at_drains()
            pass_time(self.site)
        return self

    def _alive(self, live: object) -> None:
        assert callable(live)
        try:
            live()
        except Killed:
            self.lives += 1
            self.process = self._life()
            self._alive(lambda: self.process.begin())

    def _say(self, minute: int) -> None:
        if minute >= BUSY_MINUTES:
            self.site.say(idle=self.site.idle())
            return
        inventory = self.site.inventory
        coming = sum(
            entry.amount - entry.granted - entry.failed
            for entry in inventory.requests
            if entry.state in OPEN
        )
        up = sum(
            entry.state in (InstanceState.STARTING, InstanceState.JOINED)
            for entry in inventory.instances
        )
        self.site.say(max(0, WANTED - coming - up))

    # ----------------------------------------------------------------- the truth
    def unexplained(self) -> list[str]:
        """Return the machines that exist, and that nobody owns and nobody has reported."""
        owned = {entry.machine for entry in self.site.inventory.instances}
        reported = {one for theirs, tag, _ in self.site.orphans() for one in (theirs, tag)}
        return [
            one.machine
            for one in self.cloud.present()
            if one.machine not in owned and not {one.machine, one.tag} & reported
        ]


def boundaries(means: Means) -> list[str]:
    run = Run(means).play()
    try:
        assert run.unexplained() == []
        assert not run.cloud.present()
        assert len(run.cloud.machines) == WANTED + 1, "the one that never joined was replaced"
        return run.fate.names
    finally:
        run.site.close()


def sample(names: list[str]) -> list[int]:
    """Return which boundaries are died at, counted from 1: of each name the first ones, or all."""
    chosen: list[int] = []
    seen = Counter[str]()
    for point, name in enumerate(names, 1):
        seen[name] += 1
        if not DEATHS or seen[name] <= DEATHS:
            chosen.append(point)
    return chosen


@pytest.mark.parametrize("means", Means)
def test_died_at_any_boundary_everything_that_was_made_is_owned_returned_or_reported(
    means: Means,
) -> None:
    names = boundaries(means)
    for point in sample(names):
        run = Run(means, point).play()
        where = f"{means}: died at {point}, {names[point - 1]}"
        try:
            assert run.lives == 2, where
            assert run.unexplained() == [], where
            report = verify(run.site.log)
            assert report.passed, (where, [str(f) for c in report.checks for f in c.findings])
            if means is not Means.NEITHER:
                assert set(run.cloud.asks.values()) == {1}, f"{where}: asked twice"
                assert len(run.cloud.machines) == WANTED + 1, where
                assert not run.cloud.present(), where
                assert run.site.orphans() == [], where
            else:
                assert set(run.cloud.asks.values()) == {1}, f"{where}: asked twice"
                unanswered = names[point - 1] in LOST_OUTCOMES
                assert bool(run.site.orphans()) is unanswered, where
        finally:
            run.site.close()

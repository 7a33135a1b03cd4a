"""The daemon and the controller killed with kill -9 at every effect boundary, each in a story of its own, with providers of three kinds.

A clean story counts the boundaries; then each is died at. ``before`` a script the provider has not acted, ``during`` it acts when nobody is
left to hear, ``after`` it has acted and nobody has heard. ``XCE_BOUNDARIES`` sets how often each is died at, at most; without it a few are
died at that stand for the rest. ``XCE_BOUNDARIES_FIGURES`` names a file that gets a line of JSON for each death; a run leaves out those
that it has already, so one that was stopped goes on.
"""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.doom import Doom
from tests.crash.place import WANTED, Cluster, Place, end, place_with, stop
from xce.adapters.providers.install import Knows

#: Deaths at each boundary, as far as it is passed so often; 0: those of the sample only.
EACH = int(os.environ.get("XCE_BOUNDARIES", "0"))
#: Where the figures of a whole run go, a line of JSON for each death; none: nowhere.
FIGURES = os.environ.get("XCE_BOUNDARIES_FIGURES")
#: Deaths of the sample, by daemon and kind of provider.
SAMPLE: dict[tuple[str, Knows], tuple[str, ...]] = {
    ("provisioner", Knows.TAGS): ("during:requestMachines",),
    ("provisioner", Knows.LISTING): ("before:requestMachines",),
    ("provisioner", Knows.NEITHER): ("after:requestMachines",),
    ("controller", Knows.TAGS): ("after:Request.Intended",),
    ("controller", Knows.LISTING): (),
    ("controller", Knows.NEITHER): (),
}


class Story:
    """Hosts are wanted, come, join, are idle, and go back; a daemon dies at one boundary and is started again at once."""

    def __init__(self, place: Place, daemon: str) -> None:
        self.place = place
        self.daemon = daemon
        self.number = 0

    def play(self, name: str = "", number: int = 0) -> Counter[str]:
        """Return the boundaries that the one that was to die has passed. Half of the successors are elsewhere, without its folder."""
        place, deaths = self.place, self.place.deaths
        self.number += 1
        passed = place.folder / f"passed-{self.number}"
        passed.touch()
        doom = Doom(passed, name, number)
        home = f"home-{self.number}"
        elsewhere = home if self.number % 2 else f"{home}-elsewhere"
        if self.daemon == "provisioner":
            place.doomed = place.start("p1", home, doom)
            place.successor = lambda: place.start("p1", elsewhere)
        else:
            end(place.controller)
            place.doomed = place.restart_controller(doom)
            place.successor = place.restart_controller
            place.until("the controller to serve", self._serves)
            place.start("p1", home)
        with Cluster(place.client) as cluster:
            place.until("hosts to have come", lambda: cluster.filled == 1)
            cluster.wants = False
            place.until_all_is_over()
            place.tend()  # the last boundary may be one at which all was over
            place.until_all_is_over()
        assert place.daemon is not None
        if self.daemon == "controller":  # the last boundary is the release of the lease
            place.daemon.signal(signal.SIGTERM)
            place.until("the provisioner to have ended", place.daemon.has_ended)
            assert place.daemon.wait() == 0, "a stop by SIGTERM is a good end"
            place.tend()
            place.until("the controller to serve", self._serves)
        else:
            stop(place.daemon)
        died, place.doomed = place.deaths > deaths, None
        assert died or not name or number > 1, f"{name} was not passed"
        return Counter(passed.read_text().split())

    def _serves(self) -> bool:
        self.place.client.status()
        return True


@pytest.mark.parametrize("knows", Knows)
@pytest.mark.parametrize("daemon", ["provisioner", "controller"])
def test_killed_at_any_boundary_every_machine_is_owned_returned_or_reported(
    daemon: str, knows: Knows, tmp_path: Path
) -> None:
    if not EACH and not SAMPLE[daemon, knows]:
        pytest.skip("in the whole run only")
    deaths = [(name, 1) for name in SAMPLE[daemon, knows]]
    if EACH:
        once, deaths = boundaries(tmp_path / "clean", daemon, knows)
        for number, name in enumerate(once):
            die(tmp_path / f"once-{number}", daemon, knows, [(name, 1)])
    die(tmp_path / "rest", daemon, knows, deaths)


def boundaries(folder: Path, daemon: str, knows: Knows) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the boundaries that are passed in the first story of a place only, and those of each story, with the how-manieth time."""
    with place_with(folder, knows) as place:
        story = Story(place, daemon)
        first, second = story.play(), story.play()
        place.require_exact("clean stories")
        assert not place.present()
    each = [
        (name, number)
        for name, count in second.items()
        for number in range(1, min(count, EACH) + 1)
    ]
    return [name for name in first if name not in second], each


def die(folder: Path, daemon: str, knows: Knows, deaths: list[tuple[str, int]]) -> None:
    """Die these deaths, one story each, in one place; after each nothing is lost, and what is left was reported."""
    known = died(daemon, knows)
    if known.issuperset(deaths):
        return
    with place_with(folder, knows) as place:
        story = Story(place, daemon)
        if len(deaths) > 1:
            story.play()  # some boundaries are passed in any story but the first
        for name, number in (death for death in deaths if death not in known):
            asks, ended = len(place.cloud["requests"]), place.ended_by_hand
            where = f"{daemon}, {knows}: died at {name}, {number}"
            passed = story.play(name, number)
            place.require_exact(where)
            assert place.unexplained() == [], where
            left = place.ended_by_hand - ended
            # What an ask has done that nobody heard of may be beyond finding out; it was reported then, and a person has ended it.
            unheard = passed["after:OpenRequest"] > passed["after:AcceptRequest"]
            assert left <= (WANTED if unheard and knows is not Knows.TAGS else 0), where
            if FIGURES is not None:
                figure = {
                    "daemon": daemon,
                    "knows": knows,
                    "name": name,
                    "number": number,
                    "asks": len(place.cloud["requests"]) - asks,
                    "reported and ended by hand": left,
                }
                with Path(FIGURES).open("a") as file:
                    file.write(json.dumps(figure) + "\n")


def died(daemon: str, knows: Knows) -> set[tuple[str, int]]:
    """Return the deaths that an earlier run has died."""
    if FIGURES is None or not Path(FIGURES).exists():
        return set()
    figures = [json.loads(line) for line in Path(FIGURES).read_text().splitlines()]
    mine = [one for one in figures if (one["daemon"], one["knows"]) == (daemon, knows)]
    return {(one["name"], one["number"]) for one in mine}

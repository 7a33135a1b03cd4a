"""Invariant 8, broken by events that no command would record, and by views that are not of the log."""

from typing import Any

import pytest

from tests.stories import Story
from tests.unit.invariants.forger import TERM, Forger, assert_found, findings
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import NotFoundError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Recorded
from xce.domain.provisioning.lease import ProviderLease
from xce.projections.invariants.intents import Intents
from xce.projections.invariants.report import FINDINGS_MAX
from xce.projections.invariants.states import States


class Nothing:
    """A source without aggregates."""

    def get(self, aggregate_class: type[Any], aggregate_id: str) -> Any:
        raise NotFoundError(f"{aggregate_id} is nowhere")


class Wrong:
    """A source that gives each aggregate with one value changed."""

    def __init__(self, aggregate: Aggregate[Any]) -> None:
        self._aggregate = aggregate

    def get(self, aggregate_class: type[Any], aggregate_id: str) -> Any:
        return self._aggregate


class View:
    """A view that counts; what is served may be something else."""

    name = "count"

    def __init__(self, served: int) -> None:
        self._served = served
        self._rebuilt = 0

    def see(self, recorded: Recorded) -> None:
        self._rebuilt += 1

    def difference(self) -> str | None:
        if self._served == self._rebuilt:
            return None
        return f"served {self._served}, rebuilt {self._rebuilt}"


def test_an_event_that_its_state_did_not_allow_is_named() -> None:
    forger = Forger().lease().add(ProviderLease.Released, "lease:aws")
    forger.add(ProviderLease.TakenOver, "lease:aws", holder="p2", term=TERM, epoch=2)

    found = findings(States(Nothing()), forger.events)

    assert found[0] == (3, "it is not allowed while the lease is released")


def test_an_event_that_does_not_follow_is_named_once() -> None:
    forger = Forger().lease()
    for _ in range(3):
        forger.add(ProviderLease.TakenOver, "lease:aws", holder="p2", term=TERM, epoch=2)
    del forger.events[1]

    found = findings(States(Nothing()), forger.events)

    assert [position for position, _ in found] == [2]
    assert "does not follow lease:aws version 1" in found[0][1]


def test_what_cannot_be_loaded_is_named() -> None:
    assert_found(
        States(Nothing()), Forger().lease(), None, "cannot be loaded: lease:aws is nowhere"
    )


def test_a_state_that_differs_is_named_with_what_differs() -> None:
    forger = Forger().lease()
    other = Forger().lease("p2").events[0].mutate(None)
    assert isinstance(other, ProviderLease)

    assert_found(States(Wrong(other)), forger, None, "holder is 'p1', loaded 'p2'")


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_aggregates_that_are_let_go_early_are_compared_all_the_same(kept: int) -> None:
    log = open_log(MEMORY)
    for number in range(3):
        Story(log, f"-{number}").tell()
    names: set[str] = set()
    invariant = States(log, kept=kept)
    for recorded in log.read():
        invariant.see(recorded)
        names.add(recorded.event.originator_id)

    outcome = invariant.end()

    assert (outcome.found, outcome.counted) == (0, len(names))


def test_a_state_that_differs_is_named_when_it_is_let_go() -> None:
    forger = Forger().lease()
    other = Forger().lease("p2").events[0].mutate(None)
    assert isinstance(other, ProviderLease)

    assert_found(States(Wrong(other), kept=0), forger, None, "holder is 'p1', loaded 'p2'")


def test_what_is_stored_after_an_aggregate_was_let_go_is_not_held_against_it() -> None:
    log = open_log(MEMORY)
    story = Story(log)
    invariant = States(log, kept=0)
    seen = 0
    for step in story.steps():
        step()
        for recorded in log.read(seen):
            invariant.see(recorded)
            seen = recorded.position

    assert invariant.end().found == 0


def test_a_view_is_rebuilt_and_compared() -> None:
    log = open_log(MEMORY)
    Story(log).tell()
    events = [r.event for r in log.read()]

    assert findings(States(log, [View(served=len(events))]), events) == []
    assert findings(States(log, [View(served=2)]), events) == [
        (None, "the view count differs: served 2, rebuilt 33")
    ]


def test_findings_are_bounded_and_counted() -> None:
    forger = Forger()
    for number in range(FINDINGS_MAX + 5):
        forger.instance(f"I{number}", machine=f"m{number}")
    invariant = Intents()

    assert len(findings(invariant, forger.events)) == FINDINGS_MAX
    assert invariant.end().found == FINDINGS_MAX + 5

"""The transition tables: every event has a row, and the rows say what the commands do."""

from enum import StrEnum
from typing import Any

import pytest

from xce.domain.errors import IllegalTransitionError
from xce.domain.events.base import Aggregate
from xce.domain.events.stored import AGGREGATES
from xce.domain.events.transitions import land, lands, require, starts, stays
from xce.domain.provisioning.request import CLOSED, Request, RequestState

aggregates = pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda a: a.KIND)


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"
    GONE = "gone"


TABLE = {
    "Built": starts(Door.SHUT),
    "Opened": lands({Door.SHUT}, Door.OPEN, keeps={Door.GONE}),
    "Knocked": stays({Door.SHUT}),
    "Ended": lands({Door.OPEN}, Door.SHUT, Door.GONE),
}


@aggregates
def test_each_event_has_a_row_and_each_row_an_event(aggregate: type[Aggregate[Any]]) -> None:
    events = {event_class.__name__ for event_class in aggregate.event_classes()}

    assert events == aggregate.TRANSITIONS.keys()


@aggregates
def test_one_event_starts_a_stream(aggregate: type[Aggregate[Any]]) -> None:
    first = [event for event in aggregate.event_classes() if aggregate.row_of(event).creates]

    assert len(first) == 1


@aggregates
def test_each_state_is_reached(aggregate: type[Aggregate[Any]]) -> None:
    rows = aggregate.TRANSITIONS.values()
    states = {state for row in rows for state in (*row.targets, *row.sources)}
    reached = {target for row in rows for target in row.targets}

    assert reached == states


@aggregates
def test_each_event_says_what_it_means_and_what_its_fields_are(
    aggregate: type[Aggregate[Any]],
) -> None:
    base = vars(aggregate)["Event"].model_fields
    for event_class in aggregate.event_classes():
        text = event_class.__doc__ or ""
        for field in event_class.model_fields.keys() - base.keys():
            assert f"            {field}: " in text, f"{event_class.__qualname__}.{field}"


def test_a_row_says_all_its_arrows() -> None:
    assert TABLE["Ended"].arrows() == [(Door.OPEN, Door.SHUT), (Door.OPEN, Door.GONE)]
    assert TABLE["Knocked"].arrows() == [(Door.SHUT, Door.SHUT)]
    assert TABLE["Opened"].arrows() == [(Door.SHUT, Door.OPEN), (Door.GONE, Door.GONE)]
    assert TABLE["Built"].arrows() == []


def test_an_event_lands_where_its_row_says() -> None:
    assert land(TABLE, "Opened", Door.SHUT) is Door.OPEN
    assert land(TABLE, "Opened", Door.GONE) is Door.GONE
    assert land(TABLE, "Knocked", Door.SHUT) is Door.SHUT
    assert land(TABLE, "Ended", Door.OPEN, Door.GONE) is Door.GONE


def test_landing_asks_nothing_so_that_old_streams_stay_readable() -> None:
    assert land(TABLE, "Opened", Door.OPEN) is Door.OPEN


def test_a_row_with_a_choice_does_not_lead_elsewhere() -> None:
    with pytest.raises(AssertionError, match="does not lead to open"):
        land(TABLE, "Ended", Door.OPEN, Door.OPEN)


def test_what_is_not_in_the_table_is_refused_by_name() -> None:
    with pytest.raises(
        IllegalTransitionError, match="Opened is not allowed while the door is open"
    ):
        require(TABLE, "door", "Opened", Door.OPEN)


def test_late_answers_are_allowed_in_every_closed_state() -> None:
    for name in ("Accepted", "InstanceGranted", "MachineFailed", "AmountGranted", "FellShort"):
        assert Request.TRANSITIONS[name].sources >= CLOSED, name
        assert {
            source for source, target in Request.TRANSITIONS[name].arrows() if source is target
        } >= CLOSED
    assert not Request.TRANSITIONS["Closed"].sources & CLOSED
    assert RequestState.UNKNOWN in Request.TRANSITIONS["Closed"].sources

"""Stored names and versions: a contract apart from the code, and an unknown event stops everything (F26)."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from tests.unit.aggregates import STAMP
from xce.domain.errors import BrokenLogError
from xce.domain.events.base import DomainEvent
from xce.domain.events.stored import AGGREGATES, EVENTS, EventRegistry, stored_name
from xce.domain.provisioning.lease import ProviderLease

TERM = timedelta(seconds=30)


def granted() -> DomainEvent:
    return ProviderLease.grant(provider="aws", holder="A", term=TERM, **STAMP).new_events()[0]


Document = dict[str, Any]
Upcasts = Mapping[int, Callable[[Document], Document]]


def add_zone(document: Document) -> Document:
    return {**document, "zone": "unknown"}


def term_in_seconds(document: Document) -> Document:
    assert document.pop("term") == "30s"
    return {**document, "term_s": 30}


class LeaseWasGiven(DomainEvent):
    """What a later release calls the event: another class, two versions on, with a field more."""

    TOPIC: ClassVar[str] = "xce.lease.given"
    VERSION: ClassVar[int] = 3
    FORMER_TOPICS: ClassVar[tuple[str, ...]] = ("xce.lease.granted",)
    UPCASTS: ClassVar[Upcasts] = {1: add_zone, 2: term_in_seconds}
    holder: str
    epoch: int
    zone: str
    term_s: int
    note: str = "none"


LATER = EventRegistry([LeaseWasGiven])


def test_each_event_is_read_back_as_it_was() -> None:
    event = granted()
    topic, state = EVENTS.encode(event)

    assert topic == "xce.lease.granted"
    assert EVENTS.decode(1, event.originator_id, 1, topic, state) == event


def test_names_are_of_one_form_and_one_a_class() -> None:
    names = EVENTS.names()

    assert len(names) == sum(len(a.event_classes()) for a in AGGREGATES)
    for aggregate in AGGREGATES:
        for event_class in aggregate.event_classes():
            assert stored_name(event_class) in names
            assert event_class.TOPIC.startswith(f"xce.{aggregate.KIND}.")


def test_the_same_event_gives_the_same_bytes() -> None:
    assert EVENTS.encode(granted()) == EVENTS.encode(granted())


def test_an_old_event_reads_under_a_later_release() -> None:
    """F26: renamed, moved, a field more and one changed; the stored name is all that counts."""
    topic, state = EVENTS.encode(granted())

    event = LATER.decode(1, "lease:aws", 1, topic, state)

    assert event == LeaseWasGiven(
        originator_id="lease:aws", originator_version=1, timestamp=STAMP["at"], by=STAMP["by"],
        holder="A", epoch=1, zone="unknown", term_s=30, note="none",
    )  # fmt: skip


def test_each_version_of_a_name_is_read() -> None:
    assert LATER.names() == {
        f"{name}{version}"
        for name in ("xce.lease.given", "xce.lease.granted")
        for version in ("", "/2", "/3")
    }
    document = json.loads(granted().model_dump_json()) | {"zone": "a"}

    event = LATER.decode(1, "lease:aws", 1, "xce.lease.given/2", json.dumps(document).encode())

    assert isinstance(event, LeaseWasGiven)
    assert event.zone == "a"


def test_a_later_release_writes_its_own_version() -> None:
    event = LATER.decode(1, "lease:aws", 1, *EVENTS.encode(granted()))

    assert LATER.encode(event)[0] == "xce.lease.given/3"


def test_an_unknown_event_stops_with_its_name_and_position() -> None:
    topic, state = LATER.encode(LATER.decode(1, "lease:aws", 1, *EVENTS.encode(granted())))

    with pytest.raises(
        BrokenLogError, match=r"event 17 .*lease:aws.*does not know the event 'xce.lease.given/3'"
    ) as caught:
        EVENTS.decode(17, "lease:aws", 1, topic, state)

    assert caught.value.position == 17


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"epoch":1', b'"epoch":-1', "epoch"),
        (b'"epoch":1', b'"epoch":"1"', "epoch"),
        (b'"holder":"A",', b"", "holder: required field is missing"),
        (b'"holder"', b'"colour":1,"holder"', "colour: unknown field"),
        (b"}", b"", "is not JSON"),
        (b"{", b"\xff\xfe", "is not JSON"),
        (b"lease:aws", b"lease:gcp", "the state is of lease:gcp"),
        (b'"originator_version":1', b'"originator_version":2', "version 2"),
    ],
)
def test_a_state_that_does_not_fit_stops_with_its_position(
    old: bytes, new: bytes, message: str
) -> None:
    topic, state = EVENTS.encode(granted())
    assert old in state

    with pytest.raises(BrokenLogError, match=rf"event 9 .*{message}") as caught:
        EVENTS.decode(9, "lease:aws", 1, topic, state.replace(old, new))

    assert caught.value.position == 9


@pytest.mark.parametrize(
    "state", [b"", b"[]", b"{}", b"nonsense", b'{"holder": 1}', b'{"term": "1s"}']
)
def test_an_old_state_that_an_upcast_cannot_take_stops_with_its_position(state: bytes) -> None:
    with pytest.raises(BrokenLogError, match="event 3 ") as caught:
        LATER.decode(3, "lease:aws", 1, "xce.lease.granted", state)

    assert caught.value.position == 3


def test_two_events_are_not_stored_under_one_name() -> None:
    with pytest.raises(AssertionError, match="two events are stored as"):
        EventRegistry([LeaseWasGiven, ProviderLease.Granted])

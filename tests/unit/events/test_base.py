"""Events are values; an aggregate is what its events make of it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from tests.unit.aggregates import AT, STAMP
from xce.domain.errors import BrokenLogError
from xce.domain.events import ids
from xce.domain.events.base import DomainEvent, fold
from xce.domain.provisioning.lease import ProviderLease

TERM = timedelta(seconds=30)


def stream() -> list[DomainEvent]:
    lease = ProviderLease.grant(provider="aws", holder="A", term=TERM, **STAMP)
    lease.take_over(holder="B", epoch=2, term=TERM, **STAMP)
    lease.release(epoch=2, **STAMP)
    return list(lease.new_events())


def test_an_event_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        stream()[0].by = "eve"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value"),
    [("term", 30.5), ("epoch", "1"), ("epoch", 0), ("holder", ""), ("colour", "red"), ("by", "")],
)
def test_a_wrong_type_or_an_unknown_field_is_an_error(field: str, value: object) -> None:
    event = stream()[0]
    document = {**event.model_dump(), field: value}

    with pytest.raises(ValidationError):
        type(event).model_validate(document)


def test_a_time_is_kept_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    lease = ProviderLease.grant(
        provider="aws", holder="A", term=TERM, at=datetime(2026, 3, 1, 19, tzinfo=tokyo), by="x"
    )

    (event,) = lease.new_events()

    assert event.timestamp == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert '"timestamp":"2026-03-01T10:00:00Z"' in event.model_dump_json()


def test_a_time_without_a_zone_is_a_mistake_of_the_program() -> None:
    with pytest.raises(AssertionError, match="timezone-aware"):
        ProviderLease.grant(
            provider="aws", holder="A", term=TERM, at=AT.replace(tzinfo=None), by="x"
        )


def test_events_follow_one_another() -> None:
    first, second, third = stream()

    with pytest.raises(BrokenLogError, match=r"version 3 .* does not follow lease:aws version 1"):
        fold(None, [first, third])
    with pytest.raises(BrokenLogError, match="is not a first event"):
        fold(None, [second])
    with pytest.raises(BrokenLogError, match="does not follow"):
        fold(None, [first, second.model_copy(update={"originator_id": "lease:gcp"})])


def test_replay_uses_the_times_of_the_events() -> None:
    first, second, _ = stream()
    late = second.model_copy(update={"timestamp": AT + timedelta(hours=1)})

    lease = fold(None, [first, late])

    assert isinstance(lease, ProviderLease)
    assert (lease.created_on, lease.modified_on) == (AT, AT + timedelta(hours=1))
    assert lease.held_since == AT + timedelta(hours=1)


def test_an_id_is_a_kind_and_a_name() -> None:
    assert ids.request_id("R17") == "request:R17"
    assert ids.kind_of("shared:lic:spice") == "shared"
    assert ids.name_of("shared:lic:spice") == "lic:spice"
    assert len(
        {
            make("x")
            for make in (
                ids.provider_id, ids.lease_id, ids.request_id, ids.instance_id, ids.grant_id, ids.shared_id,
            )
        }
    ) == 6  # fmt: skip

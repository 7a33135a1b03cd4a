"""What the tests of all aggregates share: a time, a stamp, and reading what was recorded."""

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from xce.domain.events.base import Aggregate, DomainEvent, ProviderFact, fold

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Stamp(TypedDict):
    at: datetime
    by: str


class Fact(Stamp):
    epoch: int


STAMP: Stamp = {"at": AT, "by": "admin/alice"}
FACT: Fact = {"at": AT, "by": "provisioner/p1", "epoch": 1}


def fact(at: datetime) -> Fact:
    return {"at": at, "by": "provisioner/p1", "epoch": 1}


def then(aggregate: Aggregate[Any]) -> list[tuple[str, dict[str, Any]]]:
    """The events not seen before: name, and the fields of their own."""
    return [
        (type(event).__name__, own_fields(event))
        for event in aggregate.collect_events()
        if isinstance(event, DomainEvent)
    ]


def own_fields(event: DomainEvent) -> dict[str, Any]:
    return event.model_dump(exclude=set(ProviderFact.model_fields))


class Replay:
    """Keeps all that an aggregate ever recorded, and rebuilds it from that, by way of its stored form."""

    def __init__(self) -> None:
        self.events: list[DomainEvent] = []

    def take(self, aggregate: Aggregate[Any]) -> None:
        for event in aggregate.collect_events():
            assert isinstance(event, DomainEvent)
            self.events.append(type(event).model_validate_json(event.model_dump_json()))

    def rebuilt(self) -> Aggregate[Any] | None:
        return fold(None, self.events)


def attempt(
    aggregate: Aggregate[Any], command: Callable[[], None], refusal: type[Exception]
) -> bool:
    """Carry a command out; a refused one must have recorded and changed nothing. Return whether it was carried out."""
    before = deepcopy(vars(aggregate))
    try:
        command()
    except refusal:
        assert vars(aggregate) == before, "a refused command left a trace"
        return False
    return True

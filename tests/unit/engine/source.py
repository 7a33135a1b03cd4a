"""Saved aggregates in memory, for tests of the engine: a plain dictionary of streams."""

from typing import Any, TypeVar, cast

from xce.domain.engine.controller import Change
from xce.domain.errors import NotFoundError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, fold

A = TypeVar("A", bound=Aggregate[Any])


class Streams:
    """Fulfils ``AggregateSource``; ``save`` is an append."""

    def __init__(self) -> None:
        self.events: list[DomainEvent] = []
        self.fences: dict[str, int] = {}
        self._streams: dict[str, list[DomainEvent]] = {}

    def save(self, change: Change) -> list[DomainEvent]:
        new = [
            cast("DomainEvent", event)
            for aggregate in change.aggregates
            for event in aggregate.collect_events()
        ]
        for event in new:
            self._streams.setdefault(event.originator_id, []).append(event)
        self.events += new
        self.fences |= change.fences
        return new

    def get(self, aggregate_class: type[A], aggregate_id: str) -> A:
        stream = self._streams.get(aggregate_id)
        if stream is None:
            raise NotFoundError(f"there is no {ids.name_of(aggregate_id)}")
        aggregate = fold(None, stream)
        assert isinstance(aggregate, aggregate_class)
        return aggregate

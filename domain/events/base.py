"""Bases of events and aggregates: frozen pydantic events with a ``mutate`` of our own, on the library's aggregate.

An aggregate's commands check and record; the functions marked by ``applies`` only assign. A command never assigns and an
event function never checks: rules may change over the years, recorded facts do not. Time, ids and who acts are arguments.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar, cast

from eventsourcing.domain import BaseAggregate, CanMutateAggregate, TAggregate
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from xce.domain.errors import BrokenLogError
from xce.domain.events import ids
from xce.domain.events.transitions import S, Table, Transition, land, require

E = TypeVar("E", bound="DomainEvent")
A = TypeVar("A", bound="Aggregate[Any]")

#: Longest text kept as a reason; what a provider says may be longer and is cut by whoever records it.
WHY_MAX = 2000
#: Why something was done, for people.
Why = Annotated[str, Field(max_length=WHY_MAX)]


def cut(text: str) -> str:
    """Return what a provider said, no longer than a reason may be."""
    return text if len(text) <= WHY_MAX else f"{text[: WHY_MAX - 4]} ..."


class DomainEvent(BaseModel, CanMutateAggregate[str]):
    """A recorded fact. Immutable; an unknown field or a wrong type is an error, not a surprise.

    ``TOPIC`` and ``VERSION`` are what is stored, and a contract apart from the class's name and place; how to change an event
    is said in ``domain/events/stored.py``. Never give an old field a new meaning.

    Attributes:
        originator_id: the aggregate, such as ``request:R17``.
        originator_version: number of the event within its aggregate, from 1.
        timestamp: when it was recorded, UTC.
        by: who did it: ``provisioner/p1``, ``admin/alice``, ``xce sim``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    TOPIC: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    #: Topics it was stored under by earlier releases.
    FORMER_TOPICS: ClassVar[tuple[str, ...]] = ()
    #: By version: what turns a JSON document of that version into one of the next.
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
    #: The class of aggregate it belongs to; set when that class is defined.
    AGGREGATE: ClassVar[type["Aggregate[Any]"]]

    originator_id: str
    originator_version: Annotated[int, Field(ge=1)]
    timestamp: AwareDatetime
    by: Annotated[str, Field(min_length=1, max_length=256)]

    def mutate(self, aggregate: TAggregate | None) -> TAggregate | None:
        """Return the aggregate after this event: the same object, or a new one for the first event.

        Raises:
            BrokenLogError: the event is not the next one of this aggregate.
        """
        if aggregate is None:
            return cast("TAggregate", self._start())
        if self.originator_version != aggregate.version + 1 or self.originator_id != aggregate.id:
            raise BrokenLogError(
                f"{self.originator_id} version {self.originator_version} ({self.TOPIC}) does not follow"
                f" {aggregate.id} version {aggregate.version}"
            )
        _EVENT_FUNCTIONS[type(self)](aggregate, self)
        aggregate.version = self.originator_version
        aggregate.modified_on = self.timestamp
        return aggregate

    def _start(self) -> "Aggregate[Any]":
        aggregate_class = self.AGGREGATE
        if self.originator_version != 1 or not aggregate_class.row_of(type(self)).creates:
            raise BrokenLogError(
                f"{self.originator_id} version {self.originator_version} ({self.TOPIC}) is not a first event"
            )
        aggregate = aggregate_class.__new__(aggregate_class)
        aggregate.__base_init__(self.originator_id, 1, self.timestamp)
        _EVENT_FUNCTIONS[type(self)](aggregate, self)
        return aggregate


class ProviderFact(DomainEvent):
    """A fact of a provider: it also says under which epoch of the provider's lease it was written.

    Attributes:
        epoch: the lease epoch of the writer.
    """

    epoch: Annotated[int, Field(ge=1)]


#: The function that applies each event to its aggregate; filled by ``applies`` as the aggregates are defined.
_EVENT_FUNCTIONS: dict[type[DomainEvent], Callable[[Any, Any], None]] = {}


def applies(event_class: type[E]) -> Callable[[Callable[[A, E], None]], Callable[[A, E], None]]:
    """Mark the function of an aggregate that assigns what an event says. One function for each event."""

    def mark(function: Callable[[A, E], None]) -> Callable[[A, E], None]:
        assert event_class not in _EVENT_FUNCTIONS, f"{event_class} is applied by two functions"
        _EVENT_FUNCTIONS[event_class] = function
        return function

    return mark


class Aggregate(BaseAggregate[str], Generic[S]):
    """Base of all aggregates; a subclass has a ``KIND``, a ``TRANSITIONS`` table, a nested ``Event`` and events based on it, commands,
    event functions.

    A failed command has recorded nothing and changed nothing. An object whose save failed is thrown away: load it again and
    decide again.
    """

    #: What stands before the colon of its ids, and what errors call it.
    KIND: ClassVar[str] = ""
    TRANSITIONS: ClassVar[Table[Any]] = {}

    if TYPE_CHECKING:  # a bare annotation would turn the class into a dataclass of the library
        state: S

    def __init_subclass__(cls, *, created_event_name: str = "") -> None:
        """Tie the nested event classes to this aggregate and hold them to its table."""
        super().__init_subclass__(created_event_name=created_event_name)
        for event_class in cls.event_classes():
            assert event_class.TOPIC, f"{event_class} has no TOPIC"
            assert event_class in _EVENT_FUNCTIONS, f"no function applies {event_class}"
            assert event_class.__name__ in cls.TRANSITIONS, f"{event_class} has no row in the table"
            event_class.AGGREGATE = cls

    @classmethod
    def event_classes(cls) -> list[type[DomainEvent]]:
        """Return the classes of the events of this aggregate, in the order they are written."""
        return [
            value
            for name, value in vars(cls).items()
            if name != "Event" and isinstance(value, type) and issubclass(value, DomainEvent)
        ]

    @classmethod
    def row_of(cls, event_class: type[DomainEvent]) -> Transition[Any]:
        """Return the row of the lifecycle table of an event class."""
        return cls.TRANSITIONS[event_class.__name__]

    @property
    def name(self) -> str:
        """The id without its kind: ``R17``."""
        return ids.name_of(self.id)

    def new_events(self) -> tuple[DomainEvent, ...]:
        """Return what was recorded and is not yet saved, and keep it."""
        return tuple(cast("list[DomainEvent]", self._pending_events))

    # ------------------------------------------------- for commands of subclasses
    @classmethod
    def _first(
        cls,
        event_class: type[DomainEvent],
        aggregate_id: str,
        *,
        at: datetime,
        by: str,
        **payload: object,
    ) -> Self:
        """Return a new aggregate whose first event is pending."""
        event = event_class.model_validate(
            {
                "originator_id": aggregate_id,
                "originator_version": 1,
                "timestamp": _utc(at),
                "by": by,
                **payload,
            }
        )
        aggregate = cast("Self", event.mutate(None))
        aggregate._pending_events.append(event)
        return aggregate

    def _record(
        self, event_class: type[DomainEvent], *, at: datetime, by: str, **payload: object
    ) -> None:
        """Make the next event, apply it and keep it until it is saved."""
        event = event_class.model_validate(
            {
                "originator_id": self._id,
                "originator_version": self._version + 1,
                "timestamp": _utc(at),
                "by": by,
                **payload,
            }
        )
        event.mutate(self)
        self._pending_events.append(event)

    def _require(self, event_class: type[DomainEvent]) -> None:
        require(self.TRANSITIONS, self.KIND, event_class.__name__, self.state)

    def _land(self, event: DomainEvent, choice: S | None = None) -> S:
        table = cast("Table[S]", self.TRANSITIONS)
        return land(table, type(event).__name__, self.state, choice)


def _utc(at: datetime) -> datetime:
    assert at.tzinfo is not None, "times are timezone-aware"
    return at if at.tzinfo is UTC else at.astimezone(UTC)


def fold(aggregate: A | None, events: Iterable[DomainEvent]) -> A | None:
    """Return the aggregate after these events, without the library's protocol check on each."""
    for event in events:
        aggregate = event.mutate(aggregate)
    return aggregate

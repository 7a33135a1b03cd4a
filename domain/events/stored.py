"""How events are stored: names and versions that outlive the code, upcasts, JSON.

The stored name of an event is its class's ``TOPIC``, with ``/2`` and so on once its ``VERSION`` is above 1; the stored state is its
JSON document. Neither depends on what the class is called or where it lives.

To change an event: give a new field a default; or raise ``VERSION`` and add to ``UPCASTS`` the function that turns a document of the
version before into one of the new version; or add another event. ``FORMER_TOPICS`` are names the event had before.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from pydantic import ValidationError

from xce.domain.alerts.alert import Alert
from xce.domain.alerts.webhook import Webhook
from xce.domain.errors import BrokenLogError
from xce.domain.events.base import Aggregate, DomainEvent
from xce.domain.formats.base import problems_of
from xce.domain.provisioning.configuration import Configuration
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.drain import Drain
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.receipt import Receipt
from xce.domain.provisioning.refusals import Refusals
from xce.domain.provisioning.request import Request
from xce.domain.provisioning.site import Site
from xce.domain.sharing.elastic_resource import ElasticResource

#: All aggregates of this release, in the order the reference shows them.
AGGREGATES: Final[tuple[type[Aggregate[Any]], ...]] = (
    Provider,
    ProviderLease,
    Request,
    Instance,
    Grant,
    ElasticResource,
    Drain,
    Orphan,
    Decision,
    Evidence,
    Receipt,
    Refusals,
    Site,
    Configuration,
    Alert,
    Webhook,
)

Decode = Callable[[bytes], DomainEvent]


def stored_name(event_class: type[DomainEvent], version: int | None = None) -> str:
    """Return the name an event is stored under, at its present version or at an earlier one."""
    number = event_class.VERSION if version is None else version
    return event_class.TOPIC if number == 1 else f"{event_class.TOPIC}/{number}"


class EventRegistry:
    """All events this release can read, by stored name."""

    def __init__(self, event_classes: Iterable[type[DomainEvent]]) -> None:
        self._decoders: dict[str, Decode] = {}
        self._names: dict[type[DomainEvent], str] = {}
        for event_class in event_classes:
            self._add(event_class)

    def names(self) -> frozenset[str]:
        """Return all stored names, those of earlier versions included."""
        return frozenset(self._decoders)

    def event_classes(self) -> list[type[DomainEvent]]:
        """Return the classes, in the order they were given."""
        return list(self._names)

    def encode(self, event: DomainEvent) -> tuple[str, bytes]:
        """Return the stored name and the stored state of an event."""
        return (
            self._names[type(event)],
            event.__pydantic_serializer__.to_json(event),
        )

    def decode(
        self,
        position: int | None,
        originator_id: str,
        originator_version: int,
        topic: str,
        state: bytes,
    ) -> DomainEvent:
        """Return the event of one stored row.

        Raises:
            BrokenLogError: the name is not known to this release, the state does not fit the event, or it is of another
                aggregate or version than the row; with the position.
        """
        decode = self._decoders.get(topic)
        if decode is None:
            raise BrokenLogError(
                f"{_place(position, originator_id, originator_version)}: this release does not know the event {topic!r};"
                " read the log with the release that wrote it, or a newer one",
                position,
            )
        try:
            event = decode(state)
        except ValidationError as error:
            problems = "; ".join(str(problem) for problem in problems_of(error))
            raise BrokenLogError(
                f"{_place(position, originator_id, originator_version)}: not a {topic}: {problems}",
                position,
            ) from None
        except (
            ValueError,
            LookupError,
            TypeError,
            AssertionError,
        ) as error:  # an upcast met what it did not expect
            raise BrokenLogError(
                f"{_place(position, originator_id, originator_version)}: not a {topic}: {error!r}",
                position,
            ) from None
        if event.originator_version != originator_version or event.originator_id != originator_id:
            raise BrokenLogError(
                f"{_place(position, originator_id, originator_version)}: the state is of {event.originator_id}"
                f" version {event.originator_version}",
                position,
            )
        return event

    def _add(self, event_class: type[DomainEvent]) -> None:
        validate = cast("Decode", event_class.__pydantic_validator__.validate_json)
        self._names[event_class] = stored_name(event_class)
        for topic in (event_class.TOPIC, *event_class.FORMER_TOPICS):
            assert topic, f"{event_class} has no topic"
            assert "/" not in topic, f"{event_class}: {topic!r} is not a topic"
            for version in range(1, event_class.VERSION + 1):
                name = topic if version == 1 else f"{topic}/{version}"
                assert name not in self._decoders, f"two events are stored as {name}"
                self._decoders[name] = (
                    validate
                    if version == event_class.VERSION
                    else _upcasting(event_class, version, validate)
                )


def _upcasting(event_class: type[DomainEvent], version: int, validate: Decode) -> Decode:
    steps = [event_class.UPCASTS[number] for number in range(version, event_class.VERSION)]

    def decode(state: bytes) -> DomainEvent:
        document: dict[str, Any] = json.loads(state)
        for step in steps:
            document = step(document)
        return validate(json.dumps(document).encode())

    return decode


def _place(position: int | None, originator_id: str, originator_version: int) -> str:
    event = f"version {originator_version} of {originator_id}"
    return event if position is None else f"event {position} ({event})"


#: The events of this release.
EVENTS: Final = EventRegistry(
    event_class for aggregate in AGGREGATES for event_class in aggregate.event_classes()
)

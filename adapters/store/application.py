"""The one event-sourced application over the library, whatever the backend."""

from typing import Any, cast

from eventsourcing.application import Application
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import InfrastructureFactory, JSONTranscoder, Mapper, StoredEvent
from eventsourcing.utils import Environment, EnvType

from xce.adapters.store.recorder import LogRecorder
from xce.domain.events.base import DomainEvent
from xce.domain.events.stored import EventRegistry


class EventMapper(Mapper[str]):
    """Validates each event as it is loaded, and stores it under names that outlive the code.

    The library's own mapper fills ``__dict__`` directly: a row with a wrong type would get in unseen.
    """

    def __init__(self, registry: EventRegistry) -> None:
        super().__init__(JSONTranscoder())
        self._registry = registry

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """Return the row for an event."""
        topic, state = self._registry.encode(cast("DomainEvent", domain_event))
        return StoredEvent(
            domain_event.originator_id, domain_event.originator_version, topic, state
        )

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[str]:
        """Return the event of a row.

        Raises:
            BrokenLogError: the row cannot be read.
        """
        event = self._registry.decode(
            None,
            cast("str", stored_event.originator_id),
            stored_event.originator_version,
            stored_event.topic,
            stored_event.state,
        )
        return cast("DomainEventProtocol[str]", event)


class LogApplication(Application[str]):
    """The application. Nothing of it is set by the process's environment, and none of its parts reads a clock."""

    name = "xce"

    def __init__(self, factory: InfrastructureFactory[Any], registry: EventRegistry) -> None:
        self._given_factory = factory
        self._registry = registry
        super().__init__()

    @property
    def log_recorder(self) -> LogRecorder:
        """The recorder, by its own type."""
        return cast("LogRecorder", self.recorder)

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Return an empty environment."""
        return Environment(name, env or {})

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        """Return the backend's factory."""
        return self._given_factory

    def construct_mapper(self) -> Mapper[str]:
        """Return the validating mapper."""
        return EventMapper(self._registry)

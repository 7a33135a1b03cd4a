"""One event of the log as it is shown: over REST, on the stream, in recordings."""

import json
from typing import Any, Final

from xce.domain.events.base import DomainEvent
from xce.domain.events.recorded import Recorded
from xce.domain.events.stored import stored_name
from xce.domain.formats.rest import EventEntry

_OWN: Final = frozenset(DomainEvent.model_fields)


def event_entry(recorded: Recorded) -> EventEntry:
    """Return an event as it is shown."""
    event = recorded.event
    document: dict[str, Any] = json.loads(event.model_dump_json())
    return EventEntry(
        position=recorded.position,
        name=stored_name(type(event)),
        aggregate=event.originator_id,
        version=event.originator_version,
        at=event.timestamp,
        by=event.by,
        data={name: value for name, value in document.items() if name not in _OWN},
    )

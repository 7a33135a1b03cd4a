"""What all views over the log share: a position, and one function for each event they know."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from xce.domain.events.base import DomainEvent
from xce.domain.events.recorded import Recorded

E = TypeVar("E", bound=DomainEvent)

#: What a projection has folded, part by part, as values that can be compared.
State = dict[str, Mapping[Any, Any]]
#: Folds one event, given its position in the log.
Handler = Callable[[Any, int], None]


class Projection:
    """A fold over the log: mutable inside, read-only outside. An event it does not know leaves it as it is.

    It can be dropped at any time and rebuilt from the first event; the state is then equal to the one before.
    """

    def __init__(self) -> None:
        #: Of the last event that was folded; 0: none was.
        self.position = 0
        self._handlers: dict[type[DomainEvent], Handler] = {}

    @property
    def handlers(self) -> Mapping[type[DomainEvent], Handler]:
        """The functions that fold events, for one loop over several projections."""
        return self._handlers

    def apply(self, batch: Iterable[Recorded]) -> None:
        """Fold events, each of them behind the position reached."""
        handlers = self._handlers
        for recorded in batch:
            assert recorded.position > self.position, "events come once, in the order of the log"
            handle = handlers.get(type(recorded.event))
            if handle is not None:
                handle(recorded.event, recorded.position)
            self.position = recorded.position

    def state(self) -> State:
        """Return all that was folded as a comparable value; it does not change afterwards."""
        raise NotImplementedError

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        raise NotImplementedError

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called; the position is the caller's to set.

        Raises:
            ValueError: this is not what ``keep`` returned in this release.
        """
        raise NotImplementedError

    def _on(self, event_class: type[E], handle: Callable[[E, int], None]) -> None:
        assert event_class not in self._handlers, f"{event_class} is folded twice"
        self._handlers[event_class] = handle

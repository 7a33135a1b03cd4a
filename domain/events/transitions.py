"""Lifecycles as data: one table for each aggregate, read by its commands, its docs and its tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from xce.domain.errors import IllegalTransitionError

S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S]):
    """One row of a lifecycle: where an event is allowed, and where it lands.

    Commands read ``sources``. Event functions read the other fields only, so that a rule made stricter later
    cannot break an old stream.

    Attributes:
        sources: the states a command may come from; empty for an event that is always the first.
        targets: where it lands. One state; or several, of which the event's fields or the aggregate's counts
            choose one; or none: the state stays.
        keeps: the sources it does not leave, although it has targets.
        creates: whether it may start a stream.
    """

    sources: frozenset[S]
    targets: tuple[S, ...] = ()
    keeps: frozenset[S] = frozenset()
    creates: bool = False

    def arrows(self) -> list[tuple[S, S]]:
        """Return all (source, target) pairs, in the order of the states; none for the first event."""
        return [
            (source, target)
            for source in _ordered(self.sources)
            for target in ((source,) if not self.targets or source in self.keeps else self.targets)
        ]


#: The lifecycle of one aggregate: event class name to row.
Table = Mapping[str, Transition[S]]


def starts(target: S) -> Transition[S]:
    """Return the row of an event that is always the first of its stream, which is then in ``target``."""
    return Transition(frozenset(), (target,), creates=True)


def lands(
    sources: Iterable[S], *targets: S, keeps: Iterable[S] = (), first: bool = False
) -> Transition[S]:
    """Return the row of an event that leads from any source, but those in ``keeps``, to (one of) ``targets``.

    With ``first`` it can also start a stream.
    """
    kept = frozenset(keeps)
    return Transition(frozenset(sources) | kept, targets, kept, creates=first)


def stays(sources: Iterable[S]) -> Transition[S]:
    """Return the row of an event that is allowed in ``sources`` and leaves the state as it is."""
    return Transition(frozenset(sources))


def require(table: Table[S], aggregate: str, event_name: str, state: S) -> None:
    """Refuse an event that is not allowed from a state.

    Raises:
        IllegalTransitionError: names the aggregate's kind, the event and the state.
    """
    if state not in table[event_name].sources:
        raise IllegalTransitionError(aggregate, event_name, state)


def land(table: Table[S], event_name: str, state: S, choice: S | None = None) -> S:
    """Return the state after an event; never refuses, since it also runs on replay.

    Args:
        table: the aggregate's lifecycle.
        event_name: name of the event's class.
        state: the state before.
        choice: which of several targets; must be given exactly when the row has several.
    """
    row = table[event_name]
    if not row.targets or state in row.keeps:
        return state
    if choice is None:
        (target,) = row.targets
        return target
    assert choice in row.targets, f"{event_name} does not lead to {choice}"
    return choice


def _ordered(states: frozenset[S]) -> list[S]:
    return [state for state in type(next(iter(states))) if state in states] if states else []

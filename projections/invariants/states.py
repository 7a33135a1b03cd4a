"""Invariant 8: the state rebuilt from the log is the state that is served; and each event was allowed when it was written."""

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Protocol

from xce.domain.errors import BrokenLogError, NotFoundError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Recorded
from xce.domain.ports import AggregateSource
from xce.projections.invariants.report import Check, Invariant

#: Aggregates of which the last event was a while ago are compared and let go, so that no log is too long to be verified.
KEPT_MAX: Final = 5_000


class RebuiltView(Protocol):
    """A view that can be rebuilt from nothing and compared with the one that is served."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def see(self, recorded: Recorded) -> None:
        """Fold the next event into the view that is rebuilt."""
        ...

    def difference(self) -> str | None:
        """Return where it differs from the one that is served; None: nowhere."""
        ...


class States(Invariant):
    """Folds all aggregates event by event, and compares each with what loading it gives; likewise views."""

    NAME: ClassVar[str] = "invariant-8"
    TITLE: ClassVar[str] = "state rebuilt from the log equals the state in memory"

    def __init__(
        self, source: AggregateSource, views: Iterable[RebuiltView] = (), *, kept: int = KEPT_MAX
    ) -> None:
        super().__init__()
        self._kept = kept
        self._source = source
        self._views = tuple(views)
        #: By id, those that changed last at the end.
        self._aggregates: dict[str, Aggregate[Any]] = {}
        #: Those that will change again, but have not for a while.
        self._waiting: dict[str, Aggregate[Any]] = {}
        #: Those of which all that was stored has been seen. What is stored later is written under our eyes, and loads.
        self._settled: set[str] = set()
        self._given_up: set[str] = set()

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        aggregate_id = event.originator_id
        if aggregate_id not in self._given_up and aggregate_id not in self._settled:
            before = self._aggregates.pop(aggregate_id, None) or self._waiting.pop(
                aggregate_id, None
            )
            self._require_allowed(before, recorded)
            try:
                after = event.mutate(before)
            except (BrokenLogError, KeyError, AssertionError) as error:
                self._given_up.add(aggregate_id)
                self._find(f"it does not follow: {error}")
            else:
                assert after is not None
                self._aggregates[aggregate_id] = after
                if len(self._aggregates) > self._kept:
                    self._let_go(next(iter(self._aggregates)))
        for view in self._views:
            view.see(recorded)

    def _let_go(self, aggregate_id: str) -> None:
        rebuilt = self._aggregates.pop(aggregate_id)
        try:
            loaded = self._source.get(type(rebuilt), aggregate_id)
        except (NotFoundError, BrokenLogError):
            self._waiting[aggregate_id] = rebuilt  # said in the end
            return
        if loaded.version > rebuilt.version:
            self._waiting[aggregate_id] = rebuilt
            return
        self._compare(rebuilt, loaded)
        self._settled.add(aggregate_id)

    def _compare(self, rebuilt: Aggregate[Any], loaded: Aggregate[Any]) -> None:
        self._count()
        if loaded != rebuilt:
            self._tally.find(_difference(rebuilt, loaded), aggregate=rebuilt.id)

    def _require_allowed(self, before: Aggregate[Any] | None, recorded: Recorded) -> None:
        if before is None:
            return
        event_class = type(recorded.event)
        sources = (
            before.row_of(event_class).sources if event_class.AGGREGATE is type(before) else ()
        )
        if before.state not in sources:
            self._find(f"it is not allowed while the {before.KIND} is {before.state}")

    def end(self) -> Check:
        """Name what is left open, and return the outcome."""
        for rebuilt in (*self._waiting.values(), *self._aggregates.values()):
            try:
                loaded = self._source.get(type(rebuilt), rebuilt.id)
            except (NotFoundError, BrokenLogError) as error:
                self._count()
                self._tally.find(f"it cannot be loaded: {error}", aggregate=rebuilt.id)
            else:
                self._compare(rebuilt, loaded)
        for view in self._views:
            self._count()
            difference = view.difference()
            if difference is not None:
                self._tally.find(f"the view {view.name} differs: {difference}")
        return super().end()


def _difference(rebuilt: Aggregate[Any], loaded: Aggregate[Any]) -> str:
    mine, theirs = vars(rebuilt), vars(loaded)
    names = [
        name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)
    ]
    shown = "; ".join(
        f"{name.lstrip('_')} is {mine.get(name)!r}, loaded {theirs.get(name)!r}"[:200]
        for name in names[:3]
    )
    return f"loading it gives another state: {shown}"

"""Drains: the hosts that take no new work, and how far they are."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from xce.domain.events.ids import name_of
from xce.domain.provisioning.drain import AtDeadline, Drain, DrainState
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State


@dataclass(frozen=True, slots=True)
class DrainRow:
    """The drain of one host.

    Attributes:
        instance: of a provisioned host.
        yields: a job that is found after the closing opens the host again.
        since: when it was asked for.
        changed: when it came to be in this state.
        by: who asked.
        jobs: that were last found on it; none: it is empty, or nobody has looked.
    """

    host: str
    instance: str | None
    state: DrainState
    why: str
    yields: bool
    deadline: datetime | None
    at_deadline: AtDeadline
    since: datetime
    changed: datetime
    by: str
    jobs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Kept:
    rows: dict[str, DrainRow]


_KEEPER: Final = Keeper(_Kept)
_STATES: Final[dict[type[Drain.Event], DrainState]] = {
    Drain.Closed: DrainState.CLOSED,
    Drain.DeadlinePassed: DrainState.OVERDUE,
    Drain.Emptied: DrainState.EMPTY,
    Drain.Refilled: DrainState.CLOSED,
}


class Drains(Projection):
    """The drains under way at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, DrainRow] = {}
        self._on(Drain.Asked, self._asked)
        self._on(Drain.Closed, self._moved)
        self._on(Drain.DeadlinePassed, self._moved)
        self._on(Drain.Emptied, self._moved)
        self._on(Drain.Refilled, self._moved)
        self._on(Drain.SlippedIn, self._over)
        self._on(Drain.Cancelled, self._over)
        self._on(Drain.Ended, self._over)

    # -------------------------------------------------------------------- views
    def rows(self) -> tuple[DrainRow, ...]:
        """Return the drains under way, in the order they were asked for."""
        return tuple(self._rows.values())

    def of(self, host: str) -> DrainRow | None:
        """Return the drain of a host; None: none is under way."""
        return self._rows.get(host)

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {"drains": dict(self._rows)}

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(_Kept(self._rows))

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        self._rows = _KEEPER.load(kept).rows

    # -------------------------------------------------------------------- folds
    def _asked(self, event: Drain.Asked, position: int) -> None:
        host = name_of(event.originator_id)
        self._rows.pop(host, None)
        self._rows[host] = DrainRow(
            host=host,
            instance=event.instance,
            state=DrainState.ASKED,
            why=event.why,
            yields=event.yields,
            deadline=event.deadline,
            at_deadline=event.at_deadline,
            since=event.timestamp,
            changed=event.timestamp,
            by=event.by,
        )

    def _moved(self, event: Drain.Event, position: int) -> None:
        host = name_of(event.originator_id)
        jobs: tuple[str, ...] = ()
        if isinstance(event, (Drain.DeadlinePassed, Drain.Refilled)):
            jobs = event.jobs
        self._rows[host] = replace(
            self._rows[host], state=_STATES[type(event)], changed=event.timestamp, jobs=jobs
        )

    def _over(self, event: Drain.Event, position: int) -> None:
        del self._rows[name_of(event.originator_id)]

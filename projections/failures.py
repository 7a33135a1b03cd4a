"""Asks that failed one after the other, by provider and item, since the last one that was a success.

A success is a host that joined, or an amount that was lent: that a provider accepts an ask says little (field case F07). What
one request brings counts once, however many of its hosts fail.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.formats.error_codes import error_code
from xce.domain.formats.policy import FailureEntry
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.values import natural_key
from xce.projections.kept import Keeper, Pairs
from xce.projections.projection import Projection, State

#: Provider, and template or resource.
_Key = tuple[str, str]

_FAILED: Final = frozenset({RequestState.FAILED, RequestState.PARTIAL, RequestState.TIMED_OUT})


@dataclass(slots=True)
class FailureRow:
    """Failures of one item in a row.

    Attributes:
        refused: the last ask was not even accepted.
        at_once: the provider named an error code for the last one, or did nothing of it until its deadline: that alone leads to a pause.
    """

    in_a_row: int
    last_at: datetime
    refused: bool
    why: str
    at_once: bool = False


@dataclass(slots=True)
class _Ask:
    """A request that is open, or of which hosts are starting."""

    key: _Key
    accepted: bool = False
    counted: bool = False
    closed: bool = False
    starting: int = 0


@dataclass(frozen=True, slots=True)
class _Stop:
    """That a request ended, or an item was paused."""

    key: _Key
    at: datetime
    why: str


@dataclass(slots=True)
class _Kept:
    rows: Pairs[_Key, FailureRow]
    asks: dict[str, _Ask]
    starting: dict[str, tuple[str, str, str]]
    never_accepted: _Stop | None
    pause: _Stop | None


_KEEPER: Final = Keeper(_Kept)


class Failures(Projection):
    """The failures in a row at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[_Key, FailureRow] = {}
        self._asks: dict[str, _Ask] = {}
        #: Provider, template and request of each host that has neither joined nor failed.
        self._starting: dict[str, tuple[str, str, str]] = {}
        #: The last request that failed without having been accepted.
        self._never_accepted: _Stop | None = None
        self._pause: _Stop | None = None
        self._on(Request.Intended, self._intended)
        self._on(Request.Accepted, self._accepted)
        self._on(Request.InstanceGranted, self._brought)
        self._on(Request.MachineFailed, self._brought)
        self._on(Request.Closed, self._closed)
        self._on(Instance.Granted, self._granted)
        self._on(Instance.Joined, self._joined)
        self._on(Instance.JoinMissed, self._join_missed)
        self._on(Instance.Lost, self._lost)
        self._on(Grant.Granted, self._lent)
        self._on(Provider.Paused, self._paused)
        self._on(Provider.Resumed, self._resumed)

    # -------------------------------------------------------------------- views
    def view(self) -> tuple[FailureEntry, ...]:
        """Return the failures, by provider and item."""
        keys = sorted(self._rows, key=lambda key: (natural_key(key[0]), natural_key(key[1])))
        return tuple(
            FailureEntry.model_construct(
                provider=key[0],
                item=key[1],
                in_a_row=row.in_a_row,
                last_at=row.last_at,
                refused=row.refused,
                why=row.why,
                at_once=row.at_once,
            )
            for key in keys
            for row in (self._rows[key],)
        )

    def in_a_row(self, provider: str, item: str) -> int:
        """Return how often asks for an item failed since the last success."""
        row = self._rows.get((provider, item))
        return 0 if row is None else row.in_a_row

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "failures": {
                key: (row.in_a_row, row.last_at, row.refused, row.why, row.at_once)
                for key, row in self._rows.items()
            },
            "asks": {
                name: (ask.key, ask.accepted, ask.counted, ask.closed, ask.starting)
                for name, ask in self._asks.items()
            },
            "starting": dict(self._starting),
            "last": {"never accepted": self._never_accepted, "pause": self._pause},
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(
            _Kept(self._rows, self._asks, self._starting, self._never_accepted, self._pause)
        )

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._rows, self._asks, self._starting = parts.rows, parts.asks, parts.starting
        self._never_accepted, self._pause = parts.never_accepted, parts.pause

    # ----------------------------------------------------------------- requests
    def _intended(self, event: Request.Intended, position: int) -> None:
        self._asks[name_of(event.originator_id)] = _Ask((event.provider, event.item))

    def _accepted(self, event: Request.Accepted, position: int) -> None:
        if (ask := self._asks.get(name_of(event.originator_id))) is not None:
            ask.accepted = True

    def _brought(
        self, event: Request.InstanceGranted | Request.MachineFailed, position: int
    ) -> None:
        if (ask := self._asks.get(name_of(event.originator_id))) is not None:
            ask.starting += 1

    def _closed(self, event: Request.Closed, position: int) -> None:
        name = name_of(event.originator_id)
        ask = self._asks[name]
        ask.closed = True
        if event.outcome is RequestState.FAILED and not ask.accepted:
            self._never_accepted = _Stop(ask.key, event.timestamp, event.why)
            self._count_refusal()
        elif event.outcome in _FAILED and not ask.counted:
            ask.counted = True
            late = event.outcome is RequestState.TIMED_OUT and ask.accepted and not ask.starting
            told = error_code(event.why) is not None
            self._count(ask.key, event.timestamp, event.why, at_once=told or late)
        self._drop_if_over(name)

    def _paused(self, event: Provider.Paused, position: int) -> None:
        if event.item is not None:
            key = name_of(event.originator_id), event.item
            self._pause = _Stop(key, event.timestamp, event.why)
            self._count_refusal()

    def _count_refusal(self) -> None:
        """A pause that is saved with the end of a request, in either order, says that the provider refused it; an ask that was
        never made, or that may be repeated at once, pauses nothing.
        """
        pause = self._pause
        if pause is not None and pause == self._never_accepted:
            self._never_accepted = self._pause = None
            self._count(pause.key, pause.at, pause.why, refused=True)

    def _count(
        self, key: _Key, at: datetime, why: str, *, refused: bool = False, at_once: bool = False
    ) -> None:
        before = self._rows.get(key)
        many = 1 if before is None else before.in_a_row + 1
        self._rows[key] = FailureRow(many, at, refused, why, at_once)

    def _drop_if_over(self, name: str) -> None:
        ask = self._asks.get(name)
        if ask is not None and ask.closed and not ask.starting:
            del self._asks[name]

    # ---------------------------------------------------------------- instances
    def _granted(self, event: Instance.Granted, position: int) -> None:
        known = (event.provider, event.template, event.request_id)
        self._starting[name_of(event.originator_id)] = known

    def _joined(self, event: Instance.Joined, position: int) -> None:
        """A host that joined is a success, unless the request that brought it is itself among the failures: it fell short."""
        known = self._starting.get(name_of(event.originator_id))
        ask = None if known is None else self._asks.get(known[2])
        if ask is not None and ask.counted:
            self._no_longer_starting(event)
            return
        if (key := self._no_longer_starting(event)) is not None:
            self._rows.pop(key[:2], None)

    def _join_missed(self, event: Instance.JoinMissed, position: int) -> None:
        known = self._starting.get(name_of(event.originator_id))
        if known is None:
            return
        provider, template, request = known
        ask = self._asks.get(request)
        if ask is None or not ask.counted:
            self._count((provider, template), event.timestamp, event.why)
        if ask is not None:
            ask.counted = True
        self._no_longer_starting(event)

    def _lost(self, event: Instance.Lost, position: int) -> None:
        self._no_longer_starting(event)

    def _no_longer_starting(self, event: DomainEvent) -> tuple[str, str, str] | None:
        known = self._starting.pop(name_of(event.originator_id), None)
        if known is not None and (ask := self._asks.get(known[2])) is not None:
            ask.starting -= 1
            self._drop_if_over(known[2])
        return known

    # ------------------------------------------------------------------- others
    def _lent(self, event: Grant.Granted, position: int) -> None:
        self._rows.pop((event.provider, event.resource), None)

    def _resumed(self, event: Provider.Resumed, position: int) -> None:
        """Whoever ends a pause by hand wants it tried again as if nothing had been."""
        provider = name_of(event.originator_id)
        for key in [key for key in self._rows if key[0] == provider]:
            if event.item in (None, key[1]):
                del self._rows[key]

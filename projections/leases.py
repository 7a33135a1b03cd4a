"""Leases: who may act on each provider, under which epoch, since when. When a term ends is in the primary's memory, not here."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.provisioning.lease import LeaseState, ProviderLease
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """The lease of one provider.

    Attributes:
        holder: the present holder, or the last one.
        epoch: counts the holders, from 1.
        term: how long it is held without a renewal.
        since: when it came to be in this state under this epoch.
    """

    provider: str
    holder: str
    epoch: int
    state: LeaseState
    term: timedelta
    since: datetime


@dataclass(slots=True)
class _Kept:
    rows: dict[str, LeaseRow]


_KEEPER: Final = Keeper(_Kept)


class Leases(Projection):
    """The leases at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, LeaseRow] = {}
        self._on(ProviderLease.Granted, self._given)
        self._on(ProviderLease.TakenOver, self._given)
        self._on(ProviderLease.Regranted, self._given)
        self._on(ProviderLease.Released, self._released)
        self._on(ProviderLease.Lapsed, self._lapsed)

    # -------------------------------------------------------------------- views
    def rows(self) -> tuple[LeaseRow, ...]:
        """Return all leases there ever were, in the order of their first grant."""
        return tuple(self._rows.values())

    def of(self, provider: str) -> LeaseRow | None:
        """Return the lease of a provider; None: nobody ever held it."""
        return self._rows.get(provider)

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {"leases": dict(self._rows)}

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(_Kept(self._rows))

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        self._rows = _KEEPER.load(kept).rows

    # -------------------------------------------------------------------- folds
    def _given(
        self,
        event: ProviderLease.Granted | ProviderLease.TakenOver | ProviderLease.Regranted,
        position: int,
    ) -> None:
        provider = name_of(event.originator_id)
        self._rows[provider] = LeaseRow(
            provider, event.holder, event.epoch, LeaseState.HELD, event.term, event.timestamp
        )

    def _released(self, event: ProviderLease.Released, position: int) -> None:
        self._ended(event, LeaseState.RELEASED)

    def _lapsed(self, event: ProviderLease.Lapsed, position: int) -> None:
        self._ended(event, LeaseState.LAPSED)

    def _ended(self, event: DomainEvent, state: LeaseState) -> None:
        provider = name_of(event.originator_id)
        row = self._rows[provider]
        self._rows[provider] = LeaseRow(
            provider, row.holder, row.epoch, state, row.term, event.timestamp
        )

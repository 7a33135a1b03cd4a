"""Asks of the last day: how many hosts were asked of whom, and when; for bounds on how fast is asked.

What became of an ask does not matter: one that failed was made all the same. Asks of one minute are counted together.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from xce.domain.formats.policy import LONGEST_RATE, AskedEntry
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.request import Request
from xce.domain.values import natural_key
from xce.projections.kept import Keeper, Pairs
from xce.projections.projection import Projection, State

#: Provider, template, project and minute since 1970.
_Key = tuple[str, str, str | None, int]

_MINUTE_S: Final = 60
#: Older asks are shown by quarters of an hour, so that a whole day of them is a short list.
_RECENT: Final = timedelta(hours=1)
_COARSE: Final = 15


@dataclass(slots=True)
class AskRow:
    """Hosts that were asked in one minute, and when the last of them was."""

    hosts: int
    asked_at: datetime


@dataclass(slots=True)
class _Kept:
    rows: Pairs[_Key, AskRow]


_KEEPER: Final = Keeper(_Kept)


class RecentAsks(Projection):
    """The asks for hosts of the day before the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[_Key, AskRow] = {}
        self._on(Request.Intended, self._intended)

    # -------------------------------------------------------------------- views
    def view(self, now: datetime) -> tuple[AskedEntry, ...]:
        """Return what was asked within the last day; what is counted together goes by its last ask, so that it counts too long
        rather than too short.
        """
        merged: dict[_Key, AskRow] = {}
        for (provider, template, project, minute), row in self._rows.items():
            age = now - row.asked_at
            if age >= LONGEST_RATE:
                continue
            if age >= _RECENT:
                minute -= minute % _COARSE
            key = (provider, template, project, minute)
            known = merged.get(key)
            if known is None:
                merged[key] = AskRow(row.hosts, row.asked_at)
            else:
                known.hosts += row.hosts
                known.asked_at = max(known.asked_at, row.asked_at)
        keys = sorted(
            merged,
            key=lambda key: (key[3], *map(natural_key, key[:2]), natural_key(key[2] or "")),
        )
        return tuple(
            AskedEntry.model_construct(
                provider=key[0],
                template=key[1],
                hosts=merged[key].hosts,
                asked_at=merged[key].asked_at,
                project=key[2],
            )
            for key in keys
        )

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {"asks": {key: (row.hosts, row.asked_at) for key, row in self._rows.items()}}

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(_Kept(self._rows))

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        self._rows = _KEEPER.load(kept).rows

    # -------------------------------------------------------------------- folds
    def _intended(self, event: Request.Intended, position: int) -> None:
        if event.kind is not Kind.HOST:
            return
        at = event.timestamp
        key = (event.provider, event.item, event.project, int(at.timestamp()) // _MINUTE_S)
        row = self._rows.get(key)
        if row is None:
            self._rows[key] = AskRow(event.amount, at)
            self._forget(at)
        else:
            row.hosts += event.amount
            row.asked_at = max(row.asked_at, at)

    def _forget(self, now: datetime) -> None:
        """Drop what nobody looks back to, from the oldest on."""
        while (first := next(iter(self._rows))) and (
            now - self._rows[first].asked_at >= LONGEST_RATE
        ):
            del self._rows[first]

"""Hosts that vanished: how many of a provider's were lost of late without our doing, and how many have joined since.

Whoever loses many at once (a region without power, an account that was closed) is not asked for all of them again at once.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from xce.domain.events.base import DomainEvent
from xce.domain.formats.policy import LossEntry
from xce.domain.provisioning.instance import Instance
from xce.domain.values import natural_key
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State

#: Losses that are so far apart did not happen together.
TOGETHER: Final = timedelta(hours=1)


@dataclass(slots=True)
class LossRow:
    """Hosts that were lost one after the other.

    Attributes:
        first_at: when the first of them was.
        joined: hosts of the provider that joined after the last of them.
    """

    hosts: int
    first_at: datetime
    last_at: datetime
    joined: int = 0


@dataclass(slots=True)
class _Kept:
    rows: dict[str, LossRow]
    serving: dict[str, str]
    providers: dict[str, str] = field(default_factory=dict[str, str])


_KEEPER: Final = Keeper(_Kept)


class Losses(Projection):
    """The losses at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, LossRow] = {}
        #: The provider of each host that starts or works: what goes back anyhow is no loss.
        self._serving: dict[str, str] = {}
        #: The provider of each host that exists: an id need not say it.
        self._providers: dict[str, str] = {}
        self._on(Instance.Granted, self._granted)
        self._on(Instance.Joined, self._joined)
        self._on(Instance.Reopened, self._reopened)
        self._on(Instance.JoinMissed, self._leaves)
        self._on(Instance.DrainStarted, self._leaves)
        self._on(Instance.Returned, self._returned)
        self._on(Instance.Lost, self._lost)

    # -------------------------------------------------------------------- views
    def view(self) -> tuple[LossEntry, ...]:
        """Return the last losses of each provider, by its name."""
        return tuple(
            LossEntry.model_construct(
                provider=provider,
                hosts=row.hosts,
                last_at=row.last_at,
                joined_since=row.joined,
            )
            for provider, row in sorted(self._rows.items(), key=lambda pair: natural_key(pair[0]))
        )

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "losses": {
                provider: (row.hosts, row.first_at, row.last_at, row.joined)
                for provider, row in self._rows.items()
            },
            "serving": dict(self._serving),
            "providers": dict(self._providers),
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(_Kept(self._rows, self._serving, self._providers))

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._rows, self._serving, self._providers = parts.rows, parts.serving, parts.providers

    # -------------------------------------------------------------------- folds
    def _granted(self, event: Instance.Granted, position: int) -> None:
        self._serving[event.originator_id] = event.provider
        self._providers[event.originator_id] = event.provider

    def _joined(self, event: Instance.Joined, position: int) -> None:
        provider = self._providers[event.originator_id]
        self._serving[event.originator_id] = provider
        if (row := self._rows.get(provider)) is not None:
            row.joined += 1

    def _reopened(self, event: Instance.Reopened, position: int) -> None:
        self._serving[event.originator_id] = self._providers[event.originator_id]

    def _leaves(self, event: DomainEvent, position: int) -> None:
        self._serving.pop(event.originator_id, None)

    def _returned(self, event: Instance.Returned, position: int) -> None:
        self._leaves(event, position)
        self._providers.pop(event.originator_id, None)

    def _lost(self, event: Instance.Lost, position: int) -> None:
        provider = self._serving.pop(event.originator_id, None)
        self._providers.pop(event.originator_id, None)
        if provider is None:
            return
        at = event.timestamp
        row = self._rows.get(provider)
        if row is None or at - row.first_at >= TOGETHER:
            self._rows[provider] = LossRow(1, at, at)
        else:
            row.hosts += 1
            row.last_at, row.joined = max(row.last_at, at), 0

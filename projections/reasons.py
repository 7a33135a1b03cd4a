"""Orphans that somebody has to do something about, the newest decisions, and what holds for the whole site."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from xce.domain.events.ids import name_of
from xce.domain.provisioning.configuration import Configuration
from xce.domain.provisioning.decision import Decision, Deed
from xce.domain.provisioning.orphan import Orphan, OrphanKind, OrphanState
from xce.domain.provisioning.site import Site
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State

#: Decisions that are kept in memory; the log has them all.
DECISIONS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class OrphanRow:
    """One thing that nobody owns.

    Attributes:
        theirs: the provider's id of it.
        found: when it was reported.
        return_id: the return under way.
    """

    provider: str
    theirs: str
    kind: OrphanKind
    state: OrphanState
    tag: str | None
    why: str
    found: datetime
    return_id: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision that changed something."""

    decision: str
    position: int
    at: datetime
    by: str
    provider: str
    deed: Deed
    item: str | None
    amount: int
    reason: str
    jobs: tuple[str, ...]
    demand_position: int
    cost_per_hour: Decimal | None
    led_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteRow:
    """What holds for the whole site.

    Attributes:
        frozen: nothing new is asked, drained or given back.
        why: of the freeze.
        since: of the freeze; None: it is not frozen.
        by: who froze it.
        configurations: by daemon, the digest of what it works with.
    """

    frozen: bool = False
    why: str = ""
    since: datetime | None = None
    by: str = ""
    configurations: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Kept:
    orphans: dict[str, OrphanRow]
    decisions: dict[str, DecisionRow]
    site: SiteRow


_KEEPER: Final = Keeper(_Kept)


class Reasons(Projection):
    """Orphans, decisions and the site at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._orphans: dict[str, OrphanRow] = {}
        self._decisions: dict[str, DecisionRow] = {}
        self._site = SiteRow()
        self._on(Orphan.Found, self._found)
        self._on(Orphan.ReturnIntended, self._return_intended)
        self._on(Orphan.ReturnRefused, self._return_refused)
        self._on(Orphan.Adopted, self._settled)
        self._on(Orphan.Dismissed, self._settled)
        self._on(Orphan.Vanished, self._settled)
        self._on(Decision.Made, self._made)
        self._on(Site.Frozen, self._frozen)
        self._on(Site.Unfrozen, self._unfrozen)
        self._on(Configuration.Changed, self._configured)

    # -------------------------------------------------------------------- views
    @property
    def site(self) -> SiteRow:
        """What holds for the whole site."""
        return self._site

    def orphans(self) -> tuple[OrphanRow, ...]:
        """Return the orphans that are open, in the order they were found."""
        return tuple(self._orphans.values())

    def decisions(self) -> tuple[DecisionRow, ...]:
        """Return the newest decisions, oldest first."""
        return tuple(self._decisions.values())

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "orphans": dict(self._orphans),
            "decisions": dict(self._decisions),
            "site": {"site": self._site},
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(_Kept(self._orphans, self._decisions, self._site))

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._orphans, self._decisions, self._site = parts.orphans, parts.decisions, parts.site

    # -------------------------------------------------------------------- folds
    def _found(self, event: Orphan.Found, position: int) -> None:
        self._orphans.pop(event.originator_id, None)
        self._orphans[event.originator_id] = OrphanRow(
            event.provider,
            event.theirs,
            event.kind,
            OrphanState.REPORTED,
            event.tag,
            event.why,
            event.timestamp,
        )

    def _return_intended(self, event: Orphan.ReturnIntended, position: int) -> None:
        self._orphans[event.originator_id] = replace(
            self._orphans[event.originator_id],
            state=OrphanState.RETURNING,
            return_id=event.return_id,
            why=event.why,
        )

    def _return_refused(self, event: Orphan.ReturnRefused, position: int) -> None:
        self._orphans[event.originator_id] = replace(
            self._orphans[event.originator_id],
            state=OrphanState.REPORTED,
            return_id=None,
            why=event.why,
        )

    def _settled(
        self, event: Orphan.Adopted | Orphan.Dismissed | Orphan.Vanished, position: int
    ) -> None:
        self._orphans.pop(event.originator_id, None)

    def _made(self, event: Decision.Made, position: int) -> None:
        name = name_of(event.originator_id)
        self._decisions[name] = DecisionRow(
            decision=name,
            position=position,
            at=event.timestamp,
            by=event.by,
            provider=event.provider,
            deed=event.deed,
            item=event.item,
            amount=event.amount,
            reason=event.reason,
            jobs=event.jobs,
            demand_position=event.demand_position,
            cost_per_hour=event.cost_per_hour,
            led_to=event.led_to,
        )
        if len(self._decisions) > DECISIONS_MAX:
            del self._decisions[next(iter(self._decisions))]

    def _frozen(self, event: Site.Frozen, position: int) -> None:
        self._site = replace(
            self._site, frozen=True, why=event.why, since=event.timestamp, by=event.by
        )

    def _unfrozen(self, event: Site.Unfrozen, position: int) -> None:
        self._site = replace(self._site, frozen=False, why="", since=None, by="")

    def _configured(self, event: Configuration.Changed, position: int) -> None:
        known = {**dict(self._site.configurations), name_of(event.originator_id): event.digest}
        self._site = replace(self._site, configurations=tuple(sorted(known.items())))

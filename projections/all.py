"""All projections, at one position of one log."""

from collections.abc import Iterable, Mapping
from typing import Self

from xce.domain.events.base import DomainEvent
from xce.domain.events.recorded import Recorded
from xce.domain.formats.snapshot import Template
from xce.domain.ports import EventLog
from xce.projections.alerts import Alerts
from xce.projections.asks import RecentAsks
from xce.projections.catalog import LiveCatalog
from xce.projections.drains import Drains
from xce.projections.failures import Failures
from xce.projections.inventory import LiveInventory
from xce.projections.job_asks import JobAsks
from xce.projections.leases import Leases
from xce.projections.losses import Losses
from xce.projections.projection import Handler, Projection, State
from xce.projections.reasons import Reasons
from xce.projections.spending import Spending
from xce.projections.totals import SharedTotals


class Projections:
    """What sessions, policy and people read of the log, all of it at one position.

    Attributes:
        totals: owned, borrowed, total and in flight of each shared resource.
        inventory: all that is asked, owned or owed and not ended.
        catalog: what could be obtained, and what is on its way.
        spending: what it cost, and costs per hour.
        leases: who may act on each provider.
        drains: hosts that take no new work.
        reasons: orphans, decisions, and what holds for the whole site.
        asks: hosts asked within the last day.
        failures: asks that failed one after the other.
        losses: hosts that were lost of late.
        alerts: what is alerted of, and who was told.
        job_asks: which requests were made for a job.
    """

    def __init__(self, templates: Iterable[Template] = ()) -> None:
        """Start with nothing folded; ``templates`` are the static parts that the cluster's configuration sets."""
        self.totals = SharedTotals()
        self.inventory = LiveInventory()
        self.catalog = LiveCatalog(self.inventory, self.totals, templates)
        self.spending = Spending()
        self.leases = Leases()
        self.drains = Drains()
        self.reasons = Reasons()
        self.asks = RecentAsks()
        self.failures = Failures()
        self.losses = Losses()
        self.alerts = Alerts()
        self.job_asks = JobAsks()
        self._position = 0
        self._handlers: dict[type[DomainEvent], tuple[Handler, ...]] = {}
        for projection in self.each().values():
            for event_class, handle in projection.handlers.items():
                before = self._handlers.get(event_class, ())
                self._handlers[event_class] = (*before, handle)

    @classmethod
    def rebuild(
        cls, log: EventLog, *, upto: int | None = None, templates: Iterable[Template] = ()
    ) -> Self:
        """Return the projections of a log, from its first event to the position ``upto`` or its end.

        Raises:
            BrokenLogError: an event cannot be read.
        """
        made = cls(templates)
        made.apply(log.read(0, upto))
        return made

    @classmethod
    def resumed(
        cls, position: int, kept: Mapping[str, bytes], templates: Iterable[Template] = ()
    ) -> Self:
        """Return the projections as they stood at a position, from what ``keep`` returned there.

        Raises:
            ValueError: this is not what ``keep`` returned in this release.
        """
        made = cls(templates)
        if kept.keys() != made.each().keys():
            raise ValueError(f"found {', '.join(kept)}; wanted {', '.join(made.each())}")
        for name, projection in made.each().items():
            projection.resume(kept[name])
            projection.position = position
        made._position = position
        return made

    def keep(self) -> dict[str, bytes]:
        """Return all that was folded as JSON, by projection, for ``resumed``."""
        return {name: projection.keep() for name, projection in self.each().items()}

    @property
    def position(self) -> int:
        """Position of the last event that was folded; 0: none was."""
        return self._position

    def each(self) -> dict[str, Projection]:
        """Return the projections by name."""
        return {
            "totals": self.totals,
            "inventory": self.inventory,
            "catalog": self.catalog,
            "spending": self.spending,
            "leases": self.leases,
            "drains": self.drains,
            "reasons": self.reasons,
            "asks": self.asks,
            "failures": self.failures,
            "losses": self.losses,
            "alerts": self.alerts,
            "job_asks": self.job_asks,
        }

    def apply(self, batch: Iterable[Recorded]) -> None:
        """Fold events, each of them behind the position reached. Nobody may read in between."""
        handlers = self._handlers
        position = self._position
        for recorded in batch:
            assert recorded.position > position, "events come once, in the order of the log"
            position = recorded.position
            for handle in handlers.get(type(recorded.event), ()):
                handle(recorded.event, position)
        self._position = position
        for projection in self.each().values():
            projection.position = position

    def state(self) -> dict[str, State]:
        """Return all that was folded as a comparable value, by projection."""
        return {name: projection.state() for name, projection in self.each().items()}

    def difference(self, other: "Projections") -> str | None:
        """Return the first place where the state differs from another's; None: they are equal (invariant 8)."""
        if self.position != other.position:
            return f"position {self.position} and {other.position}"
        mine, theirs = self.state(), other.state()
        for name, parts in mine.items():
            for part, values in parts.items():
                others = theirs[name][part]
                for key in [*values, *(key for key in others if key not in values)]:
                    if values.get(key) != others.get(key):
                        return (
                            f"{name}, {part}: {key} is {values.get(key)!r}, not {others.get(key)!r}"
                        )
        return None


class RebuiltProjections:
    """The projections built anew from the log, event by event, to be compared with those that are served (invariant 8)."""

    name = "projections"

    def __init__(self, served: Projections, templates: Iterable[Template] = ()) -> None:
        self._served = served
        self._rebuilt = Projections(templates)

    def see(self, recorded: Recorded) -> None:
        """Fold the next event."""
        self._rebuilt.apply((recorded,))

    def difference(self) -> str | None:
        """Return where what was rebuilt differs from what is served; None: nowhere."""
        return self._rebuilt.difference(self._served)

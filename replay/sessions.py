"""What each session of a simulated world is shown, and what the policy is handed with its result."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.delta import (
    NO_CATALOG_CHANGES,
    Changes,
    Delta,
    catalog_changes,
    going_on,
)
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Catalog, Shared, Snapshot
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.outcome import Outcome
from xce.projections.all import Projections
from xce.replay.cluster import SimulatedCluster
from xce.replay.shared_use import SharedUse

_NO_AMOUNTS: Final = Changes[Shared]()


class Sessions:
    """The sessions of one life of the process: the first from a snapshot, each other from what is different."""

    def __init__(
        self,
        config: SimulationConfig,
        cluster: SimulatedCluster,
        shared: SharedUse,
        projections: Projections,
        now: datetime,
        *,
        trace: bool = False,
    ) -> None:
        self._config = config
        self._trace = trace
        self._settings = config.policy.settings()
        self._rated = any(budget.max_asked is not None for budget in config.policy.budgets)
        self._zones = config.policy.zones()
        self._cluster = cluster
        self._shared = shared
        self._projections = projections
        self._cluster.taken_changes()
        self._scheduler = Scheduler(self._first_snapshot(now))
        self._seen_catalog = Catalog()

    def run(self, now: datetime) -> tuple[Snapshot, Outcome]:
        """Have one; return what it was shown, and what came of it."""
        self._scheduler.advance(self._delta(now))
        return self._scheduler.snapshot, self._scheduler.outcome(trace=self._trace)

    def inputs(
        self, snapshot: Snapshot, result: SessionResult, wants: Mapping[str, int], now: datetime
    ) -> PolicyInput:
        """Return what the policy is handed after a session."""
        known = self._projections
        return PolicyInput.model_construct(
            format="xce.policy/1",
            now=now,
            position=snapshot.position,
            computed_at=snapshot.now,
            demand=result.demand,
            idle=result.idle,
            providers=known.catalog.descriptions(),
            inventory=known.inventory.view(),
            budgets=self._config.policy.budgets,
            pauses=known.catalog.pauses(now),
            asked=known.asks.view(now) if self._rated else (),
            failures=known.failures.view(),
            losses=known.losses.view(),
            spent=known.spending.this_far(self._zones, now),
            shared=self._shared.terms(wants, now),
            settings=self._settings
            if not known.reasons.site.frozen
            else self._settings.model_copy(update={"freeze": True}),
        )

    def _first_snapshot(self, now: datetime) -> Snapshot:
        cluster = self._config.cluster
        return Snapshot.model_construct(
            format="xce.snapshot/1",
            now=now,
            position=self._projections.position,
            hosts=self._cluster.hosts(),
            shared=self._shared.shown(now),
            queues=cluster.queues,
            limits=cluster.limits,
            quotas=cluster.quotas,
            groups=cluster.groups,
            running=self._cluster.running(),
            pending=self._cluster.pending(),
            catalog=Catalog(),
            settings=self._config.session,
        )

    def _delta(self, now: datetime) -> Delta:
        """Return what is different from the last session: totals and supply by the projections, the rest by the cluster."""
        before = self._scheduler.snapshot
        hosts, pending, running = self._cluster.taken_changes()
        shared = self._shared.shown(now)
        put = [new for new, old in zip(shared, before.shared, strict=True) if new != old]
        catalog = self._projections.catalog.view(now)
        supply = NO_CATALOG_CHANGES
        if catalog is not self._seen_catalog:
            supply = catalog_changes(before.catalog, catalog)
            self._seen_catalog = catalog
        return going_on(
            before,
            now=now,
            position=self._projections.position,
            hosts=hosts,
            shared=Changes[Shared](put=tuple(put)) if put else _NO_AMOUNTS,
            running=running,
            pending=pending,
            catalog=supply,
        )

"""When the next session of a simulated world is due by time alone."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.policy import Decision, DecisionKind
from xce.domain.policy.renewal import renewal_due
from xce.projections.all import Projections
from xce.replay.cluster import SimulatedCluster
from xce.replay.shared_use import SharedUse
from xce.replay.timetable import Timetable


class Around(Protocol):
    """What of a world it depends on."""

    config: SimulationConfig
    cluster: SimulatedCluster
    shared: SharedUse

    @property
    def now(self) -> datetime:
        """The time."""
        ...

    @property
    def projections(self) -> Projections:
        """What the log says."""
        ...


def plan_next_session(world: Around, time: Timetable, decisions: Iterable[Decision]) -> None:
    """Wake when time alone changes something, and look again while something is held back."""
    now, cluster, config = world.now, world.cluster, world.config
    idle_after = config.session.idle_host_after
    for host in cluster.provisioned():
        if host.idle_since is not None:
            due = host.idle_since + idle_after
            if due > now:
                time.wake_at(due)
    for change in world.shared.next_changes(now):
        time.wake_at(change)
    for pause in world.projections.catalog.pauses(now):
        time.wake_at(pause.until)
    for grant in world.projections.inventory.view().grants:
        renewal = renewal_due(grant)
        if renewal is not None and renewal > now:
            time.wake_at(renewal)
    passed = cluster.next_threshold(config.cluster.queues, now)
    if passed is not None:
        time.wake_at(passed)
    if any(decision.kind is DecisionKind.HOLD for decision in decisions):
        time.wake_at(now + config.driver.review_interval)

"""Why nothing was asked for what is wanted: what the policy has held back, and in its own words why."""

from datetime import datetime

from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.simulation import JobsWhy, RoundCounts
from xce.replay.workloads.workload import WorkloadJob


class HeldBack:
    """Told of the rounds of the policy; remembers the asks that the last one which held any back did not make."""

    def __init__(self) -> None:
        self._rounds = 0
        self._wanting = 0
        self._held = 0
        self._last: tuple[datetime, tuple[Decision, ...]] | None = None

    def decided(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """See ``RoundWatcher.decided``."""
        self._rounds += 1
        if inputs.demand.hosts or any(entry.amount for entry in inputs.demand.countable):
            self._wanting += 1
        held = tuple(one for one in decisions if one.kind is DecisionKind.HOLD and one.jobs)
        if held:
            self._held += 1
            self._last = inputs.now, held

    def counts(self) -> RoundCounts | None:
        """Return what there was; None: there were no rounds."""
        if not self._rounds:
            return None
        at, held = self._last or (None, ())
        return RoundCounts(
            rounds=self._rounds,
            wanting=self._wanting,
            holding=self._held,
            held_at=at,
            held=tuple(JobsWhy(why=one.reason, jobs=one.jobs) for one in held),
        )

    # ---------------------------------------------------------- other things told
    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""

    def session(self, snapshot: object, result: object) -> None:
        """See ``Watcher.session``."""

    def outcome(self, snapshot: object, outcome: object) -> None:
        """See ``OutcomeWatcher.outcome``."""

"""A run of a scenario that stands still, goes on and is made again.

What was done to it is its journal, and nothing else decides how it goes: the same scenario, seed and journal give the same run. So a
fork is a copy of the journal, and a recording of what has been is made by doing it again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from xce.domain.events.recorded import Recorded
from xce.domain.formats.interventions import Intervention
from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.formats.scenario import Scenario
from xce.domain.formats.session_result import Allocation, SessionResult
from xce.domain.formats.snapshot import Host, PendingJob, RunningJob, Snapshot
from xce.domain.ports import EventLog
from xce.projections.all import Projections
from xce.replay.history import History
from xce.replay.providers import SimulatedProvider
from xce.replay.recorded import RecordedProvider, RecordedSessions
from xce.replay.recording import RecordingWriter
from xce.replay.scenario.acts import Done
from xce.replay.scenario.run import Runner
from xce.replay.workloads.workload import Workload, WorkloadJob


@dataclass(frozen=True, slots=True)
class Site:
    """What a run begins with.

    Attributes:
        jobs: of the file that the scenario names; None: it names none.
        seed: in place of the scenario's; None: the scenario's.
    """

    scenario: Scenario
    jobs: Workload | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """So many moments happened."""

    count: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passed to then, and nothing happened."""

    until: datetime


#: What is done to a run: moments, waits, and what somebody does in between.
Move = Steps | Wait | Intervention
Journal = tuple[Move, ...]


class Seen:
    """The newest session, how many there were, and how often each job started and ended.

    Attributes:
        allocations: of all sessions at the time of the newest one.
        decisions: of all rounds at that time.
    """

    def __init__(self) -> None:
        self.sessions = 0
        self.starts = Counter[str]()
        self.ends = Counter[str]()
        self.snapshot: Snapshot | None = None
        self.result: SessionResult | None = None
        self.allocations: tuple[Allocation, ...] = ()
        self.decisions: tuple[Decision, ...] = ()

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""
        self.starts[job.id] += 1

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""
        self.ends[job.id] += 1

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """See ``Watcher.session``."""
        self.sessions += 1
        if self.snapshot is None or self.snapshot.now != snapshot.now:
            self.allocations, self.decisions = (), ()
        self.snapshot, self.result = snapshot, result
        self.allocations += result.allocations

    def decided(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """See ``RoundWatcher.decided``."""
        self.decisions += decisions


class Play:
    """One run, and what was done to it."""

    def __init__(self, site: Site, log: EventLog, *, record: RecordingWriter | None = None) -> None:
        """Stand before the first moment; ``record`` keeps what is seen and said from there on."""
        self.site = site
        self.log = log
        self.seen = Seen()
        self._moves: list[Move] = []
        self._steps = 0
        self._over = False
        self._recorded = None if record is None else RecordedSessions(record, log)
        self.runner = Runner(
            site.scenario,
            log,
            file=site.jobs,
            seed=site.seed,
            watchers=(self.seen,) if self._recorded is None else (self.seen, self._recorded),
            make_provider=SimulatedProvider
            if record is None
            else lambda config, seed: RecordedProvider(config, seed, record),
        )
        self.world = self.runner.world
        self.world.begin(site.scenario.end)
        self.runner.catch_up()

    @property
    def now(self) -> datetime:
        """The time."""
        return self.world.now

    @property
    def projections(self) -> Projections:
        """See ``Stand``."""
        return self.world.projections

    @property
    def history(self) -> History:
        """See ``Stand``."""
        return self.runner.gauge.history

    @property
    def events(self) -> Sequence[Recorded]:
        """See ``Stand``."""
        return self.runner.gauge.events

    @property
    def running(self) -> tuple[RunningJob, ...]:
        """See ``Stand``."""
        return self.world.cluster.running()

    @property
    def pending(self) -> tuple[PendingJob, ...]:
        """See ``Stand``."""
        return self.world.cluster.pending()

    @property
    def hosts(self) -> tuple[Host, ...]:
        """See ``Stand``."""
        return self.world.cluster.hosts()

    def fate(self, job: str) -> str:
        """See ``Stand``."""
        if any(one.id == job for one in self.pending):
            return "waits, and no session has seen it yet"
        if self.seen.ends[job]:
            return "has ended"
        if not self.seen.starts[job] and any(one.id == job for one in self.world.workload.jobs):
            return "has not been submitted yet, or was taken out"
        return "was taken out"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self._over

    @property
    def journal(self) -> Journal:
        """What was done to it so far."""
        return (*self._moves, Steps(self._steps)) if self._steps else tuple(self._moves)

    # ------------------------------------------------------------------- moves
    def step(self) -> bool:
        """Let everything of the next time happen; return False where there is none any more."""
        if self._over:
            return False
        self._steps += 1
        self._over = not self.world.step()
        while self.world.next_time == self.now and self.world.step():
            pass
        self.runner.catch_up()
        return not self._over

    def wait(self, until: datetime) -> None:
        """Let time pass to then; nothing is to happen before."""
        if until > self.now:
            self._note(Wait(until))
            self.world.wait(until)

    def act(self, act: Intervention) -> Done:
        """Do something now; what is not possible changes nothing."""
        done = self.runner.interfere(act)
        if not done.refused:
            self._note(act)
            self._over = False
        return done

    def follow(self, journal: Journal, told: Callable[[], None] = lambda: None) -> None:
        """Do what a journal says; ``told`` hears of each moment."""
        for move in journal:
            match move:
                case Steps(count=count):
                    for _ in range(count):
                        self.step()
                        told()
                case Wait(until=until):
                    self.wait(until)
                case _:
                    self.act(move)

    def finish_recording(self) -> None:
        """Record what came after the last session."""
        if self._recorded is not None:
            self._recorded.finish()

    def _note(self, move: Move) -> None:
        if self._steps:
            self._moves.append(Steps(self._steps))
            self._steps = 0
        self._moves.append(move)

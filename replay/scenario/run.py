"""One run of a scenario, and its verdicts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

from xce.domain.events.base import DomainEvent
from xce.domain.events.recorded import Recorded
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.interventions import Intervention
from xce.domain.formats.scenario import Moment, Scenario, ScenarioResult, Verdict
from xce.domain.formats.simulation import SimulationReport
from xce.domain.ports import EventLog
from xce.replay.history import History
from xce.replay.licence_servers import LicenceServer
from xce.replay.providers import SimulatedProvider
from xce.replay.scenario.acts import Acts, Done
from xce.replay.scenario.gauge import Gauge
from xce.replay.scenario.judge import Case, Judge, words
from xce.replay.scenario.truths import Truths
from xce.replay.scenario.work import workload_of
from xce.replay.statistics import Statistics
from xce.replay.workloads.workload import Workload, WorkloadJob
from xce.replay.world import Watcher, World

#: What is shown of the time around a failure: so many moments before it and behind it.
BEFORE: Final = 12
BEHIND: Final = 5
_COMMON: Final = frozenset(("originator_id", "originator_version", "timestamp", "by", "epoch"))


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A run that is over."""

    name: str
    report: SimulationReport
    verdicts: tuple[Verdict, ...]
    statistics: Statistics
    history: History
    starts: tuple[tuple[str, datetime], ...]
    events: tuple[Recorded, ...]
    moments: tuple[Moment, ...]

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return all(verdict.passed for verdict in self.verdicts)

    def result(self) -> ScenarioResult:
        """Return the run as a document."""
        return ScenarioResult(
            name=self.name, passed=self.passed, verdicts=self.verdicts, report=self.report
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the story of a run: so many events, and so many other things."""

    events: int
    told: int


class _Diary:
    """Jobs as they come and go, and what was done to the site, for the time around a failure."""

    def __init__(self, position: Callable[[], int]) -> None:
        self._position = position
        self._told: list[tuple[int, Moment]] = []
        self.starts: list[tuple[str, datetime]] = []

    def tell(self, at: datetime, what: str) -> None:
        """Note something that is no event of the log."""
        self._told.append((self._position(), Moment(at=at, what=what)))

    @property
    def told(self) -> int:
        """How many things were noted."""
        return len(self._told)

    def moments(self, events: Iterable[Recorded], since: int = 0) -> tuple[Moment, ...]:
        """Return events, and what was noted after the first ``since`` things, in their order."""
        told = [
            (
                entry.position,
                Moment(
                    at=entry.event.timestamp, position=entry.position, what=event_words(entry.event)
                ),
            )
            for entry in events
        ]
        both = sorted((*told, *self._told[since:]), key=lambda one: (one[1].at, one[0]))
        return tuple(moment for _, moment in both)

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""
        self.tell(at, f"job {job.id} starts")
        self.starts.append((job.id, at))

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""
        self.tell(at, f"job {job.id} ends")

    def stopped(self, job: WorkloadJob, at: datetime) -> None:
        """See ``StopWatcher.stopped``."""
        self.tell(at, f"job {job.id} is stopped and queued again")

    def noted(self, what: str, at: datetime) -> None:
        """See ``NoteWatcher.noted``."""
        self.tell(at, what)

    def session(self, snapshot: object, result: object) -> None:
        """See ``Watcher.session``."""


class Runner:
    """A scenario that can be run once."""

    def __init__(
        self,
        scenario: Scenario,
        log: EventLog,
        *,
        file: Workload | None = None,
        seed: int | None = None,
        watchers: Iterable[Watcher] = (),
        make_provider: Callable[[Any, int], SimulatedProvider] = SimulatedProvider,
    ) -> None:
        self.scenario = scenario
        self.config: SimulationConfig = scenario.config(seed)
        seed = self.config.driver.seed
        self.workload = workload_of(scenario, file, seed)
        self._log = log
        self._statistics = Statistics(self.config, self.workload)
        self.gauge = Gauge()
        self._truths = Truths() if scenario.truths_checked else None
        truths = () if self._truths is None else (self._truths,)
        self._diary = _Diary(lambda: self.world.projections.position)
        servers = {one.name: LicenceServer(one, seed) for one in scenario.servers}
        providers = {one.name: make_provider(one, seed) for one in self.config.providers}
        self.world = World(
            self.config,
            self.workload,
            log,
            providers,
            watchers=(*self._statistics.watchers(), self.gauge, self._diary, *truths, *watchers),
            servers=servers.values(),
            provisioners=scenario.provisioners,
        )
        self.gauge.attach(self.world)
        if self._truths is not None:
            self._truths.attach(self.world)
        self._judge = Judge(scenario.expect, self.gauge, scenario.start)
        self._read = 0
        self._acts = Acts(self.world, servers)
        self._acts.prepare(scenario.timeline, self._tell)
        self.world.after_each(self._look)

    def run(self, progress: Callable[[int], None] = lambda ended: None) -> ScenarioRun:
        """Run to the end."""
        self.world.run(progress, self.scenario.end)
        return self.finished()

    def interfere(self, act: Intervention) -> Done:
        """Do something that the timeline does not have, now; return what was done, or could not be."""
        done: list[Done] = []
        self.world.interfere(partial(self._acts.carry_out, act, done.append))
        for one in done:
            self._tell(one)
        self.catch_up()
        return done[0]

    def mark(self) -> Mark:
        """Return where the story stands now, for ``moments_since``."""
        return Mark(len(self.gauge.events), self._diary.told)

    def moments_since(self, mark: Mark) -> tuple[Moment, ...]:
        """Return what has happened since."""
        return self._diary.moments(self.gauge.events[mark.events :], mark.told)

    def cases(self) -> tuple[Case, ...]:
        """Return the expectations, as far as they can be told by now."""
        return tuple(self._judge.cases)

    def finished(self) -> ScenarioRun:
        """Return what became of a run that is over."""
        end = self.world.now
        self.catch_up()
        self._judge.end(end)
        report = self._statistics.summary(self.gauge.history, end=end, log=self._log.head())
        moments = self._diary.moments(self.gauge.events)
        verdicts = [_verdict(case, moments) for case in self._judge.cases]
        if self._truths is not None:
            verdicts += self._truths.verdicts(end)
        return ScenarioRun(
            self.scenario.name,
            report,
            tuple(verdicts),
            self._statistics,
            self.gauge.history,
            tuple(self._diary.starts),
            tuple(self.gauge.events),
            moments,
        )

    def _tell(self, done: Done) -> None:
        text = f"{'not possible: ' if done.refused else ''}{done.what}"
        self._diary.tell(self.world.now, f"* {text}")

    def _look(self, next_time: datetime | None) -> None:
        self.catch_up()
        until = self.scenario.until
        if until is not None and next_time is not None and next_time > self.scenario.start + until:
            next_time = None
        self._judge.look(self.world.now, next_time)

    def catch_up(self) -> None:
        """Read what is new in the log."""
        recorded = tuple(self._log.read(self._read))
        if recorded:
            self._read = recorded[-1].position
            self.gauge.take(recorded)
            if self._truths is not None:
                self._truths.take(recorded)


def event_words(event: DomainEvent) -> str:
    """Return an event in one short line."""
    fields = event.model_dump(mode="json", exclude_none=True)
    told = [
        f"{name}={_short(value)}"
        for name, value in fields.items()
        if name not in _COMMON and value not in ("", [], {})
    ]
    return " ".join((type(event).TOPIC.removeprefix("xce."), event.originator_id, *told))


def _short(value: object) -> str:
    text = _flow(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _flow(value: object) -> str:
    """Return a value of an event as a scenario would have it: ``{slots: 2}``, ``[a, b]``, ``true``."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            fields = cast("dict[str, object]", value).items()
            return f"{{{', '.join(f'{name}: {_flow(one)}' for name, one in fields)}}}"
        case list():
            return f"[{', '.join(map(_flow, cast('list[object]', value)))}]"
        case _:
            return str(value)


def _verdict(case: Case, moments: tuple[Moment, ...]) -> Verdict:
    passed = bool(case.passed)
    return Verdict(
        expectation=words(case.expectation),
        why=case.expectation.why,
        passed=passed,
        found=case.found,
        failed_at=case.failed_at,
        around=() if passed else _around(moments, case.failed_at),
    )


def _around(moments: tuple[Moment, ...], at: datetime | None) -> tuple[Moment, ...]:
    if at is None:
        return moments[-BEFORE:]
    before = [moment for moment in moments if moment.at <= at]
    behind = [moment for moment in moments if moment.at > at]
    return (*before[-BEFORE:], *behind[:BEHIND])

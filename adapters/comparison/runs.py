"""One run of a comparison: what it is of, and carrying it out. Runs in whatever process it is asked in, here or on another machine."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from importlib.metadata import version

from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.store.verify import verify
from xce.domain.formats.comparison import RunOutcome, Setting
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.expectations import Expectation
from xce.domain.formats.interventions import Intervention
from xce.domain.formats.licence_server import LicenceServerConfig
from xce.domain.formats.scenario import Provisioners, Scenario, Verdict
from xce.domain.ports import EventLog
from xce.domain.values import write_duration
from xce.replay.compare.measure import curves, figures, passed_budgets
from xce.replay.history import History
from xce.replay.licence_servers import LicenceServer
from xce.replay.providers import SimulatedProvider
from xce.replay.scenario.acts import Acts
from xce.replay.scenario.gauge import Gauge
from xce.replay.scenario.judge import Case, Judge, words
from xce.replay.statistics import Statistics
from xce.replay.workloads.workload import Workload
from xce.replay.world import World

#: Told how many jobs have ended.
Told = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Around:
    """What happens around a policy: the part of a scenario that no configuration has.

    Attributes:
        until: after the start; None: until nothing is left to do.
        expect: what must come of it.
        provisioners: several; None: one.
    """

    servers: tuple[LicenceServerConfig, ...] = ()
    timeline: tuple[Intervention, ...] = ()
    until: timedelta | None = None
    expect: tuple[Expectation, ...] = ()
    provisioners: Provisioners | None = None

    @classmethod
    def of(cls, scenario: Scenario | None) -> "Around":
        """Return that of a scenario; nothing for None."""
        if scenario is None:
            return cls()
        return cls(
            scenario.servers,
            scenario.timeline,
            scenario.until,
            scenario.expect,
            scenario.provisioners,
        )

    def lines(self) -> tuple[str, ...]:
        """Return it as text; nothing where there is nothing."""
        until = () if self.until is None else (write_duration(self.until),)
        return (
            *(one.to_json() for one in (*self.servers, *self.timeline)),
            *until,
            *(f"expect {one.to_json()}" for one in self.expect),
            *(() if self.provisioners is None else (self.provisioners.to_json(),)),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One policy over one workload.

    Attributes:
        key: of all that decides what comes out; equal keys, equal outcomes.
        workload: its name among the comparison's.
        digest: of the workload as this configuration shapes it.
        jobs: how many there are to run.
    """

    key: str
    policy: str
    workload: str
    settings: tuple[Setting, ...]
    config: SimulationConfig
    digest: str
    jobs: int
    around: Around = Around()

    @classmethod
    def of(
        cls,
        policy: str,
        workload: str,
        settings: tuple[Setting, ...],
        config: SimulationConfig,
        digest: str,
        jobs: int,
        around: Around = Around(),
    ) -> "Run":
        """Return a run with its key."""
        text = "\n".join(
            (version("xce"), policy, workload, digest, *(f"{one.key}={one.value}" for one in settings),
             config.to_json(), *around.lines())
        )  # fmt: skip
        key = sha256(text.encode()).hexdigest()[:20]
        return cls(key, policy, workload, settings, config, digest, jobs, around)


def carry_out(run: Run, workload: Workload, told: Told = lambda ended: None) -> RunOutcome:
    """Simulate, check the log, and measure; the same run gives the same outcome anywhere."""
    config = run.config
    seed = config.driver.seed
    statistics = Statistics(config, workload)
    providers = {one.name: SimulatedProvider(one, seed) for one in config.providers}
    servers = {one.name: LicenceServer(one, seed) for one in run.around.servers}
    until = None if run.around.until is None else workload.start + run.around.until
    gauge = Gauge()
    with open_log(MEMORY) as log:
        world = World(
            config,
            workload,
            log,
            providers,
            watchers=(*statistics.watchers(), *((gauge,) if run.around.expect else ())),
            servers=servers.values(),
            provisioners=run.around.provisioners,
        )
        Acts(world, servers).prepare(run.around.timeline, lambda done: None)
        verdicts = _judged(world, log, gauge, run.around, told, until)
        history = History.of(entry.event for entry in log.read())
        report = statistics.summary(history, end=world.now, log=log.head())
        checks = verify(log).checks
    violations = [
        f"{check.title}: {check.found} times not; first: {check.findings[0]}"
        for check in checks
        if not check.passed
    ]
    violations += passed_budgets(config.policy.budgets, history, world.now)
    timeline = statistics.timeline()
    return RunOutcome(
        key=run.key,
        policy=run.policy,
        workload=run.workload,
        settings=run.settings,
        figures=figures(config, report, timeline, len(violations), verdicts),
        violations=tuple(violations),
        verdicts=verdicts,
        report=report,
        curves=curves(
            timeline,
            history,
            (wait for _, wait in statistics.waits()),
            (use.name for use in report.shared),
            report.ended,
        ),
    )


def _judged(
    world: World, log: EventLog, gauge: Gauge, around: Around, told: Told, until: datetime | None
) -> tuple[Verdict, ...]:
    """Run a world to its end; return what became of what is expected of it."""
    if not around.expect:
        world.run(told, until)
        return ()
    gauge.attach(world)
    judge = Judge(around.expect, gauge, world.workload.start)
    read = 0

    def look(next_time: datetime | None) -> None:
        nonlocal read
        recorded = tuple(log.read(read))
        if recorded:
            read = recorded[-1].position
            gauge.take(recorded)
        over = until is not None and next_time is not None and next_time > until
        judge.look(world.now, None if over else next_time)

    world.after_each(look)
    world.run(told, until)
    judge.end(world.now)
    return tuple(_verdict(case) for case in judge.cases)


def _verdict(case: Case) -> Verdict:
    return Verdict(
        expectation=words(case.expectation),
        why=case.expectation.why,
        passed=bool(case.passed),
        found=case.found,
        failed_at=case.failed_at,
    )

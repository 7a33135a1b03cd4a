"""One run of a comparison: what it is of, and carrying it out. Runs in whatever process it is asked in, here or on another machine."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version

from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.store.verify import verify
from xce.domain.formats.comparison import RunOutcome, Setting
from xce.domain.formats.config import SimulationConfig
from xce.replay.compare.measure import curves, figures, passed_budgets
from xce.replay.history import History
from xce.replay.providers import SimulatedProvider
from xce.replay.statistics import Statistics
from xce.replay.workloads.workload import Workload
from xce.replay.world import World

#: Told how many jobs have ended.
Told = Callable[[int], None]


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

    @classmethod
    def of(
        cls,
        policy: str,
        workload: str,
        settings: tuple[Setting, ...],
        config: SimulationConfig,
        digest: str,
        jobs: int,
    ) -> "Run":
        """Return a run with its key."""
        text = "\n".join(
            (version("xce"), policy, workload, digest, *(f"{one.key}={one.value}" for one in settings),
             config.to_json())
        )  # fmt: skip
        return cls(
            sha256(text.encode()).hexdigest()[:20], policy, workload, settings, config, digest, jobs
        )


def carry_out(run: Run, workload: Workload, told: Told = lambda ended: None) -> RunOutcome:
    """Simulate, check the log, and measure; the same run gives the same outcome anywhere."""
    config = run.config
    seed = config.driver.seed
    statistics = Statistics(config, workload)
    providers = {one.name: SimulatedProvider(one, seed) for one in config.providers}
    with open_log(MEMORY) as log:
        world = World(config, workload, log, providers, watchers=(statistics,))
        world.run(told)
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
        figures=figures(config, report, timeline, len(violations)),
        violations=tuple(violations),
        report=report,
        curves=curves(
            timeline,
            history,
            (wait for _, wait in statistics.waits()),
            (use.name for use in report.shared),
            report.ended,
        ),
    )

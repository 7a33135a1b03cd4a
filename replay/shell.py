"""The controller and its provisioner in virtual time: what ends when the process ends, and is made anew from the log.

It carries steps out in their order: commands durable, then looks and calls, then what follows from the answers.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from xce.domain.engine.calls import (
    Answer,
    AskCall,
    Call,
    ListCall,
    Step,
    Steps,
    make,
)
from xce.domain.engine.commands import Command, DescribeProvider, RecordJoin
from xce.domain.engine.controller import Controller
from xce.domain.engine.polling import taken_back
from xce.domain.engine.provisioner import Provisioner
from xce.domain.engine.reconciliation import Listing, Sightings, reconcile
from xce.domain.engine.site_commands import ReportDrain
from xce.domain.errors import AdapterError, RejectedError
from xce.domain.events import ids as aggregate_ids
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.ports import EventLog, IdSource
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.lease import ProviderLease
from xce.projections.all import Projections
from xce.replay.provider_truth import Join
from xce.replay.providers import SimulatedProvider

#: Who writes the events of a simulation.
BY: Final = "xce sim"


class CrashPoint(StrEnum):
    """Where a process ends at its next ask."""

    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"


class Crashed(BaseException):
    """The process ended here; no handler of errors may eat it."""


class Outside(Protocol):
    """The world around the process."""

    @property
    def now(self) -> datetime:
        """The time."""
        ...

    def follow(self, event: object) -> None:
        """Do what an event says; it is durable."""
        ...

    def look(self, instances: Iterable[str]) -> dict[str, bool]:
        """Return which hosts have a job, now that they are closed."""
        ...

    def jobs_on(self, host: str) -> tuple[str, ...]:
        """Return the jobs of a host."""
        ...

    def called(self, call: Call) -> None:
        """A provider was called: its answer may change what comes next."""
        ...

    def unanswered(self, call: Call | ListCall) -> None:
        """A provider was called, and did not answer."""
        ...


class Shell:
    """One life of the process."""

    def __init__(
        self,
        config: SimulationConfig,
        log: EventLog,
        providers: Mapping[str, SimulatedProvider],
        ids: IdSource,
        outside: Outside,
        lifecycle: LifecycleSettings,
    ) -> None:
        self.projections = Projections()
        self.crash_at: CrashPoint | None = None
        self._log = log
        self._providers = providers
        self._settings = config.policy.settings()
        self._lifecycle = lifecycle
        self._outside = outside
        self._controller = Controller(log)
        self._primary = log.take_primary()
        self._ids = ids
        self._provisioner = Provisioner(ids)
        self._sightings: dict[str, Sightings] = {}
        self._early_joins: dict[str, Join] = {}

    def recover(self) -> None:
        """Read the whole log, and keep the leases that it has."""
        self.projections.apply(self._log.read())
        held = [
            self._log.get(ProviderLease, aggregate_ids.lease_id(name)) for name in self._providers
        ]
        self._controller.start(held, elapsed_s=self._outside.now.timestamp())

    def reconfigure(self, config: SimulationConfig) -> None:
        """Follow another policy from now on."""
        self._settings = config.policy.settings()

    # ------------------------------------------------------------------ orders
    def handle(self, command: Command, by: str = BY) -> None:
        """Carry out one command that records nothing by itself."""
        self._controller.handle(command, at=self._outside.now, by=by)

    def commit(self, steps: Iterable[Step], by: str = BY) -> list[Step]:
        """Append the commands of all steps at once; return the steps that were not refused."""
        done: list[Step] = []
        for step in steps:
            if self._accepted(step.commands, by):
                done.append(step)
            else:
                self._accepted(step.otherwise, by)
        if change := self._controller.take():
            recorded = self._log.append(
                change.aggregates, fences={"primary": self._primary, **change.fences}
            )
            self._controller.appended()
            self.projections.apply(recorded)
            for entry in recorded:
                self._outside.follow(entry.event)
        return done

    def _accepted(self, commands: Iterable[Command], by: str) -> bool:
        try:
            for command in commands:
                self.handle(command, by)
        except RejectedError:
            return False
        return True

    def round(
        self, inputs: PolicyInput, told: Callable[[tuple[Decision, ...]], None] = lambda _: None
    ) -> tuple[Decision, ...]:
        """Decide, tell, and carry out."""
        decisions, steps = self._provisioner.round(inputs)
        told(decisions)
        self.carry_out(steps)
        return decisions

    def carry_out(self, steps: Iterable[Step]) -> None:
        """Make commands durable, then look and call, then go on with the answers, until nothing follows."""
        while done := self.commit(steps):
            following: list[Step] = []
            looks = [
                instance for step in done for look in step.looks for instance in look.instances
            ]
            if looks:
                busy = self._outside.look(looks)
                following += self._provisioner.looked(busy, self.projections.inventory.view())
            for step in done:
                for call in step.calls:
                    if isinstance(call, ListCall):
                        following += self.list_provider(call.provider)
                    else:
                        following += self._call(call)
            steps = following

    # ------------------------------------------------------------------- calls
    def _call(self, call: Call) -> Steps:
        if isinstance(call, AskCall):
            self._crash(CrashPoint.BEFORE_CALL)
        failures = 0
        if isinstance(call, AskCall):
            failures = self.projections.failures.in_a_row(call.provider, call.ask.item)
        try:
            answer = self._make(call)
        except AdapterError as error:
            self._outside.unanswered(call)
            return self._provisioner.failed(call, str(error))
        if isinstance(call, AskCall):
            self._crash(CrashPoint.AFTER_CALL)
        return self._provisioner.answered(call, answer, self._outside.now, self._settings, failures)

    def _make(self, call: Call) -> Answer:
        answer = make(call, self._providers[call.provider], self._outside.now)
        self._outside.called(call)
        return answer

    def _crash(self, point: CrashPoint) -> None:
        if self.crash_at is point:
            raise Crashed

    def list_provider(self, provider: str) -> Steps:
        """Return what follows from everything that a provider has; nothing if it cannot say."""
        now = self._outside.now
        try:
            holdings = self._providers[provider].holdings(now)
        except AdapterError:
            self._outside.unanswered(ListCall(provider))
            return ()
        if holdings is None:
            return ()
        orphans = {
            row.theirs: row.return_id
            for row in self.projections.reasons.orphans()
            if row.provider == provider
        }
        steps, self._sightings[provider] = reconcile(
            Listing(provider, holdings, now),
            self.projections.inventory.view(),
            self._sightings.get(provider, Sightings()),
            self._ids,
            lifecycle=self._lifecycle,
            orphans=orphans,
        )
        return steps

    # ------------------------------------------------------------------- polls
    def poll(self) -> None:
        """Ask providers what became of what is open, and follow what they say of themselves."""
        now = self._outside.now
        view = self.projections.inventory.view()
        self.carry_out(
            self._provisioner.poll(
                view,
                now,
                self._settings,
                looked_at=now,
                lifecycle=self._lifecycle,
                capabilities={
                    name: one.description.capabilities for name, one in self._providers.items()
                },
            )
        )
        for name, provider in self._providers.items():
            if provider.recalls:
                self.describe(name)
            if provider.takes_back:
                mine = {
                    entry.machine: entry.name or ""
                    for entry in view.instances
                    if entry.provider == name and entry.machine is not None
                }
                notices = provider.take_backs(mine, now)
                instances = self.projections.inventory.view().instances
                self.commit(taken_back(notices, [e for e in instances if e.provider == name], now))
        self.report_drains()

    def describe(self, provider: str) -> None:
        """Record what a provider says of itself now."""
        description = self._providers[provider].describe(self._outside.now)
        if description is not None:
            self.commit((Step((DescribeProvider(description),)),))

    def report_drains(self) -> None:
        """Say what runs on each host that is being drained."""
        for row in self.projections.drains.rows():
            jobs = self._outside.jobs_on(row.host)
            self.commit((Step((ReportDrain(row.host, row.instance, jobs),)),))

    # ------------------------------------------------------------------- joins
    def take_joins(self) -> list[RecordJoin]:
        """Record the joins whose instances are known, and return them; the others wait."""
        now = self._outside.now
        for name, provider in self._providers.items():
            self._early_joins.update(
                (f"{name}/{join.machine}", join) for join in provider.joins(now)
            )
        starting = [
            entry.id
            for entry in self.projections.inventory.view().instances
            if entry.state is InstanceState.STARTING and entry.id in self._early_joins
        ]
        joined: list[RecordJoin] = []
        for step in self.commit(Step((self._join_of(instance),)) for instance in starting):
            for command in step.commands:
                assert isinstance(command, RecordJoin)
                del self._early_joins[command.instance]
                joined.append(command)
        return joined

    def _join_of(self, instance: str) -> RecordJoin:
        join = self._early_joins[instance]
        return RecordJoin(instance, join.name, join.booted_at, join.attributes, join.total)

    def hand_over(self, successor: "Shell") -> None:
        """Give the reports of hosts that have not been taken to the process that follows: hosts report again."""
        successor._early_joins = dict(self._early_joins)


def soon(at: datetime) -> datetime:
    """Return the moment after a time."""
    return at + timedelta(seconds=1)

"""The controller and its provisioner in virtual time: what ends when the process ends, and is made anew from the log.

It carries steps out in their order: commands durable, then looks and calls, then what follows from the answers.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from xce.domain.engine import messages
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
from xce.domain.engine.reconciliation import Listing, Sightings, reconcile
from xce.domain.engine.site_commands import ReportDrain
from xce.domain.engine.steady_clock import SteadyClock
from xce.domain.engine.workspace import NoLeaseError
from xce.domain.errors import AdapterError, RejectedError, StaleEpochError
from xce.domain.events import ids as aggregate_ids
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.formats.scenario import Provisioners
from xce.domain.ports import EventLog, IdSource
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.lease import ProviderLease
from xce.projections.all import Projections
from xce.replay.members import Member, Members
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

    @property
    def wall(self) -> datetime:
        """What the wall clock of the process's machine shows."""
        ...

    def follow(self, event: object) -> None:
        """Do what an event says; it is durable."""
        ...

    def refused(self, what: str) -> None:
        """A provisioner wanted to write what it may not any more."""
        ...

    def stands(self, member: Member, length: timedelta) -> None:
        """A provisioner stands still in the middle of what it does."""
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
        provisioners: Provisioners | None = None,
    ) -> None:
        self.projections = Projections()
        self.crash_at: CrashPoint | None = None
        self._log = log
        self._providers = providers
        self._settings = config.policy.settings()
        self._lifecycle = config.lifecycle
        self._outside = outside
        self._controller = Controller(log)
        self._primary = log.take_primary()
        self._ids = ids
        self.members = Members(provisioners, providers, ids)
        self._clock = SteadyClock(lambda: outside.wall, self.elapsed_s)
        self._sightings: dict[str, Sightings] = {}
        self._early_joins: dict[str, Join] = {}

    def elapsed_s(self) -> float:
        """Return seconds of a clock that nobody can set."""
        return self._outside.now.timestamp()

    @property
    def stamp(self) -> datetime:
        """The time by the clock of the process."""
        return self._clock.now()

    @property
    def acting(self) -> Member | None:
        """Which provisioner acts now; None: none may."""
        return self.members.acting(self.elapsed_s())

    def recover(self) -> None:
        """Read the whole log, and keep the leases that it has."""
        self.projections.apply(self._log.read())
        if self.projections.position:
            for recorded in self._log.read(self.projections.position - 1):
                self._clock.not_before(recorded.event.timestamp)
        held = [
            self._log.get(ProviderLease, aggregate_ids.lease_id(name)) for name in self._providers
        ]
        self._controller.start(held, elapsed_s=self.elapsed_s())

    def reconfigure(self, config: SimulationConfig) -> None:
        """Follow another policy from now on."""
        self._settings = config.policy.settings()

    # ------------------------------------------------------------------ orders
    def handle(self, command: Command, by: str = BY) -> None:
        """Carry out one command that records nothing by itself."""
        self._controller.handle(command, at=self.stamp, by=by)

    def commit(
        self, steps: Iterable[Step], by: str = BY, member: Member | None = None
    ) -> list[Step]:
        """Append the commands of all steps at once; return the steps that were not refused.

        Args:
            steps: whose commands.
            by: how events name who gave them.
            member: which of several provisioners gave them, under its leases.
        """
        done: list[Step] = []
        for step in steps:
            if self._accepted(step.commands, by, member):
                done.append(step)
            else:
                self._accepted(step.otherwise, by, member)
        self._append()
        return done

    def _append(self) -> None:
        if change := self._controller.take():
            recorded = self._log.append(
                change.aggregates, fences={"primary": self._primary, **change.fences}
            )
            self._controller.appended()
            self.projections.apply(recorded)
            for entry in recorded:
                self._outside.follow(entry.event)

    def _accepted(self, commands: Iterable[Command], by: str, member: Member | None) -> bool:
        try:
            if member is None or member.caller is None:
                for command in commands:
                    self.handle(command, by)
            elif given := tuple(commands):
                self._perform(member.caller, given, member.epochs)
        except RejectedError as error:
            if isinstance(error, (StaleEpochError, NoLeaseError)) and member and member.caller:
                self._outside.refused(f"{member.name} may not act: {error}")
            return False
        return True

    def _perform(
        self, caller: messages.Caller, commands: tuple[Command, ...], epochs: Mapping[str, int]
    ) -> messages.Answer:
        """Carry out an order, all or nothing; see ``Controller.perform``."""
        return self._controller.perform(
            messages.Order(
                commands=commands,
                caller=caller,
                at=self.stamp,
                elapsed_s=self.elapsed_s(),
                epochs=epochs,
            )
        )

    def keep_leases(self, reaches: Callable[[str], bool]) -> list[str]:
        """End leases whose time is over, renew and take them; return who leads now and did not before."""
        self._controller.tick(at=self.stamp, elapsed_s=self.elapsed_s())
        self._append()
        new = list(self.members.keep_leases(self._perform, self.elapsed_s(), reaches))
        self._append()
        self._controller.appended()  # renewals are no events
        return new

    def round(
        self, inputs: PolicyInput, told: Callable[[tuple[Decision, ...]], None] = lambda _: None
    ) -> tuple[Decision, ...]:
        """Decide, tell, and carry out."""
        member = self._member()
        decisions, steps = member.engine.round(inputs)
        told(decisions)
        if member.stall is not None and _asks(steps):
            member.kept = steps
            self._outside.stands(member, member.stall)
        else:
            self.carry_out(steps)
        return decisions

    def go_on(self, member: Member) -> None:
        """Let a provisioner that stood still go on where it stood."""
        steps, member.kept, member.stall = member.kept, None, None
        if steps is not None:
            self.carry_out(steps, member)

    def _member(self) -> Member:
        member = self.acting
        assert member is not None, "nothing is decided where nobody may act"
        return member

    def carry_out(self, steps: Iterable[Step], by: Member | None = None) -> None:
        """Make commands durable, then look and call, then go on with the answers, until nothing follows; ``by``: default, who acts."""
        member = by or self._member()
        while done := self.commit(steps, member=member):
            following: list[Step] = []
            looks = [
                instance for step in done for look in step.looks for instance in look.instances
            ]
            if looks:
                busy = self._outside.look(looks)
                following += member.engine.looked(busy, self.projections.inventory.view())
            for step in done:
                for call in step.calls:
                    if isinstance(call, ListCall):
                        following += self.list_provider(call.provider)
                    else:
                        following += self._call(call, member)
            steps = following

    # ------------------------------------------------------------------- calls
    def _call(self, call: Call, member: Member) -> Steps:
        if isinstance(call, AskCall):
            self._crash(CrashPoint.BEFORE_CALL)
        failures = 0
        if isinstance(call, AskCall):
            failures = self.projections.failures.in_a_row(call.provider, call.ask.item)
        try:
            answer = self._make(call)
        except AdapterError as error:
            self._outside.unanswered(call)
            return member.engine.failed(call, str(error))
        if isinstance(call, AskCall):
            self._crash(CrashPoint.AFTER_CALL)
        return member.engine.answered(call, answer, self.stamp, self._settings, failures)

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
        now = self.stamp
        view = self.projections.inventory.view()
        self.carry_out(
            self._member().engine.poll(
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
        if not self._early_joins:
            return []
        starting = [
            entry.id
            for entry in self.projections.inventory.view().instances
            if entry.state is InstanceState.STARTING
            and entry.reported_as is None
            and entry.id in self._early_joins
        ]
        self.commit(Step((self._join_of(instance),)) for instance in starting)
        # One that is checked first opens later.
        open_now = [
            entry.id
            for entry in self.projections.inventory.view().instances
            if entry.state is InstanceState.JOINED and entry.id in self._early_joins
        ]
        joined = [self._join_of(instance) for instance in open_now]
        for instance in open_now:
            del self._early_joins[instance]
        return joined

    def _join_of(self, instance: str) -> RecordJoin:
        join = self._early_joins[instance]
        return RecordJoin(instance, join.name, join.booted_at, join.attributes, join.total)

    def hand_over(self, successor: "Shell") -> None:
        """Give the reports of hosts that have not been taken to the process that follows: hosts report again."""
        successor._early_joins = dict(self._early_joins)


def _asks(steps: Steps) -> bool:
    return any(isinstance(call, AskCall) for step in steps for call in step.calls)


def soon(at: datetime) -> datetime:
    """Return the moment after a time."""
    return at + timedelta(seconds=1)

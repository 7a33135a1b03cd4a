"""The virtual-time driver: jobs come and end, sessions decide, the engine acts, simulated providers answer.

It only says when things happen. What is true is in the log; what a session sees of totals and supply comes from the
projections of that log; what is decided comes from ``run_session`` and ``decide``; what it leads to from the engine.
A session is handed ``PendingJob`` values only: true run times stay in ``Jobs``.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from xce.domain.engine.calls import Call, ListCall, ReturnStatusCall, StatusCall, Step
from xce.domain.engine.commands import ReportBookings
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.inventory import Inventory
from xce.domain.formats.policy import Decision
from xce.domain.formats.scenario import Provisioners
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import HostState, Snapshot
from xce.domain.ports import EventLog
from xce.domain.provisioning.drain import Drain
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import OPEN, Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.domain.sharing.wants import whole_wants
from xce.projections.all import Projections
from xce.replay.agenda import CountedIds
from xce.replay.cluster import SimulatedCluster
from xce.replay.drains import follow_drain
from xce.replay.happenings import (
    Act,
    Arrival,
    Change,
    CheckOut,
    End,
    Happening,
    Listing,
    NoteWatcher,
    Observe,
    Poll,
    RoundWatcher,
    Wake,
    Watcher,
    told_of_sessions,
)
from xce.replay.jobs import Jobs
from xce.replay.licence_servers import LicenceServer
from xce.replay.members import Member
from xce.replay.mishaps import Mishaps
from xce.replay.opening import BY_ITSELF, declarations
from xce.replay.planning import plan_next_session
from xce.replay.process import Process, why_unreadable
from xce.replay.providers import SimulatedProvider
from xce.replay.sessions import Sessions
from xce.replay.shared_use import SharedUse
from xce.replay.shell import BY, Crashed, CrashPoint, Shell, soon
from xce.replay.timetable import Timetable
from xce.replay.turns import Turns
from xce.replay.workloads.workload import Workload

__all__ = ["BY", "Watcher", "World"]

_NOTHING: Final = Inventory()
#: What brings waiting jobs nearer, and, when none waits, the end. All other events may be attempts that fail for ever.
_COMING: Final = (Instance.Joined, ElasticResource.Borrowed)
_GOING: Final = (Instance.Returned, Instance.Lost, Grant.ReturnConfirmed, Grant.Lost)


class World:
    """One simulation, from the first submission until nothing is left to do."""

    def __init__(
        self,
        config: SimulationConfig,
        workload: Workload,
        log: EventLog,
        providers: dict[str, SimulatedProvider],
        watchers: Iterable[Watcher] = (),
        servers: Iterable[LicenceServer] = (),
        *,
        trace: bool = False,
        provisioners: Provisioners | None = None,
    ) -> None:
        """Be about to begin.

        Args:
            config: the cluster, what can be obtained, and the policy.
            workload: the jobs.
            log: where every fact goes.
            providers: those of the configuration, by name.
            watchers: who is told what happens.
            servers: licence servers that are looked at.
            trace: whether sessions say everything that they tried.
            provisioners: several, of which one leads; None: one, which always does.
        """
        self.config = config
        self.workload = workload
        self._trace = trace
        self.log = log
        self.providers = providers
        self.cluster = SimulatedCluster(config.cluster.all_hosts())
        self._settings = config.policy.settings()
        self._watchers = tuple(watchers)
        self._round_watchers = [one for one in self._watchers if isinstance(one, RoundWatcher)]
        self._session_watchers = [told_of_sessions(one) for one in self._watchers]
        self._ids = CountedIds()
        self._several = provisioners
        self.process = Process()
        self._until: datetime | None = None
        self._after_each: list[Callable[[datetime | None], None]] = []
        self._timetable = Timetable(workload.start, config.driver)
        self.shell = self._new_shell()
        self.shared = SharedUse(config.cluster.shared, servers, lambda: self.projections)
        self.jobs = Jobs(workload, self.cluster, self.shared, self._timetable, self._watchers)
        self.mishaps = Mishaps(self.cluster, self.jobs, providers, self._timetable)
        self._sessions = self._new_sessions()
        self.turns = Turns(self, self._timetable)

    @property
    def now(self) -> datetime:
        """See ``Outside.now``."""
        return self._timetable.now

    @property
    def projections(self) -> Projections:
        """What the log says, folded by the process that lives now."""
        return self.shell.projections

    @property
    def wall(self) -> datetime:
        """See ``Outside.wall``."""
        return self.now - self.process.set_back

    def _new_shell(self) -> Shell:
        return Shell(self.config, self.log, self.providers, self._ids, self, self._several)

    def _new_sessions(self) -> Sessions:
        return Sessions(
            self.config,
            self.cluster,
            self.shared,
            self.projections,
            self.now,
            trace=self._trace,
        )

    # --------------------------------------------------------------------- run
    def at(self, offset: timedelta, do: Callable[[], None]) -> None:
        """Have something done at a time after the workload's second 0, before what happens by itself; to be said before the run."""
        self._timetable.put(self.workload.start + offset, Act(do))

    def after_each(self, do: Callable[[datetime | None], None]) -> None:
        """Have something done whenever everything of one time has happened; it is told the next time, None at the end."""
        self._after_each.append(do)

    def wake(self) -> None:
        """Have a session soon."""
        self._timetable.wake_soon()

    def run(
        self,
        progress: Callable[[int], None] = lambda ended: None,
        until: datetime | None = None,
    ) -> None:
        """Run to the end, or ``until`` then; ``progress`` is told the number of jobs that have ended, now and then."""
        self.begin(until)
        while self.step():
            progress(self.jobs.ended)

    def begin(self, until: datetime | None = None) -> None:
        """Stand before the first moment; ``until`` is the end, where there is one."""
        self.jobs.expect()
        self._until = until
        self._timetable.begin(until)
        self._set_up()

    def step(self) -> bool:
        """Let everything of the next moment happen; return False, and let nothing happen, when it is over."""
        time, until = self._timetable, self._until
        at = time.next_time
        if at is None or (until is not None and at > until):
            if until is not None:
                time.now = max(time.now, until)
            return False
        if not self.jobs.to_come and time.is_stalled(at):
            return False  # there are only failing attempts
        happenings = time.take_until(at)
        time.now = at
        self._happen(happenings)
        if (following := time.next_time) != at:
            for do in self._after_each:
                do(following)
        return True

    @property
    def next_time(self) -> datetime | None:
        """When something happens next; None: never."""
        return self._timetable.next_time

    def wait(self, until: datetime) -> None:
        """Let time pass, up to the next moment at most: nothing happens."""
        following = self._timetable.next_time
        assert following is None or until <= following, "what happens before then happens first"
        self._timetable.now = max(self.now, until)

    def interfere(self, do: Callable[[], None]) -> None:
        """Have something done between two moments, at the time of the one that has been; it may go on where it had come to an end."""
        self._timetable.note_progress()
        self._guarded(do)

    def reconfigure(self, config: SimulationConfig) -> None:
        """Go on with another policy, session or set of limits; hosts, shared resources and providers stay as they are."""
        self.config = config
        self._settings = config.policy.settings()
        self.shell.reconfigure(config)
        self._sessions = self._new_sessions()
        self._timetable.wake_soon()

    def _set_up(self) -> None:
        commands = declarations(self.config, leads=BY_ITSELF if self._several is None else None)
        self.shell.commit(Step((command,)) for command in commands)
        self.turns.keep_leases()
        for name, interval in self.shared.intervals():
            self._timetable.observe_after(name, interval)
        self._timetable.list_soon()

    def _happen(self, happenings: list[Happening]) -> None:
        time = self._timetable
        session_due = False
        for happening in happenings:
            match happening:
                case Arrival(job=job):
                    self.jobs.submit(job)
                case End():
                    self.jobs.end(happening)
                case CheckOut():
                    self.jobs.check_out(happening)
                case Act(do=do):
                    self._guarded(do)
                case Change(provider=name):
                    time.keeps(happening)
                    self._change(self.providers[name])
                case Observe(server=name):
                    if time.keeps(happening):
                        self._observe(name)
                case Poll():
                    if time.keeps(happening):
                        self._guarded(self._poll)
                case Listing():
                    if time.keeps(happening):
                        self._guarded(self._list)
                case Wake():
                    session_due = time.keeps(happening) or session_due
        if time.keeps(Wake()) or session_due:
            time.forget(Wake())
            self._guarded(self._session)

    def _guarded(self, do: Callable[[], None]) -> None:
        """Do something that the process may end in."""
        try:
            do()
        except Crashed:
            self.go_down(self.process.down_for)

    # ---------------------------------------------------------------- sessions
    def _session(self) -> None:
        if self.process.is_down:
            if (at := self.process.comes_up(self.now)) is not None:
                self._timetable.wake_at(at)
            return
        self._timetable.last_session = self.now
        snapshot, outcome = self._sessions.run(self.now)
        for allocation in outcome.allocations:
            self.jobs.start(allocation)
        for tell in self._session_watchers:
            tell(snapshot, outcome)
        if self._is_closed:
            plan_next_session(self, self._timetable, ())
            return
        result = outcome.result
        wants = whole_wants(snapshot, result)
        self.shell.handle(ReportBookings(self.shared.note(wants, self.now)))
        said = partial(self._round, snapshot, result, wants)
        if late := self.process.late(self.now):
            self._timetable.put(self.now + late, Act(said))
            plan_next_session(self, self._timetable, ())
        else:
            said()

    def _round(self, snapshot: Snapshot, result: SessionResult, wants: dict[str, int]) -> None:
        """What a session said has come to the provisioner: let it decide."""
        decisions: tuple[Decision, ...] = ()
        acts = not self.process.is_down and self.turns.is_led
        if acts and self.process.hears(snapshot.now):
            inputs = self._sessions.inputs(snapshot, result, wants, self.now)

            def told(decisions: tuple[Decision, ...]) -> None:
                for watcher in self._round_watchers:
                    watcher.decided(inputs, decisions)

            decisions = self.shell.round(inputs, told)
        plan_next_session(self, self._timetable, decisions)

    @property
    def _is_closed(self) -> bool:
        """Return whether nothing can ever be obtained, so that no round of the policy decides anything."""
        config = self.config
        return not (
            self.providers
            or config.cluster.shared
            or config.policy.standing
            or self._round_watchers
        )

    # ------------------------------------------------------------------ engine
    def _poll(self) -> None:
        if self.process.is_down:
            if (at := self.process.comes_up(self.now)) is not None:
                self._timetable.poll_at(at)
            return
        if self.turns.is_led:
            self.shell.poll()
        self._record_joins()
        view = self.projections.inventory.view()
        for entry in view.instances:
            due: datetime | None = None
            match entry.state:
                case InstanceState.STARTING:
                    due = (entry.reported_at or entry.granted_at) + self._settings.join_limit
                case InstanceState.NEVER_JOINED:
                    due = entry.hold_until or self.now
                case InstanceState.DRAINING:
                    due = self.now
                case _:
                    pass
            if due is not None:
                self._timetable.poll_at(max(soon(self.now), due))
        for request in view.requests:
            if request.state in OPEN and request.deadline is not None:
                self._timetable.wake_at(request.deadline)
        recalling = {name for name, one in self.providers.items() if one.recalls}
        if any(grant.provider in recalling for grant in view.grants) and self.goes_on():
            self._timetable.poll_at(self.now + self.config.driver.review_interval)

    def _list(self) -> None:
        if not self.process.is_down:
            self._list_all()
        if self.goes_on():
            self._timetable.list_soon()

    def _list_all(self) -> None:
        if not self.turns.is_led:
            return
        for name, provider in self.providers.items():
            if provider.description.capabilities.listing:
                self.shell.carry_out(self.shell.list_provider(name))

    def _observe(self, server: str) -> None:
        if self.shared.observe(server, self.now, heard=not self.process.is_down):
            self._timetable.wake_soon()
        if self.goes_on():
            self._timetable.observe_after(server, self.shared.interval(server))

    def _change(self, provider: SimulatedProvider) -> None:
        self.mishaps.bury(provider)
        self._record_joins()
        self._timetable.poll_soon()
        self._timetable.watch(provider)

    def goes_on(self) -> bool:
        """Return whether anything is still to come or to go."""
        return bool(
            self._until is not None
            or self.jobs.to_come
            or self.cluster.pending_count
            or self.projections.inventory.view() != _NOTHING
        )

    def called(self, call: Call) -> None:
        """See ``Outside.called``."""
        self._timetable.watch(self.providers[call.provider])
        if not isinstance(call, (StatusCall, ReturnStatusCall)):
            self._timetable.poll_soon()

    def unanswered(self, call: Call | ListCall) -> None:
        """See ``Outside.unanswered``: it is tried again, but not at once."""
        self._timetable.watch(self.providers[call.provider])
        self._timetable.poll_at(soon(self.now))

    def look(self, instances: Iterable[str]) -> dict[str, bool]:
        """See ``Outside.look``."""
        return {instance: self.cluster.has_job(instance) for instance in instances}

    def jobs_on(self, host: str) -> tuple[str, ...]:
        """See ``Outside.jobs_on``."""
        return self.cluster.jobs_on(host)

    def follow(self, event: object) -> None:
        """Do in the cluster what an event says of its hosts; a change of supply is a reason for a session."""
        if isinstance(event, _COMING if self.cluster.pending_count else _GOING):
            self._timetable.note_progress()
        match event:
            case Instance.DrainStarted(originator_id=aggregate):
                self.jobs.closing(_name(aggregate))
                self.cluster.set_state(_name(aggregate), HostState.DRAINING)
            case Instance.Reopened(originator_id=aggregate):
                self.cluster.set_state(_name(aggregate), HostState.OPEN)
                self._timetable.wake_soon()
            case (
                Instance.Returned(originator_id=aggregate) | Instance.Lost(originator_id=aggregate)
            ):
                self.cluster.remove(_name(aggregate))
                self._timetable.wake_soon()
            case Instance.JoinMissed() | Instance.CheckStarted():
                self._timetable.wake_soon()
                self._timetable.poll_soon()
            case Request.Closed(outcome=outcome) if outcome is not RequestState.COMPLETE:
                self._timetable.wake_soon()
            case Request.MachineFailed() | Request.FellShort():
                self._timetable.wake_soon()
            case Instance.ReturnRefused() | Grant.ReturnRefused():
                self._timetable.poll_at(soon(self.now))
                self._timetable.wake_at(self.now + self.config.driver.review_interval)
            case Drain.Event():
                follow_drain(event, self.cluster, self.jobs, self._timetable)
            case Provider.Paused() | Provider.Resumed() | ElasticResource.Borrowed():
                self._timetable.wake_soon()
            case Provider.Described(description=description) if any(
                offer.recalled_to is not None for offer in description.resources
            ):
                self._timetable.wake_soon()
            case _:
                pass

    def _record_joins(self) -> None:
        """Record the joins whose instances are known; the others wait for the next poll."""
        if self.process.is_down:
            return
        for join in self.shell.take_joins():
            self.cluster.join(join, self.now)
            self._timetable.wake_soon()

    # -------------------------------------------------------------------- life
    def go_down(self, length: timedelta, forgets: frozenset[str] = frozenset()) -> None:
        """End the process at once; after some time another begins, which knows the log alone, and of events not those it ``forgets``."""
        up_at = self.process.up_at = self.now + length
        self.shell.crash_at = None
        self._timetable.put(up_at, Act(partial(self._come_up, up_at, forgets)))

    def crash_at_ask(self, point: CrashPoint, length: timedelta) -> None:
        """Have the process end at its next ask, before or after the call."""
        self.process.down_for = length
        self.shell.crash_at = point

    def _come_up(self, at: datetime, forgets: frozenset[str]) -> None:
        if self.process.up_at != at:
            return  # it was ended again
        why = why_unreadable(self.log, forgets) if forgets else None
        if why is not None:
            self.note(f"the process does not serve: {why}")
            return
        self.process.up_at = None
        old, self.shell = self.shell, self._new_shell()
        old.hand_over(self.shell)
        self.shell.recover()
        self.shared.sync(self.cluster.running(), self.now)
        self._sessions = self._new_sessions()
        self.turns.look_after_leases()
        self.looks_again()

    def stands(self, member: Member, length: timedelta) -> None:
        """See ``Outside.stands``."""
        self.turns.stands(member, length)

    def refused(self, what: str) -> None:
        """See ``Outside.refused``."""
        self.process.refused += 1
        self.note(what)

    def note(self, what: str) -> None:
        """Tell of something that is no event."""
        for watcher in self._watchers:
            if isinstance(watcher, NoteWatcher):
                watcher.noted(what, self.now)

    def looks_again(self) -> None:
        """See ``turns.Around.looks_again``."""
        if not self.process.is_down:
            self._list_all()
        self._timetable.poll_soon()
        self._timetable.wake_soon()


def _name(aggregate_id: str) -> str:
    return aggregate_id.partition(":")[2]

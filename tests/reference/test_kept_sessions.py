"""The state kept between sessions gives the bytes of a fresh session, whatever happens in between.

``HYPOTHESIS_PROFILE=soak`` runs thousands of clusters.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.reference.snapshots import EVERYTHING, GANGS, Features, snapshots
from xce.domain.errors import InputError
from xce.domain.formats.delta import Delta, difference
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import (
    Catalog,
    HostState,
    HostUse,
    PendingJob,
    RunningJob,
    Snapshot,
)
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.session import run_session

T = TypeVar("T")


def without(items: Sequence[T], gone: T) -> tuple[T, ...]:
    """Return all items but one."""
    return tuple(item for item in items if item is not gone)


def with_again(items: Sequence[T], old: T, new: T) -> tuple[T, ...]:
    """Return the items, one of them put in the place of another."""
    return tuple(new if item is old else item for item in items)


def started(job: PendingJob, result: SessionResult, at: datetime) -> RunningJob:
    """Return a job that runs where a session placed it."""
    (placed,) = [each for each in result.allocations if each.job == job.id]
    return RunningJob(
        id=job.id,
        user=job.user,
        project=job.project,
        queue=job.queue,
        started=at,
        hosts=tuple(
            HostUse(name=on.name, tasks=on.tasks, uses=dict(on.uses)) for on in placed.hosts
        ),
        shared={each.name: each.amount for each in placed.shared},
        exclusive=job.exclusive,
        run_limit=job.run_limit,
        array=job.array,
    )


class KeptSessions(RuleBasedStateMachine):
    """A cluster on which things happen; after each, the kept state and a fresh snapshot are asked the same."""

    features: Features = EVERYTHING

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.snapshot = data.draw(snapshots(self.features))
        self.scheduler = Scheduler(self.snapshot)
        self.result = self.scheduler.run()
        self.count = 0
        #: What may still come: hosts, jobs and supply of another cluster.
        self.other = data.draw(snapshots(self.features))

    def go_on(self, **changes: object) -> None:
        """Go on to a snapshot with these changes, if it contradicts itself nowhere."""
        after = self.snapshot.model_copy(update=changes)
        if list(contradictions(after)):
            return
        self.scheduler.advance(Delta.from_json(difference(self.snapshot, after).to_json()))
        self.snapshot = after

    @rule(data=st.data())
    def a_job_comes(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.other.pending))
        self.count += 1
        again = job.model_copy(
            update={
                "id": f"{job.id}.{self.count}",
                "submitted": data.draw(st.sampled_from([None, self.snapshot.now])),
            }
        )
        self.go_on(pending=(*self.snapshot.pending, again))

    @rule(data=st.data(), held=st.booleans())
    def equal_jobs_of_several_users_come(self, data: st.DataObject, held: bool) -> None:
        job = data.draw(st.sampled_from(self.other.pending))
        more: list[PendingJob] = []
        for user in ("u1", "u2", "u1", "u3"):
            self.count += 1
            changes = {"id": f"{job.id}.{self.count}", "user": user, "held": held}
            more.append(job.model_copy(update=changes))
        self.go_on(pending=(*self.snapshot.pending, *more))

    @rule()
    def everything_that_was_placed_starts(self) -> None:
        jobs = {job.id: job for job in self.snapshot.pending}
        fresh = run_session(self.snapshot)
        ids = {each.job for each in fresh.allocations}
        self.go_on(
            pending=tuple(job for job in self.snapshot.pending if job.id not in ids),
            running=(
                *self.snapshot.running,
                *(started(jobs[each.job], fresh, self.snapshot.now) for each in fresh.allocations),
            ),
        )

    @precondition(lambda self: self.snapshot.running)
    @rule(data=st.data())
    def a_job_ends(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.snapshot.running))
        idle = {use.name for use in job.hosts}
        idle -= {
            use.name for each in self.snapshot.running if each is not job for use in each.hosts
        }
        self.go_on(
            running=without(self.snapshot.running, job),
            hosts=tuple(
                host.model_copy(update={"idle_since": self.snapshot.now})
                if host.name in idle
                else host
                for host in self.snapshot.hosts
            ),
        )

    @precondition(lambda self: self.snapshot.pending)
    @rule(data=st.data(), held=st.booleans(), priority=st.integers(0, 2))
    def a_job_is_changed(self, data: st.DataObject, held: bool, priority: int) -> None:
        job = data.draw(st.sampled_from(self.snapshot.pending))
        again = job.model_copy(update={"held": held, "priority": priority})
        self.go_on(pending=with_again(self.snapshot.pending, job, again))

    @precondition(lambda self: self.snapshot.pending)
    @rule(data=st.data())
    def a_job_is_withdrawn(self, data: st.DataObject) -> None:
        self.go_on(
            pending=without(
                self.snapshot.pending, data.draw(st.sampled_from(self.snapshot.pending))
            )
        )

    @precondition(lambda self: self.snapshot.pending)
    @rule(data=st.data())
    def a_job_runs_and_is_pending_still(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.snapshot.pending))
        if all(each.id != job.id for each in self.snapshot.running):
            self.go_on(running=(*self.snapshot.running, RunningJob(id=job.id, user=job.user)))

    @precondition(lambda self: self.other.hosts)
    @rule(data=st.data())
    def a_host_joins_or_is_another(self, data: st.DataObject) -> None:
        host = data.draw(st.sampled_from(self.other.hosts))
        there = [each for each in self.snapshot.hosts if each.name == host.name]
        hosts = (
            with_again(self.snapshot.hosts, there[0], host)
            if there
            else (*self.snapshot.hosts, host)
        )
        self.go_on(hosts=hosts)

    @precondition(lambda self: self.snapshot.hosts)
    @rule(data=st.data(), state=st.sampled_from(HostState))
    def a_host_changes_its_state(self, data: st.DataObject, state: HostState) -> None:
        host = data.draw(st.sampled_from(self.snapshot.hosts))
        again = host.model_copy(update={"state": state})
        self.go_on(hosts=with_again(self.snapshot.hosts, host, again))

    @precondition(lambda self: self.snapshot.hosts)
    @rule(data=st.data())
    def a_host_leaves_with_its_jobs(self, data: st.DataObject) -> None:
        host = data.draw(st.sampled_from(self.snapshot.hosts))
        self.go_on(
            hosts=without(self.snapshot.hosts, host),
            running=tuple(
                job
                for job in self.snapshot.running
                if all(use.name != host.name for use in job.hosts)
            ),
        )

    @rule(data=st.data(), more=st.integers(0, 2))
    def amounts_change(self, data: st.DataObject, more: int) -> None:
        pool = data.draw(st.sampled_from(self.snapshot.shared))
        again = pool.model_copy(
            update={
                "total": pool.total + more,
                "owned": None if pool.owned is None else pool.owned + more,
                "used_elsewhere": data.draw(st.sampled_from([pool.used_elsewhere, 0, 1, None])),
                "peak_need": data.draw(st.sampled_from([pool.peak_need, 0])),
            }
        )
        self.go_on(shared=with_again(self.snapshot.shared, pool, again))

    @rule()
    def the_catalog_is_another(self) -> None:
        self.go_on(catalog=self.other.catalog)

    @rule()
    def there_is_no_catalog_line(self) -> None:
        self.go_on(catalog=Catalog())

    @precondition(lambda self: self.snapshot.catalog.templates)
    @rule(data=st.data(), allowed=st.integers(0, 3))
    def a_template_has_other_room(self, data: st.DataObject, allowed: int) -> None:
        catalog = self.snapshot.catalog
        template = data.draw(st.sampled_from(catalog.templates))
        again = template.model_copy(update={"allowed": allowed})
        templates = with_again(catalog.templates, template, again)
        self.go_on(catalog=catalog.model_copy(update={"templates": templates}))

    @precondition(lambda self: self.snapshot.catalog.capacities)
    @rule(data=st.data(), room=st.integers(0, 3))
    def a_capacity_has_other_room(self, data: st.DataObject, room: int) -> None:
        catalog = self.snapshot.catalog
        capacity = data.draw(st.sampled_from(catalog.capacities))
        again = capacity.model_copy(update={"room": room})
        capacities = with_again(catalog.capacities, capacity, again)
        self.go_on(catalog=catalog.model_copy(update={"capacities": capacities}))

    @rule()
    def limits_are_others(self) -> None:
        self.go_on(limits=self.other.limits, quotas=self.other.quotas)

    @rule()
    def settings_and_queues_are_others(self) -> None:
        self.go_on(settings=self.other.settings, queues=self.other.queues)

    @rule(minutes=st.sampled_from([0, 1, 10, 30, 60]), position=st.integers(0, 2))
    def time_goes_on(self, minutes: int, position: int) -> None:
        self.go_on(
            now=self.snapshot.now + timedelta(minutes=minutes),
            position=self.snapshot.position + position,
        )

    @rule()
    def a_delta_that_does_not_fit_changes_nothing(self) -> None:
        wrong = difference(self.snapshot, self.snapshot).model_copy(
            update={"base_position": self.snapshot.position + 1}
        )
        try:
            self.scheduler.advance(wrong)
        except InputError:
            return
        raise AssertionError("it was taken")

    @rule()
    def a_session_is_traced(self) -> None:
        traced = self.scheduler.run(trace=True)
        assert traced.to_json() == run_session(self.snapshot, trace=True).to_json()

    @invariant()
    def a_kept_session_is_a_fresh_one(self) -> None:
        if not hasattr(self, "snapshot"):
            return
        assert self.scheduler.snapshot.to_json() == self.snapshot.to_json()
        assert self.scheduler.run().to_json() == run_session(self.snapshot).to_json()


class KeptSessionsOfGangs(KeptSessions):
    """The same with wide jobs."""

    features = GANGS


_MANY = settings(max_examples=max(20, settings().max_examples // 4), stateful_step_count=12)
KeptSessions.TestCase.settings = _MANY
KeptSessionsOfGangs.TestCase.settings = _MANY
TestKeptSessions = KeptSessions.TestCase
TestKeptSessionsOfGangs = KeptSessionsOfGangs.TestCase


@given(snapshots(EVERYTHING), snapshots(EVERYTHING))
def test_any_snapshot_can_follow_any_other(before: Snapshot, after: Snapshot) -> None:
    scheduler = Scheduler(before)
    scheduler.run()

    scheduler.advance(difference(before, after))

    assert scheduler.run(trace=True).to_json() == run_session(after, trace=True).to_json()

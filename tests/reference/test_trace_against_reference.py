"""The trace names, for every job that waits, the first thing that stops it on every host, as the reference finds it."""

import re
from collections.abc import Iterator

from hypothesis import given

from tests.reference.limits import claim_refusals, taken_per_host
from tests.reference.needs import is_exclusive, matching_hosts, needs_of
from tests.reference.placing import largest_bucket, short_on, start
from tests.reference.plain import phase_one, stage_one
from tests.reference.reasons import failure_of
from tests.reference.snapshots import EVERYTHING, snapshots
from tests.reference.test_session_against_reference import at_least
from tests.reference.world import Part, PlainJob, World, world_of
from xce.domain.cluster.requirement import Per, Primary
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import OrderMode, Snapshot
from xce.domain.scheduling.session import run_session
from xce.domain.values import natural_key

#: What can keep a host from being looked at: all other texts are about hosts that match.
_NO_MATCH = re.compile(
    r"is (closed|draining|down)|is for user \w+ only|is not what select asks for"
    r"|must go before the job would end"
)
_ON_HOSTS = re.compile(r"job (?P<job>\S+): (?P<hosts>[\w, ]+): (?P<stop>.*)")


def said_on_hosts(result: SessionResult, job: str) -> list[tuple[str, str]]:
    """Return the hosts that the trace names for a job, each with what stops the job there, in its order."""
    found: list[tuple[str, str]] = []
    for line in result.trace or ():
        parts = _ON_HOSTS.fullmatch(line)
        if parts and parts["job"] == job:
            found += [(name, parts["stop"]) for name in parts["hosts"].split(", ")]
    return found


def stops(world: World, job: PlainJob, number: int, primary: Primary, tasks: int) -> dict[str, str]:
    """Return what stops the largest bucket on each host that matches."""
    nothing = job.nothing_yet(exclusive=is_exclusive(job, job.requirement.alternatives[number]))
    needs = needs_of(world, primary)
    bucket = largest_bucket(tasks, primary.span)
    fixed = needs.shared_before_hosts(tasks)
    before = nothing.with_shared(fixed)
    found: dict[str, str] = {}
    for host in matching_hosts(world, job, primary):
        short = short_on(world, needs, host, bucket, before, first=True)
        part = Part(host.key, bucket, needs.bucket(bucket, first=True))
        claimed = before.claim(part, needs.shared[Per.HOST])
        of_host = [
            name
            for name, amount in needs.shared[Per.HOST].items()
            if amount > 0 and world.free_shared(name) < claimed.shared[name]
        ]
        limits = {refusal.name for refusal in claim_refusals(world, claimed, taken_per_host(needs))}
        if "host" in short:
            found[host.key] = "has a job that cannot share it"
        elif short or of_host:
            found[host.key] = f"short of {min(short or of_host, key=natural_key)}"
        elif limits:
            found[host.key] = f"limit {min(limits, key=natural_key)}"
        else:
            found[host.key] = "has room, and is too few"
    return found


def wrong(snapshot: Snapshot, result: SessionResult) -> Iterator[str]:
    """Yield what the trace says otherwise than the reference."""
    world = world_of(snapshot)
    outcome = phase_one(world)
    lines = list(result.trace or ())
    names = {host.name for host in snapshot.hosts}
    guarantees = {quota.name for quota in snapshot.quotas}
    for job, found in outcome.pending:
        about = [line for line in lines if line.startswith(f"job {job.id}: ")]
        if not about:
            yield f"nothing is said of job {job.id}"
        said = {name: stop for name, stop in said_on_hosts(result, job.id) if name in names}
        is_behind = snapshot.settings.order is OrderMode.STRICT and not said
        if stage_one(world, job) or is_behind or start(outcome.world, job):
            continue
        failure = failure_of(outcome.world, job)
        if len(failure.late) != 1 or failure.early:
            continue  # alternatives: what is said of one and of another stands together
        if not said and any(each.name in guarantees for each in found):
            continue  # a guarantee stopped it at its turn, and was met by those after it
        wanted = stops(outcome.world, job, *failure.late[0])
        for host in snapshot.hosts:
            if host.name not in said:
                yield f"job {job.id}: nothing is said of host {host.name}"
            elif host.name in wanted:
                if said[host.name] != wanted[host.name]:
                    yield f"job {job.id}, {host.name}: {said[host.name]}, wanted {wanted[host.name]}"
            elif not _NO_MATCH.fullmatch(said[host.name]):
                yield f"job {job.id}, {host.name}: {said[host.name]}, and it does not match"


@at_least(400)
@given(snapshots(EVERYTHING))
def test_the_first_thing_that_stops_a_job_on_every_host_is_the_one_of_the_reference(
    snapshot: Snapshot,
) -> None:
    assert list(wrong(snapshot, run_session(snapshot, trace=True))) == []

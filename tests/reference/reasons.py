"""Why a job waits, in stages: section 5 of docs/reference/session.md."""

from dataclasses import dataclass

from tests.reference.limits import (
    Refusal,
    breaks_guarantee,
    claim_refusals,
    counted,
    depends_on_plan,
    fixed_amounts,
    is_about_hosts,
    limits_before_hosts,
    part_limits,
    taken_per_host,
    used,
)
from tests.reference.needs import Needs, is_exclusive, matching_hosts, needs_of, parts_of
from tests.reference.placing import (
    fewest_hosts,
    largest_bucket,
    search,
    short_on,
    short_shared,
)
from tests.reference.world import Holding, Part, PlainJob, World, added
from xce.domain.cluster.requirement import Per, Primary
from xce.domain.formats.session_result import ReasonKind
from xce.domain.values import natural_key

KIND_ORDER = list(ReasonKind)


@dataclass(frozen=True)
class Found:
    """One reason: ``name`` is the resource or the limit; ``hosts`` None where it holds for the cluster."""

    kind: ReasonKind
    name: str | None = None
    hosts: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Failure:
    """What was found at a job's turn: ``early`` in stages 1 to 3, ``late`` the primaries left to stage 4."""

    early: tuple[Found, ...] = ()
    late: tuple[tuple[int, Primary, int], ...] = ()
    on_resources: bool = False
    is_behind: bool = False

    @classmethod
    def stopped(cls, found: list[Found]) -> "Failure":
        """Return the failure of a job that stage 1 or 2 stopped."""
        return cls(early=tuple(found))

    @classmethod
    def behind(cls) -> "Failure":
        """Return the failure of a job that only the order holds back."""
        return cls(early=(Found(ReasonKind.PRIORITY),), is_behind=True)


def stage_two(world: World, job: PlainJob) -> list[Found]:
    """Return the limits that stop a job that is not tried, if they stop every alternative."""
    found: list[Found] = []
    for number in range(len(job.requirement.alternatives)):
        stopped = [name for names in limits_before_hosts(world, job, number) for name in names]
        if not stopped:
            return []
        found += [Found(ReasonKind.LIMIT, name) for name in stopped]
    return list(joined(world, found))


def failure_of(world: World, job: PlainJob) -> Failure:
    """Return, for a job that cannot start, what stages 2 and 3 find for each alternative at ``tasks.min``."""
    early: list[Found] = []
    late: list[tuple[int, Primary, int]] = []
    on_resources = False
    for number, alternative in enumerate(job.requirement.alternatives):
        trial = job.nothing_yet(exclusive=is_exclusive(job, alternative))
        before: dict[str, int] = {}
        for primary in parts_of(alternative):
            tasks = primary.tasks or job.least
            if stopped := part_limits(world, trial, before, primary, tasks):
                early += [Found(ReasonKind.LIMIT, name) for name in stopped]
                break
            missing = [
                Found(ReasonKind.NO_RESOURCE, name)
                for name in short_shared(world, trial, primary, tasks)
            ]
            if not matching_hosts(world, job, primary):
                missing.append(Found(ReasonKind.HOST_SELECTION))
            if missing:
                early += missing
                on_resources = True
                break
            placed = search(world, job, primary, tasks, trial)
            if placed is None:
                late.append((number, primary, tasks))
                on_resources = True
                break
            trial = placed
            before = added(before, fixed_amounts(world, primary, tasks))
        else:
            raise AssertionError(f"job {job.id} can start, and did not")
    return Failure(tuple(early), tuple(late), on_resources)


def measured(world: World, job: PlainJob, failure: Failure) -> list[Found]:
    """Return all reasons, those of stage 4 measured on the world at the end of phase 1."""
    found = list(failure.early)
    for number, primary, tasks in failure.late:
        exclusive = is_exclusive(job, job.requirement.alternatives[number])
        found += _stage_four(world, job, primary, tasks, job.nothing_yet(exclusive=exclusive))
    return found


def _stage_four(
    world: World, job: PlainJob, primary: Primary, tasks: int, nothing: Holding
) -> list[Found]:
    needs = needs_of(world, primary)
    bucket = largest_bucket(tasks, primary.span)
    fewest = fewest_hosts(tasks, primary.span)
    found: list[Found] = []
    before = nothing.with_shared(needs.shared_before_hosts(tasks))
    for host in matching_hosts(world, job, primary):
        short = short_on(world, needs, host, bucket, before, first=True)
        found += [Found(ReasonKind.NO_RESOURCE, name, (host.key,)) for name in short]
        if not short:
            part = Part(host.key, bucket, needs.bucket(bucket, first=True))
            claimed = before.claim(part, needs.shared[Per.HOST])
            refusals = claim_refusals(world, claimed, taken_per_host(needs))
            found += [
                Found(ReasonKind.LIMIT, refusal.name, (host.key,) if refusal.about_a_host else None)
                for refusal in refusals
            ]
    fixed = needs.shared_before_hosts(tasks)
    for name, amount in needs.shared[Per.HOST].items():
        if amount > 0 and world.free_shared(name) < fixed.get(name, 0) + fewest * amount:
            found.append(Found(ReasonKind.NO_RESOURCE, name))
    found += [
        Found(ReasonKind.LIMIT, refusal.name)
        for refusal in _fewest_hosts_refused(world, job, primary, tasks, nothing, needs)
    ]
    return found or [Found(ReasonKind.NO_RESOURCE, "hosts")]


def _fewest_hosts_refused(
    world: World, job: PlainJob, primary: Primary, tasks: int, nothing: Holding, needs: Needs
) -> list[Refusal]:
    """Return the limits not about a host, depending on the plan, that refuse even the fewest hosts."""
    fewest = fewest_hosts(tasks, primary.span)
    least = added(needs.bucket(tasks, first=True), needs.shared_before_hosts(tasks))
    dependent = taken_per_host(needs)
    for table in (needs.on_host, needs.shared):
        for name, amount in table[Per.HOST].items():
            already = (
                1 if table is needs.on_host else 0
            )  # bucket() has the amount of one host in it
            least[name] = least.get(name, 0) + (fewest - already) * amount
    matching = {host.key for host in matching_hosts(world, job, primary)}
    refused = list[Refusal]()
    for limit in world.limits:
        if is_about_hosts(limit) or not depends_on_plan(limit, dependent):
            continue
        for key in counted(world, limit, nothing):
            before = used(world, limit, key)
            if isinstance(before, frozenset):
                start, more = len(before), max(0, fewest - len(before & matching))
            else:
                start, more = before, least[limit.resource]
            if more > 0 and start + more > limit.amount:
                refused.append(Refusal(limit.name, about_a_host=False))
    names = breaks_guarantee(world, nothing.user, {name: least[name] for name in dependent})
    return refused + [Refusal(name, about_a_host=False) for name in names]


def joined(world: World, found: list[Found]) -> tuple[Found, ...]:
    """Return reasons in order, one for each kind and name, hosts in host order."""
    hosts_of: dict[tuple[ReasonKind, str | None], set[str] | None] = {}
    for one in found:
        key = (one.kind, one.name)
        if one.hosts is None:
            hosts_of[key] = hosts_of.get(key)
        else:
            hosts_of[key] = (hosts_of.get(key) or set()) | set(one.hosts)
    order = sorted(hosts_of, key=lambda key: (KIND_ORDER.index(key[0]), natural_key(key[1] or "")))
    return tuple(
        Found(kind, name, _in_host_order(world, hosts_of[kind, name])) for kind, name in order
    )


def _in_host_order(world: World, hosts: set[str] | None) -> tuple[str, ...] | None:
    return None if hosts is None else tuple(host.key for host in world.hosts if host.key in hosts)

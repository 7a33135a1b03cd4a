"""Why jobs wait: the only place where pend-reason records and pend reasons are made.

What stops a job is found in stages (docs/reference/session.md, section 5). Stages 1 to 3 are recorded when
the job is tried. Stage 4, what each host is short of, is measured once for each shape of jobs at the end of
phase 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.limits import HOSTS
from xce.domain.cluster.state import Scope, State
from xce.domain.formats.building import built
from xce.domain.formats.session_result import Reason, ReasonKind, ReasonSet
from xce.domain.scheduling import details
from xce.domain.scheduling.classes import JobClass, Part
from xce.domain.scheduling.details import HOST
from xce.domain.scheduling.guarantees import broken, kept_from

_KIND_ORDER: Final = {kind: number for number, kind in enumerate(ReasonKind)}


class PendRecord:
    """What one attempt to place one primary request found: the reasons of its stage.

    Attributes:
        limits: names of limits that stop it before any host (stage 2).
        unmet: of each meter that is short then: number, what is wanted, what is left.
        shared: shared resources that are short; ``unselected``: the part that no host matches (stage 3).
        late: the part and its tasks, if only hosts stopped it (stage 4).
    """

    __slots__ = ("late", "limits", "shared", "unmet", "unselected")

    def __init__(self) -> None:
        self.limits: Sequence[str] = ()
        self.unmet: Sequence[tuple[int, int, int]] = ()
        self.shared: Sequence[str] = ()
        self.unselected: Part | None = None
        self.late: tuple[Part, int] | None = None

    @property
    def is_about_resources(self) -> bool:
        """Return whether more resources might help: the job failed in stage 3 or 4."""
        return bool(self.shared or self.unselected or self.late)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was found."""
        return not self.limits and not self.is_about_resources


def new_record() -> PendRecord:
    """Return an empty pend-reason record: the factory that all attempts use."""
    return PendRecord()


class Finding(NamedTuple):
    """One reason before it is published; hosts by their place."""

    kind: ReasonKind
    name: str | None = None
    hosts: tuple[int, ...] | None = None
    detail: str | None = None


class Failure:
    """Why a job did not start.

    Attributes:
        early: what stages 1 to 3 found.
        late: parts that only hosts stopped, with their tasks; measured at the end of phase 1.
        unselected: parts that no host matches.
        on_resources: whether it failed in stage 3 or 4.
        is_behind: whether only the order holds it back.
    """

    __slots__ = ("early", "is_behind", "late", "on_resources", "set_id", "unselected")

    def __init__(
        self,
        early: Iterable[Finding] = (),
        late: Iterable[tuple[Part, int]] = (),
        *,
        unselected: Iterable[Part] = (),
        on_resources: bool = False,
        is_behind: bool = False,
    ) -> None:
        self.early = tuple(early)
        self.late = tuple(late)
        self.unselected = tuple(unselected)
        self.on_resources = on_resources
        self.is_behind = is_behind
        #: Main reason and id of the reason set, once published.
        self.set_id: tuple[ReasonKind, int] | None = None


def failure_of(core: State, job: JobClass, records: Sequence[PendRecord]) -> Failure:
    """Return the failure of a job from what was found for each of its alternatives."""
    meters = core.ground.meters.all
    early: list[Finding] = []
    late: list[tuple[Part, int]] = []
    for record in records:
        amounts = {  # of two meters with one name the one of which less is left
            (meters[number].name, meters[number].rule is None): details.unmet(
                core, number, wanted, left
            )
            for number, wanted, left in sorted(record.unmet, key=lambda one: (-one[2], one[1]))
        }
        early += [
            _early(
                ReasonKind.LIMIT, name, amounts.get((name, False)) or details.limit(core, job, name)
            )
            for name in sorted(record.limits, key=key_of_name)
        ]
        early += [
            _early(ReasonKind.NO_RESOURCE, name, amounts.get((name, True)))
            for name in record.shared
        ]
        if record.unselected is not None:
            early.append(_early(ReasonKind.HOST_SELECTION, None, details.selects_none(core)))
        if record.late is not None:
            late.append(record.late)
    return Failure(
        early,
        late,
        unselected=[record.unselected for record in records if record.unselected is not None],
        on_resources=any(record.is_about_resources for record in records),
    )


def _early(kind: ReasonKind, name: str | None, detail: str | None) -> Finding:
    return Finding(kind, name, None, detail)


def stopped(*, held: bool, waits_for: Iterable[str], unknown: Iterable[str]) -> Failure | None:
    """Return what stage 1 finds, None if nothing; ``waits_for``: the jobs among them that are here."""
    found: list[Finding] = []
    if held:
        found.append(Finding(ReasonKind.HELD))
    if waits_for:
        found.append(_early(ReasonKind.DEPENDENCY, None, details.waits_for(waits_for)))
    found += [_early(ReasonKind.UNIT_UNKNOWN, name, details.unit_unknown(name)) for name in unknown]
    return Failure(found) if found else None


def limited(core: State, job: JobClass, names: Iterable[str]) -> Failure:
    """Return the failure of a job that limits stop before it is tried."""
    return Failure(
        _early(ReasonKind.LIMIT, name, details.limit(core, job, name))
        for name in sorted(names, key=key_of_name)
    )


def behind(blocker: str) -> Failure:
    """Return the failure of the jobs that only the order holds back, behind this one."""
    found = _early(ReasonKind.PRIORITY, None, details.stands_behind(blocker))
    return Failure((found,), is_behind=True)


# Stage 4


class Shortage:
    """Which hosts are short of what; where all of a scope are, they are listed once."""

    __slots__ = ("_all", "_core")

    def __init__(self, core: State) -> None:
        self._core = core
        #: By scope and resource: the most that a host has free, and all hosts.
        self._all: dict[tuple[Scope, str], tuple[int, tuple[int, ...]]] = {}

    def places(self, scope: Scope, resource: str, amount: int) -> tuple[int, ...]:
        """Return the hosts of a scope that have less than an amount free."""
        hosts = self._core.view(scope).matching
        column = self._core.column(resource)
        known = self._all.get((scope, resource))
        if known is None:
            most = max([column[place] for place in hosts], default=0)
            known = self._all[scope, resource] = most, tuple(hosts)
        if amount > known[0]:
            return known[1]
        return tuple([place for place in hosts if column[place] < amount])


def measure(
    core: State, job: JobClass, part: Part, tasks: int, shortage: Shortage | None = None
) -> list[Finding]:
    """Return what stops a part on hosts: stage 4, on the state as it is, without the claims of earlier parts.

    ``shortage``: what is known of this state.
    """
    shortage = shortage or Shortage(core)
    request = part.request
    bucket, fewest = request.largest_bucket(tasks), request.fewest_hosts(tasks)
    amounts = request.bucket(bucket, first=True)
    hosts = core.view(part.scope).matching
    found: list[Finding] = []
    barred = core.busy if part.is_exclusive else core.shut
    short: set[int] = set()
    for resource, amount in amounts:
        places = shortage.places(part.scope, resource, amount)
        if places:
            found.append(Finding(ReasonKind.NO_RESOURCE, resource, places))
            if not part.is_free:
                short.update(places)
    if barred and (taken := [place for place in hosts if place in barred]):
        found.append(Finding(ReasonKind.NO_RESOURCE, HOST, tuple(taken)))
        short.update(taken)
    if not part.is_free:
        unshort = [place for place in hosts if place not in short]
        found += _claims_refused(core, part, tasks, bucket, unshort)
        found += _fewest_hosts_refused(core, job, part, tasks, fewest)
    return found or [_early(ReasonKind.NO_RESOURCE, HOSTS, details.too_few(tasks))]


def _claims_refused(
    core: State, part: Part, tasks: int, bucket: int, hosts: list[int]
) -> list[Finding]:
    """Return the placed limits that refuse the largest bucket, with the hosts where they are about hosts."""
    uses = dict(part.request.bucket(bucket, first=True))
    shared = part.fixed_shared(tasks)
    for name, amount in part.request.shared_host:
        shared[name] = shared.get(name, 0) + amount
    found: list[Finding] = []
    for meter in part.placed:
        refusing = [
            place
            for place in hosts
            if core.placed.refusing((meter,), [(place, uses)], shared, core.names)
        ]
        if refusing:
            rule = meter.rule
            is_about_hosts = rule is not None and (rule.per_host or rule.hosts is not None)
            places = tuple(refusing) if is_about_hosts else None
            detail = None if rule is None else details.at_most(meter.resource, rule)
            found.append(Finding(ReasonKind.LIMIT, meter.name, places, detail))
    return found


def _fewest_hosts_refused(
    core: State, job: JobClass, part: Part, tasks: int, fewest: int
) -> list[Finding]:
    """Return what refuses even the fewest hosts that a plan can have, and is not about a host."""
    found: list[Finding] = []
    for number, a_task, a_host, first_task, first_once in part.claimed:
        meter = core.ground.meters.all[number]
        need = tasks * (a_task + first_task) + first_once + fewest * a_host
        if meter.rule is None:
            need += part.fixed_shared(tasks).get(meter.name, 0)
        if need > core.left[number]:
            kind = ReasonKind.NO_RESOURCE if meter.rule is None else ReasonKind.LIMIT
            detail = details.fewest_hosts(meter, need, core.left[number])
            found.append(_early(kind, meter.name, detail))
    matching = core.view(part.scope).matching
    for meter in part.placed:
        rule = meter.rule
        if rule is None or rule.per_host or rule.hosts is not None:
            continue
        known = core.placed.counted_hosts(meter)
        more = max(0, fewest - sum(1 for place in matching if place in known))
        if more > 0 and len(known) + more > rule.amount:
            detail = details.at_most(meter.resource, rule)
            found.append(_early(ReasonKind.LIMIT, meter.name, detail))
    if part.is_guarded:
        found += [
            _early(ReasonKind.LIMIT, name, details.limit(core, job, name))
            for name in _guarantees_broken(core, job, part, tasks, fewest)
        ]
    return found


def _guarantees_broken(
    core: State, job: JobClass, part: Part, tasks: int, fewest: int
) -> list[str]:
    request = part.request
    least: dict[str, int] = {}
    for name, amount in (*request.host, *request.shared_host):
        least[name] = least.get(name, 0) + amount * fewest
    for name, amount in (*request.task, *request.shared_task):
        if name in least:
            least[name] += amount * tasks
    for name, amount in (*request.job, *request.shared_job):
        if name in least:
            least[name] += amount
    return [
        name
        for resource, amount in least.items()
        for name in broken(core.total_free(resource), amount, kept_from(core, job, resource))
    ]


# Publishing


class Publisher:
    """Turns findings into numbered sets of reasons; equal sets are one set."""

    def __init__(self, core: State) -> None:
        self._core = core
        self._sets: dict[tuple[Finding, ...], int] = {}
        self._measured: dict[object, list[Finding]] = {}
        self._shortage = Shortage(core)

    def publish(self, failure: Failure, job: JobClass) -> tuple[ReasonKind, int]:
        """Return the main reason of a failure and the id of its set of reasons."""
        if failure.set_id is None:
            found = list(failure.early)
            for part, tasks in failure.late:
                guarded = job if part.is_guarded else None
                key = (
                    part.scope, part.request, tasks, part.is_exclusive, part.placed, part.claimed, guarded,
                )  # fmt: skip
                measured = self._measured.get(key)
                if measured is None:
                    measured = self._measured[key] = measure(
                        self._core, job, part, tasks, self._shortage
                    )
                found += measured
            joined = found[0:1] if len(found) == 1 else join(found)
            number = self._sets.setdefault(tuple(joined), len(self._sets) + 1)
            failure.set_id = (joined[0].kind, number)
        return failure.set_id

    def findings(self) -> Mapping[int, tuple[Finding, ...]]:
        """Return all sets by id."""
        return {number: found for found, number in self._sets.items()}

    def sets(self) -> tuple[ReasonSet, ...]:
        """Return all sets, by id."""
        names = self._core.ground.hosts.names
        texts: dict[tuple[int, ...], tuple[str, ...]] = {}
        made: list[ReasonSet] = []
        for found, number in self._sets.items():
            reasons: list[Reason] = []
            for kind, name, places, detail in found:
                hosts: tuple[str, ...] | None = None
                if places is not None:
                    hosts = texts.get(places)
                    if hosts is None:
                        hosts = texts[places] = tuple([names[place] for place in places])
                is_limit = kind is ReasonKind.LIMIT
                if kind is ReasonKind.NO_RESOURCE and name is not None and places is not None:
                    detail = details.short_hosts(self._core, name, places)
                values = {
                    "kind": kind,
                    "resource": None if is_limit else name,
                    "hosts": hosts,
                    "limit": name if is_limit else None,
                    "detail": detail,
                }
                reasons.append(built(Reason, values))
            made.append(built(ReasonSet, {"id": number, "reasons": tuple(reasons)}))
        return tuple(made)


def join(found: Iterable[Finding]) -> list[Finding]:
    """Return reasons in order, one for each kind and name, their hosts and details together."""
    hosts_of: dict[tuple[ReasonKind, str | None], set[int] | None] = {}
    details_of: dict[tuple[ReasonKind, str | None], list[str]] = {}
    for kind, name, hosts, detail in found:
        key = (kind, name)
        texts = details_of.setdefault(key, [])
        if detail is not None and detail not in texts:
            texts.append(detail)
        known = hosts_of.get(key)
        if hosts is None:
            hosts_of[key] = known
        else:
            hosts_of[key] = set(hosts) if known is None else known | set(hosts)
    joined = [
        Finding(
            key[0],
            key[1],
            None if hosts is None else tuple(sorted(hosts)),
            "; ".join(details_of[key]) or None,
        )
        for key, hosts in hosts_of.items()
    ]
    joined.sort(key=lambda one: (_KIND_ORDER[one.kind], key_of_name(one.name or "")))
    return joined

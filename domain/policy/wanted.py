"""What the demand still wants, in the order of the jobs: what was asked after it is subtracted (D7)."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from heapq import merge
from itertools import islice

from xce.domain.formats.inventory import InstanceEntry, RequestEntry
from xce.domain.formats.policy import PolicyInput, SpotShare
from xce.domain.formats.provider import Kind
from xce.domain.formats.session_result import Demand
from xce.domain.formats.snapshot import DEFAULT_PROJECT
from xce.domain.policy import facts, spot
from xce.domain.policy.lines import line_id
from xce.domain.policy.standing import minimums, missing
from xce.domain.values import natural_key


@dataclass(frozen=True, slots=True)
class Lot:
    """A part of the demand for one item: what comes first for a job, in hosts or units.

    Attributes:
        order: place of the first job among the counted jobs.
        jobs: the jobs it serves, in job order.
        project: of the first of them, whose budgets pay; None: it is for no job.
    """

    kind: Kind
    item: str
    amount: int
    order: int
    jobs: tuple[str, ...]
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Want:
    """The demand for one item: how much, how much of it was asked since, and how much no job wants; ``spare``: as spare hosts."""

    kind: Kind
    item: str
    amount: int
    asked_since: int
    standing: int = 0
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The whole demand after subtraction.

    Attributes:
        lots: what is still wanted, earlier jobs first.
        items: the demand for each item, by kind and name.
    """

    lots: tuple[Lot, ...]
    items: Mapping[tuple[Kind, str], Want]


@dataclass(frozen=True, slots=True)
class _Part:
    """A job's part in the demand for one item."""

    order: int
    job: str
    weight: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The units [start, stop) of an item's demand, which begin with one job."""

    start: int
    stop: int
    order: int
    jobs: tuple[str, ...]


def wanted(inputs: PolicyInput) -> Wanted:
    """Return what the demand of this round still wants."""
    demand = inputs.demand
    items: dict[tuple[Kind, str], Want] = {}
    stretches: dict[tuple[Kind, str], list[_Stretch]] = {}
    for host in demand.hosts:
        parts = [_Part(job.order, job.job, job.hosts) for job in host.jobs]
        stretches[Kind.HOST, host.template] = _stretches(host.count, parts)
        items[Kind.HOST, host.template] = Want(
            Kind.HOST, host.template, host.count, _hosts_asked_since(inputs, host.template)
        )
    for count in demand.countable:
        parts = [_Part(job.order, job.job, job.amount) for job in count.jobs]
        stretches[Kind.COUNTABLE, count.name] = _stretches(count.amount, parts)
        items[Kind.COUNTABLE, count.name] = Want(
            Kind.COUNTABLE, count.name, count.amount, _units_asked_since(inputs, count.name)
        )
    project_of = projects_of(demand)
    payers = {project for budget in inputs.budgets for project in budget.projects}
    skipped = {} if payers else {key: want.asked_since for key, want in items.items()}
    of_jobs = (
        replace(lot, project=project_of.get(lot.jobs[0], DEFAULT_PROJECT)) if lot.jobs else lot
        for lot in _in_job_order(demand, items, stretches, skipped)
    )
    lots = [
        *(_less_asked(inputs, of_jobs, items, payers) if payers else of_jobs),
        *_headroom(inputs, items),
        *_standing(inputs, items),
    ]
    return Wanted(tuple(lots), items)


def projects_of(demand: Demand) -> dict[str, str]:
    """Return the project of each job that has one of its own."""
    return {job: project for project, jobs in demand.projects.items() for job in jobs}


def jobs_of(demand: Demand) -> tuple[str, ...]:
    """Return all jobs of a demand, in job order."""
    return _in_order(
        [
            *(_Part(job.order, job.job, job.hosts) for host in demand.hosts for job in host.jobs),
            *(_Part(job.order, job.job, job.amount) for c in demand.countable for job in c.jobs),
        ]
    )


def _headroom(inputs: PolicyInput, items: dict[tuple[Kind, str], Want]) -> Iterator[Lot]:
    """Yield what is missing of the headroom of each elastic resource, behind all jobs, and count it as wanted."""
    for terms in sorted(inputs.shared, key=lambda terms: natural_key(terms.name)):
        if not terms.headroom or terms.spare is None:
            continue
        key = Kind.COUNTABLE, terms.name
        before = items.get(key, Want(*key, 0, 0))
        missing = min(terms.headroom, terms.headroom - terms.spare) - before.asked_since
        if missing > 0:
            items[key] = Want(*key, before.amount + missing, before.asked_since)
            yield Lot(*key, missing, len(inputs.demand.hosts) + len(items), ())


def _standing(inputs: PolicyInput, items: dict[tuple[Kind, str], Want]) -> Iterator[Lot]:
    """Yield what is missing of the standing minimums, behind all jobs, and count it as wanted."""
    hosts = {item: want for (kind, item), want in items.items() if kind is Kind.HOST}
    still_wanted = {item: max(0, want.amount - want.asked_since) for item, want in hosts.items()}
    for template, rest in missing(inputs, still_wanted).items():
        key = Kind.HOST, template
        before = items.get(key, Want(*key, 0, 0))
        is_spare = template not in minimums(inputs)
        items[key] = Want(*key, before.amount + rest, before.asked_since, rest, is_spare)
        yield Lot(*key, rest, len(inputs.demand.hosts) + len(items), ())


# ------------------------------------------------------------- asked since (D7)
def _asked_for(inputs: PolicyInput, kind: Kind, item: str) -> Counter[str | None]:
    """Return what was asked of an item after the demand's position and is coming or there, by the project that pays."""
    asked = _hosts_asked_for if kind is Kind.HOST else _units_asked_for
    return asked(inputs, item)


def _hosts_asked_since(inputs: PolicyInput, line: str) -> int:
    asked = _hosts_asked_for(inputs, line).total()
    if (rule := spot.rule_of(inputs, line)) is not None:
        asked += _asked_instead(inputs, rule)
    return asked


def _asked_instead(inputs: PolicyInput, rule: SpotShare) -> int:
    """Return the hosts that were asked instead of spot ones since: those beyond what was wanted of their own template."""
    own = sum(
        host.count for host in inputs.demand.hosts if spot.is_of(host.template, rule.on_demand)
    )
    return max(0, _hosts_asked_for(inputs, rule.on_demand).total() - own)


def _units_asked_since(inputs: PolicyInput, resource: str) -> int:
    return _units_asked_for(inputs, resource).total()


def _hosts_asked_for(inputs: PolicyInput, line: str) -> Counter[str | None]:
    """Return the hosts of a line that were asked after the demand's position and are coming or there, by project.

    A host that was granted meanwhile, and even joined, was not seen by the demand either; one that failed is gone again.
    """
    asked = Counter[str | None]()
    requests, instances = inputs.inventory.requests, inputs.inventory.instances
    of_request: dict[str, list[InstanceEntry]] = {}
    for instance in instances:
        if instance.request is not None:
            of_request.setdefault(instance.request, []).append(instance)
    for request in requests:
        if (
            request.kind is Kind.HOST
            and request.asked_position > inputs.position
            and _is_of_line(request.template, request.price_per_hour, line)
        ):
            came = _came(request, of_request.get(request.id))
            asked[request.project] += facts.open_amount(request) + came
    return asked


def _came(request: RequestEntry, instances: list[InstanceEntry] | None) -> int:
    if instances is None:
        return request.granted
    return sum(1 for instance in instances if instance.state in facts.USABLE)


def _is_of_line(template: str | None, price: Decimal | None, line: str) -> bool:
    return template is not None and line in (template, line_id(template, price))


def _units_asked_for(inputs: PolicyInput, resource: str) -> Counter[str | None]:
    """Return the units of a resource that were asked after the demand's position and are coming or there, by project."""
    asked = Counter[str | None]()
    of_request: dict[str, int] = {}
    for grant in inputs.inventory.grants:
        if grant.request is not None:
            of_request[grant.request] = of_request.get(grant.request, 0) + facts.usable(grant)
    for request in inputs.inventory.requests:
        if (
            request.kind is Kind.COUNTABLE
            and request.asked_position > inputs.position
            and request.resource == resource
        ):
            came = of_request.get(request.id, request.granted)
            asked[request.project] += facts.open_amount(request) + came
    return asked


def _less_asked(
    inputs: PolicyInput,
    lots: Iterable[Lot],
    items: Mapping[tuple[Kind, str], Want],
    payers: Collection[str],
) -> Iterator[Lot]:
    """Yield the lots less what was asked since: what a project with a budget paid for serves its own jobs, the rest the others."""
    left: dict[tuple[Kind, str], Counter[str | None]] = {}
    for key, want in items.items():
        asked = _asked_for(inputs, *key)
        by_payer = Counter[str | None]()
        rest = want.asked_since
        for project in sorted(payers):
            by_payer[project] = min(rest, asked[project])
            rest -= by_payer[project]
        by_payer[None] = rest
        left[key] = by_payer
    remaining: list[Lot] = []
    for lot in lots:
        payer = lot.project if lot.project in payers else None
        done = min(lot.amount, left[lot.kind, lot.item][payer])
        left[lot.kind, lot.item][payer] -= done
        remaining.append(replace(lot, amount=lot.amount - done))
    for lot in remaining:  # and what nobody of those wants any more, anybody else
        by_payer = left[lot.kind, lot.item]
        done = min(lot.amount, by_payer.total())
        rest = done
        for payer in by_payer:
            part = min(rest, by_payer[payer])
            by_payer[payer] -= part
            rest -= part
        if lot.amount > done:
            yield replace(lot, amount=lot.amount - done)


# ---------------------------------------------------------------- in job order
def _stretches(count: int, parts: list[_Part]) -> list[_Stretch]:
    """Return the units of a demand as stretches, one for each job that is the first to need some.

    Several small jobs may share a host, so the parts can add up to more than the demand; a job's place is then its share.
    """
    parts = sorted(parts, key=lambda part: (part.order, natural_key(part.job)))
    total = sum(part.weight for part in parts)
    if not count:
        return []
    if not total:
        return [_Stretch(0, count, parts[0].order if parts else 0, _in_order(parts))]
    result: list[_Stretch] = []
    before, start = 0, 0
    for index, part in enumerate(parts):
        stop = -(-(before + part.weight) * count // total)
        if stop > start:
            jobs: list[str] = []
            reached = before
            for later in islice(parts, index, None):
                if reached * count >= stop * total:
                    break
                jobs.append(later.job)
                reached += later.weight
            result.append(_Stretch(start, stop, part.order, tuple(jobs)))
            start = stop
        before += part.weight
    return result


def _in_order(parts: Iterable[_Part]) -> tuple[str, ...]:
    ordered = sorted(parts, key=lambda part: (part.order, natural_key(part.job)))
    return tuple(dict.fromkeys(part.job for part in ordered))


def _in_job_order(
    demand: Demand,
    items: Mapping[tuple[Kind, str], Want],
    stretches: Mapping[tuple[Kind, str], list[_Stretch]],
    skipped: Mapping[tuple[Kind, str], int],
) -> Iterator[Lot]:
    """Yield the lots: hosts in the order in which they were opened, units where their job comes; without the first of each item
    that are ``skipped``.
    """
    hosts: list[tuple[int, int, Lot]] = []
    latest = 0
    for template, start, stop in _host_runs(demand, stretches):
        start = max(start, skipped.get((Kind.HOST, template), 0))
        for lot in _cut(Kind.HOST, template, start, stop, stretches[Kind.HOST, template]):
            latest = max(latest, lot.order)
            hosts.append((latest, 0, lot))
    units = [
        (lot.order, 1, lot)
        for (kind, item), want in items.items()
        if kind is Kind.COUNTABLE
        for lot in _cut(
            kind, item, skipped.get((kind, item), 0), want.amount, stretches[kind, item]
        )
    ]
    units.sort(key=lambda entry: (entry[0], natural_key(entry[2].item)))
    for _, _, lot in merge(hosts, units, key=lambda entry: entry[:2]):
        yield lot


def _cut(kind: Kind, item: str, start: int, stop: int, stretches: list[_Stretch]) -> Iterator[Lot]:
    index = bisect_right(stretches, start, key=lambda stretch: stretch.stop)
    while start < stop and index < len(stretches):
        stretch = stretches[index]
        last = min(stop, stretch.stop)
        yield Lot(kind, item, last - start, stretch.order, stretch.jobs)
        start, index = last, index + 1


def _host_runs(
    demand: Demand, stretches: Mapping[tuple[Kind, str], list[_Stretch]]
) -> Iterator[tuple[str, int, int]]:
    """Yield (template, start, stop) in the order in which the hosts were opened.

    Where ``demand.order`` says less than the counts, the rest follows by the first job that needs it.
    """
    counts = {host.template: host.count for host in demand.hosts}
    reached = dict.fromkeys(counts, 0)
    for template, run in demand.order:
        if template in counts:
            start = reached[template]
            stop = min(counts[template], start + run)
            reached[template] = stop
            yield template, start, stop

    def place(template: str) -> tuple[object, ...]:
        first = next(iter(stretches[Kind.HOST, template]), None)
        return (first.order if first else 0, natural_key(template))

    for template in sorted(counts, key=place):
        yield template, reached[template], counts[template]

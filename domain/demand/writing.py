"""The demand of a session in the format of its result."""

from collections.abc import Iterable, Mapping, Sequence

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.state import State
from xce.domain.demand.one_task_each import OneTaskEach
from xce.domain.demand.solution import Solution
from xce.domain.demand.sorting_out import Waiting
from xce.domain.demand.supply import Supply
from xce.domain.formats.building import all_built, built
from xce.domain.formats.session_result import (
    CountDemand,
    HostDemand,
    JobAmount,
    JobHosts,
    JobWhy,
    Provisioning,
)
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.placement import Placed


class Writer:
    """Adds up what the counted jobs need, in job order.

    Attributes:
        provisioning: what each counted job waits for, by id.
    """

    def __init__(self, compiled: Compiled, supply: Supply, base: State, found: Solution) -> None:
        self._meters = compiled.core.ground.meters.all
        self._real = len(compiled.core.ground.hosts.hosts)
        self._first_new = base.count
        self._flying = [host.id for host in compiled.in_flight]
        self._templates = [offer.template.id for offer in found.order]
        #: By meter of a shared resource: what there is, and that with what is in flight.
        self._there = [
            left - supply.in_flight.get(number, 0) for number, left in enumerate(base.left)
        ]
        self._coming = base.left
        self._taken: dict[int, int] = {}
        self._host_jobs: dict[str, list[JobHosts]] = {}
        self._count_jobs: dict[str, list[JobAmount]] = {}
        self._wanted: dict[str, int] = {}
        self._amounts: dict[str, int] = {}
        self._alike: dict[object, Provisioning] = {}
        self.provisioning: dict[str, Provisioning] = {}
        placements = found.run.placements
        if isinstance(placements, OneTaskEach):
            self._add_simple([candidate.job.id for candidate in found.jobs], placements)
            return
        for place, (candidate, placed) in enumerate(
            zip(found.jobs, placements, strict=True), start=1
        ):
            self._add(candidate.job.id, place, placed)

    def _add_simple(self, names: Sequence[str], placements: OneTaskEach) -> None:
        """Add jobs of which most have one task on a new host and nothing else."""
        first_new, provisioning = self._first_new, self.provisioning
        more_of = placements.more_of
        lists: list[list[JobHosts]] = []
        alike: list[Provisioning] = []
        made: dict[str, Provisioning] = {}
        for name in self._templates:
            lists.append(self._host_jobs.setdefault(name, []))
            if name not in made:
                values = {"templates": {name: 1}, "countable": {}, "in_flight": ()}
                made[name] = built(Provisioning, values)
            alike.append(made[name])
        rows: list[dict[str, str | int]] = []
        targets: list[list[JobHosts]] = []
        metered = {job: bool(placements.metered(job)) for job in dict.fromkeys(placements.jobs)}
        for number, (name, job, place) in enumerate(
            zip(names, placements.jobs, placements.place_of, strict=True)
        ):
            new = place - first_new
            if new < 0 or metered[job] or number in more_of:
                _append(targets, rows)
                self._add(name, number + 1, placements[number])
                continue
            rows.append({"job": name, "order": number + 1, "hosts": 1})
            targets.append(lists[new])
            provisioning[name] = alike[new]
        _append(targets, rows)

    def _add(self, job: str, place: int, placed: Placed) -> None:
        templates, in_flight = self._hosts(placed)
        countable, flying = self._counts(placed) if placed.metered else ({}, [])
        for name, count in templates.items():
            part = {"job": job, "order": place, "hosts": count}
            self._host_jobs.setdefault(name, []).append(built(JobHosts, part))
        for name, amount in countable.items():
            part = {"job": job, "order": place, "amount": amount}
            self._count_jobs.setdefault(name, []).append(built(JobAmount, part))
            self._amounts[name] = self._amounts.get(name, 0) + amount
        names = (*in_flight, *flying)
        key = (*templates.items(), None, *countable.items(), names)
        known = self._alike.get(key)
        if known is None:
            known = self._alike[key] = built(
                Provisioning, {"templates": templates, "countable": countable, "in_flight": names}
            )
        self.provisioning[job] = known

    def _hosts(self, placed: Placed) -> tuple[dict[str, int], list[str]]:
        """Return the new hosts that a job uses by template, and the ids of those in flight."""
        first_new = self._first_new
        if len(placed.claims) == 1:
            place = placed.claims[0].place
            if place >= first_new:
                return {self._templates[place - first_new]: 1}, []
        templates: dict[str, int] = {}
        in_flight: set[int] = set()
        for place in {claim.place for claim in placed.claims}:
            if place >= first_new:
                name = self._templates[place - first_new]
                templates[name] = templates.get(name, 0) + 1
            elif place >= self._real:
                in_flight.add(place - self._real)
        return by_name(templates), [self._flying[number] for number in sorted(in_flight)]

    def _counts(self, placed: Placed) -> tuple[dict[str, int], list[str]]:
        """Return the new amounts that a job uses, and the names of those in flight.

        What there is comes first, then what is in flight. Where more is used than there is, that is made good
        with the first amount that is taken.
        """
        new: dict[str, int] = {}
        flying: list[str] = []
        for number, amount in placed.metered.items():
            meter = self._meters[number]
            if meter.rule is not None or amount <= 0:
                continue
            before = self._taken.get(number, 0)
            after = self._taken[number] = before + amount
            beyond_there = max(0, after - self._there[number])
            beyond_coming = max(0, after - self._coming[number])
            if before:
                beyond_there -= max(0, before - self._there[number])
                beyond_coming -= max(0, before - self._coming[number])
            if beyond_there > 0:
                self._wanted[meter.name] = self._wanted.get(meter.name, 0) + beyond_there
            if beyond_there > beyond_coming:
                flying.append(meter.name)
            if beyond_coming > 0:
                new[meter.name] = beyond_coming
        return by_name(new), sorted(flying, key=key_of_name)

    def host_demands(self) -> tuple[HostDemand, ...]:
        """Return how many hosts are wanted of each template."""
        totals: dict[str, int] = {}
        for name in self._templates:
            totals[name] = totals.get(name, 0) + 1
        return tuple(
            HostDemand.model_construct(
                template=name, count=count, jobs=tuple(self._host_jobs.get(name, ()))
            )
            for name, count in by_name(totals).items()
        )

    def count_demands(self) -> tuple[CountDemand, ...]:
        """Return how much is wanted of each shared resource."""
        return tuple(
            CountDemand.model_construct(
                name=name,
                amount=self._amounts.get(name, 0),
                wanted=amount,
                jobs=tuple(self._count_jobs.get(name, ())),
            )
            for name, amount in by_name(self._wanted).items()
        )

    def order(self) -> tuple[tuple[str, int], ...]:
        """Return the demanded hosts in the order opened, equal ones in a run."""
        runs: list[tuple[str, int]] = []
        for name in self._templates:
            if runs and runs[-1][0] == name:
                runs[-1] = (name, runs[-1][1] + 1)
            else:
                runs.append((name, 1))
        return tuple(runs)


def _append(targets: list[list[JobHosts]], rows: list[dict[str, str | int]]) -> None:
    """Append what rows say to their targets, and begin anew."""
    for target, made in zip(targets, all_built(JobHosts, rows), strict=True):
        target.append(made)
    targets.clear()
    rows.clear()


def whys(waiting: Sequence[Waiting], listed: Iterable[tuple[int, str]]) -> tuple[JobWhy, ...]:
    """Return jobs by their place among the waiting ones, each with the reason."""
    rows = [{"job": waiting[at][0].id, "why": why} for at, why in listed]
    return tuple(all_built(JobWhy, rows))


def by_name(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return amounts in the order of their names."""
    if len(amounts) < 2:
        return dict(amounts)
    return {name: amounts[name] for name in sorted(amounts, key=key_of_name)}

"""Why a job that could run some day found nothing in the catalog pass."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.requirement import Span
from xce.domain.cluster.state import State
from xce.domain.demand.catalog_pass import Pass, Stopped
from xce.domain.demand.offer import Offer
from xce.domain.demand.supply import Supply, most_hosts_of, tasks_on_empty
from xce.domain.formats.session_result import ReasonKind
from xce.domain.scheduling.classes import JobClass, Part
from xce.domain.scheduling.explain import measure
from xce.domain.scheduling.placement import place, undo_placed

#: Hosts that are added to see whether more would help; a job that could use more is taken to fit.
_HOSTS_MAX: Final = 20_000
_ANY_SPAN: Final = Span()
#: Capacities named in one text before the others are only counted.
_NAMED: Final = 3
#: Said of a job that could run some day, and not on what the catalog has.
NO_TEMPLATE: Final = "no template fits"


class WhyNot:
    """Says for each class once why its jobs are not counted."""

    def __init__(self, catalog: Pass, supply: Supply) -> None:
        self._catalog = catalog
        self._supply = supply
        self._known: dict[JobClass, str] = {}

    def why(self, job: JobClass) -> str:
        """Return what stopped a job: a limit, a count, a pause, or that there is no room."""
        if job not in self._known:
            self._known[job] = self._why(job)
        return self._known[job]

    def _why(self, job: JobClass) -> str:
        stopped = self._catalog.failed.get(job, Stopped())
        if stopped.short:
            name, amount = min(stopped.short, key=lambda short: key_of_name(short[0]))
            return f"short {amount} of {name}, not provisionable"
        if stopped.limits:
            return f"limit {min(stopped.limits, key=key_of_name)}"
        core = self._catalog.core
        for offer in self._supply.offers:
            until = offer.template.paused_until
            if offer.is_paused and until is not None and self._would_fit(core, job, [offer]):
                because = f": {offer.template.paused_why}" if offer.template.paused_why else ""
                return f"template {offer.template.id} is paused until {_stamp(until)}{because}"
        return self._no_room(core, job)

    def _no_room(self, core: State, job: JobClass) -> str:
        everything = [offer for offer in self._supply.offers if most_hosts_of(job, offer.kind) > 0]
        if not everything:
            return NO_TEMPLATE
        if self._would_fit(core, job, everything):
            return f"no more room on any template that fits{self._short_of(job, everything)}"
        for alternative in job.alternatives:
            for part in alternative.parts:
                if short := _short_on_hosts(core, part, part.tasks or job.least):
                    return short
                for found in measure(core, job, part, part.tasks or job.least):
                    if found.kind is ReasonKind.LIMIT:
                        return f"limit {found.name}"
        names = [meter.name for meter in job.placed]
        return f"limit {min(names, key=key_of_name)}" if names else NO_TEMPLATE

    def _short_of(self, job: JobClass, offers: Iterable[Offer]) -> str:
        """Return which capacities leave less room than templates and job could use, with a colon; nothing if none does."""
        rooms = self._catalog.rooms
        found: dict[str, int] = {}
        for offer in offers:
            for draw in offer.template.draws:
                if draw.capacity is not None:
                    left = rooms.capacities[draw.capacity]
                    if left < min(draw.most, most_hosts_of(job, offer.kind)):
                        found[draw.capacity] = left
        texts = [
            f"capacity of {name} leaves room for {found[name]}"
            if found[name]
            else f"capacity of {name} is used up"
            for name in sorted(found, key=key_of_name)
        ]
        more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
        return f": {', '.join(texts[:_NAMED])}{more}" if texts else ""

    def _would_fit(self, core: State, job: JobClass, offers: Sequence[Offer]) -> bool:
        """Return whether the job had a place with as many hosts of these templates as it could use."""
        if any(_holds_alone(core, job, offer) for offer in offers):
            return True
        kinds = [
            offer.kind
            for offer in offers
            for _ in range(min(_HOSTS_MAX + 1, most_hosts_of(job, offer.kind)))
        ]
        if len(kinds) > _HOSTS_MAX:
            return True
        for kind in kinds:
            core.add_host(kind)
        placed = place(core, job, job.least)
        if placed is not None:
            undo_placed(core, placed)
        core.remove_last_hosts(len(kinds))
        return placed is not None


def _holds_alone(core: State, job: JobClass, offer: Offer) -> bool:
    """Return whether it is plain that as many empty hosts of a template as a job could use take all of it."""
    if len(job.alternatives) != 1 or len(job.alternatives[0].parts) != 1 or job.outside:
        return False
    part = job.alternatives[0].parts[0]
    tasks = part.tasks or job.least
    if not part.is_free or part.request.job or part.request.span != _ANY_SPAN:
        return False
    if any(a_task * tasks + once > max(0, core.left[n]) for n, a_task, once in part.fixed):
        return False
    return most_hosts_of(job, offer.kind) <= _HOSTS_MAX and tasks_on_empty(part, offer.kind, 1) > 0


def _short_on_hosts(core: State, part: Part, tasks: int) -> str | None:
    """Return what a part lacks of a shared resource that it takes on every host, on the fewest hosts it can have."""
    fixed, fewest = part.fixed_shared(tasks), part.request.fewest_hosts(tasks)
    for name, amount in sorted(part.request.shared_host, key=lambda each: key_of_name(each[0])):
        left = max(0, core.left[core.ground.meters.shared[name].number])
        short = fixed.get(name, 0) + amount * fewest - left
        if short > 0:
            return f"short {short} of {name}, not provisionable"
    return None


def _stamp(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")

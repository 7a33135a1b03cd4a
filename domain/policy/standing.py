"""Standing minimums and spare hosts: hosts of a template that are there whether jobs want them or not, in windows of the day."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from xce.domain.formats.inventory import InstanceEntry
from xce.domain.formats.policy import PolicyInput, SpareHosts, StandingMinimum
from xce.domain.formats.provider import Kind
from xce.domain.policy import facts
from xce.domain.policy.times import later
from xce.domain.provisioning.instance import InstanceState
from xce.domain.values import natural_key


def minimums(inputs: PolicyInput) -> dict[str, int]:
    """Return the hosts of each template that have to be there now, by template; the largest of its minimums counts.

    A window counts from the lead time before it on, so that its hosts are there when it begins.
    """
    return _largest(inputs, inputs.settings.standing)


def spares(inputs: PolicyInput) -> dict[str, int]:
    """Return the hosts of each template that have to be there without a job now, by template; the same windows."""
    return _largest(inputs, inputs.settings.spare)


def _largest(
    inputs: PolicyInput, entries: Iterable[StandingMinimum | SpareHosts]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in entries:
        if entry.hosts and _counts(entry, inputs):
            found[entry.template] = max(entry.hosts, found.get(entry.template, 0))
    return {template: found[template] for template in sorted(found, key=natural_key)}


def _counts(entry: StandingMinimum | SpareHosts, inputs: PolicyInput) -> bool:
    return entry.holds(inputs.now) or entry.holds(later(inputs.now, _lead(inputs, entry.template)))


def _lead(inputs: PolicyInput, template: str) -> timedelta:
    """Return how long hosts of a template take at most from the ask on: the longest of those who offer it; 0: nobody says."""
    leads = (
        max(provider.lead_time.p50, provider.lead_time.p95)
        for provider in inputs.providers
        if any(offer.template_id == template for offer in provider.templates)
    )
    return max(leads, default=timedelta(0))


def missing(inputs: PolicyInput, still_wanted: Mapping[str, int]) -> dict[str, int]:
    """Return what is missing of the minimums, beyond what is there, on its way, and asked for jobs in this round.

    Args:
        inputs: the round.
        still_wanted: by template or line of it, the hosts that jobs want and that are not asked yet.
    """
    result = _missing_spares(inputs)
    for template, least in minimums(inputs).items():
        there = sum(
            entry.template == template
            and entry.state in (InstanceState.STARTING, InstanceState.JOINED)
            for entry in inputs.inventory.instances
        )
        coming = sum(
            facts.open_amount(request)
            for request in inputs.inventory.requests
            if request.kind is Kind.HOST and request.template == template
        )
        wanted = sum(
            count
            for line, count in still_wanted.items()
            if line == template or line.startswith(f"{template}@")
        )
        if (rest := least - there - coming - wanted) > 0:
            result[template] = max(rest, result.get(template, 0))
    return result


def _missing_spares(inputs: PolicyInput) -> dict[str, int]:
    """Return what is missing of the spare hosts, beyond those without a job and those on their way.

    Nothing is, where it is not known which hosts have none. Hosts that joined after the scheduler looked are on their way still.
    """
    wanted = spares(inputs)
    if not wanted or inputs.idle.unused is None:
        return {}
    unused, looked_at = frozenset(inputs.idle.unused), inputs.computed_at or inputs.now
    ready = Counter[str]()
    for entry in inputs.inventory.instances:
        fresh = entry.joined_at is not None and entry.joined_at >= looked_at
        if entry.state is InstanceState.STARTING or (
            entry.state is InstanceState.JOINED and (entry.id in unused or fresh)
        ):
            ready[entry.template] += 1
    for request in inputs.inventory.requests:
        if request.kind is Kind.HOST and request.template is not None:
            ready[request.template] += facts.open_amount(request)
    return {
        template: most - ready[template]
        for template, most in wanted.items()
        if most > ready[template]
    }


def not_needed(inputs: PolicyInput) -> dict[str, int]:
    """Return how many joined hosts of each template with a minimum, or with spare hosts, can go back."""
    result = {
        template: max(0, _joined(inputs.inventory.instances, template) - least)
        for template, least in minimums(inputs).items()
    }
    without_job = frozenset(inputs.idle.unused or (host.instance for host in inputs.idle.hosts))
    for template, spare in spares(inputs).items():
        free = sum(
            entry.template == template
            and entry.state is InstanceState.JOINED
            and entry.id in without_job
            for entry in inputs.inventory.instances
        )
        result[template] = min(max(0, free - spare), result.get(template, free))
    return result


def _joined(instances: tuple[InstanceEntry, ...], template: str) -> int:
    return sum(
        entry.template == template and entry.state is InstanceState.JOINED for entry in instances
    )

"""Standing minimums: hosts of a template that are there whether jobs want them or not, in windows of the day."""

from collections.abc import Mapping
from datetime import timedelta

from xce.domain.formats.policy import InstanceEntry, PolicyInput, StandingMinimum
from xce.domain.formats.provider import Kind
from xce.domain.policy import facts
from xce.domain.policy.times import later
from xce.domain.provisioning.instance import InstanceState
from xce.domain.values import natural_key


def minimums(inputs: PolicyInput) -> dict[str, int]:
    """Return the hosts of each template that have to be there now, by template; the largest of its minimums counts.

    A window counts from the lead time before it on, so that its hosts are there when it begins.
    """
    found: dict[str, int] = {}
    for entry in inputs.settings.standing:
        if entry.hosts and _counts(entry, inputs):
            found[entry.template] = max(entry.hosts, found.get(entry.template, 0))
    return {template: found[template] for template in sorted(found, key=natural_key)}


def _counts(entry: StandingMinimum, inputs: PolicyInput) -> bool:
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
    result: dict[str, int] = {}
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
            result[template] = rest
    return result


def not_needed(inputs: PolicyInput) -> dict[str, int]:
    """Return how many joined hosts of each template with a minimum can go back."""
    return {
        template: max(0, _joined(inputs.inventory.instances, template) - least)
        for template, least in minimums(inputs).items()
    }


def _joined(instances: tuple[InstanceEntry, ...], template: str) -> int:
    return sum(
        entry.template == template and entry.state is InstanceState.JOINED for entry in instances
    )

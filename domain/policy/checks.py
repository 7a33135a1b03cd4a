"""Reading a round's input from text, checked as a whole."""

from collections import Counter
from collections.abc import Iterable, Iterator

from xce.domain.errors import InputError, Problem
from xce.domain.formats.inventory import RequestEntry
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.provider import Kind


def read_policy_input(text: str | bytes, source: str = "<text>") -> PolicyInput:
    """Return the input of a JSON document.

    Raises:
        InputError: not JSON, not this format, or it contradicts itself; every problem with its path.
    """
    inputs = PolicyInput.from_json(text, source)
    if problems := list(contradictions(inputs)):
        raise InputError(source, problems)
    return inputs


def contradictions(inputs: PolicyInput) -> Iterator[Problem]:
    """Yield what is wrong with an input whose fields are right one by one."""
    yield from _repeats("providers", "name", (provider.name for provider in inputs.providers))
    for index, provider in enumerate(inputs.providers):
        path = f"providers[{index}]"
        templates = (offer.template_id for offer in provider.templates)
        yield from _repeats(f"{path}.templates", "templateId", templates)
        yield from _repeats(
            f"{path}.resources", "name", (offer.name for offer in provider.resources)
        )
    inventory = inputs.inventory
    yield from _repeats("inventory.requests", "id", (entry.id for entry in inventory.requests))
    yield from _repeats("inventory.instances", "id", (entry.id for entry in inventory.instances))
    yield from _repeats("inventory.grants", "id", (entry.id for entry in inventory.grants))
    for index, request in enumerate(inventory.requests):
        yield from _item_of(f"inventory.requests[{index}]", request)
    for index, grant in enumerate(inventory.grants):
        if grant.returning + grant.returned > grant.amount:
            yield Problem(
                f"returning {grant.returning} and returned {grant.returned} are more than {grant.amount}",
                f"inventory.grants[{index}].amount",
            )
    yield from _repeats("budgets", "name", (budget.name for budget in inputs.budgets))
    demand = inputs.demand
    yield from _repeats("demand.hosts", "template", (host.template for host in demand.hosts))
    yield from _repeats("demand.countable", "name", (count.name for count in demand.countable))
    yield from _repeats("idle.hosts", "instance", (host.instance for host in inputs.idle.hosts))
    yield from _repeats("idle.counts", "name", (count.name for count in inputs.idle.counts))


def _item_of(path: str, request: RequestEntry) -> Iterator[Problem]:
    wanted, other = (
        ("template", "resource") if request.kind is Kind.HOST else ("resource", "template")
    )
    if getattr(request, wanted) is None:
        yield Problem(f"a request of kind {request.kind} names its {wanted}", f"{path}.{wanted}")
    if getattr(request, other) is not None:
        yield Problem(f"a request of kind {request.kind} has no {other}", f"{path}.{other}")


def _repeats(path: str, field: str, names: Iterable[str]) -> Iterator[Problem]:
    seen = Counter[str]()
    for index, name in enumerate(names):
        seen[name] += 1
        if seen[name] == 2:
            yield Problem(f"{name!r} is there twice", f"{path}[{index}].{field}")

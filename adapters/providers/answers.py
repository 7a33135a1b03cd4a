"""From messages of the contract to the values of the port."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from xce.adapters.providers.reading import short
from xce.domain.errors import Problem
from xce.domain.formats.base import Count
from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.formats.provider_messages import (
    GrantAnswer,
    MachineAnswer,
    NotUnderstoodError,
    ResourceAnswer,
    StatusOfRequest,
    TakenBack,
    TemplateAnswer,
    understood,
)
from xce.domain.formats.script_output import Message, plain
from xce.domain.formats.script_provider import SlotsFrom
from xce.domain.ports import (
    GrantReport,
    Holding,
    MachineReport,
    MachineResult,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)

#: Attributes that say how much a host has: ``mem`` (LSF) and ``nram`` (Symphony) in MiB.
_MEMORY: Final = ("mem", "nram")
_FACTORS: Final[Mapping[SlotsFrom, tuple[str, ...]]] = {
    SlotsFrom.PROCS: ("ncpus",),
    SlotsFrom.CORES: ("ncpus", "ncores"),
    SlotsFrom.THREADS: ("ncpus", "ncores", "nthreads"),
}


def status_answer(answer: StatusOfRequest) -> StatusAnswer:
    """Return what a provider says of a request; a machine is there once."""
    grants = tuple(
        GrantReport(
            one.grant_id,
            one.resource,
            one.amount,
            one.hold_until,
            one.expires_at,
        )
        for one in answer.grants
        if one.result is MachineResult.SUCCEED
    )
    return StatusAnswer(
        answer.status, tuple(_machines(answer.machines)), grants, short(answer.message)
    )


def _machines(machines: Iterable[MachineAnswer]) -> Iterable[MachineReport]:
    known: dict[str, MachineReport] = {}
    for one in machines:
        # An id that is not there yet comes later; what has ended without one has only its name.
        machine = one.machine_id
        if not machine and one.result is not MachineResult.EXECUTING:
            machine = one.name
        if not machine:
            continue
        earlier = known.get(machine)
        if earlier is not None and earlier.result is not MachineResult.EXECUTING:
            continue
        known[machine] = MachineReport(
            machine, one.name or machine, one.result, one.launchtime, short(one.message)
        )
    return known.values()


def return_status(answer: StatusOfRequest, given: Iterable[str]) -> ReturnStatus:
    """Return what became of a return; of a complete one all is gone of which it does not say otherwise."""
    gone: set[str] = set()
    refused: dict[str, str] = {}
    said: set[str] = set()
    parts: tuple[MachineAnswer | GrantAnswer, ...] = (*answer.machines, *answer.grants)
    for one in parts:
        theirs = one.grant_id if isinstance(one, GrantAnswer) else one.machine_id or one.name
        said.add(theirs)
        if one.result is MachineResult.SUCCEED:
            gone.add(theirs)
        elif one.result is MachineResult.FAIL:
            refused[theirs] = short(one.message) or short(answer.message) or "no reason given"
    if answer.status is RequestStatus.COMPLETE:
        gone.update(set(given) - said)
    return ReturnStatus(answer.status, frozenset(gone), tuple(sorted(refused.items())))


# ------------------------------------------------------------------------ descriptions
def template_offers(
    message: Message, slots_from: SlotsFrom
) -> tuple[tuple[TemplateOffer, ...], tuple[Problem, ...]]:
    """Return the templates of an answer that can be used, and what is wrong with the others.

    Raises:
        NotUnderstoodError: it is no list of templates.
    """
    listed = message.get("templates")
    if isinstance(listed, dict):
        listed = [listed]
    if not isinstance(listed, list):
        raise NotUnderstoodError([Problem("required field is missing", "templates")])
    offers: dict[str, TemplateOffer] = {}
    problems: list[Problem] = []
    for i, one in enumerate(listed):
        try:
            offer = _template(understood(TemplateAnswer, one), slots_from)
        except NotUnderstoodError as error:
            problems += [
                Problem(found.message, f"templates[{i}]{_dotted(found.path)}")
                for found in error.problems
            ]
            continue
        if offer.template_id in offers:
            problems.append(
                Problem(f"{offer.template_id} is there twice", f"templates[{i}].templateId")
            )
        else:
            offers[offer.template_id] = offer
    return tuple(offers.values()), tuple(problems)


def _dotted(path: str) -> str:
    return path if not path or path.startswith("[") else f".{path}"


def _template(answer: TemplateAnswer, slots_from: SlotsFrom) -> TemplateOffer:
    attributes = dict(answer.attributes)
    provides: dict[str, int] = {}
    counts = [attributes[name] for name in _FACTORS[slots_from] if name in attributes]
    if counts and all(_is_count(count) for count in counts):
        slots = 1
        for count in counts:
            slots *= int(count)
        provides["slots"] = slots
    memory = next((attributes[name] for name in _MEMORY if name in attributes), None)
    if memory is not None and _is_count(memory):
        provides["mem"] = int(memory)
    return understood(
        TemplateOffer,
        {
            "templateId": answer.template_id,
            "maxNumber": answer.max_number,
            "priority": answer.priority,
            "pricePerHour": answer.price_info,
            "attributes": attributes,
            "provides": provides,
        },
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool) and value >= 0


def resource_offer(answer: ResourceAnswer, held: int) -> ResourceOffer:
    """Return a resource as an offer; ``held`` is what we have of it, which its headroom does not count."""
    capacity: Count | None = answer.capacity
    if capacity is None and answer.headroom is not None:
        capacity = answer.headroom + held
    return understood(
        ResourceOffer,
        {
            "name": answer.name,
            "capacity": capacity,
            "pricePerHour": answer.price,
            "step": answer.step,
            "minimumHold": timedelta(seconds=answer.hold or 0),
            "recalledTo": answer.recalled_to,
        },
    )


def merged(
    configured: ProviderDescription, said: ProviderDescription, *, configured_wins: bool
) -> ProviderDescription:
    """Return a description of what both say; templates and resources are joined by their ids."""
    strong, weak = (configured, said) if configured_wins else (said, configured)
    fields: dict[str, Any] = {
        **{name: getattr(weak, name) for name in weak.model_fields_set},
        **{name: getattr(strong, name) for name in strong.model_fields_set},
        "name": configured.name,
    }
    fields["templates"] = _joined(weak.templates, strong.templates, said.templates)
    fields["resources"] = _joined(weak.resources, strong.resources, said.resources)
    return ProviderDescription(**fields)


def _joined(
    weak: tuple[Any, ...], strong: tuple[Any, ...], said: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the offers that the scripts make, or, where they make none, those of the configuration."""

    def key(offer: Any) -> str:
        return offer.template_id if isinstance(offer, TemplateOffer) else offer.name

    weak_of = {key(offer): offer for offer in weak}
    strong_of = {key(offer): offer for offer in strong}
    names = [key(offer) for offer in said] or [
        *strong_of,
        *(n for n in weak_of if n not in strong_of),
    ]
    made: list[Any] = []
    for name in names:
        one, other = strong_of.get(name), weak_of.get(name)
        if one is None or other is None:
            made.append(one or other)
            continue
        update = {field: getattr(one, field) for field in one.model_fields_set}
        made.append(other.model_copy(update=update))
    return tuple(made)


# ---------------------------------------------------------------------------- holdings
def machine_holdings(machines: Iterable[MachineAnswer]) -> tuple[Holding, ...]:
    """Return the machines of a list; what has no id and no name is nothing."""
    return tuple(
        Holding(
            theirs=one.machine_id or one.name,
            kind=Kind.HOST,
            item=one.template_id or None,
            tag=one.request_tag or None,
            name=one.name,
            launched_at=one.launchtime,
        )
        for one in machines
        if one.machine_id or one.name
    )


def grant_holdings(grants: Iterable[GrantAnswer]) -> tuple[Holding, ...]:
    """Return the grants of a list."""
    return tuple(
        Holding(
            theirs=one.grant_id,
            kind=Kind.COUNTABLE,
            item=one.resource or None,
            tag=one.request_tag or None,
            amount=one.amount,
            hold_until=one.hold_until,
            expires_at=one.expires_at,
        )
        for one in grants
    )


def take_backs(taken: Iterable[TakenBack], machines: Mapping[str, str]) -> tuple[TakeBack, ...]:
    """Return what is taken back, by machine id where it is known; hosts without id and name are left out."""
    by_name = {name: machine for machine, name in machines.items()}
    found: dict[str, TakeBack] = {}
    for one in taken:
        machine = one.machine_id or by_name.get(one.machine, one.machine)
        if machine:
            found.setdefault(machine, TakeBack(machine, one.grace_period))
    return tuple(found.values())


def message_of(answer: StatusOfRequest) -> Message:
    """Return an answer as it is kept on disk."""
    kept = plain(answer.model_dump(mode="json"))
    assert isinstance(kept, dict), "a model is an object"
    return kept

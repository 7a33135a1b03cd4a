"""The life of hosts without faults: templates, request, status, listing, take-backs, return."""

from collections.abc import Sequence
from functools import partial

from xce.adapters.providers import answers
from xce.adapters.providers.check.trial import Trial, is_settled
from xce.adapters.providers.reading import Answered
from xce.domain.formats.provider import TemplateOffer
from xce.domain.formats.provider_messages import (
    CheckedMachine,
    CheckMachines,
    CheckMachinesAnswer,
    GetReturnRequestsAnswer,
    Given,
    MachineName,
    Machines,
    Nothing,
    RequestMachines,
    StatusOfRequest,
    TemplateCount,
    understood,
)
from xce.domain.ports import Accepted, MachineResult, Refused, RequestStatus

_REQUEST = "requestMachines"
_RETURN = "requestReturnMachines"


def try_hosts(trial: Trial) -> TemplateOffer | None:
    """Try the life of a host; return the template it was tried with, None if no ask could be made."""
    template = try_templates(trial)
    if template is None:
        for what in ("request", "return"):
            trial.findings.skipped(what, "there is no template to try it with")
        return None
    machines = try_request(trial, template)
    if machines is None:
        trial.findings.skipped("return", "there is no machine to try it with")
        return template
    _try_second(trial, template, machines)
    _try_health_check(trial, template, machines)
    _try_take_backs(trial, machines)
    _try_return(trial, tuple(trial.made.machines))
    return template


def request_of(trial: Trial, template: str, count: int, tag: str) -> Given:
    """Return the input of an ask."""
    return RequestMachines(
        template=TemplateCount(template_id=template, machine_count=count),
        rc_account=trial.runner.settings.account,
        request_tag=tag if trial.description.contract >= 2 else None,
    )


def try_templates(trial: Trial) -> TemplateOffer | None:
    """Read the templates; return the cheapest one, the smallest of equal ones."""
    findings, script = trial.findings, "getAvailableTemplates"
    if not trial.runner.has(script):
        return None
    reader = partial(answers.template_offers, slots_from=trial.runner.settings.slots_from)
    told = trial.read(script, Nothing(), "templates", reader)
    if told is None:
        return None
    offers, problems = told
    for problem in problems:
        findings.broken("templates", str(problem))
    usable = [offer for offer in offers if offer.max_number != 0]
    if not usable:
        if not problems:
            findings.broken("templates", "there is no template")
        return None
    if not problems:
        findings.ok("templates", ", ".join(offer.template_id for offer in offers[:10]))
    for offer in offers:
        if "slots" not in offer.provides:
            findings.noted("templates", f"{offer.template_id} does not say how many cores it has")
    return min(usable, key=_price)


def room_of(trial: Trial, template: TemplateOffer) -> float:
    """Return how many machines of a template may exist at once."""
    bounds = (template.max_number, trial.description.capacity)
    return min((one for one in bounds if one is not None and one >= 0), default=float("inf"))


def _price(offer: TemplateOffer) -> tuple[bool, object, int, str]:
    price = offer.price_per_hour
    return price is None, price or 0, offer.provides.get("slots", 0), offer.template_id


def try_request(trial: Trial, template: TemplateOffer) -> tuple[str, ...] | None:
    """Ask for a machine and wait for it; return its id, None if there is none."""
    findings = trial.findings
    if not trial.runner.has(_REQUEST) or not trial.runner.has("getRequestStatus"):
        findings.skipped("request", "a script is missing")
        return None
    count = trial.description.granularity.minimum
    tag = trial.new_tag()
    answer = trial.ask(_REQUEST, request_of(trial, template.template_id, count, tag), tag)
    if isinstance(answer, Refused):
        findings.broken("request", f"{template.template_id} was refused: {answer.why}")
        return None
    if isinstance(answer, str):
        findings.broken("request", f"whether it was accepted cannot be known: {answer}")
        return None
    status, done = trial.wait_for(answer.provider_request_id, is_settled)
    if isinstance(status, str):
        findings.broken("status", status)
        return None
    if not done and not _is_left(trial, status):
        findings.broken("status", _UNFINISHED)
        return None
    machines = examine(trial, status, count)
    if not machines:
        why = status.message or "; ".join(one.message for one in status.machines if one.message)
        findings.broken("request", "no machine came" + (f": {why}" if why else ""))
        return None
    if findings.fit:
        findings.ok("request", f"{count} asked, {len(machines)} came")
    _try_stability(trial, answer.provider_request_id, machines)
    _try_tag(trial, template, count, tag, answer.provider_request_id)
    _try_listing(trial, machines)
    return machines


_UNFINISHED = "the request runs for ever, as far as the check waited; --wait sets for how long"


def _is_left(trial: Trial, status: StatusOfRequest) -> bool:
    """Return whether a request is over with machines that are still executing: the caller gives each of them time to join."""
    if status.status is RequestStatus.RUNNING:
        return False
    left = sum(one.result is MachineResult.EXECUTING for one in status.machines)
    trial.findings.noted("status", f"{status.status}, and {left} machines are still executing")
    return True


def examine(trial: Trial, status: StatusOfRequest, count: int) -> tuple[str, ...]:
    """Look at the machines of a request that is over; return the ids of those that came."""
    findings = trial.findings
    came = [one for one in status.machines if one.result is not MachineResult.FAIL]
    ids = [one.machine_id for one in came]
    if not all(ids):
        findings.broken("status", "a machine that succeeded has no machineId")
    if len(set(ids)) < len(ids):
        findings.broken("status", f"a machineId is there twice: {', '.join(sorted(ids))}")
    if len(came) > count:
        findings.broken("request", f"{count} asked, {len(came)} came")
    if len(came) < count and status.status is RequestStatus.COMPLETE:
        findings.noted("status", f"complete, and {count - len(came)} of {count} did not come")
    for one in came:
        if not one.name:
            findings.noted("status", f"machine {one.machine_id} has no name")
    return tuple(dict.fromkeys(one for one in ids if one))


def _try_stability(trial: Trial, theirs: str, machines: Sequence[str]) -> None:
    """Ask once more: some providers tell an end only once, and what they say then must not be something else."""
    again = trial.status(theirs)
    if isinstance(again, str) or again.status is RequestStatus.RUNNING:
        trial.findings.noted("status", "the end of a request is told only once")
        return
    said = {one.machine_id for one in again.machines if one.result is not MachineResult.FAIL}
    if said and not said >= set(machines):
        trial.findings.broken("status", "a machine had another machineId when asked again")
    elif not said:
        trial.findings.noted("status", "the end of a request is told only once")
    else:
        trial.findings.ok("status")


def _try_tag(trial: Trial, template: TemplateOffer, count: int, tag: str, theirs: str) -> None:
    if not trial.description.capabilities.request_tag:
        return
    again = trial.ask(_REQUEST, request_of(trial, template.template_id, count, tag), tag)
    if not isinstance(again, Accepted):
        why = again.why if isinstance(again, Refused) else again
        trial.findings.broken("request tags", f"a repeated tag was not recognised: {why}")
    elif again.provider_request_id != theirs:
        other = again.provider_request_id
        trial.wait_for(other, is_settled)
        trial.findings.broken(
            "request tags", f"a repeated tag made another request: {theirs}, then {other}"
        )
    else:
        trial.findings.ok("request tags", "a repeated tag is the same request")


def _try_listing(trial: Trial, machines: Sequence[str]) -> None:
    if not trial.runner.has("listMachines"):
        if trial.description.capabilities.listing:
            trial.findings.broken(
                "listing", "is said to be supported, and there is no listMachines"
            )
        return
    listed = trial.listed()
    if listed is None:
        return
    if missing := [one for one in machines if one not in listed]:
        trial.findings.broken("listing", f"does not have {', '.join(missing)}, which exists")
    else:
        trial.findings.ok("listing")


def _try_second(trial: Trial, template: TemplateOffer, machines: Sequence[str]) -> None:
    """Ask for another machine while the first is there: another request, another machine."""
    first = set(trial.made.requests)
    count = trial.description.granularity.minimum
    if room_of(trial, template) < 2 * count:
        trial.findings.skipped("second request", f"{template.template_id} has room for one only")
        return
    tag = trial.new_tag()
    answer = trial.ask(_REQUEST, request_of(trial, template.template_id, count, tag), tag)
    if isinstance(answer, Refused):
        trial.findings.noted("second request", f"was refused: {answer.why}")
        return
    if isinstance(answer, str):
        trial.findings.broken("second request", answer)
        return
    if answer.provider_request_id in first:
        trial.findings.broken(
            "second request", f"has the id of the first: {answer.provider_request_id}"
        )
        return
    status, done = trial.wait_for(answer.provider_request_id, is_settled)
    if isinstance(status, str):
        trial.findings.broken("second request", status)
        return
    if not done and not _is_left(trial, status):
        trial.findings.broken("second request", _UNFINISHED)
        return
    others = examine(trial, status, count)
    if shared := set(others) & set(machines):
        trial.findings.broken(
            "second request", f"brought machines of the first: {', '.join(sorted(shared))}"
        )
    else:
        trial.findings.ok("second request")


def _try_health_check(trial: Trial, template: TemplateOffer, machines: Sequence[str]) -> None:
    """Let it look at machines that have not joined: whatever it finds, it has to say it in words that are understood."""
    script = "checkMachines"
    if not trial.runner.has(script):
        return
    named = tuple(
        CheckedMachine(
            name=trial.made.machines.get(one, one),
            machine_id=one,
            host=trial.made.machines.get(one, one),
            template_id=template.template_id,
        )
        for one in machines
    )
    asked = CheckMachines(machines=named)
    told = trial.read(script, asked, "health check", partial(understood, CheckMachinesAnswer))
    if told is None:
        return
    found = told.machines
    if others := {one.machine_id for one in found} - set(machines):
        names = ", ".join(sorted(others)) or "nothing"
        trial.findings.broken("health check", f"speaks of {names}, which was not asked about")
        return
    said = {one.result.value for one in found}
    trial.findings.ok("health check", ", ".join(sorted(said)) or "says nothing yet")


def _try_take_backs(trial: Trial, machines: Sequence[str]) -> None:
    script, findings = "getReturnRequests", trial.findings
    if not trial.runner.has(script):
        return
    for some in (machines, ()):
        named = tuple(
            MachineName(name=trial.made.machines.get(one, one), machine_id=one) for one in some
        )
        which = "" if some else ", asked with an empty list"
        reader = partial(understood, GetReturnRequestsAnswer)
        if trial.read(script, Machines(machines=named), "take-backs", reader, which) is None:
            return
    findings.ok("take-backs")


def _try_return(trial: Trial, machines: Sequence[str]) -> None:
    findings = trial.findings
    if not trial.runner.has(_RETURN):
        findings.skipped("return", f"there is no {_RETURN}")
        return
    answer = trial.give_back_machines(machines)
    if not isinstance(answer, Accepted):
        why = answer.why if isinstance(answer, Refused) else answer
        findings.broken("return", f"was not accepted: {why}")
        return

    def is_gone(status: StatusOfRequest) -> bool:
        return status.status is not RequestStatus.RUNNING

    status, done = trial.wait_for(answer.provider_request_id, is_gone)
    if isinstance(status, str) or not done:
        said = status if isinstance(status, str) else "runs for ever, as far as the check waited"
        findings.broken("return", said)
        return
    result = answers.return_status(status, machines)
    if missing := [one for one in machines if one not in result.gone]:
        why = dict(result.refused).get(missing[0], "") or status.message
        findings.broken("return", f"{missing[0]} is not gone" + (f": {why}" if why else ""))
        return
    listed = trial.listed()
    if listed is not None and (there := [one for one in machines if one in listed]):
        findings.broken("return", f"{there[0]} is said to be gone and is still listed")
        return
    names = dict(trial.made.machines)
    trial.gone(machines)
    findings.ok("return")
    _try_return_again(trial, machines, names)


def _try_return_again(trial: Trial, machines: Sequence[str], names: dict[str, str]) -> None:
    """Return what is gone: whatever the answer, it must come, and nothing may come of it."""
    named = tuple(MachineName(name=names[one], machine_id=one) for one in machines)
    heard = trial.call(_RETURN, Machines(machines=named))
    if trial.hangs(_RETURN) or heard.step == "killed":
        trial.findings.broken("second return", "of the same machines: no answer")
        return
    how = "accepted" if isinstance(heard, Answered) else "refused"
    trial.findings.ok("second return", f"of the same machines is {how}")

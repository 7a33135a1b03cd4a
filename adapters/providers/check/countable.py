"""The life of an amount of a countable resource without faults (version 2)."""

from datetime import datetime, timedelta
from functools import partial

from xce.adapters.providers import answers
from xce.adapters.providers.check.trial import Trial, is_settled
from xce.domain.formats.provider_messages import (
    GetAvailableResourcesAnswer,
    GrantName,
    Nothing,
    RenewResources,
    RenewResourcesAnswer,
    RequestResources,
    ResourceAnswer,
    StatusOfRequest,
    understood,
)
from xce.domain.ports import Accepted, MachineResult, Refused, RequestStatus
from xce.domain.values import write_duration

_REQUEST = "requestResources"


def try_countable(trial: Trial) -> None:
    """Borrow a little, look, give it back."""
    resource = _try_resources(trial)
    if resource is None:
        return
    amount = resource.step * (2 if (resource.headroom or 0) >= 2 * resource.step else 1)
    tag = trial.new_tag()
    given = RequestResources(resource=resource.name, amount=amount, request_tag=tag)
    answer = trial.ask(_REQUEST, given, tag)
    if not isinstance(answer, Accepted):
        why = answer.why if isinstance(answer, Refused) else answer
        trial.findings.broken("borrowing", f"{amount} {resource.name}: {why}")
        return
    status, done = trial.wait_for(answer.provider_request_id, is_settled)
    if isinstance(status, str) or not done:
        trial.findings.broken("borrowing", status if isinstance(status, str) else "runs for ever")
        return
    grants = [one for one in status.grants if one.result is MachineResult.SUCCEED]
    came = sum(one.amount for one in grants)
    if came > amount or not came or any(one.resource != resource.name for one in grants):
        trial.findings.broken("borrowing", f"{amount} {resource.name} asked, {came} came")
        return
    trial.findings.ok("borrowing", f"{amount} {resource.name} asked, {came} came")
    if trial.description.capabilities.request_tag:
        again = trial.ask(_REQUEST, given, tag)
        if (
            not isinstance(again, Accepted)
            or again.provider_request_id != answer.provider_request_id
        ):
            if isinstance(again, Accepted):
                trial.wait_for(again.provider_request_id, is_settled)
            trial.findings.broken("borrowing", "a repeated tag is not the same request")
            return
    _try_giving_back(trial, {one.grant_id: one.amount for one in grants}, resource)


def _try_resources(trial: Trial) -> ResourceAnswer | None:
    script = "getAvailableResources"
    if not trial.runner.has(script) or not trial.runner.has(_REQUEST):
        return None
    reader = partial(understood, GetAvailableResourcesAnswer)
    told = trial.read(script, Nothing(), "resources", reader)
    if told is None:
        return None
    listed = told.resources
    if not listed:
        trial.findings.broken("resources", "there is none")
        return None
    trial.findings.ok("resources", ", ".join(one.name for one in listed[:10]))
    for one in listed:
        if one.recalled_to is not None:
            trial.findings.noted("recalls", f"wants {one.name} to fall to {one.recalled_to}")
    free = [one for one in listed if one.headroom is None or one.headroom >= one.step]
    if not free:
        trial.findings.skipped("borrowing", "nothing is free")
        return None
    soon = [one for one in free if not one.hold]
    if not soon:
        held = min(free, key=lambda one: one.hold or 0)
        trial.findings.skipped(
            "borrowing",
            f"{held.name} is kept for {write_duration(timedelta(seconds=held.hold or 0))}: a check could not give it back; try with a hold of 0",
        )
        return None
    return soon[0]


def _try_giving_back(trial: Trial, grants: dict[str, int], resource: ResourceAnswer) -> None:
    findings = trial.findings
    if trial.runner.has("listGrants"):
        listed = trial.listed()
        if listed is None:
            return
        if not grants.keys() <= listed:
            findings.broken("list of grants", "does not have what was just lent")
        else:
            findings.ok("list of grants")
    _try_renewals(trial, tuple(grants))
    grant, amount = next(iter(grants.items()))
    parts = [(grant, amount)]
    if trial.description.capabilities.partial_returns and amount >= 2 * resource.step:
        parts = [(grant, resource.step), (grant, amount - resource.step)]
    for part in (*parts, *((g, a) for g, a in grants.items() if g != grant)):
        if not _gave_back(trial, part):
            return
    findings.ok("giving back", "in parts" if len(parts) > 1 else "")


def _try_renewals(trial: Trial, grants: tuple[str, ...]) -> None:
    """Ask twice to put the ends of grants off: it may put off none, and must not make one end earlier."""
    script = "renewResources"
    if not trial.runner.has(script):
        return
    ends: dict[str, datetime] = {}
    for _ in range(2):
        asked = RenewResources(grants=tuple(GrantName(grant_id=one) for one in grants))
        answer = trial.read(script, asked, "renewals", partial(understood, RenewResourcesAnswer))
        if answer is None:
            return
        told = answer.grants
        if others := {one.grant_id for one in told} - set(grants):
            names = ", ".join(sorted(others))
            trial.findings.broken("renewals", f"speaks of {names}, which was not asked about")
            return
        for one in told:
            before = ends.get(one.grant_id)
            if one.expires_at is not None and before is not None and one.expires_at < before:
                trial.findings.broken("renewals", f"{one.grant_id} ends earlier when asked again")
                return
            if one.expires_at is not None:
                ends[one.grant_id] = one.expires_at
    put_off = f"{len(ends)} of {len(grants)} put off"
    trial.findings.ok("renewals", put_off if ends else "nothing ends by itself, or is put off")


def _gave_back(trial: Trial, part: tuple[str, int]) -> bool:
    grant, amount = part
    answer = trial.give_back_grants([part])
    if not isinstance(answer, Accepted):
        why = answer.why if isinstance(answer, Refused) else answer
        trial.findings.broken("giving back", f"{amount} of {grant}: {why}")
        return False

    def is_over(status: StatusOfRequest) -> bool:
        return status.status is not RequestStatus.RUNNING

    status, done = trial.wait_for(answer.provider_request_id, is_over)
    if isinstance(status, str) or not done:
        trial.findings.broken("giving back", status if isinstance(status, str) else "runs for ever")
        return False
    if grant not in answers.return_status(status, [grant]).gone:
        trial.findings.broken("giving back", f"{amount} of {grant} was kept: {status.message}")
        return False
    left = trial.made.grants.get(grant, 0) - amount
    if left > 0:
        trial.made.grants[grant] = left
    else:
        trial.gone([grant])
    return True

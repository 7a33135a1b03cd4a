"""Which requests are given up: those that are open past their deadline."""

from collections.abc import Iterator
from datetime import timedelta

from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.policy import facts
from xce.domain.policy.times import later
from xce.domain.values import natural_key, write_duration


def give_up(inputs: PolicyInput) -> Iterator[Decision]:
    """Yield a cancel for each open request whose deadline has come; without one of its own, the settings' counts."""
    for request in sorted(inputs.inventory.requests, key=lambda request: natural_key(request.id)):
        deadline = request.deadline or later(request.asked_at, inputs.settings.request_deadline)
        if not facts.is_open(request) or inputs.now < deadline:
            continue
        host = request.kind is Kind.HOST
        amount = facts.open_amount(request)
        age = max(timedelta(0), inputs.now - request.asked_at)
        yield Decision(
            kind=DecisionKind.CANCEL,
            provider=request.provider,
            template=request.template,
            resource=request.resource,
            count=amount if host else None,
            amount=None if host else amount,
            requests=(request.id,),
            reason=f"request {request.id}: {amount} of {request.amount} have not come"
            f" {write_duration(age)} after the ask; given up",
        )

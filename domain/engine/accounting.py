"""What a provider's answer means for our books (field case F08): a rule that exists once, live and simulated.

Machines and grants are counted one by one, by the provider's id, so that the same answer again changes nothing and a surplus is
recorded. A machine that failed may exist and cost money, so it gets a record, to be returned, while the request counts it as
failed. A machine still starting is supply in flight through its request; when the request ends before the machine does, it gets a
record and a limit of its own.

A provider may say anything. What cannot be a fact (an id that no event can hold, something that another request brought) is
passed over, so that it keeps nothing else out of the books; what then nobody owns is an orphan. Many who lend machines of their own
lend the same one again, under the same id: once the earlier one is on its way back, or gone, it is another one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from xce.domain.errors import RejectedError
from xce.domain.events.base import Aggregate, cut
from xce.domain.formats.base import Name
from xce.domain.formats.provider import Billing, Kind
from xce.domain.ports import (
    GrantReport,
    MachineReport,
    MachineResult,
    RequestStatus,
    StatusAnswer,
)
from xce.domain.provisioning.grant import LIVE as LENT
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import GONE, Instance, InstanceState
from xce.domain.provisioning.request import CLOSED, GIVEN_UP, Request
from xce.domain.sharing.elastic_resource import ElasticResource

NOT_SAID = "the provider did not say why"

_NAME: Final = TypeAdapter[str](Name)
#: How the name begins that stands for an id which no record can hold.
_STAND_IN: Final = "unrecordable-"
#: States in which a machine of this id that is brought anew is another one.
_OVER: Final = GONE | {InstanceState.RETURNING}


@dataclass(slots=True)
class Passed:
    """What was passed over in an answer.

    Attributes:
        why: for people, why it was.
        unowned: what no record owns, by the name to report it under.
    """

    why: list[str] = field(default_factory=list[str])
    unowned: dict[str, "Unowned"] = field(default_factory=dict[str, "Unowned"])


class Unowned(NamedTuple):
    """How much of something no record owns, what it is for people, and since when it is there (None: its provider does not say)."""

    amount: int
    why: str
    since: datetime | None = None


def record_status(
    request: Request,
    answer: StatusAnswer,
    resource: ElasticResource | None,
    *,
    billing: Billing,
    record_of: Callable[[str], Instance | Grant | None],
    passed: Passed,
    at: datetime,
    by: str,
    epoch: int,
) -> Iterator[Aggregate[Any]]:
    """Record one status answer on its request; yield the instances and grants that are new.

    Args:
        request: the request that was asked about.
        answer: what the provider says of it.
        resource: the elastic resource, for a countable request.
        billing: how the provider bills, for new instances.
        record_of: our record of an instance or grant of this name.
        passed: gets what was passed over, once all was yielded.
        at: now.
        by: who.
        epoch: lease epoch of the writer.

    Raises:
        RejectedError: the answer contradicts what was recorded (a grant of another amount or resource).
    """
    ended = answer.status is not RequestStatus.RUNNING
    if request.kind is Kind.HOST:
        for machine in answer.machines:
            if machine.result is MachineResult.EXECUTING and not ended:
                continue
            if machine.machine in request.instance_of:
                continue
            name = _name_for(request, machine, record_of, passed)
            if name is not None:
                yield from _record_machine(
                    request, machine, name, billing=billing, at=at, by=by, epoch=epoch
                )
    else:
        assert resource is not None
        for grant in answer.grants:
            name = f"{request.provider}/{grant.grant}"
            if name in request.amount_of or _is_new_grant(request, grant, record_of, passed):
                yield from _record_grant(request, grant, resource, at=at, by=by, epoch=epoch)
    if ended:
        why = cut("; ".join([answer.message or NOT_SAID, *passed.why]))
        if request.state in GIVEN_UP:
            request.settle(why=why, at=at, by=by, epoch=epoch)
        else:
            end(request, why, at=at, by=by, epoch=epoch)


def _name_for(
    request: Request,
    report: MachineReport,
    record_of: Callable[[str], Instance | Grant | None],
    passed: Passed,
) -> str | None:
    """Return our name for a machine that a request brought; None: it is passed over."""
    machine, since = report.machine, report.launched_at
    name = f"{request.provider}/{machine}"
    if not (is_name(machine) and is_name(name)):
        _pass_over_unreadable(request, machine, Unowned(1, "machine", since), passed)
        return None
    earlier = record_of(name)
    if earlier is None:
        return name
    again = f"{name}~{request.name}"
    if earlier.state in _OVER and record_of(again) is None and is_name(again):
        return again
    passed.why.append(f"{machine} was brought by another request")
    if earlier.state in GONE:
        why = f"request {request.name} brought it, and an earlier one too"
        passed.unowned[machine] = Unowned(1, why, since)
    return None


def _is_new_grant(
    request: Request,
    grant: GrantReport,
    record_of: Callable[[str], Instance | Grant | None],
    passed: Passed,
) -> bool:
    """Return whether a grant can be recorded as brought by this request; else say why not."""
    name = f"{request.provider}/{grant.grant}"
    if not (is_name(grant.grant) and is_name(name)):
        what = Unowned(grant.amount, f"grant of {grant.amount}")
        _pass_over_unreadable(request, grant.grant, what, passed)
        return False
    earlier = record_of(name)
    if earlier is None:
        return True
    passed.why.append(f"{grant.grant} was brought by another request")
    if earlier.state not in LENT:
        why = (
            f"request {request.name} brought {grant.amount} of {grant.resource} as a grant that is over:"
            " it cannot be booked a second time"
        )
        passed.unowned[grant.grant] = Unowned(grant.amount, why)
    return False


def _pass_over_unreadable(request: Request, theirs: str, what: Unowned, passed: Passed) -> None:
    shown = f"an id that cannot be recorded: {theirs[:80]!r}"
    passed.why.append(shown)
    why = f"request {request.name} brought a {what.why} under {shown}"
    passed.unowned[stand_in(theirs)] = what._replace(why=why)


def stand_in(theirs: str) -> str:
    """Return the name that stands for a provider's id which no record can hold, in reports to people."""
    return f"{_STAND_IN}{sha256(theirs.encode(errors='replace')).hexdigest()[:16]}"


def is_stand_in(theirs: str) -> bool:
    """Return whether a name is one that stands for an id: it is no id of the provider's."""
    return theirs.startswith(_STAND_IN)


def is_name(text: str) -> bool:
    """Return whether an event can hold a text as an id or name."""
    try:
        _NAME.validate_python(text)
    except ValidationError:
        return False
    return True


def refuse(request: Request, why: str, *, at: datetime, by: str, epoch: int) -> None:
    """Record that the provider did not take a request on: nothing of it will come."""
    end(request, why, at=at, by=by, epoch=epoch)


def end(request: Request, why: str, *, at: datetime, by: str, epoch: int) -> None:
    """Close an open request by what it brought; what is missing is known not to come."""
    if request.state in CLOSED:
        return
    missing = max(0, request.amount - request.granted)
    request.fall_short(failed=missing, why=why, at=at, by=by, epoch=epoch)
    request.close(
        outcome=request.outcome, why=why if missing else "all came", at=at, by=by, epoch=epoch
    )


def _record_machine(
    request: Request,
    report: MachineReport,
    name: str,
    *,
    billing: Billing,
    at: datetime,
    by: str,
    epoch: int,
) -> Iterator[Instance]:
    instance = Instance.grant(
        instance=name,
        request_id=request.name,
        provider=request.provider,
        template=request.item,
        machine=report.machine,
        name=report.name if is_name(report.name) else None,
        price_per_hour=request.price_per_hour,
        billing=billing,
        hold_until=_hold_until(request.hold, at),
        project=request.project,
        at=at,
        by=by,
        epoch=epoch,
    )
    if report.result is MachineResult.FAIL:
        why = cut(f"failed: {report.message or NOT_SAID}")
        request.fail_machine(
            instance_id=name, machine=report.machine, why=why, at=at, by=by, epoch=epoch
        )
        instance.miss_join(why=why, at=at, by=by, epoch=epoch)
    else:
        request.grant_instance(instance_id=name, machine=report.machine, at=at, by=by, epoch=epoch)
    yield instance


def _record_grant(
    request: Request,
    report: GrantReport,
    resource: ElasticResource,
    *,
    at: datetime,
    by: str,
    epoch: int,
) -> Iterator[Grant]:
    name = f"{request.provider}/{report.grant}"
    if report.resource != request.item:
        raise RejectedError(
            f"grant {name} is of {report.resource}, but request {request.name} asked for {request.item}"
        )
    new = name not in request.amount_of
    request.grant_amount(grant_id=name, amount=report.amount, at=at, by=by, epoch=epoch)
    if not new:
        return
    yield Grant.grant(
        grant=name,
        request_id=request.name,
        provider=request.provider,
        resource=report.resource,
        amount=report.amount,
        hold_until=_later(_hold_until(request.hold, at), report.hold_until),
        expires_at=report.expires_at,
        price_per_hour=_price(request),
        project=request.project,
        at=at,
        by=by,
        epoch=epoch,
    )
    resource.borrow(grant_id=name, amount=report.amount, at=at, by=by)


def _price(request: Request) -> Decimal | None:
    return request.price_per_hour


def _hold_until(hold: timedelta, at: datetime) -> datetime | None:
    return at + hold if hold else None


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    times = [time for time in (one, other) if time is not None]
    return max(times, default=None)

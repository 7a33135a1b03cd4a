"""The one routine that places a primary request, for every allocator.

An attempt goes through the same steps whoever makes the plans: missing input, guard, pend-reason record,
shared request (shared resources, and limits whose amounts do not depend on the plan), then plan by plan and
bucket by bucket the first host in host order that takes it, and at last the result. Whatever goes wrong on
the way, no debit stays on a host and no allocation on the attempt.
"""

from collections.abc import Collection
from enum import IntEnum

from xce.domain.cluster.requests import Amounts
from xce.domain.cluster.state import State
from xce.domain.cluster.stretches import Stretches
from xce.domain.scheduling.attempt import Allocation, Attempt, Claim
from xce.domain.scheduling.explain import PendRecord, new_record
from xce.domain.scheduling.plans import Allocator, Plan


class Code(IntEnum):
    """What an attempt came to: above 0 satisfied, 0 pending, below 0 an error of the caller."""

    SATISFIED = 1
    PENDING = 0
    INVALID = -22


def allocate(core: State | None, allocator: Allocator, attempt: Attempt) -> Code:
    """Place one primary request, or say what stops it.

    Amounts of the shared request are counted in the context once, and stay there: whoever made the context
    drops it when the job does not start. Amounts on hosts stay taken only if the answer is ``SATISFIED``.
    """
    if core is None or attempt.part is None:
        return Code.INVALID
    part, tasks = attempt.part, attempt.tasks
    if allocator.accepts is not None and not allocator.accepts(part, tasks):
        return Code.PENDING
    if allocator.prepare is not None:
        allocator.prepare(attempt)
    record = attempt.record
    if record is None:
        record = attempt.record = new_record()
    if not _is_shared_met(core, attempt, record):
        return Code.PENDING
    context = attempt.context
    for number, a_task, once in part.fixed:
        context.take(number, a_task * tasks + once)

    placed_before = len(context.claims)
    claims: list[Claim] = []
    try:
        if not _search(core, allocator, attempt, claims):
            if core.view(part.scope).hosts:
                record.late = (part, tasks)
            else:
                record.unselected = part
            return Code.PENDING
        attempt.allocation = _assemble(attempt, claims)
        context.claims.extend(claims)
        return Code.SATISFIED
    except BaseException:
        attempt.allocation = None
        del context.claims[placed_before:]
        _release(core, attempt, claims)
        raise


def _is_shared_met(core: State, attempt: Attempt, record: PendRecord) -> bool:
    """Return whether the shared request can be met; else record each entry that is not."""
    part, tasks, context = attempt.part, attempt.tasks, attempt.context
    assert part is not None, "checked by the caller"
    left, uncommitted = core.left, context.uncommitted
    unmet: list[tuple[int, int, int]] = []
    for number, a_task, once in part.fixed:
        amount = a_task * tasks + once
        if amount + uncommitted.get(number, 0) > left[number] and amount > 0:
            unmet.append((number, amount, left[number] - uncommitted.get(number, 0)))
    guarantees: list[str] = []
    if context.job.outside:
        amounts = context.ask(part.fixed_amounts(tasks))
        guarantees = context.guarantees_broken(core, amounts)
    if not unmet and not guarantees:
        return True
    meters = core.ground.meters.all
    record.unmet = unmet
    limits = [meters[number].name for number, _, _ in unmet if meters[number].rule is not None]
    record.limits = list(dict.fromkeys(limits + guarantees))
    if not record.limits:
        record.shared = [meters[number].name for number, _, _ in unmet]
        record.unselected = None if core.view(part.scope).hosts else part
    return False


def _search(core: State, allocator: Allocator, attempt: Attempt, claims: list[Claim]) -> bool:
    """Find the first plan whose every bucket finds a host, and claim them."""
    part = attempt.part
    assert part is not None, "checked by the caller"
    plans = allocator.plans(core, attempt)
    if plans is None:
        return False
    try:
        failed_at: int | None = None
        while True:
            plan = plans.next(failed_at)
            if plan is None:
                return False
            failed_at = 0
            for group in core.view(part.scope).groups:
                reached = _claim_all(core, attempt, plan, group, claims)
                if reached == len(plan):
                    return True
                _release(core, attempt, claims)
                failed_at = max(failed_at, reached)
    finally:
        plans.close()


def _claim_all(
    core: State, attempt: Attempt, plan: Plan, group: Stretches, claims: list[Claim]
) -> int:
    """Claim a host for one bucket after the other; return how many found one."""
    part, context = attempt.part, attempt.context
    assert part is not None, "checked by the caller"
    request, is_free = part.request, part.is_free
    others: Collection[int] = core.busy if part.is_exclusive else core.shut
    barred: Collection[int] = others
    taken: set[int] | None = None
    view, hosts = core.view(part.scope), group.hosts
    is_known = part.stays_refused and not context.claims and not request.selector.same
    position, last = -1, (0, False)
    for number, bucket in enumerate(plan):
        first = number == 0
        amounts = request.bucket(bucket, first=first)
        size = (bucket, first and bool(request.job))
        # Hosts that did not take a bucket of this size a moment ago do not take one now.
        start = position + 1 if last == size else 0
        cursor: object = None
        if first and is_known:
            cursor = (part, attempt.tasks, bucket) if part.placed else amounts
            start = view.cursors.get(cursor, 0)
        position = core.first_fit_of(group, start, amounts, barred)
        metered: tuple[tuple[int, int], ...] = ()
        if not is_free:
            metered = attempt.metered(bucket, first=first)
            while position >= 0 and attempt.is_refused(
                core, claims, (hosts[position], amounts), metered
            ):
                position = core.first_fit_of(group, position + 1, amounts, barred)
        if first and is_known:
            view.remember(cursor, position if position >= 0 else len(hosts))
        if position < 0:
            return number
        last = size
        place = hosts[position]
        _claim(core, attempt, place, bucket, amounts, metered, claims)
        if len(plan) > 1:
            if taken is None:
                barred = taken = set(others)
            taken.add(place)
    return len(plan)


def _claim(
    core: State,
    attempt: Attempt,
    place: int,
    tasks: int,
    amounts: Amounts,
    metered: tuple[tuple[int, int], ...],
    claims: list[Claim],
) -> None:
    """Record a claim, then take its amounts: what is recorded with it undoes as much as was taken."""
    before = core.amounts(place, amounts)
    if not metered:
        claims.append(Claim(place, tasks, amounts, metered, before, ()))
        core.debit(place, amounts)
        return
    context = attempt.context
    so_far = tuple([context.uncommitted.get(number, 0) for number, _ in metered])
    claims.append(Claim(place, tasks, amounts, metered, before, so_far))
    core.debit(place, amounts)
    for number, amount in metered:
        context.take(number, amount)


def _release(core: State, attempt: Attempt, claims: list[Claim]) -> None:
    """Undo the claims of a plan, the last first."""
    while claims:
        claim = claims.pop()
        core.restore(claim.place, claim.amounts, claim.before)
        for (number, _), known in zip(claim.metered, claim.uncommitted_before, strict=True):
            attempt.context.put_back(number, known)


def _assemble(attempt: Attempt, claims: list[Claim]) -> Allocation:
    """Return the result: one host allocation a claim, one shared record an entry of the shared request."""
    part, tasks = attempt.part, attempt.tasks
    assert part is not None, "checked by the caller"
    shared: dict[int, int] = {}
    for number, a_task, once in part.fixed:
        shared[number] = shared.get(number, 0) + a_task * tasks + once
    for claim in claims:
        for number, amount in claim.metered:
            shared[number] = shared.get(number, 0) + amount
    return Allocation(tuple(claims), tuple(shared.items()))

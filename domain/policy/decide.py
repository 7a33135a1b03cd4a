"""One round of the provisioning policy: what to ask, what to give back, what to give up, and what not, each with its reason.

The rules, with examples, are in ``docs/reference/policy.md``.
"""

from datetime import timedelta

from xce.domain.formats.inventory import GrantEntry
from xce.domain.formats.policy import Decision, DecisionKind, Decisions, Pause, PolicyInput
from xce.domain.policy.asking import ask
from xce.domain.policy.backoff import pauses
from xce.domain.policy.deadlines import give_up
from xce.domain.policy.reclaim_counts import reclaim_counts
from xce.domain.policy.reclaim_hosts import reclaim_hosts
from xce.domain.policy.renewal import to_renew
from xce.domain.policy.wanted import jobs_of, wanted
from xce.domain.values import write_duration


def decide(inputs: PolicyInput) -> Decisions:
    """Return the decisions of one round: cancels, then pauses, then requests, then returns, then holds.

    Pure: equal inputs give equal decisions, whatever the order of their lists. Carried out and decided again on the same
    demand, nothing is asked twice.
    """
    cancels = list(give_up(inputs))
    if (why := _frozen(inputs) or _stale(inputs)) is not None:
        return Decisions.of(*cancels, *_stand_still(inputs, why))
    paused = list(pauses(inputs))
    inputs = _with(inputs, paused)
    requests, short = ask(inputs, wanted(inputs))
    hosts, hosts_kept = reclaim_hosts(inputs)
    counts, counts_kept = reclaim_counts(inputs)
    return Decisions.of(
        *cancels, *paused, *requests, *hosts, *counts, *short, *hosts_kept, *counts_kept
    )


def renewals(inputs: PolicyInput) -> tuple[GrantEntry, ...]:
    """Return the grants whose lenders are asked now to put their ends off; also while the site is frozen."""
    return to_renew(inputs, stale=_stale(inputs) is not None)


def _with(inputs: PolicyInput, paused: list[Decision]) -> PolicyInput:
    """Return the input as it is once the pauses of this round are recorded: they hold at once."""
    if not paused:
        return inputs
    made = tuple(
        Pause(
            provider=pause.provider,
            item=pause.template if pause.template is not None else pause.resource,
            until=pause.until,
            why=pause.reason,
        )
        for pause in paused
        if pause.provider is not None and pause.until is not None
    )
    return inputs.model_copy(update={"pauses": (*inputs.pauses, *made)})


def _frozen(inputs: PolicyInput) -> str | None:
    return "the settings freeze provisioning" if inputs.settings.freeze else None


def _stale(inputs: PolicyInput) -> str | None:
    """Demand and idle supply of long ago say nothing about now (D7)."""
    if inputs.computed_at is None:
        return None
    age = max(timedelta(0), inputs.now - inputs.computed_at)
    if age <= inputs.settings.demand_time_to_live:
        return None
    return (
        f"the demand is {write_duration(age)} old,"
        f" and counts for {write_duration(inputs.settings.demand_time_to_live)}"
    )


def _stand_still(inputs: PolicyInput, why: str) -> list[Decision]:
    """Return the hold that says what is not done, if anything was to be done."""
    demand, idle = inputs.demand, inputs.idle
    parts = [
        *(
            f"{_hosts(host.count)} of {host.template} not asked"
            for host in demand.hosts
            if host.count
        ),
        *(
            f"{count.amount} of {count.name} not asked"
            for count in demand.countable
            if count.amount
        ),
        *([f"{_hosts(len(idle.hosts), 'idle ')} not returned"] if idle.hosts else []),
        *(f"{count.amount} of {count.name} not returned" for count in idle.counts if count.amount),
    ]
    if not parts:
        return []
    parts.sort()
    return [
        Decision(kind=DecisionKind.HOLD, reason=f"{why}: {', '.join(parts)}", jobs=jobs_of(demand))
    ]


def _hosts(number: int, kind: str = "") -> str:
    return f"{number} {kind}host{'' if number == 1 else 's'}"

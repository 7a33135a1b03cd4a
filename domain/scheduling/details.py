"""What a pend reason says for people: amounts, and what they are compared with.

A text about hosts depends on the hosts alone, not on what a job wants of them: so the reasons of thousands of
jobs that wait for the same hosts stay one set.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.limits import Meter, Rule
from xce.domain.cluster.state import State
from xce.domain.cluster.units import written
from xce.domain.scheduling.classes import JobClass

#: The pseudo resource of a host that another job excludes us from, or we exclude from us.
HOST: Final = "host"

#: Jobs named in one text before the others are only counted.
_NAMED_JOBS: Final = 5


def waits_for(jobs: Iterable[str]) -> str:
    """Return what is said of a dependency on jobs that are still here."""
    names = sorted(set(jobs), key=key_of_name)
    more = f" and {len(names) - _NAMED_JOBS} more" if len(names) > _NAMED_JOBS else ""
    return f"waits for {', '.join(names[:_NAMED_JOBS])}{more}"


def unit_unknown(resource: str) -> str:
    """Return what is said of a bare number whose unit is not known."""
    return f"a bare number of {resource}, and its unit could not be read"


def stands_behind(job: str) -> str:
    """Return what is said of a job that only the order holds back."""
    return f"behind {job}"


def selects_none(core: State) -> str:
    """Return what is said where no host matches."""
    count = sum(core.ground.hosts.is_open)
    if count == 0:
        return "no host is open"
    return f"none of {count} open host{'s' if count > 1 else ''}"


def unmet(core: State, number: int, wanted: int, left: int) -> str:
    """Return what is said of a meter that is short before any host is looked at."""
    meter = core.ground.meters.all[number]
    if meter.rule is not None:
        amounts = [
            written(meter.resource, each) for each in (wanted, max(0, left), meter.rule.amount)
        ]
        return f"{meter.resource}: {amounts[0]} wanted, {amounts[1]} of {amounts[2]} left"
    if meter.name in core.ground.meters.unknown:
        return f"{wanted} wanted, use unknown"
    return f"{wanted} wanted, {max(0, left)} free"


def limit(core: State, job: JobClass, name: str) -> str | None:
    """Return what a limit or guarantee of this name says that holds for a job."""
    for guarantee in core.ground.guarantees:
        if guarantee.name == name:
            return f"{guarantee.resource}: {written(guarantee.resource, guarantee.amount)} guaranteed to its group"
    for meter in job.meters:
        if meter.name == name and meter.rule is not None:
            return at_most(meter.resource, meter.rule)
    return None


def at_most(resource: str, rule: Rule) -> str:
    """Return what a limit allows, and what of."""
    if rule.hosts is None:
        where = " on each host" if rule.per_host else ""
    else:
        where = " on each of its hosts" if rule.per_host else " on its hosts"
    return f"{resource}: at most {written(resource, rule.amount)}{where}"


def short_hosts(core: State, resource: str, places: Sequence[int]) -> str:
    """Return what is said of hosts that are short of a resource, or of themselves."""
    if resource == HOST:
        return "jobs that cannot share it"
    column = core.column(resource)
    most = max([column[place] for place in places])
    return f"at most {written(resource, most)} free" if most > 0 else "none free"


def too_few(tasks: int) -> str:
    """Return what is said where hosts have room, but never enough of them at once."""
    return f"{tasks} tasks: too few hosts with room at once" if tasks > 1 else "no plan has room"


def fewest_hosts(meter: Meter, need: int, left: int) -> str:
    """Return what is said of an amount that is short for the fewest hosts that a plan can have."""
    if meter.rule is None:
        return f"{need} wanted at least, {max(0, left)} free"
    amounts = [written(meter.resource, each) for each in (need, max(0, left), meter.rule.amount)]
    return f"{amounts[0]} wanted at least, {amounts[1]} of {amounts[2]} left"

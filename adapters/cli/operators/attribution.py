"""Whose jobs use what costs money now: hosts by the tasks that run on them, borrowed tokens by who holds tokens."""

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Final

from xce.domain.formats.inventory import Inventory
from xce.domain.formats.snapshot import RunningJob, Snapshot

IDLE: Final = "(nobody: idle)"
COMING: Final = "(nobody: not joined)"
_CENT: Final = Decimal("0.0001")

#: What a job is put down to.
Key = Callable[[RunningJob], str]

KEYS: Final[Mapping[str, Key]] = {
    "project": lambda job: job.project,
    "user": lambda job: job.user,
    "queue": lambda job: job.queue,
}


def attributed(snapshot: Snapshot, inventory: Inventory, key: Key) -> list[tuple[str, Decimal]]:
    """Return costs per hour by project, user or queue, the dearest first; what nobody uses has a line of its own."""
    parts: dict[str, Fraction] = {}
    tasks_on: dict[str, dict[str, int]] = {}
    held: dict[str, dict[str, int]] = {}
    for job in snapshot.running:
        for use in job.hosts:
            there = tasks_on.setdefault(use.name, {})
            there[key(job)] = there.get(key(job), 0) + use.tasks
        for name, amount in job.shared.items():
            holders = held.setdefault(name, {})
            holders[key(job)] = holders.get(key(job), 0) + amount
    for instance in inventory.instances:
        if instance.price_per_hour is not None:
            users = {} if instance.host is None else tasks_on.get(instance.host, {})
            nobody = COMING if instance.host is None else IDLE
            _split(parts, Fraction(instance.price_per_hour), users, nobody)
    borrowed: dict[str, Fraction] = {}
    for grant in inventory.grants:
        if grant.price_per_hour is not None:
            cost = Fraction(grant.price_per_hour) * (grant.amount - grant.returned)
            borrowed[grant.resource] = borrowed.get(grant.resource, Fraction(0)) + cost
    for name, cost in borrowed.items():
        _split(parts, cost, held.get(name, {}), IDLE)
    ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    return [(name, _money(part)) for name, part in ordered if part]


def _split(
    parts: dict[str, Fraction], cost: Fraction, users: Mapping[str, int], nobody: str
) -> None:
    whole = sum(users.values())
    for name, share in users.items():
        parts[name] = parts.get(name, Fraction(0)) + cost * share / whole
    if not whole:
        parts[nobody] = parts.get(nobody, Fraction(0)) + cost


def _money(part: Fraction) -> Decimal:
    exact = Decimal(part.numerator) / Decimal(part.denominator)
    return exact.quantize(_CENT, rounding=ROUND_HALF_EVEN)

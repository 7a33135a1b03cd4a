"""Which hosts a primary request accepts and what it takes: sections 2 and 3 of docs/reference/session.md."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tests.reference.world import PlainHost, PlainJob, World
from xce.domain.cluster.requirement import (
    All,
    Alternative,
    AnyOf,
    Compare,
    Comparison,
    Defined,
    Flag,
    Not,
    Number,
    Per,
    Primary,
    Selection,
)
from xce.domain.values import natural_key

MIB = 2**20
_POWER: dict[str, int] = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}


class UnreadableUnitError(Exception):
    """A bare number of a resource whose unit could not be read."""


@dataclass(frozen=True)
class Needs:
    """Amounts of one primary, by what they are taken once for."""

    on_host: Mapping[Per, Mapping[str, int]]
    shared: Mapping[Per, Mapping[str, int]]

    def bucket(self, tasks: int, *, first: bool) -> dict[str, int]:
        """Return what a bucket of so many tasks takes of its host."""
        amounts: dict[str, int] = {}
        for name, amount in self.on_host[Per.TASK].items():
            amounts[name] = amounts.get(name, 0) + tasks * amount
        for name, amount in self.on_host[Per.HOST].items():
            amounts[name] = amounts.get(name, 0) + amount
        if first:
            for name, amount in self.on_host[Per.JOB].items():
                amounts[name] = amounts.get(name, 0) + amount
        return amounts

    def shared_before_hosts(self, tasks: int) -> dict[str, int]:
        """Return the shared amounts that do not depend on the plan."""
        amounts = {name: tasks * amount for name, amount in self.shared[Per.TASK].items()}
        for name, amount in self.shared[Per.JOB].items():
            amounts[name] = amounts.get(name, 0) + amount
        return amounts


def needs_of(world: World, primary: Primary) -> Needs:
    """Return the amounts of a primary in base units; a task takes one slot unless it says otherwise."""
    on_host: dict[Per, dict[str, int]] = {per: {} for per in Per}
    shared: dict[Per, dict[str, int]] = {per: {} for per in Per}
    for usage in primary.rusage:
        table = shared if usage.name in world.pools else on_host
        row = table[usage.per]
        row[usage.name] = row.get(usage.name, 0) + ceil(exact(world, usage.name, usage.amount))
    if not any(usage.name == "slots" for usage in primary.rusage):
        on_host[Per.TASK]["slots"] = 1
    return Needs(on_host, shared)


def exact(world: World, name: str, number: Number) -> Fraction:
    """Return a number of the language in base units, unrounded."""
    if number.unit:
        return number.value * _bytes(number.unit) / MIB
    if name == "slots" or name in world.pools:
        return number.value
    unit = world.settings.units.get(name, "MiB" if name == "mem" else "")
    if unit is None:
        raise UnreadableUnitError(name)
    return number.value * _bytes(unit) / MIB if unit else number.value


def _bytes(unit: str) -> int:
    letter = unit.lower().removesuffix("b").removesuffix("i")
    return int(1024 ** _POWER[letter])


def unreadable_units(world: World, job: PlainJob) -> list[str]:
    """Return the resources of which any part of the job's requirement has a number of unknown unit."""
    found: set[str] = set()
    for alternative in job.requirement.alternatives:
        for primary in parts_of(alternative):
            numbers = [(usage.name, usage.amount) for usage in primary.rusage]
            numbers += [
                (compare.name, compare.literal)
                for compare in _comparisons(primary.select)
                if isinstance(compare.literal, Number)
            ]
            for name, number in numbers:
                try:
                    exact(world, name, number)
                except UnreadableUnitError:
                    found.add(name)
    return sorted(found)


def parts_of(alternative: Alternative) -> tuple[Primary, ...]:
    """Return the primaries that must all be placed."""
    return (alternative,) if isinstance(alternative, Primary) else alternative.parts


def is_exclusive(job: PlainJob, alternative: Alternative) -> bool:
    """Return whether the job, placed by this alternative, shares its hosts with nobody."""
    return job.pending.exclusive or any(primary.exclusive for primary in parts_of(alternative))


def matching_hosts(world: World, job: PlainJob, primary: Primary) -> list[PlainHost]:
    """Return the hosts that match, in the job's host order."""
    hosts = [
        host for host in world.hosts if admits(world, host, job) and selects(world, host, primary)
    ]
    for key in reversed(primary.order):  # sorts are stable, reversed ones too
        with_value = [host for host in hosts if value_of(host, key.name) is not None]
        without = [host for host in hosts if value_of(host, key.name) is None]
        with_value.sort(
            key=lambda host: _sortable(value_of(host, key.name)), reverse=key.descending
        )
        hosts = [*with_value, *without]
    return hosts


def admits(world: World, host: PlainHost, job: PlainJob) -> bool:
    """Return whether the host takes work of this user for this long (section 2)."""
    if not host.is_open:
        return False
    if host.exclusive_to is not None and host.exclusive_to != job.pending.user:
        return False
    if host.available_until is not None:
        limit = job.pending.run_limit
        return limit is not None and world.now + limit <= host.available_until
    return True


def selects(world: World, host: PlainHost, primary: Primary) -> bool:
    """Return whether ``select`` holds on the host."""
    return primary.select is None or _holds(world, host, primary.select)


def value_of(host: PlainHost, name: str) -> object:
    """Return an attribute, else a total, else None."""
    if name in host.attributes:
        return host.attributes[name]
    return host.totals.get(name)


def _holds(world: World, host: PlainHost, selection: Selection) -> bool:
    match selection:
        case Not(operand):
            return not _holds(world, host, operand)
        case All(operands):
            return all(_holds(world, host, operand) for operand in operands)
        case AnyOf(operands):
            return any(_holds(world, host, operand) for operand in operands)
        case Defined(name):
            return value_of(host, name) is not None
        case Flag(name):
            value = value_of(host, name)
            return (
                value is not None
                and not isinstance(value, str)
                and Fraction(str(_number(value))) > 0
            )
        case Compare(name, op, literal):
            value = value_of(host, name)
            if value is None:
                return False
            if isinstance(literal, Number):
                left, right = Fraction(str(_number(value))), exact(world, name, literal)
                return {
                    Comparison.EQ: left == right,
                    Comparison.NE: left != right,
                    Comparison.LT: left < right,
                    Comparison.LE: left <= right,
                    Comparison.GT: left > right,
                    Comparison.GE: left >= right,
                }[op]
            assert type(value) is type(literal), "wrong kinds are refused before the session"
            return (value == literal) == (op is Comparison.EQ)


def _number(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def _comparisons(selection: Selection | None) -> Iterator[Compare]:
    match selection:
        case Compare():
            yield selection
        case Not(operand):
            yield from _comparisons(operand)
        case All(operands) | AnyOf(operands):
            for operand in operands:
                yield from _comparisons(operand)
        case _:
            pass


def _sortable(value: object) -> tuple[int, Fraction, tuple[tuple[int, int, str], ...]]:
    """Return a key: numbers by value, then texts, digits in them as numbers."""
    if isinstance(value, str):
        return (1, Fraction(0), natural_key(value))
    return (0, Fraction(str(_number(value))), ())

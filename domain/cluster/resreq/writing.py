"""From a requirement to its one canonical text."""

from xce.domain.cluster.requirement import (
    All,
    Alternative,
    AnyOf,
    Compare,
    Compound,
    Defined,
    Flag,
    Not,
    Number,
    Per,
    Primary,
    Requirement,
    Selection,
)
from xce.domain.cluster.resreq.reading import parse
from xce.domain.cluster.resreq.words import (
    BARE_NAME,
    DEPTH_MAX,
    LSF_OPTIONS,
    RESERVED,
    quote,
    write_number,
)
from xce.domain.errors import InputError


def write(requirement: Requirement) -> str:
    """Return the canonical text of a requirement: ``parse`` of it gives an equal one.

    Equal requirements have the same text; ``Requirement()`` is the empty text.

    Raises:
        ValueError: no text says this: a name with a control character, a number that is not decimal, a
            conjunction of one, two kinds of span, tasks outside a compound...
    """
    text = _whole(requirement)
    try:
        same = parse(text) == requirement
    except InputError as error:
        raise ValueError(f"no text says this requirement: {error.problems[0]}") from None
    if not same:
        raise ValueError(f"no text says this requirement; the nearest is {text}")
    return text


def _whole(requirement: Requirement) -> str:
    if len(requirement.alternatives) == 1:
        return _alternative(requirement.alternatives[0])
    return " || ".join(
        "{" + _alternative(alternative) + "}" for alternative in requirement.alternatives
    )


def _alternative(alternative: Alternative) -> str:
    match alternative:
        case Primary():
            return _primary(alternative)
        case Compound(parts):
            return " + ".join(f"{part.tasks}*{{{_primary(part)}}}" for part in parts)


def _primary(primary: Primary) -> str:
    return " ".join(_sections(primary))


def _sections(primary: Primary) -> list[str]:
    sections: list[str] = []
    if primary.select is not None:
        sections.append(f"select[{_selection(primary.select, 0)}]")
    if primary.rusage:
        amounts = (
            f"{_resource(usage.name)}={write_number(usage.amount)}"
            + ("" if usage.per is Per.TASK else f"/{usage.per}")
            for usage in primary.rusage
        )
        sections.append(f"rusage[{','.join(amounts)}]")
    if primary.span.one_host:
        sections.append("span[hosts=1]")
    if primary.span.ptile is not None:
        sections.append(f"span[ptile={primary.span.ptile}]")
    if primary.span.one_task_a_host:
        sections.append("span[hosts=-1]")
    if primary.same:
        sections.append(f"same[{':'.join(map(_name, primary.same))}]")
    if primary.order:
        keys = ("-" * key.descending + _name(key.name) for key in primary.order)
        sections.append(f"order[{':'.join(keys)}]")
    if primary.exclusive:
        sections.append("exclusive")
    return sections


def _selection(selection: Selection, depth: int) -> str:
    """Return a selection with the fewest brackets that keep its shape."""
    if depth > DEPTH_MAX:
        raise ValueError(f"the selection has more than {DEPTH_MAX} levels")
    match selection:
        case Compare(name, op, literal):
            return f"{_name(name)}{op}{_literal(literal)}"
        case Flag(name):
            return _name(name)
        case Defined(name):
            return f"defined({_name(name)})"
        case Not(operand):
            return "!" + _bracketed(operand, (All, AnyOf), depth + 1)
        case All(operands):
            return " && ".join(_bracketed(operand, (All, AnyOf), depth) for operand in operands)
        case AnyOf(operands):
            return " || ".join(_bracketed(operand, (AnyOf,), depth) for operand in operands)


def _bracketed(operand: Selection, kinds: tuple[type[Selection], ...], depth: int) -> str:
    if isinstance(operand, kinds):
        return f"({_selection(operand, depth + 1)})"
    return _selection(operand, depth)


def _literal(literal: str | Number | bool) -> str:
    match literal:
        case bool():
            return str(literal).lower()
        case Number():
            return write_number(literal)
        case str():
            return _name(literal)


def _name(name: str) -> str:
    return name if BARE_NAME.fullmatch(name) and name not in RESERVED else quote(name)


def _resource(name: str) -> str:
    return quote(name) if name in LSF_OPTIONS else _name(name)

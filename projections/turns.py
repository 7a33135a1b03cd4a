"""A turn for each line of the catalog: what failed of late is not tried again before the others were (field case F06)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from xce.domain.formats.snapshot import Attribute, Template

#: By how much the priority of what has failed of late is lower, where it keeps its room: below any that a site sets.
_BEHIND: Final = 1_000_000_000
#: Lines that a reason names.
_SHOWN: Final = 3


def in_turn(
    lines: Sequence[tuple[Template, tuple[datetime, str] | None]],
) -> tuple[Template, ...]:
    """Return the lines as each has its turn: one that failed of late has no room while another one could serve whatever it can, and
    has not failed. Where work may need just this one, it keeps its room, and comes last.

    Args:
        lines: each with until when it has had its turn, and why it failed; None: it has not failed of late.
    """
    untried = [
        template
        for template, end in lines
        if end is None and template.allowed and template.paused_until is None
    ]
    return tuple(
        template if end is None else _had_its_turn(template, end, untried)
        for template, end in lines
    )


def _had_its_turn(
    template: Template, end: tuple[datetime, str], untried: Iterable[Template]
) -> Template:
    if template.paused_until is not None:
        return template
    others = [one.id for one in untried if _covers(one, template)]
    if not others:
        return template.model_copy(update={"priority": template.priority - _BEHIND})
    until, why = end
    failed = f" ({why})" if why else ""
    return template.model_copy(
        update={
            "allowed": 0,
            "paused_until": until,
            "paused_why": f"it had its turn{failed}; first comes {' or '.join(others[:_SHOWN])}",
        }
    )


def _covers(one: Template, other: Template) -> bool:
    """Return whether hosts of one serve whatever those of another can."""
    return all(one.provides.get(name, 0) >= amount for name, amount in other.provides.items()) and (
        one.attributes.keys() == other.attributes.keys()
        and all(same(one.attributes[name], value) for name, value in other.attributes.items())
    )


def same(one: Attribute, other: Attribute) -> bool:
    """A flag is not a number, whatever Python says."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other

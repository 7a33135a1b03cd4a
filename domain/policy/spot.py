"""Spot shares: how much of a demand may be of templates that are taken back at any moment, and what is asked instead."""

from xce.domain.formats.policy import PolicyInput, SpotShare


def is_of(line: str, template: str) -> bool:
    """Return whether a catalog line is of a template, at any price."""
    return line == template or line.startswith(f"{template}@")


def rule_of(inputs: PolicyInput, line: str) -> SpotShare | None:
    """Return the rule for the template of a line, if there is one."""
    return next((rule for rule in inputs.settings.spot if is_of(line, rule.template)), None)


def most(rule: SpotShare, there: int, wanted: int) -> int:
    """Return how many hosts of the template there may be, of so many of both templates that are there, asked or wanted."""
    whole, parts = rule.share.as_integer_ratio()
    return (there + wanted) * whole // parts

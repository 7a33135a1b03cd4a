"""Who may do what: made from the table that decides it."""

from collections.abc import Iterator

from xce.domain.engine.authorisation import ROLES, Action, Question, Report, action_name
from xce.domain.engine.messages import Role

HEAD = """# Roles

Made from the code by `tools/generate.py`; do not edit. Every caller has one role. What its column does not allow is refused with the
problem code `forbidden`, and the attempt is an event in the log (`refusals:...`), equal ones within a minute counted together.

A provisioner handles leases under its own name only; only an admin takes a lease by force while another holds it.
"""

_MEANING = {
    Role.ADMIN: "a person who runs the cluster",
    Role.SCHEDULER: "the scheduler, or the driver beside it",
    Role.PROVISIONER: "a provisioner instance; its name is the name it holds leases under",
    Role.OBSERVER: "something that watches licence servers",
    Role.VIEWER: "a person or program that reads",
}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    text = HEAD + "\n| role | who |\n|---|---|\n"
    text += "".join(f"| {role} | {_MEANING[role]} |\n" for role in Role)
    kinds: dict[str, list[Action]] = {
        "Commands": [a for a in ROLES if not isinstance(a, (Question, Report))],
        "Reports, kept in memory only": list(Report),
        "Questions": list(Question),
    }
    for title, actions in kinds.items():
        text += f"\n## {title}\n\n| action | {' | '.join(Role)} |\n|---|{'---|' * len(Role)}\n"
        for action in actions:
            marks = " | ".join("yes" if role in ROLES[action] else "" for role in Role)
            text += f"| `{action_name(action)}` | {marks} |\n"
    yield "docs/reference/roles.md", text

"""The vocabulary of pend reasons: made from the enumeration, in its order; what only a person can say is here."""

from collections.abc import Iterator
from typing import Final

from xce.domain.formats.session_result import ReasonKind

PATH: Final = "docs/reference/reasons.md"

HEAD: Final = """# Why a job waits: the pend reasons

Made from the code by `tools/generate.py`; do not edit. In JSON they are `reason_sets[].reasons[]`, `pending[].reason` is the main one.
[The rules](session.md#5-pend-reasons) say exactly when each holds, [how to read a session](../how-to/read-a-session.md) shows them in use.

The **main reason** of a job is the first of its reasons in this order:

| kind | it means | names | hosts | detail, for example | what would help |
|---|---|---|---|---|---|
"""

#: What it means, what it names, whether it has hosts, an example of its detail, what would help.
MEANING: Final[dict[ReasonKind, tuple[str, str, str, str, str]]] = {
    ReasonKind.HELD: ("somebody holds the job", "", "null", "", "release it"),
    ReasonKind.DEPENDENCY: (
        "a job in its `waits_for` is still here", "", "null", "`waits for 17, 18`", "wait for those jobs",
    ),
    ReasonKind.UNIT_UNKNOWN: (
        "it writes a bare number of a resource whose unit could not be read", "`resource`", "null",
        "`a bare number of mem, and its unit could not be read`", "repair the setting, or write a suffix",
    ),
    ReasonKind.LIMIT: (
        "it would pass a limit or a quota's maximum, or take what a quota keeps for its group", "`limit`",
        "those on which a limit about hosts refuses it; else null", "`slots: 6 wanted, 4 of 10 left`",
        "wait, or raise the limit",
    ),
    ReasonKind.HOST_SELECTION: (
        "no open host that admits it is what `select` asks for", "", "null", "`none of 3 open hosts`",
        "another requirement, or another kind of host",
    ),
    ReasonKind.NO_RESOURCE: (
        "something is short", "`resource`",
        "the matching hosts that are short of it; null for a shared resource, and for `hosts`",
        "`4 wanted, 2 free`; on hosts `at most 4 free`", "more of it, or wait",
    ),
    ReasonKind.PRIORITY: (
        "only the order holds it back (`strict` order)", "", "null", "`behind 7`", "wait for that job",
    ),
}  # fmt: skip

TAIL: Final = """
Two names under `resource` are no resources: `host`, where a job that takes whole hosts and another job exclude each other, and `hosts`,
where single hosts have room, but too few of them at once.

Reasons are found in stages: first `held`, `dependency` and `unit_unknown`; then limits that can be judged without a host; then `host_selection`
and shared resources; then what the hosts are short of. The first stage that finds something ends the search, and a job has **all** reasons of that
stage. What hosts are short of is measured at the end of the session's first phase, when all jobs that can start have started.

Equal jobs have one set of reasons. `detail` says amounts; on hosts it says what is free there and not what a job wants, so that jobs that want different amounts
of the same hosts share a set.

A job that waits may be in the demand all the same: then its `provisioning` says what it waits for. Why another one is not is in `demand.not_counted` and `demand.impossible`.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    rows = "".join(f"| `{kind.value}` | {' | '.join(MEANING[kind])} |\n" for kind in ReasonKind)
    yield PATH, HEAD + rows + TAIL

"""Our documents that are no configurations, and what reads each, for people who gave one in the place of another."""

import re
from typing import Final

from xce.domain.errors import InputError, Problem

#: By their format without its version: what it is, and what reads it.
DOCUMENTS: Final = {
    "xce.snapshot": ("a snapshot", "xce session FILE"),
    "xce.session": ("the result of a session", "xce policy needs it as a part of its input"),
    "xce.policy": ("the input of a round of the policy", "xce policy FILE"),
    "xce.decisions": ("what a round of the policy decided", "xce policy FILE prints it"),
    "xce.delta": ("what changed between two snapshots", "xce sessions read it in recordings"),
    "xce.provider-description": ("a provider's description of itself", "the provider's scripts"),
    "xce.simulation": ("the report of a simulation", "xce sim prints it"),
    "xce.comparison": ("a comparison of policies", "xce sim compare prints it"),
    "xce.scenario-result": ("the result of a scenario", "xce sim run prints it"),
}
_FOUND: Final = re.compile(r"found '(xce\.[a-z-]+)/")


def with_what_reads_it(error: InputError) -> InputError:
    """Return an error about a document of another format with what that is, and what reads it; any other error as it is."""
    if [problem.path for problem in error.problems] != ["format"]:
        return error
    (problem,) = error.problems
    found = _FOUND.search(problem.message)
    if found is None or found[1] not in DOCUMENTS:
        return error
    what, reads = DOCUMENTS[found[1]]
    message = f"{problem.message}: it is {what}; see: {reads}"
    return InputError(error.source, [Problem(message, problem.path, problem.line, problem.column)])

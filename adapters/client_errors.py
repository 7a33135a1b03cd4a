"""Errors of the client library: what an answer of the controller that is no success stands for."""

from typing import Final

import httpx

from xce.domain.errors import (
    ForbiddenError,
    InputError,
    KeyReusedError,
    LeaseHeldError,
    NotFoundError,
    PermanentError,
    Problem,
    RejectedError,
    TransientError,
    XceError,
)
from xce.domain.formats.rest import ProblemAnswer

_ERRORS: Final[dict[str, type[RejectedError]]] = {
    "forbidden": ForbiddenError,
    "not-found": NotFoundError,
    "key-reused": KeyReusedError,
    "lease-held": LeaseHeldError,
}


class CallError(RejectedError):
    """The controller refused a call.

    Attributes:
        code: the problem's code.
    """

    def __init__(self, problem: ProblemAnswer) -> None:
        super().__init__(f"{problem.detail} (request {problem.request_id})")
        self.code = problem.code
        self.problem = problem


def error_of(response: httpx.Response) -> XceError:
    """Return the error that a response stands for."""
    try:
        problem = ProblemAnswer.from_json(response.content, "the answer")
    except InputError:
        message = f"{response.status_code} without a problem document; is this a controller?"
        return TransientError(message) if response.status_code >= 502 else PermanentError(message)
    if response.status_code in (429, 503):
        return TransientError(f"{problem.detail} ({problem.code})")
    if problem.problems:
        return InputError(
            "the message", [Problem(each.message, each.path) for each in problem.problems]
        )
    if response.status_code == 500:
        return PermanentError(f"{problem.detail} (request {problem.request_id})")
    known = _ERRORS.get(problem.code)
    return CallError(problem) if known is None else known(problem.detail)

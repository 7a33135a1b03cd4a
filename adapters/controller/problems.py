"""How an error looks over REST: one status for each code, and a problem document (RFC 9457)."""

from typing import Final

from xce.domain.errors import (
    ForbiddenError,
    InputError,
    KeyReusedError,
    NotFoundError,
    PermanentError,
    RejectedError,
    StaleVersionError,
    TransientError,
    XceError,
)
from xce.domain.formats.rest import ProblemAnswer, ProblemDetail

PROBLEM_JSON: Final = "application/problem+json"
#: Problems of one message that are listed.
PROBLEMS_MAX: Final = 50
_DETAIL_MAX: Final = 2000


class RefusedCallError(XceError):
    """A call that does not get as far as a command or a question."""

    status = 400
    code = "bad-call"
    retry_after_s: int | None = None


class UnauthenticatedError(RefusedCallError):
    """Nobody knows who calls."""

    status = 401
    code = "unauthenticated"


class NoSuchPathError(RefusedCallError):
    """There is nothing at this path."""

    status = 404
    code = "no-such-path"


class NoSuchMethodError(RefusedCallError):
    """The path has other methods."""

    status = 405
    code = "no-such-method"


class TooLargeError(RefusedCallError):
    """The body is larger than this path takes."""

    status = 413
    code = "too-large"


class WrongMediaTypeError(RefusedCallError):
    """The body is not JSON."""

    status = 415
    code = "wrong-media-type"


class TooManyCallsError(RefusedCallError):
    """The caller asks too often, or follows too many streams."""

    status = 429
    code = "too-many-calls"
    retry_after_s = 1


#: First match wins; what is not here is 500: a defect, or a broken log.
STATUS_OF: Final[tuple[tuple[type[XceError], int], ...]] = (
    (InputError, 422),
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (StaleVersionError, 412),
    (KeyReusedError, 422),
    (RejectedError, 409),
    (TransientError, 503),
    (PermanentError, 503),
)

TITLES: Final[dict[int, str]] = {
    400: "The call cannot be read",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "No such method",
    409: "The current state does not allow it",
    412: "It has changed since it was read",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "The message cannot be accepted",
    429: "Too many calls",
    500: "Unexpected error",
    503: "Try again later",
}


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, RefusedCallError):
        return error.status
    return next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)


def retry_after_s(error: Exception) -> int | None:
    """Return the seconds after which the same call may succeed; None: it does not help to wait."""
    if isinstance(error, RefusedCallError):
        return error.retry_after_s
    return 1 if isinstance(error, TransientError) else None


def problem_of(error: Exception, *, path: str, request_id: str) -> ProblemAnswer:
    """Return the problem document; of an error that was not made on purpose it says nothing but where to look."""
    status = status_of(error)
    code = error.code if isinstance(error, XceError) else "internal"
    detail = str(error) if isinstance(error, XceError) else "see the controller's log"
    problems: tuple[ProblemDetail, ...] = ()
    if isinstance(error, InputError):
        problems = tuple(
            ProblemDetail(path=problem.path, message=problem.message)
            for problem in error.problems[:PROBLEMS_MAX]
        )
        detail = f"{error.source} cannot be read"
    return ProblemAnswer(
        type=f"urn:xce:problem:{code}",
        title=TITLES.get(status, "Error"),
        status=status,
        detail=detail[:_DETAIL_MAX],
        instance=path[:_DETAIL_MAX],
        code=code,
        request_id=request_id,
        problems=problems,
    )

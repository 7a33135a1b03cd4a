"""Exit codes, in one table."""

from typing import Final

from xce.domain.errors import InputError, PermanentError, RejectedError, TransientError, XceError

DONE: Final = 0
UNEXPECTED: Final = 1
USAGE: Final = 2
#: The input was read, and the answer is no: verification, expectations, provider checks.
NO: Final = 3
INTERRUPTED: Final = 130

#: First match wins; what is not here is ``UNEXPECTED``.
OF_ERROR: Final[dict[type[XceError], int]] = {
    InputError: USAGE,
    RejectedError: NO,
    PermanentError: 4,
    TransientError: 75,
}

MEANING: Final[dict[int, str]] = {
    DONE: "done",
    UNEXPECTED: "unexpected error: a defect, or a broken log",
    USAGE: "wrong usage or wrong input; nothing was done",
    NO: "rejected, or read and the answer is no",
    4: "permanent failure: trying again cannot help",
    75: "try again later",
    INTERRUPTED: "interrupted from the keyboard",
}


def exit_code_of(error: XceError) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code in OF_ERROR.items() if isinstance(error, kind)), UNEXPECTED)

"""How a call of a provider fails, beyond what the port says."""

from xce.domain.errors import TransientError


class OutcomeUnknownError(TransientError):
    """Whether the call had an effect is unknown: look it up by status, listing or tag; never repeat it blindly.

    Attributes:
        suspect: a request id that the script printed although it failed; it is asked after, and nothing is asked anew meanwhile.
    """

    code = "outcome-unknown"

    def __init__(self, message: str, suspect: str | None = None) -> None:
        super().__init__(message)
        self.suspect = suspect

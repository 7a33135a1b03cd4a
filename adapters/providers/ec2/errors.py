"""From errors of the client library to what a caller is told: a stable code, a reason without secrets, and whether anything may have happened."""

import re
from collections.abc import Iterable
from typing import Final, cast

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.parsers import ResponseParserError

from xce.adapters.providers.program import RefusalError

HIDDEN: Final = "[hidden]"
THROTTLED: Final = "RequestLimitExceeded"
UNREACHABLE: Final = "Unreachable"
#: Seconds after which a caller may ask again, where the API is busy or cannot be reached.
RETRY_AFTER_S: Final = 30

#: Codes of EC2 that mean the same as another one, by which they are told.
SAME: Final = {
    **dict.fromkeys(
        (
            "BandwidthLimitExceeded",
            "EC2ThrottledException",
            "PriorRequestNotComplete",
            "RequestThrottled",
            "RequestThrottledException",
            "SlowDown",
            "Throttling",
            "ThrottlingException",
            "TooManyRequestsException",
        ),
        THROTTLED,
    ),
    **dict.fromkeys(
        ("InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded"),
        "InsufficientAddressCapacity",
    ),
    **dict.fromkeys(
        ("SpotInstanceCountExceeded", "MaxSpotFleetRequestCountExceeded"),
        "MaxSpotInstanceCountExceeded",
    ),
    **dict.fromkeys(
        (
            "ExpiredToken",
            "IncompleteSignature",
            "InvalidAccessKeyId",
            "InvalidClientTokenId",
            "MissingAuthenticationToken",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "UnrecognizedClientException",
        ),
        "AuthFailure",
    ),
    **dict.fromkeys(
        ("AccessDenied", "AccessDeniedException", "UnauthorizedAccess"), "UnauthorizedOperation"
    ),
    **dict.fromkeys(
        ("InternalFailure", "ServerInternal", "ServiceUnavailable", "Unavailable"), "InternalError"
    ),
}
#: Why a machine ended while it booted, where its template is then not to be had for a while. The first of them are those of
#: ``error_codes.CAPACITY_CODES``, whose models take longer to import than a script may take.
PAUSING: Final = frozenset(
    {
        "InsufficientAddressCapacity",
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "VolumeLimitExceeded",
    }
)
#: Their texts quote what was signed.
_QUOTING: Final = frozenset({"AuthFailure"})
_ENCODED: Final = re.compile(r"\s*Encoded authorization failure message:.*", re.DOTALL)
_WHY_MAX: Final = 400
#: All errors of the client library, of which one is no relative of the others.
LibraryError = ClientError | BotoCoreError | ResponseParserError
LIBRARY_ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError)
#: Those from before anything was sent.
_NOT_SENT: Final = (
    CredentialRetrievalError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
)


class RefusedError(RefusalError):
    """Nothing was done.

    Attributes:
        code: stable, see ``docs/how-to/ec2.md``.
        theirs: the code in the words of EC2.
        retry_after_s: None: the caller is to wait as it sees fit.
    """

    def __init__(
        self, code: str, why: str, *, theirs: str = "", retry_after_s: int | None = None
    ) -> None:
        self.code = code
        self.why = why
        self.theirs = theirs or code
        super().__init__(f"Error Code: {code}: {why}", retry_after_s)


class UnansweredError(Exception):
    """Nobody knows whether it was done: there was no answer, or one that does not say."""


def read_error(
    error: LibraryError, action: str, secrets: Iterable[str]
) -> RefusedError | UnansweredError:
    """Return what an error means."""
    hidden = tuple(secrets)
    if isinstance(error, ClientError):
        return _of_answer(error, action, hidden)
    if isinstance(error, _NOT_SENT):
        auth = not isinstance(error, NoRegionError | ParamValidationError)
        code = "AuthFailure" if auth else "InvalidParameterValue"
        return RefusedError(code, f"{action}: {without(str(error), hidden)}")
    return UnansweredError(f"{action}: {type(error).__name__}: {without(str(error), hidden)}")


def stable_code(theirs: str) -> str:
    """Return the code by which a code of EC2 is told; prefixes of state reasons go."""
    bare = theirs.removeprefix("Server.").removeprefix("Client.")
    return SAME.get(bare, bare)


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text as one line of bounded length, without secrets."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    line = " ".join(_ENCODED.sub("", text).split())
    return line if len(line) <= _WHY_MAX else line[: _WHY_MAX - 4] + " ..."


def _of_answer(
    error: ClientError, action: str, secrets: tuple[str, ...]
) -> RefusedError | UnansweredError:
    response = cast("dict[str, dict[str, object]]", error.response)
    said = response.get("Error", {})
    meta = response.get("ResponseMetadata", {})
    theirs = str(said.get("Code", "")) or "Unknown"
    status = meta.get("HTTPStatusCode")
    code = stable_code(theirs)
    text = "" if code in _QUOTING else without(str(said.get("Message", "")), secrets)
    # Gateways answer a number for a code.
    if theirs.isdigit() or code == "InternalError" or not re.fullmatch(r"[A-Za-z][\w.-]*", theirs):
        return UnansweredError(f"{action}: {without(theirs, secrets)} (HTTP {status}) {text}")
    request = str(meta.get("RequestId", ""))[:64]
    why = ": ".join(part for part in (action, "" if theirs == code else theirs, text) if part)
    why += f" (request {request})" if request else ""
    busy = code == THROTTLED
    return RefusedError(code, why, theirs=theirs, retry_after_s=RETRY_AFTER_S if busy else None)

"""Who calls: tokens that are kept as digests, names in client certificates, and how often they may call.

A token is 256 random bits, so its SHA-256 cannot be guessed from the file; a slow password hash would only slow callers down.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

from xce.adapters.controller.problems import TooManyCallsError, UnauthenticatedError
from xce.adapters.files import why_unread
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import InputError, Problem

#: Marks a token, so that one that leaked is recognised by scanners.
TOKEN_PREFIX: Final = "xce_"
#: Buckets that are kept at once; the one that was not used for longest is forgotten.
BUCKETS_MAX: Final = 10_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def new_token() -> str:
    """Return a new token; it is shown once and never stored."""
    return TOKEN_PREFIX + token_urlsafe(32)


def digest_of(token: str) -> str:
    """Return what the token file has of a token."""
    return sha256(token.encode()).hexdigest()


def token_line(caller: Caller, token: str) -> str:
    """Return the line of the token file."""
    return f"{caller.role} {caller.name} {digest_of(token)}"


def require_name(name: str, source: str) -> str:
    """Return a caller's name, if it is one.

    Raises:
        InputError: it has other characters, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise InputError.of(
            source, f"{name[:80]!r} is not a name; wanted up to 64 letters, digits and . _ @ -"
        )
    return name


def read_tokens(path: Path) -> dict[str, Caller]:
    """Return the callers by digest; a file has lines ``ROLE NAME SHA256``, blank ones and comments from ``#``.

    Raises:
        InputError: it cannot be read, or a line is wrong; it names all of them, and never what stands in them.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.of(str(path), why_unread(error)) from None
    callers: dict[str, Caller] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        wrong = _wrong(words, callers)
        if wrong is not None:
            problems.append(Problem(wrong, line=number))
        else:
            callers[words[2]] = Caller(Role(words[0]), words[1])
    if problems:
        raise InputError(str(path), problems)
    return callers


def _wrong(words: list[str], callers: Mapping[str, Caller]) -> str | None:
    if len(words) != 3:
        return f"{len(words)} words; wanted: ROLE NAME SHA256-OF-THE-TOKEN"
    role, name, digest = words
    if role not in list(Role):
        return f"the first word is not a role; wanted one of {', '.join(Role)}"
    if not _NAME.fullmatch(name):
        return "the second word is not a name; wanted up to 64 letters, digits and . _ @ -"
    if not _DIGEST.fullmatch(digest):
        return "the third word is not a SHA-256 in lower case; xce controller token makes the line"
    return "the same token is there twice" if digest in callers else None


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a call brings to say who it is; a certificate was verified by the TLS layer."""

    authorization: str | None = None
    common_name: str | None = None


class Gate:
    """Tells callers from strangers."""

    def __init__(
        self, tokens: Mapping[str, Caller], certificates: Mapping[str, Caller] | None = None
    ) -> None:
        self._tokens = dict(tokens)
        self._certificates = dict(certificates or {})

    def replace(self, tokens: Mapping[str, Caller]) -> None:
        """Know these tokens from now on, and no others."""
        self._tokens = dict(tokens)

    def caller(self, credentials: Credentials) -> Caller:
        """Return who calls; a token wins over a certificate.

        Raises:
            UnauthenticatedError: nobody knows; it does not say what was wrong with a token.
        """
        if credentials.authorization is not None:
            scheme, _, token = credentials.authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise UnauthenticatedError("wanted the header Authorization: Bearer TOKEN")
            found = self._tokens.get(digest_of(token.strip()))
            if found is None:
                raise UnauthenticatedError("the token is not known")
            return found
        if credentials.common_name is not None:
            found = self._certificates.get(credentials.common_name)
            if found is None:
                raise UnauthenticatedError("the certificate's common name is not among the clients")
            return found
        raise UnauthenticatedError("wanted the header Authorization: Bearer TOKEN")

    def callers(self) -> Iterable[Caller]:
        """Return everybody who is known."""
        return [*self._tokens.values(), *self._certificates.values()]


@dataclass(slots=True)
class _Bucket:
    left: float
    at_s: float


class Rates:
    """Token buckets by name: so many calls at once, and so many per second after that."""

    def __init__(self, per_second: float, burst: int, elapsed_s: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._elapsed_s = elapsed_s
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def spend(self, name: str) -> None:
        """Count a call.

        Raises:
            TooManyCallsError: there were too many; nothing was counted.
        """
        if not self.may(name):
            raise TooManyCallsError(f"more than {self._per_second:g} calls a second")
        self._buckets[name].left -= 1

    def may(self, name: str) -> bool:
        """Return whether a call would be let through."""
        now = self._elapsed_s()
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(float(self._burst), now)
            if len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(name)
            bucket.left = min(
                self._burst, bucket.left + max(0.0, now - bucket.at_s) * self._per_second
            )
            bucket.at_s = now
        return bucket.left >= 1

"""What is kept of a call: enough for an auditor to see what the provider said, and no secret, no terminal code, no flood."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from xce.adapters.providers.call import Ran
from xce.domain.formats.script_output import without_codes

HIDDEN: Final = "[hidden]"
#: Shorter values are words that stand everywhere.
_SECRET_MIN: Final = 6
_SECRET_NAME = re.compile(
    r"(?i)(secret|token|passw|credential|private|api_?key|access_?key|session_?key)"
)
#: Every repetition has an end: texts of others must not take time squared.
_IN_TEXT: Final = (
    re.compile(
        r"(?i)(?P<kept>(?:secret|token|passw(?:or)?d|credential|api_?key|access_?key)[\w.-]{0,40}[\"']?"
        r"\s{0,10}[:=]\s{0,10}[\"']?)(?P<value>[^\s\"',;}]{1,4096})"
    ),
    re.compile(r"(?i)(?P<kept>\b(?:bearer|basic)\s{1,10})(?P<value>[A-Za-z0-9+/_.=-]{8,4096})"),
    re.compile(r"(?P<kept>)(?P<value>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)"),
    re.compile(r"(?P<kept>://[^\s/:@]{0,100}:)(?P<value>[^\s/@]{1,200})(?=@)"),
    re.compile(
        r"(?P<kept>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(?P<value>[^-]+)(?=-----END|$)",
        re.DOTALL,
    ),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One call as it is kept beside its outcome.

    Attributes:
        script: which one was called.
        subject: our request or return id, or the provider's, that it was about; "": everything.
        seconds: how long it took; None: it was found again after a restart.
        digest: SHA-256 of the whole output, so that a copy kept elsewhere can be recognised.
        output: the beginning of standard output, for people.
        log: the beginning of standard error, for people.
        step: what it took to read the output, or why it could not be read.
    """

    script: str
    subject: str
    arguments: tuple[str, ...]
    exit_code: int | None
    seconds: float | None
    digest: str
    output: str
    log: str
    step: str
    why_killed: str = ""


def evidence_of(
    ran: Ran, *, script: str, subject: str, step: str, secrets: Iterable[str], limit: int
) -> Evidence:
    """Return what is kept of a run; ``limit`` is in characters of each output."""
    hidden = tuple(secrets)
    return Evidence(
        script=script,
        subject=subject,
        arguments=ran.arguments,
        exit_code=ran.exit_code,
        seconds=ran.seconds,
        digest=ran.digest,
        output=kept(ran.output, hidden, limit),
        log=kept(ran.log, hidden, limit),
        step=step,
        why_killed=ran.why_killed,
    )


def kept(raw: bytes, secrets: Iterable[str], limit: int) -> str:
    """Return the beginning of an output for people: cleaned, without secrets."""
    text = raw[: 8 * limit + 4096].decode(errors="replace")
    clean = without_secrets(without_codes(text), secrets)
    return clean if len(clean) <= limit else clean[:limit] + " ..."


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets that are known, and without what looks like one."""
    text = without_known(text, secrets)
    for pattern in _IN_TEXT:
        text = pattern.sub(lambda match: match["kept"] + HIDDEN, text)
    return text


def without_known(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets that are known."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def secrets_of(environment: Mapping[str, str], given: Iterable[str]) -> tuple[str, ...]:
    """Return the values of an environment that are secrets: those given as such, and those whose names say so."""
    names = set(given)
    return tuple(
        value
        for name, value in environment.items()
        if len(value) >= _SECRET_MIN and (name in names or _SECRET_NAME.search(name))
    )

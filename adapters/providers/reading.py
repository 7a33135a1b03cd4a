"""From a run to a message or a failure: exit codes, the chain of reading, and failure texts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from xce.adapters.providers.call import SIGNALLED, Ran
from xce.adapters.providers.evidence import without_known
from xce.domain.formats.error_codes import error_code
from xce.domain.formats.script_output import (
    Message,
    Plain,
    Read,
    Unreadable,
    read_output,
    without_codes,
)

#: Characters of a failure's text that are kept in its reason.
_WHY_MAX = 500
FAILED = "Failed"
#: Keys of texts for people, the first that says something first.
_FOR_PEOPLE = ("message", "error", "errorMessage", "Message")


@dataclass(frozen=True, slots=True)
class Answered:
    """Exit 0 and one JSON object."""

    message: Message
    step: str
    noise: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The script said that it failed.

    Attributes:
        code: of ``Error Code: X``, else ``Failed``.
        message: the JSON object in its text, where there is one.
    """

    code: str
    why: str
    step: str
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Unclear:
    """What happened is unknown: it was killed, or its answer cannot be read."""

    why: str
    step: str


def read(ran: Ran, output_limit: int) -> Answered | Failed | Unclear:
    """Return what a run says."""
    if ran.exit_code is None or len(ran.output) > output_limit:
        why = ran.why_killed or "it is not known how the script ended"
        return Unclear(why, "killed")
    if ran.exit_code >= SIGNALLED:
        return Unclear(f"ended by signal {ran.exit_code - SIGNALLED}", "killed")
    found = read_output(ran.output)
    if ran.exit_code != 0:
        return _failure(ran, found)
    if isinstance(found, Unreadable):
        shown = short(found.text)
        return Unclear(
            f"{found.trouble.value} on standard output" + (f": {shown}" if shown else ""),
            found.trouble.value,
        )
    return Answered(found.message, found.step.value, found.noise)


def hushed(
    reading: Answered | Failed | Unclear, secrets: Iterable[str]
) -> Answered | Failed | Unclear:
    """Return what a run says with the secrets that are known taken out of all that is for people; ids and names stay as they are."""
    known = tuple(secrets)
    if not known:
        return reading
    if isinstance(reading, Answered):
        noise = without_known(reading.noise, known)
        return replace(reading, message=_hushed(reading.message, known), noise=noise)
    why = without_known(reading.why, known)
    if isinstance(reading, Unclear):
        return replace(reading, why=why)
    message = None if reading.message is None else _hushed(reading.message, known)
    return replace(reading, why=why, message=message)


def _hushed(message: Message, known: tuple[str, ...]) -> Message:
    return {
        key: without_known(value, known)
        if key in _FOR_PEOPLE and isinstance(value, str)
        else _hushed_within(value, known)
        for key, value in message.items()
    }


def _hushed_within(value: Plain, known: tuple[str, ...]) -> Plain:
    if isinstance(value, dict):
        return _hushed(value, known)
    if isinstance(value, list):
        return [_hushed_within(one, known) for one in value]
    return value


def failure_of(message: Message) -> str:
    """Return what a message says of its failure; "": it says nothing."""
    for key in _FOR_PEOPLE:
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("message")
        if isinstance(value, str) and value.strip():
            return short(value)
    return ""


def short(text: str) -> str:
    """Return a text of the provider as one line of bounded length; a long one keeps its end, where a traceback says what was wrong."""
    if len(text) > 4 * _WHY_MAX:
        text = f"{text[: 2 * _WHY_MAX]} ... {text[-2 * _WHY_MAX :]}"
    line = " ".join(without_codes(text).split())
    if len(line) <= _WHY_MAX:
        return line
    half = (_WHY_MAX - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"


def _failure(ran: Ran, found: Read | Unreadable) -> Failed:
    message = found.message if isinstance(found, Read) else None
    text = ran.output[: 16 * _WHY_MAX].decode(errors="replace")
    said = failure_of(message) if message else ""
    why = said or short(text) or short(ran.log.decode(errors="replace"))
    code = error_code(said) or error_code(text) or FAILED
    step = found.step.value if isinstance(found, Read) else found.trouble.value
    return Failed(code, why or f"exit code {ran.exit_code}", step, message)

"""What a provider script printed, as the one JSON object in it: a chain of steps from strict JSON to repair. Pure and bounded.

Scripts print warnings before their answer, Python literals, trailing commas. For a call that creates machines "could not read the
answer" is not "nothing was created", so nothing is guessed: two objects that say different things, or none, are unreadable.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

#: Deeper texts are no message of ours, and would exhaust the stack of whoever walks them.
DEPTH_MAX: Final = 64
#: Commas and opening brackets of a text: bounds the memory that its values take.
VALUES_MAX: Final = 1_000_000
#: Longer numbers stay texts: no message has such a number, and reading one takes time squared.
_DIGITS_MAX: Final = 18
#: How often the whole text may be walked in search of an object.
_WALKS_MAX: Final = 8
#: Objects looked at in one text.
_OBJECTS_MAX: Final = 1_000

#: A value as JSON has it; numbers that do not fit are texts.
Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"
Message: TypeAlias = dict[str, Plain]


class Step(StrEnum):
    """What it took to read an output: the chain, in its order."""

    STRICT = "strict"
    OUTERMOST = "outermost object"
    LITERAL = "Python literal"
    REPAIRED = "repaired"


class Trouble(StrEnum):
    """Why an output cannot be read."""

    NOTHING = "no object"
    SEVERAL = "several objects"
    TOO_LARGE = "too large"
    TOO_DEEP = "too deep"


@dataclass(frozen=True, slots=True)
class Read:
    """An output that was understood.

    Attributes:
        message: the one object.
        step: the furthest step of the chain that was needed.
        noise: what stood around the object, for the log; "" for clean output.
    """

    message: Message
    step: Step
    noise: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An output that was not understood; ``text`` is all of it, cleaned of terminal codes."""

    trouble: Trouble
    text: str


class _TooDeepError(Exception):
    pass


class _NotOneValueError(Exception):
    pass


def read_output(raw: bytes) -> Read | Unreadable:
    """Return the one JSON object of a script's standard output, or why there is none."""
    text = raw.decode(errors="replace").removeprefix("\ufeff")
    if sum(map(text.count, ",{[")) > VALUES_MAX:
        return Unreadable(Trouble.TOO_LARGE, "")
    try:
        found = _strict(text)
        if isinstance(found, dict):
            return Read(_cleaned(found, text), Step.STRICT)
        return _search(without_codes(text))
    except _NotOneValueError:
        return Unreadable(Trouble.SEVERAL, without_codes(text))
    except (_TooDeepError, RecursionError):
        return Unreadable(Trouble.TOO_DEEP, without_codes(text))


def without_codes(text: str) -> str:
    """Return a text without what a terminal would obey; tabs and line ends stay."""
    return _CONTROL.sub("", _ANSI.sub("", text))


def depth_of(value: Plain) -> int:
    """Return how deep a value is nested, 0 for a plain one; stops counting behind ``DEPTH_MAX``."""
    depth, level = 0, [value]
    while depth <= DEPTH_MAX:
        level = [
            child
            for one in level
            if isinstance(one, dict | list)
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, dict | list)
        ]
        depth += 1
        if not level:
            return depth if isinstance(value, dict | list) else 0
    return depth


# ------------------------------------------------------------- the steps of the chain
def _strict(text: str) -> Plain:
    """Return the value of a JSON text; None where it is none, and for the value null."""
    try:
        return _loaded(text, strict=True)
    except (ValueError, _NotOneValueError):
        return None


def _loaded(text: str, *, strict: bool) -> Plain:
    value: Plain = json.loads(
        text,
        strict=strict,
        parse_int=_integer,
        parse_float=_fraction,
        parse_constant=_no_constant,
        object_pairs_hook=_object,
    )
    if depth_of(value) > DEPTH_MAX:
        raise _TooDeepError
    return value


def _search(text: str) -> Read | Unreadable:
    """Look for the outermost objects of a text that is not JSON as a whole."""
    found: list[tuple[Message, Step]] = []
    noise: list[str] = []
    end = 0
    for start, stop in _balanced(text):
        read = _object_of(text[start:stop])
        if read is None:
            continue
        found.append(read)
        noise.append(text[end:start])
        end = stop
        if len(found) > _OBJECTS_MAX:
            return Unreadable(Trouble.SEVERAL, text)
    noise.append(text[end:])
    if not found:
        return Unreadable(Trouble.NOTHING, text)
    chosen = _the_one(found)
    if chosen is None:
        return Unreadable(Trouble.SEVERAL, text)
    message, step = chosen
    return Read(_cleaned(message, text), step, "\n".join(filter(None, map(str.strip, noise))))


def _object_of(text: str) -> tuple[Message, Step] | None:
    try:
        value = _loaded(text, strict=False)
        return (value, Step.OUTERMOST) if isinstance(value, dict) else None
    except _NotOneValueError:
        raise
    except ValueError:
        pass
    try:
        rewritten, step = _rewritten(text)
        value = _loaded(rewritten, strict=False)
    except ValueError:
        return None
    return (value, step) if isinstance(value, dict) else None


def _the_one(found: list[tuple[Message, Step]]) -> tuple[Message, Step] | None:
    """Return the object that counts: the only one, or of several the one that alone says what a message says."""
    telling = [(message, step) for message, step in found if _TELLING & message.keys()]
    some = telling or found
    first = some[0]
    if all(message == first[0] for message, _ in some):
        return first
    ids = {json.dumps(message.get("requestId")) for message, _ in some}
    if len(ids) == 1 and all("requestId" in message for message, _ in some):
        return some[-1]
    return None


#: Keys that a log line printed as JSON does not have, and every answer of a script has one of.
_TELLING: Final = frozenset(
    [
        "requestId",
        "requests",
        "templates",
        "machines",
        "grants",
        "resources",
        "contract",
        "kinds",
        "error",
    ]
)


# ------------------------------------------------------------------ finding the braces
#: Strings and braces. Escapes outside strings are tokens too: else a quote that is never closed would be looked at from each of them.
_IN_OBJECT = re.compile(r'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\\n]|\\.)*+\'|[{}]|\\.', re.DOTALL)


def _balanced(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of outermost ``{...}``; a brace that is never closed is skipped, as long as the work is bounded."""
    budget = _WALKS_MAX * max(len(text), 1)
    place = text.find("{")
    while place >= 0 and budget > 0:
        end, walked = _closing(text, place)
        budget -= walked
        if end > 0:
            yield place, end
        place = text.find("{", end if end > 0 else place + 1)


def _closing(text: str, start: int) -> tuple[int, int]:
    """Return the place behind the brace that closes the one at ``start``, 0 if none does, and how far was looked."""
    depth = 0
    for match in _IN_OBJECT.finditer(text, start):
        token = match[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                return match.end(), match.end() - start
    return 0, len(text) - start


# ------------------------------------------------------------- Python literals, commas
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<double>"(?:[^"\\]|\\.)*+")
    |(?P<single>'(?:[^'\\\n]|\\.)*+')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<open>[\[{(])|(?P<close>[\]})])|(?P<comma>,)|(?P<colon>:)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {
    "True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null",
    "NaN": "null", "nan": "null", "Infinity": "null", "inf": "null", "undefined": "null",
}  # fmt: skip
_BRACKETS: Final = {"(": "[", ")": "]"}
_PYTHON: Final = frozenset({"True", "False", "None", "nan", "inf"})


def _rewritten(text: str) -> tuple[str, Step]:
    """Return a Python literal, or JSON with commas too many, as JSON.

    Raises:
        ValueError: there is something in it that neither has.
    """
    parts: list[str] = []
    literal, place = False, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError("not a token")
        place = match.end()
        kind, token = match.lastgroup, match[0]
        if kind == "space":
            continue
        if kind == "single":
            literal, token = True, _double(token)
        elif kind == "double" and "\\" in token:
            literal, token = literal or _ESCAPES_OF_PYTHON.search(token) is not None, _double(token)
        elif kind == "word":
            literal = literal or token in _PYTHON
            token = _WORDS[token] if token in _WORDS else _bad(token)
        elif kind == "number":
            token = _number(token)
        elif kind in ("open", "close"):
            literal = literal or token in _BRACKETS
            token = _BRACKETS.get(token, token)
            if kind == "close" and parts and parts[-1] == ",":
                parts.pop()
        parts.append(token)
    return " ".join(parts), Step.LITERAL if literal else Step.REPAIRED


def _bad(token: str) -> str:
    raise ValueError(f"{token[:20]!r} is no value")


def _number(token: str) -> str:
    plain = token.replace("_", "").removeprefix("+")
    if plain.startswith((".", "-.")):
        plain = plain.replace(".", "0.", 1)
    return re.sub(r"^(-?)0+(?=\d)", r"\1", re.sub(r"\.(?!\d)", ".0", plain))


_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}|.)", re.DOTALL
)
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\n": "",
    "a": "\a", "v": "\v", "0": "\0",
}  # fmt: skip
_ESCAPES_OF_PYTHON = re.compile(r"\\[xUav0']")


def _double(token: str) -> str:
    def meant(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code if code in "\\'\"" else match[0])

    return json.dumps(_ESCAPE.sub(meant, token[1:-1]))


# --------------------------------------------------------------------- plain values
def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _DIGITS_MAX else digits


def _fraction(text: str) -> float | str:
    number = float(text) if len(text) <= 400 else float("inf")
    return number if abs(number) != float("inf") else text


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Plain]]) -> Message:
    made = dict(pairs)
    if len(made) < len(pairs) and any(made[key] != value for key, value in pairs):
        raise _NotOneValueError
    return made


def _cleaned(message: Message, text: str) -> Message:
    """Return a message without characters that cannot be written again: halves of surrogate pairs."""
    if not _HALF_ESCAPE.search(text):
        return message
    written = json.dumps(message)
    return cast("Message", json.loads(_HALF_ESCAPE.sub(_whole, written)))


def _whole(match: re.Match[str]) -> str:
    return match[0] if match["pair"] else match["before"] + "\\ufffd"


#: The escape of a pair, or of a half; an even number of backslashes before it is none of its own.
_HALF_ESCAPE = re.compile(
    r"(?P<before>(?<!\\)(?:\\\\)*)"
    r"(?:(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def plain(value: object) -> Plain:
    """Return a value that was read as one of this module's; for models that keep unknown keys."""
    return cast("Plain", value)


def as_object(value: Any) -> Message | None:
    """Return a value if it is an object with texts as keys."""
    return cast("Message", value) if isinstance(value, dict) else None

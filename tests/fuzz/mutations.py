"""Texts made from texts: bytes cut, repeated, exchanged; JSON values replaced by what nobody expects there. All from one seeded source."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, cast

#: What readers look at, and where they have gone wrong before.
TOKENS: Final = (
    b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b",", b":", b"\n", b"\t", b"#", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"\x1b[31m", b"\x1b]0;t\x07", b"\x9b1m", b"\xe2\x80\xae", b"\\ud800", b"\\u0000", b"NaN", b"Infinity", b"-0", b"1e999",
    b"9" * 30, b"-1", b"1.5", b"None", b"True", b"null", b"true", b"&a", b"*a", b"<<:", b"!!", b"%", b"Error Code: X.-",
    b'"requestId"', b'"machines"', b'"result"', b'"message"', b"2026-03-02T08:00:00Z", b"0001-01-01", b"99999999999999",
)  # fmt: skip
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 1.5, -0.0, 2**31, 2**53, 2**63, 10**17, -(10**17), "", " ", "0", "-1", "1.5", "nan", "a" * 300,
    "\x1b[31mred", "two\nlines", "\ud800", "\u202e", "\x00", "../../x", "9" * 25, [], {}, [None], [[]], {"": {}}, ["Numeric", "x"],
    ["String", {}], ["Boolean", []], [1, 2], {"machineId": []}, "2026-03-02T08:00:00+99:00", "0001-01-01T00:00:00+14:00",
)  # fmt: skip
#: Longer texts teach nothing that shorter ones do not; what is about length has its own tests.
LONGEST: Final = 64 * 1024
_DEEPEST: Final = 80


def mutated(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    """Return a text made from another one by a few changes."""
    for _ in range(1 + int(random.expovariate(0.7))):
        change = random.choice(_CHANGES)
        text = change(random, text, others)[:LONGEST]
    return text


def _flipped(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    if not text:
        return text
    at = random.randrange(len(text))
    return text[:at] + bytes([text[at] ^ (1 << random.randrange(8))]) + text[at + 1 :]


def _cut(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(random, text)
    return text[:start] + text[end:]


def _ended(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    return text[: random.randrange(len(text) + 1)]


def _repeated(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(random, text)
    times = random.choice((1, 2, 7, 100, 3000))
    return text[:end] + text[start:end] * times + text[end:]


def _with_token(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(random, text)
    end = random.choice((start, end))
    return text[:start] + random.choice(TOKENS) * random.choice((1, 1, 2, 200)) + text[end:]


def _spliced(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    other = random.choice(others) if others else text
    start, end = _span(random, other)
    at, behind = _span(random, text)
    return text[:at] + other[start:end] + text[behind:]


def _other_value(random: Random, text: bytes, others: Sequence[bytes]) -> bytes:
    """Replace a value, a key or an element of a JSON text; of other texts, do something simpler."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _with_token(random, text, others)
    places = list(_places(document))
    if not places:
        return json.dumps(random.choice(VALUES)).encode()
    container, key = random.choice(places)
    _change(random, container, key)
    try:
        return json.dumps(document, ensure_ascii=random.random() < 0.8).encode(
            errors="surrogatepass"
        )
    except RecursionError:
        return text


def _change(random: Random, container: Any, key: Any) -> None:
    value = container[key]
    deed = random.randrange(6)
    if deed == 0:
        del container[key]
    elif deed == 1 and isinstance(container, list):
        cast("Any", container).extend([value] * random.choice((1, 3, 50)))
    elif deed == 1:
        container[random.choice(("", key + "s", key.lower(), key.upper(), "\x1b[2J"))] = value
    elif deed == 2:
        for _ in range(random.choice((1, 2, _DEEPEST))):
            value = [value] if random.random() < 0.5 else {"x": value}
        container[key] = value
    elif deed == 3 and isinstance(value, str | int | float):
        container[key] = str(value) if not isinstance(value, str) else f"{value}{random.choice(VALUES)}"  # fmt: skip
    else:
        container[key] = random.choice(VALUES)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    inner: Any = ()
    if hasattr(document, "items"):
        inner = list(document.items())
    elif hasattr(document, "append"):
        inner = [(number, document[number]) for number in range(len(document))]
    for key, value in inner:
        yield document, key
        yield from _places(value)


def _span(random: Random, text: bytes) -> tuple[int, int]:
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + random.choice((0, 1, 2, 5, 20, 200)))


Change = Callable[[Random, bytes, Sequence[bytes]], bytes]
_CHANGES: Final[tuple[Change, ...]] = (
    _flipped, _cut, _ended, _repeated, _with_token, _with_token, _spliced, _other_value, _other_value, _other_value,
)  # fmt: skip

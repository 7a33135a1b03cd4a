"""Slurm's short ways to write many: host lists, array indexes, amounts by name."""

import re
from collections.abc import Iterator
from typing import Final

#: Nobody has more nodes, or more elements in one array; a longer list is a mistake.
ENTRIES_MAX: Final = 4_000_000
_NUMBERS = re.compile(r"(\d+)(?:-(\d+))?(?::(\d+))?", re.ASCII)
_STEP = re.compile(r"%(\d+)$", re.ASCII)


def host_names(text: str) -> list[str]:
    """Return the names of a host list such as ``a[1-3,07],b``, in the order written.

    Raises:
        ValueError: it is none.
    """
    if not text or text in ("(null)", "None"):
        return []
    if "[" not in text:
        return [name for name in text.split(",") if name]
    names: list[str] = []
    for entry in _entries(text):
        names += _expanded(entry)
        if len(names) > ENTRIES_MAX:
            raise ValueError(f"more than {ENTRIES_MAX} names")
    return names


def _entries(text: str) -> Iterator[str]:
    depth = begin = 0
    for place, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[begin:place]
            begin = place + 1
        if depth not in (0, 1):
            raise ValueError(f"{text!r} is no host list: its brackets do not match")
    if depth:
        raise ValueError(f"{text!r} is no host list: its brackets do not match")
    if text[begin:]:
        yield text[begin:]


def _expanded(entry: str) -> list[str]:
    before, bracket, rest = entry.partition("[")
    if not bracket:
        return [entry]
    inner, _, after = rest.partition("]")
    tails = _expanded(after) if after else [""]
    numbers: list[str] = []
    for part in inner.split(","):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"{entry!r} is no host list: {part!r} is no range")
        last = int(high) if dash else int(low)
        if last - int(low) > ENTRIES_MAX:
            raise ValueError(f"{entry!r}: more than {ENTRIES_MAX} names")
        numbers += [str(number).zfill(len(low)) for number in range(int(low), last + 1)]
    return [f"{before}{number}{tail}" for number in numbers for tail in tails]


def array_tasks(text: str) -> tuple[list[int], int | None]:
    """Return the indexes of ``1-5,8%2`` or ``0-20:4``, and how many may run at once.

    Raises:
        ValueError: it is no such list, or Slurm has cut it short.
    """
    limit: int | None = None
    if found := _STEP.search(text):
        limit = int(found[1]) or None
        text = text[: found.start()]
    indexes: list[int] = []
    for part in text.strip("[]").split(","):
        numbers = _NUMBERS.fullmatch(part)
        if numbers is None:
            raise ValueError(f"{part!r} is no array index")
        low, high, step = numbers.groups()
        last = int(low if high is None else high)
        if last - int(low) > ENTRIES_MAX:
            raise ValueError(f"{part!r}: more than {ENTRIES_MAX} elements")
        indexes += range(int(low), last + 1, int(step or 1) or 1)
    return indexes, limit


def amounts(text: str) -> dict[str, str]:
    """Return ``cpu=2,mem=4G,gres/gpu:a100=1`` as names and texts; a name without an amount has ""."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        if name and name != "(null)":
            found[name] = amount
    return found


def licences(text: str) -> dict[str, int]:
    """Return ``tool@srv:2,other`` as amounts by name; one name twice is added up.

    Raises:
        ValueError: an amount is no number, or any one of several would do (``|``).
    """
    found: dict[str, int] = {}
    if not text or text == "(null)":
        return found
    if "|" in text:
        raise ValueError(f"{text!r}: one licence or another is not understood")
    for part in re.split(r"[,;]", text):
        name, separator, amount = part.strip().rpartition(":")
        if not separator:
            name, amount = part.strip(), "1"
        elif "=" in amount:
            raise ValueError(f"{part!r} is no licence and amount")
        if not amount.isdigit():
            raise ValueError(f"{part!r} is no licence and amount")
        if name:
            found[name] = found.get(name, 0) + int(amount)
    return found


def generic_resources(text: str) -> dict[str, int]:
    """Return ``gres:gpu:a100:2(S:0-1),shard:4`` as amounts: ``gpu`` and ``gpu:a100``, ``shard``.

    A typed amount counts under both names.

    Raises:
        ValueError: an amount is no number.
    """
    found: dict[str, int] = {}
    if not text or text in ("(null)", "N/A"):
        return found
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        words = re.sub(r"^gres[:/]", "", part.strip()).replace("=", ":").split(":")
        if not words[0]:
            continue
        name, amount = words[:-1], words[-1]
        if not re.fullmatch(r"\d+[KMG]?", amount, re.ASCII):
            if amount.isdigit() or len(words) > 2 or re.match(r"\d", amount):
                raise ValueError(f"{part!r} is no generic resource and amount")
            name, amount = words, "1"
        if not name or len(name) > 2:
            raise ValueError(f"{part!r} is no generic resource and amount")
        number = int(amount.rstrip("KMG")) * {"K": 1024, "M": 1024**2, "G": 1024**3}.get(
            amount[-1], 1
        )
        for key in dict.fromkeys((name[0], ":".join(name))):
            found[key] = found.get(key, 0) + number
    return found

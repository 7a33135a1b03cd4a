"""The text forms, for what has no JSON: ``scontrol -o``, ``sacctmgr -P``, ``scontrol show config``.

A user names a job, and so can put "Account=other" into its line. What stands before ``UserId`` counts only by its own place, and from there
on the first of a name wins: the free texts come last.
"""

import re
from datetime import UTC, datetime
from typing import Final

_KEY: Final = re.compile(r"(?:^|\s)([A-Za-z][\w/:.\[\]-]*)=", re.ASCII)
_USER: Final = re.compile(r"\sUserId=\S+\(\d+\) GroupId=", re.ASCII)
_JOB_NAME: Final = re.compile(r"\sJobName=", re.ASCII)
_PLACED: Final = re.compile(r"\sNodes=(\S+) CPU_IDs=(\S*) Mem=(\d+) GRES=", re.ASCII)
#: What ``-d`` adds to the line of a running job, under a name that Slurm does not use: "NODES CPU_IDS MEM", each apart by ";".
PLACED: Final = "(placed)"
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)", re.ASCII)
_MIB: Final[dict[str, int]] = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_EMPTY: Final = frozenset({"(null)", "N/A", "n/a", "None", "Unknown", "NONE", "n/s", ""})


def records(text: str, first: str, *, has: str = "") -> list[dict[str, str]]:
    """Return the records of ``scontrol`` as names and texts; each begins on a line of its own, with the name ``first``.

    Other lines go on with the one before: a version that leaves ``-o`` out of account breaks lines, and so may a free text. So does a
    line that comes before the name ``has``, which each record has behind the text that a user is free to choose.
    """
    begins = f"{first}="
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(begins) and (not has or not lines or f" {has}" in lines[-1]):
            lines.append(line)
        elif lines and line.strip():
            lines[-1] += f" {line.strip()}"
    return [_record(line) for line in lines]


def _record(line: str) -> dict[str, str]:
    record: dict[str, str] = {}
    if (name := _JOB_NAME.search(line)) is not None:
        command = line.find(" Command=")
        users = [m.start() for m in _USER.finditer(line) if command < 0 or m.start() < command]
        if users:
            record["JobName"] = line[name.end() : users[-1]].split(" HetJobIdSet=")[0]
            _pairs(line[: name.start()], record)
            line = line[users[-1] :]
            placed = _PLACED.findall(line.split(" MinCPUsNode=", 1)[0])
            if placed:
                record[PLACED] = ";".join(" ".join(one) for one in placed)
    _pairs(line, record)
    return record


def _pairs(line: str, record: dict[str, str]) -> None:
    keys = list(_KEY.finditer(line))
    ends = [key.start() for key in keys[1:]] + [len(line)]
    for key, end in zip(keys, ends, strict=False):
        record.setdefault(key[1], line[key.end() : end].strip())


def tables(text: str) -> list[dict[str, str]]:
    """Return the rows of ``sacctmgr -P`` (or ``-p``), by their headings."""
    lines = [line for line in text.split("\n") if "|" in line or line.strip()]
    if not lines:
        return []
    headings = lines[0].split("|")
    return [
        {head: cell for head, cell in zip(headings, line.split("|"), strict=False) if head}
        for line in lines[1:]
    ]


def config(text: str) -> dict[str, str]:
    """Return what ``scontrol show config`` prints, by name."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and not line.startswith((" =", "=")):
            found.setdefault(name.strip(), value.strip())
    return found


def value(text: str | None) -> str:
    """Return a text, "" for Slurm's words for nothing."""
    return "" if text is None or text in _EMPTY else text


def number(text: str | None) -> int | None:
    """Return a whole number; None for Slurm's words for nothing and for no limit.

    Raises:
        ValueError: it is none.
    """
    if text is None or text in _EMPTY or text in ("UNLIMITED", "INFINITE"):
        return None
    if not text.isdigit():
        raise ValueError(f"found {text!r}, wanted a whole number")
    return int(text)


def mebibytes(text: str | None) -> int | None:
    """Return an amount of memory, rounded up; a bare number is MiB, as everywhere in Slurm. None: none is said.

    Raises:
        ValueError: no amount, or its unit is not known: nothing is guessed.
    """
    if text is None or text in _EMPTY or text in ("UNLIMITED", "INFINITE"):
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"found {text!r}, wanted an amount of memory")
    amount, unit = found.groups()
    kibibytes = _MIB.get(unit.lower()) if unit else _MIB["m"]
    if kibibytes is None:
        raise ValueError(f"found {text!r}, wanted an amount in K, M, G, T or P")
    whole, _, part = amount.partition(".")
    per_mebibyte = 1024 * int(f"1{'0' * len(part)}")
    return -(-int(whole + part) * kibibytes // per_mebibyte)


def minutes(text: str | None) -> int | None:
    """Return the minutes of ``[days-]hours:minutes:seconds``, rounded up; None: without limit.

    Raises:
        ValueError: it is none.
    """
    if text is None or text in _EMPTY or text in ("UNLIMITED", "INFINITE", "Partition_Limit"):
        return None
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in parts) or len(parts) > 3 or (dash and not days.isdigit()):
        raise ValueError(f"found {text!r}, wanted a time such as 1-12:00:00")
    numbers = [int(part) for part in parts]
    if dash:
        numbers += [0] * (3 - len(numbers))
    elif len(numbers) == 1:
        numbers = [0, numbers[0], 0]
    elif len(numbers) == 2:
        numbers = [0, *numbers]
    hours, in_hour, seconds = numbers
    return (int(days or 0) * 24 + hours) * 60 + in_hour + (seconds > 0)


def seconds_of(text: str | None) -> int | None:
    """Return seconds since 1970 of a UTC time such as ``2026-11-29T17:00:31``; None: not known.

    Raises:
        ValueError: it is none.
    """
    if text is None or text in _EMPTY:
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise ValueError(f"found {text!r}, wanted a time such as 2026-11-29T17:00:31") from None

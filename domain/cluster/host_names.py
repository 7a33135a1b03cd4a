"""Names of many hosts in one word: ``zewura[2,8-20]``, ``n[001-128]``, ``r[1-2]c[1-4]``."""

import re
from itertools import product
from typing import Final

#: More hosts than one word may stand for.
EXPANDED_MAX: Final = 100_000

_PART = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def expand(pattern: str) -> tuple[str, ...]:
    """Return the names that a pattern stands for, in the order written; a name without brackets stands for itself.

    A first number with leading zeros gives all numbers of its range as many digits.

    Raises:
        ValueError: a bracket without its partner, something in brackets that is no number or range, a range that goes down,
            a name twice, or too many names.
    """
    pieces = _PART.split(pattern)
    if any("[" in text or "]" in text for text in pieces[::2]):
        raise ValueError(
            f"{pattern!r} has a bracket without its partner; wanted such as 'node[1-20]'"
        )
    choices: list[tuple[str, ...]] = []
    count = 1
    for i, piece in enumerate(pieces):
        choices.append((piece,) if i % 2 == 0 else _numbers(pattern, piece))
        count *= len(choices[-1])
        if count > EXPANDED_MAX:
            raise ValueError(f"{pattern!r} stands for more than {EXPANDED_MAX} hosts")
    names = tuple("".join(parts) for parts in product(*choices))
    if len(set(names)) != len(names):
        raise ValueError(f"{pattern!r} names a host twice")
    return names


def _numbers(pattern: str, inside: str) -> tuple[str, ...]:
    numbers: list[str] = []
    for word in inside.split(","):
        match = _RANGE.fullmatch(word.strip())
        if match is None:
            raise ValueError(
                f"{pattern!r}: {word.strip()!r} is not a number or a range such as 1-20"
            )
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(f"{pattern!r}: the range {word.strip()!r} goes down")
        if int(last) - int(first) >= EXPANDED_MAX:
            raise ValueError(f"{pattern!r} stands for more than {EXPANDED_MAX} hosts")
        width = len(first) if first.startswith("0") else 0
        numbers += [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    return tuple(numbers)

"""The request column of PBS logs: chunks of nodes joined by ``+``, each with what its nodes must have, and ``#excl`` at the end.

``8:ppn=8:x86_64:cl_zegox``, ``1:ppn=1+2:ppn=2``, ``1:ppn=4:^zewura12.cerit-sc.cz``, ``host.name:ppn=8``, ``1:ppn=2:mem=3gb#excl``.
A word with a dot names a host; only its part before the first dot counts.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from xce.domain.values import read_amount

NODES_MAX: Final = 100_000
PROCESSORS_MAX: Final = 1_000_000

_COUNT = re.compile(r"\d{1,7}", re.ASCII)
_PROCESSORS = re.compile(r"\d{1,7}(\.\d{1,6})?", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


class NodeRequestError(ValueError):
    """A request that cannot be read; ``offset`` is where in the text, from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Chunk:
    """``nodes`` nodes with ``processors`` each.

    Attributes:
        fraction: the request asked for a part of a processor, which was rounded down (to no less than one).
        properties: flags that a node must have, in the order written.
        without: flags that it must not have.
        hosts: names of which it must have every one; more than one is impossible, and says so by itself.
        not_hosts: names that it must not have.
        memory: MiB of each node, where the chunk says so.
        unknown: words that mean nothing here, as written.
    """

    nodes: int = 1
    processors: int = 1
    fraction: bool = False
    properties: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    memory: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Return the processors of all its nodes."""
        return self.nodes * self.processors


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """All chunks of a request, and whether its nodes are for it alone."""

    chunks: tuple[Chunk, ...]
    exclusive: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Return the processors of all chunks."""
        return sum(chunk.total for chunk in self.chunks)


def parse_node_request(text: str) -> NodeRequest:
    """Return what a request says.

    Raises:
        NodeRequestError: an empty part, a number that is none or out of range, a word with characters no word has.
    """
    body, *flags = text.split("#")
    exclusive, unknown = False, list[str]()
    offset = len(body) + 1
    for flag in flags:
        if not _WORD.fullmatch(flag):
            raise NodeRequestError(f"{flag!r} after '#' is not a word", offset)
        if flag == "excl":
            exclusive = True
        else:
            unknown.append("#" + flag)
        offset += len(flag) + 1
    chunks: list[Chunk] = []
    offset = 0
    for part in body.split("+"):
        chunks.append(_chunk(part, offset))
        offset += len(part) + 1
    return NodeRequest(tuple(chunks), exclusive, tuple(unknown))


def _chunk(text: str, offset: int) -> Chunk:
    nodes, processors, fraction = 1, 1, False
    memory: int | None = None
    properties, without, hosts, not_hosts, unknown = (list[str]() for _ in range(5))
    for i, word in enumerate(text.split(":")):
        key, equals, value = word.partition("=")
        if i == 0 and _COUNT.fullmatch(word):
            nodes = int(word)
            if not 1 <= nodes <= NODES_MAX:
                raise NodeRequestError(f"{word} nodes; wanted 1 to {NODES_MAX}", offset)
        elif key == "ppn" and equals:
            processors, fraction = _ppn(value, offset + 4)
        elif key == "mem" and equals:
            memory = _memory(value, offset + 4)
        elif key == "host" and _WORD.fullmatch(value):
            hosts.append(value.partition(".")[0])
        elif equals and _WORD.fullmatch(key):
            unknown.append(word)
        elif word.startswith("^") and _WORD.fullmatch(word[1:]):
            name, dot, _ = word[1:].partition(".")
            (not_hosts if dot else without).append(name)
        elif _WORD.fullmatch(word):
            name, dot, _ = word.partition(".")
            (hosts if dot or i == 0 else properties).append(name)
        else:
            raise NodeRequestError(
                f"{word!r} is not a property, a host name, ppn=N or mem=SIZE"
                if word
                else "a part is empty",
                offset,
            )
        offset += len(word) + 1
    return Chunk(
        nodes,
        processors,
        fraction,
        tuple(properties),
        tuple(without),
        tuple(hosts),
        tuple(not_hosts),
        memory,
        tuple(unknown),
    )


def _ppn(value: str, offset: int) -> tuple[int, bool]:
    if not _PROCESSORS.fullmatch(value):
        raise NodeRequestError(f"ppn={value}: wanted a number of processors", offset)
    exact = Fraction(value)
    whole = max(1, exact.numerator // exact.denominator)
    if exact == 0 or whole > PROCESSORS_MAX:
        raise NodeRequestError(f"ppn={value}: wanted 1 to {PROCESSORS_MAX} processors", offset)
    return whole, whole != exact


def _memory(value: str, offset: int) -> int:
    """Return MiB; a bare number is bytes, as in PBS."""
    try:
        return read_amount(value + "B" if value.isdigit() else value, round_up=True)
    except ValueError as error:
        raise NodeRequestError(f"mem: {error}", offset) from None

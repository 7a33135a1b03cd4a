"""YAML as a tree that remembers lines: plain values only, nothing that YAML would do behind a writer's back.

Differences from YAML 1.1: only ``true`` and ``false`` are flags (``no`` and ``on`` are texts), only decimal numbers are numbers
(``0x10``, ``010`` and ``10:30`` are texts), dates are texts, and numbers with a decimal point are exact.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

import yaml

from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import path_of

#: Bounds on what a person writes; a file that passes one is a mistake or an attack.
BYTES_MAX: Final = 1 << 20
DEPTH_MAX: Final = 32
#: Values after aliases are followed.
VALUES_MAX: Final = 200_000

Loc: TypeAlias = tuple[str | int, ...]
Plain: TypeAlias = "bool | int | Decimal | str | list[Plain] | dict[str, Plain] | None"

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,17}\.[0-9]{1,17}", re.ASCII)
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tree:
    """A document: its value, and the line of each place in it."""

    value: Plain
    root: yaml.Node

    def line(self, loc: Loc) -> int:
        """Return the line, from 1, of a place or of the deepest part of the way to it that is there; a key where there is one."""
        node, line = self.root, self.root.start_mark.line
        for step in loc:
            if isinstance(node, yaml.MappingNode):
                found = [(key, value) for key, value in node.value if key.value == step]
                if not found:
                    break
                line = found[0][0].start_mark.line
                node = found[0][1]
            elif (
                isinstance(node, yaml.SequenceNode)
                and isinstance(step, int)
                and step < len(node.value)
            ):
                node = node.value[step]
                line = node.start_mark.line
            else:
                break
        return line + 1

    def has(self, loc: Loc) -> bool:
        """Return whether a place is in the document."""
        value = self.value
        for step in loc:
            match value, step:
                case dict(), str() if step in value:
                    value = value[step]
                case list(), int() if step < len(value):
                    value = value[step]
                case _:
                    return False
        return True


def read_tree(raw: bytes, source: str) -> Tree:
    """Return the tree of a YAML document.

    Raises:
        InputError: not UTF-8, not YAML, empty, several documents, a key twice, a tag, too deep or too large; with lines.
    """
    if len(raw) > BYTES_MAX:
        raise InputError.of(source, f"is larger than {BYTES_MAX >> 20} MiB; no configuration is")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError.of(
            source, f"is not UTF-8 text: byte 0x{raw[error.start]:02x}", line=line
        ) from None
    root = _compose(text, source)
    if root is None:
        raise InputError.of(source, "is empty; wanted a configuration", line=1)
    reader = _Reader()
    value = reader.value(root, (), ())
    if reader.problems:
        raise InputError(source, reader.problems)
    return Tree(value, root)


def _compose(text: str, source: str) -> yaml.Node | None:
    try:
        _check_depth(text, source)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        if mark is not None and "'\\t'" in message:
            message = "a tab where blanks are needed; YAML is indented with blanks only"
        raise InputError.of(
            source,
            message or "is not YAML",
            line=None if mark is None else mark.line + 1,
            column=None if mark is None else mark.column + 1,
        ) from None
    except yaml.YAMLError as error:
        line = None
        if isinstance(error, yaml.reader.ReaderError):
            line = text.count("\n", 0, error.position) + 1
        raise InputError.of(
            source, f"is not YAML: {str(error).splitlines()[0]}", line=line
        ) from None
    except ValueError as error:
        # PyYAML's scanner lets a few through, such as an escape beyond the last character.
        raise InputError.of(source, f"is not YAML: {error}") from None


def _check_depth(text: str, source: str) -> None:
    """Refuse deep nesting before the recursive part of the library sees it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise InputError.of(
                    source,
                    f"is nested more than {DEPTH_MAX} levels deep",
                    line=_line_of(event),
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _line_of(event: yaml.Event) -> int | None:
    return None if event.start_mark is None else event.start_mark.line + 1


class _Reader:
    """Turns nodes into plain values and collects what is wrong on the way."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._values = 0

    def value(self, node: yaml.Node, loc: Loc, above: tuple[int, ...]) -> Plain:
        """Return the value of a node; ``above`` are the nodes around it."""
        self._values += 1
        if self._values > VALUES_MAX:
            if self._values == VALUES_MAX + 1:
                self._complain(node, loc, f"more than {VALUES_MAX} values, aliases followed")
            return None
        if id(node) in above:
            self._complain(node, loc, "an alias stands inside what it stands for")
            return None
        if len(above) > DEPTH_MAX:
            self._complain(
                node, loc, f"is nested more than {DEPTH_MAX} levels deep, aliases followed"
            )
            return None
        inside = (*above, id(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, loc)
        if isinstance(node, yaml.SequenceNode):
            self._check_tag(node, loc, "seq")
            return [self.value(child, (*loc, i), inside) for i, child in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode), "there are three kinds of node"
        self._check_tag(node, loc, "map")
        return dict(self._items(node, loc, inside))

    def _items(
        self, node: yaml.MappingNode, loc: Loc, inside: tuple[int, ...]
    ) -> Iterator[tuple[str, Plain]]:
        lines: dict[str, int] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._complain(key, loc, "a key is a list or a mapping; wanted a word")
                continue
            name = self._scalar(key, loc) if _SURROGATE.search(key.value) else key.value
            if not isinstance(name, str):
                continue
            if name in lines:
                self._complain(
                    key, (*loc, name), f"the key is there twice, first in line {lines[name]}"
                )
                continue
            lines[name] = key.start_mark.line + 1
            yield name, self.value(child, (*loc, name), inside)

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> Plain:
        text: str = node.value
        if _SURROGATE.search(text):
            self._complain(node, loc, "a text has half a character (a surrogate)")
            return None
        if node.style in ("'", '"', "|", ">"):
            self._check_tag(node, loc, "str")
            return text
        if node.tag not in _PLAIN_TAGS:
            self._complain(node, loc, f"the tag {node.tag!r} is not allowed")
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            return Decimal(text)
        return text

    def _check_tag(self, node: yaml.Node, loc: Loc, kind: str) -> None:
        if node.tag != _TAG + kind:
            self._complain(node, loc, f"the tag {node.tag!r} is not allowed")

    def _complain(self, node: yaml.Node, loc: Loc, message: str) -> None:
        mark = node.start_mark
        self.problems.append(Problem(message, path_of(loc), mark.line + 1, mark.column + 1))


#: What the library takes plain words for; ours decides for itself.
_PLAIN_TAGS: Final = frozenset(
    _TAG + kind for kind in ("null", "bool", "int", "float", "str", "timestamp", "merge", "value")
)

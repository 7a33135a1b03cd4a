"""From a text to a requirement: the parser's callbacks, which build the model as the rules are recognised."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final

from lark import Token, Transformer
from lark.exceptions import UnexpectedInput

from xce.domain.cluster.requirement import (
    All,
    Alternative,
    AnyOf,
    Compare,
    Comparison,
    Compound,
    Defined,
    Flag,
    Not,
    Number,
    OrderKey,
    Per,
    Primary,
    Requirement,
    Selection,
    Span,
    Usage,
)
from xce.domain.cluster.resreq.complaints import complain, complaint, value_expected
from xce.domain.cluster.resreq.machine import Machine, machine, stop_of, with_values
from xce.domain.cluster.resreq.words import (
    BARE_TEXT,
    COUNT_MAX,
    DEPTH_MAX,
    DIGITS_MAX,
    LSF_OPTIONS,
    NAME_MAX,
    RESERVED,
    TEXT_MAX,
    WordError,
    read_number,
    shortened,
    unquote,
)

#: Texts up to this length are remembered once read, the last so many of them.
_REMEMBERED_LENGTH: Final = 512
_REMEMBERED_COUNT: Final = 32_768


def parse(text: str) -> Requirement:
    """Return the requirement that a text says; the empty text is ``Requirement()``.

    Equal texts that are not too long may give the same object; the time is linear in the length.

    Raises:
        InputError: the text is not in the language; source "resource requirement", one problem with the column
            (characters from the start of the text, also where it has several lines), what was expected and
            what was found.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _read(text)


@lru_cache(maxsize=_REMEMBERED_COUNT)
def _remembered(text: str) -> Requirement:
    return _read(text)


def _read(text: str) -> Requirement:
    if len(text) > TEXT_MAX:
        raise complaint(
            TEXT_MAX + 1, f"a requirement has at most {TEXT_MAX} characters, found {len(text)}"
        )
    reader = _reader()
    try:
        requirement = reader.parse(text)
    except UnexpectedInput:
        raise complain(text, stop_of(reader, text)) from None
    assert isinstance(requirement, Requirement), "the rule start builds one"
    return requirement


@cache
def _reader() -> Machine:
    return machine(_Builder())


@dataclass(frozen=True, slots=True)
class _Name:
    text: str
    column: int
    quoted: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """A selection and how many levels of ( ) and ! it has."""

    selection: Selection
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Section:
    """One section: which, where it begins, and a primary that has only this."""

    word: str
    column: int
    value: Primary


def _column(token: Token) -> int:
    assert token.start_pos is not None, "tokens of a text have a place"
    return token.start_pos + 1


@with_values
class _Builder(Transformer[Token, object]):
    """One method for each rule of the grammar, with the rule's values as arguments."""

    # the whole

    def start(self, value: Requirement | Alternative) -> Requirement:
        return value if isinstance(value, Requirement) else Requirement((value,))

    def alternatives(self, *values: Alternative) -> Requirement:
        return Requirement(values)

    def compound(self, *parts: Primary) -> Compound:
        return Compound(parts)

    def part(self, count: Token, primary: Primary) -> Primary:
        return replace(primary, tasks=_count(count, "a count of tasks"))

    def request(self, *sections: _Section) -> Primary:
        seen: dict[str, Primary] = {}
        for section in sections:
            if section.word in seen:
                raise complaint(
                    section.column,
                    f"{section.word} is there twice; a request has each section once",
                )
            seen[section.word] = section.value
        return _joined(seen)

    def request_with_selection(self, part: _Part, *sections: _Section) -> Primary:
        for section in sections:
            if section.word == "select":
                raise complaint(
                    section.column,
                    "a selection is there twice: the one at the start is a select section without its word",
                )
        return replace(self.request(*sections), select=part.selection)

    # sections

    def select(self, word: Token, part: _Part) -> _Section:
        return _Section("select", _column(word), Primary(select=part.selection))

    def rusage(self, word: Token, *usages: Usage) -> _Section:
        seen: set[str] = set()
        for usage in usages:
            if usage.name in seen:
                raise complaint(usage.column, f"rusage names {shortened(usage.name)} twice")
            seen.add(usage.name)
        return _Section("rusage", _column(word), Primary(rusage=usages))

    def usage(self, name: _Name, word: Token, per: str = "task") -> Usage:
        if name.text in LSF_OPTIONS and not name.quoted:
            raise complaint(
                name.column,
                f"{name.text} of LSF is not in this language: amounts hold for the whole run; "
                "a resource of that name is written in quotes",
            )
        number = _number(name.text, word)
        if number is None:
            raise complaint(
                _column(word),
                f'{shortened(name.text)}: expected an amount such as 4 or 2GiB, found "{shortened(word)}"',
            )
        if number.value < 0:
            raise complaint(
                _column(word), f"{shortened(name.text)}: an amount is not negative, found {word}"
            )
        return Usage(name.text, number, Per(str(per)), name.column)

    def span(self, word: Token, spread: Span) -> _Section:
        return _Section("span", _column(word), Primary(span=spread))

    def spread_hosts(self, _hosts: Token, amount: Token) -> Span:
        match str(amount):
            case "1":
                return Span(one_host=True)
            case "-1":
                return Span(one_task_a_host=True)
            case other:
                raise complaint(
                    _column(amount),
                    "expected 1 (all tasks on one host) or -1 (one task a host), "
                    f'found "{shortened(other)}"',
                )

    def spread_ptile(self, _ptile: Token, amount: Token) -> Span:
        return Span(ptile=_count(amount, "a count of tasks a host"))

    def same(self, word: Token, *names: _Name) -> _Section:
        _each_once("same", names)
        return _Section("same", _column(word), Primary(same=tuple(name.text for name in names)))

    def order(self, word: Token, *keys: tuple[_Name, bool]) -> _Section:
        _each_once("order", tuple(name for name, _ in keys))
        return _Section(
            "order",
            _column(word),
            Primary(order=tuple(OrderKey(name.text, descending) for name, descending in keys)),
        )

    def ascending(self, name: _Name) -> tuple[_Name, bool]:
        return name, False

    def descending(self, name: _Name) -> tuple[_Name, bool]:
        return name, True

    def exclusive(self, word: Token) -> _Section:
        return _Section("exclusive", _column(word), Primary(exclusive=True))

    # selections

    def any_of(self, *parts: _Part) -> _Part:
        return _Part(
            AnyOf(tuple(part.selection for part in parts)), max(part.depth for part in parts)
        )

    def all_of(self, *parts: _Part) -> _Part:
        return _Part(
            All(tuple(part.selection for part in parts)), max(part.depth for part in parts)
        )

    def negation(self, sign: Token, part: _Part) -> _Part:
        return _Part(Not(part.selection), _deeper(sign, part))

    def group(self, bracket: Token, part: _Part) -> _Part:
        return _Part(part.selection, _deeper(bracket, part))

    def defined(self, _word: Token, _bracket: Token, name: _Name) -> _Part:
        return _Part(Defined(name.text))

    def flag(self, name: _Name) -> _Part:
        return _Part(Flag(name.text))

    def compare_text(self, name: _Name, op: Token, text: Token) -> _Part:
        return _comparison(name, op, unquote(text))

    def compare_word(self, name: _Name, op: Token, word: Token) -> _Part:
        if word in ("true", "false"):
            return _comparison(name, op, word == "true")
        if (number := _number(name.text, word, text_is_possible=True)) is not None:
            return _comparison(name, op, number)
        if BARE_TEXT.fullmatch(word):
            return _comparison(name, op, str(word))
        raise complaint(_column(word), value_expected(word))

    def name(self, token: Token) -> _Name:
        quoted = token.type == "QUOTED"
        text, column = unquote(token) if quoted else str(token), _column(token)
        if not text:
            raise complaint(column, "expected a name, found an empty text")
        if len(text) > NAME_MAX:
            raise complaint(column, f"a name has at most {NAME_MAX} characters, found {len(text)}")
        if text in RESERVED and not quoted:
            raise complaint(
                column,
                f'expected a name, found "{text}", a word of the language; '
                "an attribute of that name is written in quotes",
            )
        return _Name(text, column, quoted)


def _joined(sections: dict[str, Primary]) -> Primary:
    """Return the primary that has all the sections, each of which is a primary with one of them."""
    nothing = Primary()
    return Primary(
        select=sections.get("select", nothing).select,
        rusage=sections.get("rusage", nothing).rusage,
        span=sections.get("span", nothing).span,
        same=sections.get("same", nothing).same,
        order=sections.get("order", nothing).order,
        exclusive="exclusive" in sections,
    )


def _each_once(section: str, names: tuple[_Name, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise complaint(name.column, f"{section} names {shortened(name.text)} twice")
        seen.add(name.text)


def _comparison(name: _Name, op: Token, literal: str | Number | bool) -> _Part:
    comparison = Comparison(str(op))
    if not isinstance(literal, Number) and comparison not in (Comparison.EQ, Comparison.NE):
        kind = "a flag" if isinstance(literal, bool) else "a text"
        raise complaint(_column(op), f'expected == or != before {kind}, found "{op}"')
    return _Part(Compare(name.text, comparison, literal, name.column))


def _number(field: str, word: Token, *, text_is_possible: bool = False) -> Number | None:
    try:
        return read_number(shortened(field), word)
    except WordError as error:
        hint = "; a text that begins with a digit is written in quotes" if text_is_possible else ""
        raise complaint(_column(word) + error.offset, error.message + hint) from None


def _count(token: Token, what: str) -> int:
    if not (token.isdigit() and len(token) <= DIGITS_MAX and 1 <= int(token) <= COUNT_MAX):
        raise complaint(
            _column(token), f'expected {what}, 1 to {COUNT_MAX}, found "{shortened(token)}"'
        )
    return int(token)


def _deeper(opening: Token, part: _Part) -> int:
    if part.depth >= DEPTH_MAX:
        raise complaint(
            _column(opening),
            f'"{opening}" is one level too many; a selection has at most {DEPTH_MAX} levels of ( ) and !',
        )
    return part.depth + 1

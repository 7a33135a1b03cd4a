"""The edge to lark: what we use of its parser, with the types that lark does not state."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar, cast

from lark import Lark, Token, Transformer, v_args  # pyright: ignore[reportUnknownVariableType]
from lark.exceptions import UnexpectedInput

from xce.domain.cluster.resreq.grammar import GRAMMAR

Builder = TypeVar("Builder", bound=type[Transformer[Token, object]])


class _Lexer(Protocol):
    def lex(self, parser_state: object) -> Iterator[Token]: ...


class _Steps(Protocol):
    @property
    def lexer_thread(self) -> _Lexer: ...
    @property
    def parser_state(self) -> object: ...
    def feed_token(self, token: Token) -> object: ...
    def feed_eof(self, last_token: Token | None) -> object: ...
    def accepts(self) -> set[str]: ...


class Machine(Protocol):
    """A parser of the language; it may be used by several threads at once."""

    def parse(self, text: str) -> object:
        """Return what the builder made of the whole text.

        Raises:
            UnexpectedInput: the text is not in the language.
        """
        ...

    def parse_interactive(self, text: str) -> _Steps:
        """Return the parser before the first token."""
        ...


class Stop(NamedTuple):
    """Where a text stops being in the language.

    Attributes:
        place: 0-based; the length of the text for its end.
        accepted: terminals that could stand there.
        last: the token before, None at the start.
    """

    place: int
    accepted: frozenset[str]
    last: Token | None


def with_values(builder: Builder) -> Builder:
    """Have a builder's methods called with the rule's values as arguments, not as one list."""
    return cast(Builder, v_args(inline=True)(builder))


def machine(builder: Transformer[Token, object]) -> Machine:
    """Return a parser that calls ``builder`` for each rule as soon as it is complete."""
    lark = Lark(
        GRAMMAR,
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        transformer=builder,
    )
    return cast(Machine, lark)


def stop_of(machine: Machine, text: str) -> Stop:
    """Return where the machine refuses a text that it has refused before.

    The text is read twice more: once to count the tokens that it takes, and once to stop just before the
    refused one, since a refused token may already have closed what could have gone on.
    """
    taken, place = _taken(machine, text)
    steps = machine.parse_interactive(text)
    last: Token | None = None
    for token in islice(steps.lexer_thread.lex(steps.parser_state), taken):
        steps.feed_token(token)
        last = token
    return Stop(place, frozenset(steps.accepts()), last)


def _taken(machine: Machine, text: str) -> tuple[int, int]:
    """Return how many tokens are taken before the refused one, and where that begins."""
    steps = machine.parse_interactive(text)
    taken, last = 0, None
    try:
        for last in steps.lexer_thread.lex(steps.parser_state):
            steps.feed_token(last)
            taken += 1
    except UnexpectedInput as error:
        place = cast("int | None", error.pos_in_stream)
        assert place is not None, "tokens of a text have a place"
        return taken, place
    try:
        steps.feed_eof(last)
    except UnexpectedInput:
        return taken, len(text)
    raise AssertionError("the same machine refused the same text before")

"""Reading of what is typed: words, names with the near ones, values."""

import json
import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import Format, problems_of

F = TypeVar("F", bound=Format)

#: As many names as an error lists: all commands, and not all jobs.
_NAMES_MAX = 20


def split(line: str) -> list[str]:
    """Return the words of a line; quotes keep blanks together, ``#`` begins a comment.

    Raises:
        InputError: a quote is not closed.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        raise InputError.of(line.strip(), "a quote is not closed") from None


def known(command: str, what: str, name: str, names: Iterable[str]) -> str:
    """Return the name, if it is one of these.

    Raises:
        InputError: it is none of them; it says the nearest, or which there are.
    """
    names = list(names)
    if name in names:
        return name
    raise InputError.of(command, f"{name!r} is no {what} here; {_instead(name, names)}")


def _instead(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    if not names:
        return "there is none"
    more = len(names) - _NAMES_MAX
    return f"there are: {', '.join(names[:_NAMES_MAX])}{f' and {more} more' if more > 0 else ''}"


def whole(command: str, word: str, *, least: int = 1) -> int:
    """Return a whole number.

    Raises:
        InputError: it is none, or too small.
    """
    if word.isascii() and word.isdigit() and len(word) < 16 and int(word) >= least:
        return int(word)
    raise InputError.of(command, f"{word!r} is no number; wanted a whole one, at least {least}")


def assignments(command: str, words: Iterable[str]) -> dict[str, str]:
    """Return ``key=value`` words by key.

    Raises:
        InputError: a word is none, or a key is there twice.
    """
    found: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise InputError.of(command, f"{word!r} is no KEY=VALUE")
        if key in found:
            raise InputError.of(command, f"{key!r} is there twice")
        found[key] = value
    return found


def read_value(word: str) -> Any:
    """Return a word as JSON where it is some other than a text; a decimal number stays a text, which is exact."""
    try:
        return json.loads(word, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return word


def made(model: type[F], fields: Mapping[str, Any], command: str) -> F:
    """Return a model of values that were typed: what is no number where a text is wanted is taken as a text.

    Raises:
        InputError: they do not fit; every problem by its key, and for an unknown key the nearest one.
    """
    document = dict(fields)
    try:
        return _valid(model, document)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            key = problem["loc"][0] if problem["loc"] else None
            if isinstance(key, str) and isinstance(document.get(key), int | float):
                document[key] = json.dumps(document[key])
    try:
        return _valid(model, document)
    except ValidationError as error:
        raise InputError(command, list(_problems(model, error))) from None


def _valid(model: type[F], document: Mapping[str, Any]) -> F:
    return model.model_validate_json(json.dumps(document), strict=True)


def _problems(model: type[Format], error: ValidationError) -> Iterable[Problem]:
    kinds = [one["type"] for one in error.errors(include_url=False, include_context=False)]
    for problem, kind in zip(problems_of(error), kinds, strict=True):
        if kind == "extra_forbidden" and problem.path.isidentifier():
            yield Problem(
                f"unknown; {_instead(problem.path, list(model.model_fields))}", problem.path
            )
        else:
            yield problem

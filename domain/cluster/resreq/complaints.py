"""What is wrong with a text, in words: where, what was expected, what was found, and often how to write it."""

import difflib
import re
from typing import Final

from lark import Token

from xce.domain.cluster.resreq.machine import Stop
from xce.domain.cluster.resreq.words import NAME_MAX, SECTIONS, shortened
from xce.domain.errors import InputError
from xce.domain.values import BYTES_OF_UNIT

SOURCE: Final = "resource requirement"

_SECTION_TERMINALS: Final = frozenset(word.upper() for word in SECTIONS)
_SELECTION_STARTS: Final = frozenset(("NAME", "QUOTED", "NOT", "LPAR", "DEFINED"))

#: What people call the terminals, in the order of the messages. A phrase stands for all its terminals at once.
_PHRASES: Final[tuple[tuple[frozenset[str], str], ...]] = tuple(
    (frozenset(terminals.split()), phrase)
    for terminals, phrase in (
        ("NAME QUOTED", "a name"),
        ("VALUE QUOTED", "a number, a text or true/false"),
        ("AMOUNT", "an amount such as 4 or 2GiB"),
        ("WHOLE", "a whole number"),
        ("HOSTS PTILE", "hosts=1, hosts=-1 or ptile=n"),
        ("PER", "task, host or job"),
        ("COMPARE", "a comparison (==, !=, <, <=, >, >=)"),
        ("_MINUS", '"-"'),
        ("NOT", '"!"'),
        ("DEFINED", "defined(...)"),
        ("LPAR", '"("'),
        ("_AND", '"&&"'),
        ("_OR", '"||"'),
        ("_EQUALS", '"="'),
        ("_SLASH", '"/"'),
        ("_COMMA", '","'),
        ("_COLON", '":"'),
        ("_STAR", '"*"'),
        ("_PLUS", '"+"'),
        ("_LSQB", '"["'),
        ("_RSQB", '"]"'),
        ("_RPAR", '")"'),
        ("COUNT", "a count as in 4*{...}"),
        ("_LBRACE", '"{"'),
        ("_RBRACE", '"}"'),
        ("$END", "the end"),
    )
)

_FOUND: Final = re.compile(r"\w[\w.-]*|&&|\|\||==|!=|<=|>=|.", re.DOTALL)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_OPERATORS: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "&&", "||"))
_WORD_FOR: Final = {"and": "&&", "&": "&&", "or": "||", "|": "||"}


def complaint(column: int, message: str) -> InputError:
    """Return the error for something wrong at a 1-based column."""
    return InputError.of(SOURCE, message, column=column)


def value_expected(word: str) -> str:
    """Return the message for a word that is no value of a comparison."""
    return (
        f'expected a number, a text or true/false, found "{shortened(word)}"; '
        "a number is written like 5, 0.5 or 8GiB, and a text like this in quotes"
    )


def complain(text: str, stop: Stop) -> InputError:
    """Return the error for a text that stops being in the language."""
    place, accepted, last = stop
    match = _FOUND.match(text, place)
    found = match[0] if match else ""
    if found in ('"', "'") and "QUOTED" in accepted:
        return _bad_quotes(text, place)
    if found == "[" and last is not None and last.type == "NAME" and "SELECT" in accepted:
        return _unknown_section(last)
    message = f"expected {_expected(accepted)}, found {_shown(text, place, found)}"
    if hint := _hint(found, place, accepted, last):
        message += f"; {hint}"
    return complaint(place + 1, message)


def _expected(accepted: frozenset[str]) -> str:
    """Return what may stand here, such as ``"&&", "||" or "]"``."""
    phrases: list[str] = []
    rest = accepted
    if rest >= _SECTION_TERMINALS:
        phrases.append(f"a section ({', '.join(SECTIONS)})")
        rest -= _SECTION_TERMINALS
        if rest >= _SELECTION_STARTS:
            phrases.append("a selection such as mem>4GiB")
            rest -= _SELECTION_STARTS
    for terminals, phrase in _PHRASES:
        if terminals <= rest:
            phrases.append(phrase)
            rest -= terminals
    assert not rest, f"every terminal has a phrase: {rest}"
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]


def _shown(text: str, place: int, found: str) -> str:
    if not found:
        return "the end"
    if _QUOTED.match(text, place):
        return "a text in quotes"
    if not found.isprintable():
        return f"the character U+{ord(found[0]):04X}"
    return f'"{shortened(found)}"'


def _hint(found: str, place: int, accepted: frozenset[str], last: Token | None) -> str:
    """Return how to write what was probably meant, "" where nothing comes to mind."""
    at_section = "SELECT" in accepted
    match found:
        case "=" if "COMPARE" in accepted:
            return "a comparison is written =="
        case "and" | "or" | "&" | "|" if "_AND" in accepted:
            return f"it is written {_WORD_FOR[found]}"
        case "==" if "_EQUALS" in accepted:
            return "here it is written ="
        case "{" if at_section and "_RBRACE" in accepted:
            return "braces nest no deeper than alternatives that hold a compound"
        case "||" if accepted == frozenset(("_PLUS", "$END")):
            return "an alternative with several parts has braces of its own: {2*{...} + 1*{...}} || {...}"
        case "||" if at_section or "_COMMA" in accepted:
            return "alternatives are whole requests in braces: {...} || {...}"
        case "+" if accepted == frozenset(("_OR", "$END")):
            return "the parts of a compound have counts: 2*{...} + 1*{...}"
        case _:
            pass
    if at_section and "_RBRACE" in accepted and found.isdigit():
        return "a part of a compound is one request"
    if last is not None and found:
        if last.type in ("VALUE", "AMOUNT") and found.lower() in BYTES_OF_UNIT:
            return "a unit follows its number without a space"
        if last == "not" and last.type == "NAME":
            return "negation is written !"
        if last.type in _SECTION_TERMINALS and found in _OPERATORS:
            return f"an attribute named {last} is written in quotes"
        if last.end_pos == place and found[0] not in "=&|[](){}<>!,;":
            if last.type == "NAME" and accepted & {"COMPARE", "_EQUALS"}:
                return f'a name with "{shortened(found)}" in this place is written in quotes'
            if last.type == "VALUE":
                return f'a text with "{shortened(found)}" in it is written in quotes'
    begins_with_digit = found[:1].isdigit() and "NAME" in accepted
    if begins_with_digit or (accepted == frozenset(("_STAR",)) and found[:1].isalpha()):
        return "a name that begins with a digit is written in quotes"
    if found in ("&&", ",", ";") and at_section and not accepted & {"NAME", "_AND"}:
        return f'sections follow one another without "{found}"'
    if found[:1] > "\x7f" and accepted & {"NAME", "VALUE"}:
        return "names and texts with other characters than plain letters are written in quotes"
    return ""


def _unknown_section(name: Token) -> InputError:
    assert name.start_pos is not None, "tokens of a text have a place"
    message = f'unknown section "{shortened(name)}"; wanted one of {", ".join(SECTIONS)}'
    if close := difflib.get_close_matches(name[:NAME_MAX].lower(), SECTIONS, n=1):
        message += f"; did you mean {close[0]}?"
    return complaint(name.start_pos + 1, message)


def _bad_quotes(text: str, place: int) -> InputError:
    """Return why the text that begins with a quote here cannot be read."""
    quote = text[place]
    at = place + 1
    while at < len(text):
        char = text[at]
        if char == quote:
            break
        if char < " " or char == "\x7f":
            return complaint(
                at + 1,
                f"expected no control character in quotes, found the character U+{ord(char):04X}",
            )
        if char == "\\":
            at += 1
            after = text[at : at + 1]
            if after not in ("\\", '"', "'"):
                shown = f'"{shortened(after)}"' if after else "the end"
                return complaint(at + 1, f'expected "\\" or a quote after "\\", found {shown}')
        at += 1
    return complaint(
        place + 1, f"expected a closing {quote} for the text that begins here, found the end"
    )

"""What a line that is being typed can go on with."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from xce.domain.errors import InputError
from xce.domain.formats.base import Format
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.expectations import Measure
from xce.domain.formats.simulated_provider import Behaviour
from xce.domain.formats.snapshot import Settings
from xce.replay.prompt.info import TOPICS
from xce.replay.prompt.names import Names
from xce.replay.prompt.orders import ACTS, SETTERS
from xce.replay.prompt.prompt import COMMANDS, Prompt
from xce.replay.prompt.until import OF_ITEMS, OF_JOBS, OF_SHARED, SIGNS, WORDS, topics
from xce.replay.prompt.words import split

#: As many as are offered at once.
CANDIDATES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to go on.

    Attributes:
        text: that takes the place of the last word.
        typed: how many characters of the last word are there already.
        about: in a few words, what it is.
    """

    text: str
    typed: int
    about: str = ""


Words = Iterable[tuple[str, str]]
_NO_NAMES: Final = Names((), (), (), (), (), (), {}, {})


def candidates(prompt: Prompt, line: str) -> tuple[Candidate, ...]:
    """Return what the last word of a line can be, in order; nothing within quotes that are not closed."""
    try:
        words = split(line)
    except InputError:
        return ()
    typed = "" if not line or line[-1].isspace() else words.pop() if words else ""
    found = [
        Candidate(text, len(typed), about)
        for text, about in _next(prompt, words, typed)
        if text.startswith(typed)
    ]
    return tuple(found[:CANDIDATES_MAX])


def _next(prompt: Prompt, words: list[str], typed: str) -> Words:
    if not words:
        return [(name, one.about) for name, one in COMMANDS.items()]
    command, rest = words[0], words[1:]
    follow = _AFTER.get(command)
    if follow is None:
        return ()
    return follow(rest, prompt.names() or _NO_NAMES, prompt)


def _each(names: Iterable[str], about: str = "") -> Iterator[tuple[str, str]]:
    return ((name, about) for name in names)


def _first(names: Callable[[Names, Prompt], Words]) -> "After":
    """Return what follows a command of one word."""
    return lambda words, known, prompt: names(known, prompt) if not words else ()


def _run(words: list[str], names: Names, prompt: Prompt) -> Words:
    match words:
        case []:
            return [("until", "a time, an event or a measure")]
        case ["until"]:
            return [
                *_each(WORDS),
                *_each(Measure, "measure"),
                *_each(topics(), "event"),
            ]
        case ["until", "start" | "end"]:
            return _each(names.jobs, "job")
        case ["until", measure] if measure in tuple(Measure):
            of = [] if Measure(measure) in OF_SHARED else list(_each(SIGNS))
            return [("of", ""), *of]
        case ["until", measure, "of"] if measure in tuple(Measure):
            return _of(Measure(measure), names)
        case ["until", _, "of", _]:
            return _each(SIGNS)
        case _:
            return ()


def _of(measure: Measure, names: Names) -> Words:
    if measure in OF_JOBS:
        return _each(names.jobs, "job")
    if measure in OF_SHARED:
        return _each(names.shared, "shared resource")
    if measure in OF_ITEMS:
        return [*_each(names.providers, "provider"), *_each(names.items, "template or resource")]
    return ()


def _set(words: list[str], names: Names, prompt: Prompt) -> Words:
    match words:
        case []:
            return [(what, usage) for what, (usage, _) in SETTERS.items()]
        case ["price" | "room" | "priority"]:
            return _each(names.templates, "template")
        case ["owned"]:
            return _each(names.shared, "shared resource")
        case ["limit"]:
            return _each(names.limits, "limit")
        case ["outside"]:
            return _each(names.features, "feature")
        case ["policy"]:
            return _keys(PolicyConfig)
        case ["session"]:
            return _keys(Settings)
        case ["provider"]:
            return _each(names.providers, "provider")
        case ["provider", _]:
            return _keys(Behaviour)
        case _:
            return ()


def _keys(model: type[Format]) -> Words:
    return [(name, field.description or "") for name, field in model.model_fields.items()]


#: Fields of acts, and which names they have.
_FIELDS: Final[Mapping[str, Callable[[Names], Iterable[str]]]] = {
    "provider": lambda names: names.providers,
    "host": lambda names: names.hosts,
    "job": lambda names: names.jobs,
    "shared": lambda names: names.shared,
    "limit": lambda names: names.limits,
    "item": lambda names: names.items,
    "template": lambda names: (template for _, template in names.templates.values()),
    "feature": lambda names: names.features,
    "server": lambda names: names.features.values(),
}


def _do(words: list[str], names: Names, prompt: Prompt) -> Words:
    if not words:
        return [(kind, (act.__doc__ or "").partition("\n")[0]) for kind, act in ACTS.items()]
    act = ACTS.get(words[0])
    if act is None:
        return ()
    said = {word.partition("=")[0] for word in words[1:]}
    found: list[tuple[str, str]] = []
    for name, field in act.model_fields.items():
        if name in said or name in ("at", "do"):
            continue
        about = field.description or ""
        values = dict.fromkeys(_FIELDS[name](names)) if name in _FIELDS else None
        found += [(f"{name}={value}", about) for value in values or ("",)]
    return found


def _branches(names: Names, prompt: Prompt) -> Words:
    return _each(prompt.branches, "branch")


After = Callable[[list[str], Names, Prompt], Words]
_AFTER: Final[Mapping[str, After]] = {
    "run": _run,
    "info": _first(lambda names, prompt: _each(TOPICS)),
    "why": _first(lambda names, prompt: _each(names.jobs, "job")),
    "trace": _first(lambda names, prompt: _each(names.jobs, "job")),
    "set": _set,
    "do": _do,
    "switch": _first(_branches),
    "diff": lambda words, names, prompt: _branches(names, prompt) if len(words) < 2 else (),
    "help": _first(lambda names, prompt: _each(COMMANDS)),
}

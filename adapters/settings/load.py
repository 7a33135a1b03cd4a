"""From a YAML file to a configuration; all mistakes at once, as ``file:line: path: message``."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from xce.adapters.settings.yaml_tree import BYTES_MAX, Loc, Plain, Tree, read_tree
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import Format, path_of, problems_of
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.config_check import contradictions
from xce.domain.formats.scenario import Scenario
from xce.domain.formats.scenario_check import scenario_contradictions

F = TypeVar("F", bound=Format)

#: A document in which more is wrong is another one altogether.
PROBLEMS_MAX: Final = 1_000
#: Below this key a decimal number is a number; elsewhere it is money or a share, which are read from its text.
_ATTRIBUTES: Final = "attributes"
#: Keys whose value is money, where a whole number needs no quotes either.
MONEY_KEYS: Final = frozenset(
    (
        "price_per_hour",
        "cost",
        "max_cost_per_hour",
        "max_cost_per_day",
        "max_cost_per_month",
    )
)


def load_config(path: Path) -> SimulationConfig:
    """Return the configuration in a file.

    Raises:
        InputError: the file cannot be read, is not YAML, or is wrong; it lists every problem with line and path.
    """
    return read_config(bytes_of(path), str(path))


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in a file.

    Raises:
        InputError: the file cannot be read, is not YAML, or is wrong; it lists every problem with line and path.
    """
    return read_scenario(bytes_of(path), str(path))


def read_scenario(raw: bytes, source: str) -> Scenario:
    """Return the scenario in a YAML text; see ``load_scenario``."""
    tree = read_tree(raw, source)
    keys = _keys_of(tree)
    if keys and not is_scenario(tree) and keys <= set(SimulationConfig.model_fields):
        raise InputError.of(
            source,
            "is a configuration and no scenario, which has a name; see: xce sim swf TRACE --config FILE",
            line=1,
        )
    return scenario_of(tree, source)


def is_scenario(tree: Tree) -> bool:
    """Return whether a tree is meant as a scenario and not as a configuration: only the former has a name."""
    return isinstance(tree.value, dict) and "name" in tree.value


def scenario_of(tree: Tree, source: str) -> Scenario:
    """Return the scenario in a tree; see ``load_scenario``."""
    return model_of(
        tree,
        source,
        Scenario,
        lambda scenario: [
            (found.loc, found.message) for found in scenario_contradictions(scenario)
        ],
    )


def bytes_of(path: Path) -> bytes:
    """Return what is in a file that should be YAML, up to a little more than a configuration may be: some files have no end.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(BYTES_MAX + 1)
    except OSError as error:
        raise InputError.of(str(path), f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(repr(str(path)), f"cannot be read: {error}") from None


def read_config(raw: bytes, source: str) -> SimulationConfig:
    """Return the configuration in a YAML text; see ``load_config``."""
    tree = read_tree(raw, source)
    own_of_scenarios = set(Scenario.model_fields) - set(SimulationConfig.model_fields)
    if is_scenario(tree) and len(_keys_of(tree) & own_of_scenarios) > 1:
        raise InputError.of(
            source, "is a scenario and no configuration; see: xce sim run FILE", line=1
        )
    return config_of(tree, source)


def _keys_of(tree: Tree) -> set[str]:
    return set(tree.value) if isinstance(tree.value, dict) else set[str]()


def config_of(tree: Tree, source: str) -> SimulationConfig:
    """Return the configuration in a tree; see ``load_config``."""
    return model_of(
        tree,
        source,
        SimulationConfig,
        lambda config: [(found.loc, found.message) for found in contradictions(config)],
    )


def read_model(
    raw: bytes, source: str, model: type[F], check: Callable[[F], Iterable[tuple[Loc, str]]]
) -> F:
    """Return the model of a YAML text.

    Args:
        raw: the text.
        source: what errors call it.
        model: what it must be.
        check: finds what contradicts itself, as places and messages.

    Raises:
        InputError: it is not YAML, or is wrong; it lists every problem with line and path.
    """
    return model_of(read_tree(raw, source), source, model, check)


def model_of(
    tree: Tree, source: str, model: type[F], check: Callable[[F], Iterable[tuple[Loc, str]]]
) -> F:
    """Return the model of a tree; see ``read_model``."""
    if not isinstance(tree.value, dict):
        keys = ", ".join(list(model.model_fields)[:2])
        raise InputError.of(source, f"wanted a mapping with the keys {keys}, ...", line=1)
    try:
        config = model.model_validate_json(json.dumps(_jsonable(tree.value, ())), strict=True)
    except ValidationError as error:
        raise InputError(source, _in_lines(_field_problems(error, tree, model))) from None
    problems = [Problem(message, path_of(loc), tree.line(loc)) for loc, message in check(config)]
    if problems:
        raise InputError(source, _in_lines(problems))
    return config


def _jsonable(value: Plain, loc: Loc) -> Any:
    """Return what JSON has the same meaning for the models; a decimal keeps its text but in attributes."""
    if isinstance(value, dict):
        return {key: _jsonable(child, (*loc, key)) for key, child in value.items()}
    if isinstance(value, list):
        return [_jsonable(child, (*loc, i)) for i, child in enumerate(value)]
    if isinstance(value, Decimal):
        return float(value) if _ATTRIBUTES in loc else format(value, "f")
    if loc and loc[-1] in MONEY_KEYS and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _field_problems(error: ValidationError, tree: Tree, model: type[Format]) -> Iterator[Problem]:
    """Yield the problems of a model's error with lines, and with a suggestion where a key was misspelt."""
    schema = model.model_json_schema(by_alias=False)
    details = error.errors(include_url=False, include_context=False, include_input=False)
    found = zip(problems_of(error), details, strict=True)
    for problem, detail in islice(found, PROBLEMS_MAX):
        loc = _without_tags(tuple(_written(step) for step in detail["loc"]), tree)
        loc = _within(loc, tree, missing=detail["type"] == "missing")
        message = problem.message
        if detail["type"] == "extra_forbidden":
            message = _suggestion(str(loc[-1]), _known_keys(schema, loc[:-1]))
        yield Problem(message, path_of(loc), tree.line(loc))


def _written(step: str | int) -> str | int:
    """Return a key as it is written in YAML: ``price_per_hour`` for the contract's ``pricePerHour``."""
    if isinstance(step, int):
        return step
    return (
        "".join(f"_{c.lower()}" if c.isupper() else c for c in step) if step[:1].islower() else step
    )


def _without_tags(loc: Loc, tree: Tree) -> Loc:
    """Return a place without the steps that only say which of several models was meant: they are in no document."""
    kept: Loc = ()
    for i, step in enumerate(loc):
        if i == len(loc) - 1 or tree.has((*kept, step)):
            kept = (*kept, step)
    return kept


def _within(loc: Loc, tree: Tree, *, missing: bool) -> Loc:
    """Return the part of a place that is in the document; of a missing key, also its name."""
    kept = loc
    while kept and not tree.has(kept[:-1] if missing and kept == loc else kept):
        kept = kept[:-1]
    return kept or loc


def _suggestion(key: str, known: list[str]) -> str:
    close = get_close_matches(key, known, n=1, cutoff=0.6)
    if close:
        return f"unknown key; did you mean {close[0]}?"
    return "unknown key; known are " + ", ".join(known) if known else "unknown key"


def _known_keys(schema: Mapping[str, Any], loc: Loc) -> list[str]:
    """Return the keys that a mapping at a place may have, by the JSON schema of the whole."""
    found: list[Mapping[str, Any]] = list(_branches(schema, schema))
    for step in loc:
        found = [
            branch
            for one in found
            for child in _children(one, step)
            for branch in _branches(child, schema)
        ]
    return sorted({key for one in found for key in one.get("properties", {})})


def _children(one: Mapping[str, Any], step: str | int) -> Iterator[Mapping[str, Any]]:
    if isinstance(step, int):
        if isinstance(items := one.get("items"), dict):
            yield items
    elif step in one.get("properties", {}):
        yield one["properties"][step]
    else:
        others = (one.get("additionalProperties"), *one.get("patternProperties", {}).values())
        yield from (other for other in others if isinstance(other, dict))


def _branches(one: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in one:
        yield from _branches(schema["$defs"][one["$ref"].rsplit("/", 1)[1]], schema)
    for branch in (*one.get("anyOf", ()), *one.get("oneOf", ()), *one.get("allOf", ())):
        yield from _branches(branch, schema)
    yield one


def _in_lines(problems: Iterator[Problem] | list[Problem]) -> list[Problem]:
    """Return the problems in the order of the file, each once."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)

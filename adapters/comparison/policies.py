"""The policies of a comparison: configurations or scenarios, and what is varied in them.

``policy.minimum_hold=10min,1h`` makes two of each; several such axes make all combinations. An element of a list is named by its
``name`` (``feature`` for a licence rule, ``template_id`` for a template) or by its place, from 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final, cast

from xce.adapters.settings.load import bytes_of, config_of, is_scenario, scenario_of
from xce.adapters.settings.yaml_tree import Plain, Tree, read_tree
from xce.domain.errors import InputError
from xce.domain.formats.comparison import Setting
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.scenario import Scenario

#: More policies than anybody would look at are a mistake in the axes.
POLICIES_MAX: Final = 1000
#: By what an element of a list is known.
_NAMES: Final = ("name", "feature", "template_id", "type")
_OPENING: Final = {"[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, and the values it is to have, as they were written and as they are."""

    key: str
    values: tuple[tuple[str, Plain], ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """One configuration under a name.

    Attributes:
        path: of its file.
        scenario: that it is of, with what happens around the policy; None: a configuration alone.
    """

    name: str
    settings: tuple[Setting, ...]
    config: SimulationConfig
    path: Path
    scenario: Scenario | None = None


def read_axis(text: str) -> Axis:
    """Return the axis that is written ``KEY=VALUE,VALUE,...``; values are YAML.

    Raises:
        InputError: it is not of this form, or a value is there twice.
    """
    key, equals, values = text.partition("=")
    source = f"--vary {text}"
    if not equals or not key or not all(key.split(".")):
        raise InputError.of(
            source, "wanted KEY=VALUE,VALUE,... such as policy.minimum_hold=10min,1h"
        )
    words = [word.strip() for word in _split(values)]
    if not all(words):
        raise InputError.of(source, "a value is missing")
    if len(set(words)) < len(words):
        raise InputError.of(source, "a value is there twice")
    return Axis(key, tuple((word, read_tree(word.encode(), source).value) for word in words))


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that are in no quotes and no brackets."""
    part, closing, quote = "", list[str](), ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPENING:
            closing.append(_OPENING[char])
        elif closing and char == closing[-1]:
            closing.pop()
        elif char == "," and not closing:
            yield part
            part = ""
            continue
        part += char
    yield part


def read_policies(paths: Sequence[Path], axes: Sequence[Axis]) -> tuple[Policy, ...]:
    """Return every configuration with every combination of values, in the order in which they were named.

    Raises:
        InputError: a file cannot be read, a combination is no fit configuration, two policies have one name, or there are too many.
    """
    if len({axis.key for axis in axes}) < len(axes):
        raise InputError.of("--vary", "a key is there twice; name all its values at once")
    combinations = list(product(*(axis.values for axis in axes)))
    if len(combinations) * len(paths) > POLICIES_MAX:
        raise InputError.of(
            "--vary",
            f"makes {len(combinations) * len(paths)} policies; wanted at most {POLICIES_MAX}",
        )
    labels = _labels([axis.key for axis in axes])
    policies: list[Policy] = []
    for path in paths:
        tree = read_tree(bytes_of(path), str(path))
        for values in combinations:
            changed, source = tree, str(path)
            for axis, (word, value) in zip(axes, values, strict=True):
                changed = _with(changed, axis.key, value, str(path))
                source += f" with {axis.key}={word}"
            words = [
                f"{labels[axis.key]}={word}" for axis, (word, _) in zip(axes, values, strict=True)
            ]
            file = [path.stem] if len(paths) > 1 or not axes else []
            scenario = scenario_of(changed, source) if is_scenario(changed) else None
            policies.append(
                Policy(
                    ", ".join([*file, *words]),
                    tuple(
                        Setting(key=axis.key, value=word)
                        for axis, (word, _) in zip(axes, values, strict=True)
                    ),
                    config_of(changed, source) if scenario is None else scenario.config(),
                    path,
                    scenario,
                )
            )
    names = [policy.name for policy in policies]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise InputError.of("CONFIG", f"two files are called {repeated}; wanted different names")
    return tuple(policies)


def _labels(keys: Iterable[str]) -> dict[str, str]:
    """Return the shortest end of each key that no other key has: ``minimum_hold``, not ``policy.minimum_hold``."""
    every = list(keys)
    labels: dict[str, str] = {}
    for key in every:
        steps = key.split(".")
        ends = [".".join(steps[-n:]) for n in range(1, len(steps) + 1)]
        labels[key] = next(
            end
            for end in ends
            if all(other == key or not f".{other}".endswith(f".{end}") for other in every)
        )
    return labels


def _with(tree: Tree, key: str, value: Plain, source: str) -> Tree:
    if not isinstance(tree.value, dict):
        return tree  # what is wrong with it, its check will say
    return replace(tree, value=_set(tree.value, key.split("."), value, f"{source}: --vary {key}"))


def _set(node: Plain, steps: Sequence[str], value: Plain, source: str) -> Plain:
    """Return a copy with a value in its place; sections that are not there are made."""
    if not steps:
        return value
    step, *rest = steps
    if node is None:
        node = cast("Plain", {})
    if isinstance(node, dict):
        return {**node, step: _set(node.get(step), rest, value, source)}
    if isinstance(node, list):
        place = _place(node, step, source)
        return [*node[:place], _set(node[place], rest, value, source), *node[place + 1 :]]
    raise InputError.of(source, f"{step!r} is inside of {node!r}, which holds no keys")


def _place(elements: list[Plain], step: str, source: str) -> int:
    names: list[str] = []
    for i, element in enumerate(elements):
        if isinstance(element, dict):
            name = next((str(element[key]) for key in _NAMES if key in element), None)
            if name == step:
                return i
            if name is not None:
                names.append(name)
    if step.isdecimal() and int(step) < len(elements):
        return int(step)
    known = ", ".join(names) or "none"
    raise InputError.of(source, f"no element is called {step!r}; there are {known}")

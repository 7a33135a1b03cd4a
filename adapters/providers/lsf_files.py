"""The files of the LSF resource connector, read as they are: hostProviders.json, *prov_templates.json, policy_config.json, lsb.queues.

Misspelt keys are errors that suggest the right one; each names its file and line.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from xce.adapters.settings.yaml_tree import Loc, Plain, Tree, read_tree
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import path_of

_PROVIDER_KEYS: Final = ("name", "type", "confPath", "scriptPath", "scriptOption")
_REQUIRED: Final = ("name", "scriptPath")
_POLICY_KEYS: Final = ("Name", "Consumer", "MaxNumber", "StepValue", "UserDefinedScriptPath")
_CONSUMER_KEYS: Final = ("rcAccount", "templateName", "provider")
_TEMPLATE_KEYS: Final = (
    "templateId",
    "maxNumber",
    "priority",
    "attributes",
    "availableNumber",
    "instanceTags",
    "priceInfo",
    "spotPrice",
    "userData",
    "rank",
)
_STEP = re.compile(r"\s*(\d{1,9})\s*:\s*(\d{1,9})\s*", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_QUEUE_LINE = re.compile(r"\s*(?P<key>[A-Za-z_]+)\s*=\s*(?P<value>[^#]*)")
_THRESHOLD = re.compile(r"\s*THRESHOLD\s*\[(?P<pairs>(?:\s*,?\s*\[[^\[\]]*\])+\s*)\]\s*")
_PAIR = re.compile(r"\[\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\]")
_DEMAND: Final = "RC_DEMAND_POLICY"


@dataclass(frozen=True, slots=True)
class HostProvider:
    """One entry of hostProviders.json."""

    name: str
    type: str
    conf_path: str
    script_path: str
    script_option: str


@dataclass(frozen=True, slots=True)
class LsfPolicy:
    """One policy of policy_config.json; "all" in a list is written as ().

    Attributes:
        step: at most so many hosts per so many minutes.
        script: a program of the site that decides instead; "": none.
    """

    name: str
    accounts: tuple[str, ...]
    templates: tuple[str, ...]
    providers: tuple[str, ...]
    max_number: int | None
    step: tuple[int, int] | None
    script: str


@dataclass(frozen=True, slots=True)
class QueueDemand:
    """What a queue of lsb.queues says of demand: pairs of jobs and minutes."""

    queue: str
    pairs: tuple[tuple[int, int], ...]


class _Reading:
    """One JSON file, and what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise InputError.of(self.source, f"cannot be read: {error.strerror}") from None
        # JSON is YAML but for tabs, and YAML remembers lines.
        self.tree: Tree = read_tree(raw.replace(b"\t", b" "), self.source)
        self.problems: list[Problem] = []

    def wrong(self, loc: Loc, message: str) -> None:
        self.problems.append(Problem(message, path_of(loc), self.tree.line(loc)))

    def done(self) -> None:
        if self.problems:
            raise InputError(self.source, sorted(self.problems, key=lambda one: one.line or 0))

    def objects(self, key: str) -> Iterator[tuple[Loc, Mapping[str, Plain]]]:
        """Yield the objects of the list under the one key of the file."""
        whole = self.tree.value
        if not isinstance(whole, dict):
            self.wrong((), f"wanted an object with the key {key}")
            return
        self.keys((), whole, (key,), closed=True)
        listed = whole.get(key)
        if not isinstance(listed, list):
            self.wrong((key,) if key in whole else (), f"wanted the list {key}")
            return
        for i, one in enumerate(listed):
            if isinstance(one, dict):
                yield (key, i), one
            else:
                self.wrong((key, i), "wanted an object")

    def keys(
        self, loc: Loc, value: Mapping[str, Plain], known: tuple[str, ...], *, closed: bool
    ) -> None:
        """Note keys that are not known; where others are allowed, those that look like a slip."""
        for key in value:
            if key in known:
                continue
            folded = {one.lower(): one for one in known}
            close = get_close_matches(key.lower(), folded, n=1, cutoff=0.6 if closed else 0.8)
            if close:
                self.wrong((*loc, key), f"unknown key; did you mean {folded[close[0]]}?")
            elif closed:
                self.wrong((*loc, key), f"unknown key; known are {', '.join(known)}")

    def text(self, loc: Loc, value: Mapping[str, Plain], key: str) -> str:
        found = value.get(key)
        if found is None:
            return ""
        if isinstance(found, dict | list | bool):
            self.wrong((*loc, key), "wanted a text")
            return ""
        return str(found)

    def texts(self, loc: Loc, value: Mapping[str, Plain], key: str) -> tuple[str, ...]:
        """Return a list of names, () for all."""
        found = value.get(key)
        listed = found if isinstance(found, list) else [] if found is None else [found]
        if not all(isinstance(one, str) for one in listed):
            self.wrong((*loc, key), "wanted a list of names")
            return ()
        names = tuple(str(one) for one in listed)
        return () if any(name.lower() == "all" for name in names) else names

    def whole(self, loc: Loc, value: Mapping[str, Plain], key: str) -> int | None:
        found = value.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not _WHOLE.fullmatch(str(found).strip()):
            self.wrong((*loc, key), f"{str(found)[:40]!r} is not a whole number")
            return None
        return int(str(found))


def read_host_providers(path: Path) -> tuple[HostProvider, ...]:
    """Return the providers of hostProviders.json.

    Raises:
        InputError: it lists every problem with its line.
    """
    file = _Reading(path)
    found: list[HostProvider] = []
    for loc, one in file.objects("providers"):
        file.keys(loc, one, _PROVIDER_KEYS, closed=True)
        for key in _REQUIRED:
            if key not in one:
                file.wrong(loc, f"{key} is missing")
        values = [file.text(loc, one, key) for key in _PROVIDER_KEYS]
        provider = HostProvider(*values)
        if any(provider.name == other.name for other in found):
            file.wrong((*loc, "name"), f"{provider.name} is there twice")
        found.append(provider)
    file.done()
    return tuple(found)


def read_templates(path: Path) -> tuple[dict[str, Plain], ...]:
    """Return the templates of a provider as they are; keys of the site's own are kept.

    Raises:
        InputError: it lists every problem with its line.
    """
    file = _Reading(path)
    found: list[dict[str, Plain]] = []
    for loc, one in file.objects("templates"):
        file.keys(loc, one, _TEMPLATE_KEYS, closed=False)
        if not file.text(loc, one, "templateId"):
            file.wrong(loc, "templateId is missing")
        file.whole(loc, one, "maxNumber")
        attributes = one.get("attributes", {})
        if not isinstance(attributes, dict):
            file.wrong((*loc, "attributes"), "wanted an object")
        else:
            for name, pair in attributes.items():
                if not isinstance(pair, list) or len(pair) != 2:
                    file.wrong((*loc, "attributes", name), "wanted [kind, value]")
                elif pair[0] not in ("String", "Numeric", "Boolean"):
                    wanted = "wanted String, Numeric or Boolean"
                    file.wrong((*loc, "attributes", name), f"{str(pair[0])[:40]!r}: {wanted}")
        found.append(dict(one))
    file.done()
    return tuple(found)


def read_policies(path: Path) -> tuple[LsfPolicy, ...]:
    """Return the policies of policy_config.json.

    Raises:
        InputError: it lists every problem with its line.
    """
    file = _Reading(path)
    found: list[LsfPolicy] = []
    for loc, one in file.objects("Policies"):
        file.keys(loc, one, _POLICY_KEYS, closed=True)
        consumer = one.get("Consumer") or {}
        where = (*loc, "Consumer")
        if not isinstance(consumer, dict):
            file.wrong(where, "wanted an object")
            consumer = {}
        file.keys(where, consumer, _CONSUMER_KEYS, closed=True)
        accounts, templates, providers = (
            file.texts(where, consumer, key) for key in _CONSUMER_KEYS
        )
        step_text = file.text(loc, one, "StepValue")
        step = _STEP.fullmatch(step_text)
        if step_text and step is None:
            file.wrong(
                (*loc, "StepValue"), f"{step_text[:40]!r}: wanted N:M, at most N per M minutes"
            )
        found.append(
            LsfPolicy(
                file.text(loc, one, "Name") or f"policy {len(found) + 1}",
                accounts,
                templates,
                providers,
                file.whole(loc, one, "MaxNumber"),
                (int(step[1]), int(step[2])) if step else None,
                file.text(loc, one, "UserDefinedScriptPath"),
            )
        )
    file.done()
    return tuple(found)


def read_queues(path: Path) -> tuple[QueueDemand, ...]:
    """Return what lsb.queues says of demand, queue by queue; all else in it is left alone.

    Raises:
        InputError: it lists every problem with its line.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError.of(str(path), f"cannot be read: {error.strerror}") from None
    problems: list[Problem] = []
    found: list[QueueDemand] = []
    queue, pairs = "", None
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].lower().split()
        if words == ["begin", "queue"]:
            queue, pairs = "", None
        elif words == ["end", "queue"]:
            if pairs is not None:
                found.append(QueueDemand(queue or f"queue {len(found) + 1}", pairs))
        elif match := _QUEUE_LINE.fullmatch(line.split("#")[0]):
            key, value = match["key"], match["value"].strip()
            if key == "QUEUE_NAME":
                queue = value
            elif key == _DEMAND:
                pairs = _pairs(value)
                if pairs is None:
                    wanted = "wanted THRESHOLD[[jobs, minutes] ...]"
                    problems.append(Problem(f"{value[:60]!r}: {wanted}", _DEMAND, number))
            elif get_close_matches(key, [_DEMAND], cutoff=0.85):
                problems.append(Problem(f"unknown key; did you mean {_DEMAND}?", key, number))
    if problems:
        raise InputError(str(path), problems)
    return tuple(found)


def _pairs(text: str) -> tuple[tuple[int, int], ...] | None:
    match = _THRESHOLD.fullmatch(text)
    if match is None:
        return None
    parts = re.findall(r"\[[^\[\]]*\]", match["pairs"])
    read = [_PAIR.fullmatch(part) for part in parts]
    if not all(read):
        return None
    return tuple((int(one[1]), int(one[2] or 0)) for one in read if one is not None)

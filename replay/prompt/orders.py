"""What is typed to change a run, as interventions: ``set`` for values, ``do`` for everything else that can be done to a site."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

from xce.domain.errors import InputError
from xce.domain.formats import interventions as i
from xce.domain.formats.base import Format
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.scenario_check import timeline_contradictions
from xce.domain.formats.simulated_provider import Behaviour
from xce.domain.formats.snapshot import Settings
from xce.replay.prompt.names import Names
from xce.replay.prompt.play import Play
from xce.replay.prompt.words import assignments, known, made, read_value

#: Every kind of intervention, by its name.
ACTS: Final[Mapping[str, type[Format]]] = {
    get_args(act.model_fields["do"].annotation)[0]: act
    for act in get_args(get_args(i.Intervention)[0])
}
_NOW: Final = "0s"
#: Acts on a host that is there.
_TO_A_HOST: Final = frozenset({"kill-host", "take-back-host", "drain", "open"})

Setter = Callable[[list[str], Play, Names], dict[str, Any]]


def act_of(words: list[str], play: Play, names: Names) -> i.Intervention:
    """Return what ``do ACT KEY=VALUE ...`` means.

    Raises:
        InputError: there is no such act, or a value does not fit.
    """
    if not words:
        raise InputError.of("do", f"wanted one of {', '.join(ACTS)}")
    kind = known("do", "act", words[0], ACTS)
    command = f"do {kind}"
    fields: dict[str, Any] = {
        key: read_value(value) for key, value in assignments(command, words[1:]).items()
    }
    for key in ("at", "do"):
        if key in fields:
            raise InputError.of(command, f"{key!r} is not said here: it is done now")
    if kind in _TO_A_HOST and isinstance(fields.get("host"), str):
        known(command, "host", fields["host"], names.hosts)
    return _checked(command, {"do": kind, "at": _NOW, **fields}, play)


def setting_of(words: list[str], play: Play, names: Names) -> i.Intervention:
    """Return what ``set WHAT ...`` means.

    Raises:
        InputError: there is nothing of the kind, or the value does not fit.
    """
    if not words:
        raise InputError.of("set", f"wanted one of {', '.join(SETTERS)}")
    what = known("set", "thing that can be set", words[0], SETTERS)
    usage, setter = SETTERS[what]
    wanted = usage.split()
    if len(words) - 1 != len(wanted):
        raise InputError.of(f"set {what}", f"wanted: set {what} {usage}")
    return _checked(f"set {what}", setter(words[1:], play, names), play)


def _checked(command: str, fields: Mapping[str, Any], play: Play) -> i.Intervention:
    """Return an intervention that fits to the site."""
    found = cast("i.Intervention", made(ACTS[fields["do"]], fields, command))
    scenario = play.site.scenario.model_copy(update={"timeline": (found,)})
    for problem in timeline_contradictions(scenario):
        raise InputError.of(command, problem.message)
    return found


# ------------------------------------------------------------------------ setters
def _template(field: str) -> Setter:
    def setter(words: list[str], play: Play, names: Names) -> dict[str, Any]:
        name, value = words
        provider, template = names.templates[known("set", "template", name, names.templates)]
        return {
            "do": "set-template", "at": _NOW, "provider": provider, "template": template, field: read_value(value),
        }  # fmt: skip

    return setter


def _owned(words: list[str], play: Play, names: Names) -> dict[str, Any]:
    return {"do": "set-owned", "at": _NOW, "shared": words[0], "owned": read_value(words[1])}


def _limit(words: list[str], play: Play, names: Names) -> dict[str, Any]:
    return {"do": "set-limit", "at": _NOW, "limit": words[0], "amount": read_value(words[1])}


def _outside(words: list[str], play: Play, names: Names) -> dict[str, Any]:
    feature = known("set outside", "feature of a licence server", words[0], names.features)
    return {
        "do": "set-outside", "at": _NOW, "server": names.features[feature], "feature": feature,
        "amount": read_value(words[1]),
    }  # fmt: skip


def _part(kind: str, model: type[Format]) -> Setter:
    """Return the setter of one key of the policy or the session."""

    def setter(words: list[str], play: Play, names: Names) -> dict[str, Any]:
        key, value = words
        command = f"set {kind}"
        known(command, "key", key, model.model_fields)
        part = made(model, {key: read_value(value)}, command)
        return {"do": f"set-{kind}", "at": _NOW, kind: part.model_dump(mode="json", exclude_unset=True)}  # fmt: skip

    return setter


def _provider(words: list[str], play: Play, names: Names) -> dict[str, Any]:
    """Change one key of what a simulated provider does: ``lost_answers``, ``lead_time.boot``, ``capacity.c8``."""
    name, key, value = words
    provider = play.world.providers[known("set provider", "provider", name, names.providers)]
    document = provider.behaviour.model_dump(mode="json", exclude_unset=True)
    *way, last = key.split(".")
    known("set provider", "key", (way or [last])[0], Behaviour.model_fields)
    place: dict[str, Any] = document
    for step in way:
        below: Any = place.setdefault(step, {})
        if not isinstance(below, dict):
            raise InputError.of("set provider", f"{key!r}: {step} has no keys")
        place = cast("dict[str, Any]", below)
    place[last] = read_value(value)
    changed = made(Behaviour, document, "set provider")
    return {
        "do": "set-behaviour", "at": _NOW, "provider": name,
        "simulation": changed.model_dump(mode="json", exclude_unset=True),
    }  # fmt: skip


#: What ``set`` sets: what follows, and how.
SETTERS: Final[Mapping[str, tuple[str, Setter]]] = {
    "price": ("TEMPLATE PRICE", _template("price_per_hour")),
    "room": ("TEMPLATE NUMBER", _template("max_number")),
    "priority": ("TEMPLATE NUMBER", _template("priority")),
    "owned": ("SHARED NUMBER", _owned),
    "limit": ("LIMIT AMOUNT", _limit),
    "outside": ("FEATURE NUMBER", _outside),
    "policy": ("KEY VALUE", _part("policy", PolicyConfig)),
    "session": ("KEY VALUE", _part("session", Settings)),
    "provider": ("PROVIDER KEY VALUE", _provider),
}

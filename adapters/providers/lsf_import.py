"""From the files of the LSF resource connector to our configuration, as YAML."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

import yaml

from xce.adapters.providers.answers import template_offers
from xce.adapters.providers.lsf_files import (
    HostProvider,
    QueueDemand,
    read_host_providers,
    read_policies,
    read_queues,
    read_templates,
)
from xce.adapters.providers.lsf_policies import Known, budgets_of
from xce.adapters.settings.yaml_tree import Plain
from xce.domain.errors import InputError, Problem
from xce.domain.formats.provider import TemplateOffer
from xce.domain.formats.script_output import Message
from xce.domain.formats.script_provider import SlotsFrom

_HEAD: Final = (
    "# Made by xce config import-lsf; docs/how-to/move-from-lsf.md says what to look at.\n"
)


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of the files.

    Attributes:
        provisioner: the configuration of the provisioner, as YAML.
        queues: waiting rules of queues for the cluster's configuration, as YAML; "" where there are none.
        warnings: what could not be said in our configuration, or was not found.
    """

    provisioner: str
    queues: str
    warnings: tuple[str, ...]


def import_lsf(folder: Path, name: str) -> Imported:
    """Convert the files of a resource connector's configuration folder.

    Raises:
        InputError: a file is missing or wrong; all problems of all files, each with its file and line.
    """
    warnings: list[str] = []
    errors: list[InputError] = []
    providers = _try(errors, lambda: read_host_providers(_required(folder, "hostProviders.json")))
    policies = (
        _try(errors, lambda: read_policies(folder / "policy_config.json"))
        if (folder / "policy_config.json").is_file()
        else ()
    )
    queues_file = _first(folder / "lsb.queues", folder.parent / "lsb.queues")
    queues = _try(errors, lambda: read_queues(queues_file)) if queues_file else ()
    scripts: list[dict[str, Any]] = []
    for provider in providers or ():
        made = _try(errors, lambda one=provider: _script(folder, one, warnings))
        if made is not None:
            scripts.append(made)
    if errors:
        raise _joined(errors)
    document: dict[str, Any] = {"name": name, "scripts": scripts}
    known = _known(providers or (), scripts)
    budgets = budgets_of(policies or (), known, warnings)
    if budgets:
        document["policy"] = {"budgets": budgets}
    return Imported(_HEAD + _yaml(document), _queues(queues or ()), tuple(warnings))


def _try(errors: list[InputError], read: Any) -> Any:
    try:
        return read()
    except InputError as error:
        errors.append(error)
        return None


def _joined(errors: list[InputError]) -> InputError:
    if len(errors) == 1:
        return errors[0]
    first = errors[0]
    others = [Problem(line) for error in errors[1:] for line in error.lines()]
    joined = InputError(first.source, [*first.problems, *others])
    joined.args = ("\n".join(line for error in errors for line in error.lines()),)
    return joined


def _required(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise InputError.of(
            str(path), "there is no such file; wanted the folder of a resource connector"
        )
    return path


def _first(*paths: Path) -> Path | None:
    return next((path for path in paths if _is(Path.is_file, path)), None)


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    """Return whether a path of somebody else's file is one; a name that no file can have is none."""
    try:
        return kind(path)
    except OSError:
        return False


def _script(folder: Path, provider: HostProvider, warnings: list[str]) -> dict[str, Any]:
    conf = _place(folder, provider.conf_path or provider.script_path)
    scripts = _place(folder, provider.script_path)
    made: dict[str, Any] = {"name": provider.name, "folder": str(scripts or provider.script_path)}
    if scripts is None:
        warnings.append(
            f"{provider.name}: scriptPath {provider.script_path} was not found from {folder}; set folder by hand"
        )
    if provider.conf_path and provider.conf_path != provider.script_path:
        made["conf"] = str(conf or provider.conf_path)
    if provider.script_option:
        made["options"] = provider.script_option
    description: dict[str, Any] = {"name": provider.name, "contract": 1}
    file = _templates_file(folder, provider, conf)
    if file is None:
        warnings.append(
            f"{provider.name}: no *prov_templates.json was found; the scripts are asked"
        )
    else:
        offers, problems = template_offers(
            {"templates": [_message(one) for one in read_templates(file)]}, SlotsFrom.CORES
        )
        if problems:
            raise InputError(str(file), problems)
        description["templates"] = [_offer(offer) for offer in offers]
    made["description"] = description
    return made


def _place(folder: Path, path: str) -> Path | None:
    """Return the folder that a path of hostProviders.json means: as LSF, from the folder above, or from this one."""
    for root in (folder, folder.parent, folder.parent.parent):
        place = (root / path).absolute()
        if _is(Path.is_dir, place):
            return place
    return None


def _templates_file(folder: Path, provider: HostProvider, conf: Path | None) -> Path | None:
    places = [] if conf is None else [conf / "conf", conf]
    names = [f"{word}prov_templates.json" for word in (provider.type, provider.name) if word]
    exact = _first(*(place / name for place in (*places, folder) for name in names))
    if exact is not None:
        return exact
    found = [one for place in places for one in sorted(place.glob("*prov_templates.json"))]
    return found[0] if found else None


def _message(value: Mapping[str, Plain]) -> Message:
    """Return a value of a file as one of a message: exact decimals are texts there."""
    return cast("Message", json.loads(json.dumps(value, default=str)))


def _offer(offer: TemplateOffer) -> dict[str, Any]:
    made: dict[str, Any] = {"template_id": offer.template_id, "max_number": offer.max_number}
    if offer.priority:
        made["priority"] = offer.priority
    if offer.price_per_hour is not None:
        made["price_per_hour"] = format(offer.price_per_hour, "f")
    made["attributes"] = {
        key: float(value) if isinstance(value, Decimal) else value
        for key, value in offer.attributes.items()
    }
    made["provides"] = dict(offer.provides)
    return made


def _known(providers: tuple[HostProvider, ...], scripts: list[dict[str, Any]]) -> Known:
    """Return what policies can name: the templates where files list those of every provider."""
    listed = [made["description"].get("templates") for made in scripts]
    templates = (
        None
        if None in listed
        else frozenset(offer["template_id"] for offers in listed for offer in offers)
    )
    return Known(frozenset(one.name for one in providers), templates)


def _queues(queues: tuple[QueueDemand, ...]) -> str:
    if not queues:
        return ""
    listed = [
        {"name": one.queue, "demand_threshold": [list(pair) for pair in one.pairs]}
        for one in queues
    ]
    return _HEAD + _yaml({"cluster": {"queues": listed}})


def _yaml(document: dict[str, Any]) -> str:
    library = cast("Any", yaml)  # its types are partly unknown
    return str(library.safe_dump(document, sort_keys=False, allow_unicode=True, width=100))

"""Writes a provider that comes with the package as a folder of scripts."""

import json
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from xce.adapters.providers import command, simulated
from xce.adapters.providers.ec2 import settings as ec2
from xce.adapters.providers.environment import SCRIPTS
from xce.adapters.providers.simulated import SCRIPTS as SIMULATED
from xce.adapters.providers.slurm_licences import scripts as slurm_licences
from xce.adapters.providers.slurm_licences.settings import CONF as SLURM_LICENCES_CONF
from xce.adapters.providers.slurm_local import scripts as slurm_local
from xce.adapters.providers.slurm_local.settings import CONF as SLURM_LOCAL_CONF
from xce.domain.errors import InputError


class Comes(StrEnum):
    """Providers that come with the package as scripts."""

    SIMULATED = "simulated"
    COMMAND = "command"
    EC2 = "ec2"
    SLURM_LOCAL = "slurm-local"
    SLURM_LICENCES = "slurm-licences"


class Knows(StrEnum):
    """What a simulated provider knows of its requests."""

    TAGS = "tags"
    LISTING = "listing"
    NEITHER = "neither"


_VERSION_1: Final = SCRIPTS[:5]
_SCRIPT: Final = """#!/bin/sh
exec {python} -I {program} {name} "$@"
"""
#: The scripts of the provider ``ec2``: all about hosts.
_EC2: Final = (*_VERSION_1, "getProviderDescription", "listMachines")
#: What is offered unless the configuration is changed.
SIMULATED_CONF: Final[dict[str, Any]] = {
    "templates": [
        {
            "templateId": "std4",
            "maxNumber": 10,
            "priority": 10,
            "attributes": {
                "type": ["String", "X86_64"],
                "ncpus": ["Numeric", "4"],
                "ncores": ["Numeric", "1"],
                "mem": ["Numeric", "8192"],
            },
            "priceInfo": "0.17",
        }
    ],
    "resources": [{"name": "lic_sim", "capacity": 20, "step": 1, "price": "0.50", "hold": 0}],
    "lagSeconds": 0,
    "bootSeconds": 0,
    "returnSeconds": 0,
    "faults": [],
}
COMMAND_CONF: Final[dict[str, Any]] = {
    "getAvailableTemplates": {"run": ["cat", "{input}"], "answer": {"templates": []}},
}


def install(
    what: Comes,
    folder: Path,
    *,
    knows: Knows = Knows.TAGS,
    conf: dict[str, Any] | None = None,
) -> tuple[str, ...]:
    """Write the scripts and a configuration to begin with; return the names of the scripts.

    A configuration that is there already stays as it is.

    Raises:
        InputError: the folder cannot be written.
    """
    if what is Comes.SIMULATED:
        made = simulated_conf(knows, conf or SIMULATED_CONF)
        names = simulated_scripts(knows, made)
        program = f"-m {simulated.__name__}"
    elif what is Comes.EC2:
        made = conf or ec2.CONF
        names = _EC2
        program = "-m xce.adapters.providers.ec2"
    elif what is Comes.SLURM_LOCAL:
        made, names = conf or SLURM_LOCAL_CONF, tuple(slurm_local.SCRIPTS)
        program = f"-m {slurm_local.__name__}"
    elif what is Comes.SLURM_LICENCES:
        made, names = conf or SLURM_LICENCES_CONF, tuple(slurm_licences.SCRIPTS)
        program = f"-m {slurm_licences.__name__}"
    else:
        made = conf or COMMAND_CONF
        names = tuple(name for name in SCRIPTS if name in _VERSION_1 or name in made)
        program = _file(command.__file__)
    try:
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        (folder / "conf").mkdir(exist_ok=True)
        for name in names:
            _write_script(folder / "scripts" / f"{name}.sh", name, program)
        place = configuration_of(what, folder)
        if fresh := not place.exists():
            place.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        start = folder / "conf" / "cloud-init.sh"
        if fresh and made is ec2.CONF and not start.exists():
            start.write_text(ec2.CLOUD_INIT, encoding="utf-8")
    except OSError as error:
        raise InputError.of(str(folder), f"cannot be written: {error.strerror or error}") from None
    return names


def configuration_of(what: Comes, folder: Path) -> Path:
    """Return the file with the configuration of an installed provider."""
    return folder / "conf" / f"{what}.json"


def simulated_conf(knows: Knows, conf: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration of the simulated provider with the capabilities that go with what it knows."""
    capabilities = {
        "requestTag": knows is Knows.TAGS,
        "listing": knows is not Knows.NEITHER,
        "partialReturns": knows is not Knows.NEITHER,
    }
    return {"capabilities": capabilities, **conf}


def simulated_scripts(knows: Knows, conf: dict[str, Any]) -> tuple[str, ...]:
    """Return the scripts of a simulated provider: version 1 only for one that knows neither tags nor a list."""
    if knows is Knows.NEITHER:
        return _VERSION_1
    countable = (
        ()
        if conf.get("resources")
        else tuple(n for n in SIMULATED if "Resources" in n or "Grants" in n)
    )
    return tuple(name for name in SIMULATED if name not in countable)


def _file(program: str) -> str:
    """Return how Python runs a program that needs nothing but the standard library."""
    return f"-S {shlex.quote(str(Path(program).resolve()))}"


def _write_script(path: Path, name: str, program: str) -> None:
    text = _SCRIPT.format(python=shlex.quote(sys.executable), program=program, name=name)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)

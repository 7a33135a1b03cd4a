"""Where the scripts of a provider are, and what they find in their environment: both families of variables, nothing of ours."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from xce.domain.errors import InputError
from xce.domain.formats.provider_messages import MESSAGES
from xce.domain.formats.script_provider import ScriptSettings

SCRIPTS: Final = tuple(MESSAGES)
_ENDINGS: Final = (".sh", "")


def find_scripts(folder: Path) -> dict[str, Path]:
    """Return the scripts of a folder by name, by absolute path: ``scripts/X.sh``, ``scripts/X``, ``X.sh`` or ``X``, the first there is."""
    root = folder.absolute()
    found: dict[str, Path] = {}
    for name in SCRIPTS:
        for place in (root / "scripts", root):
            path = next((p for e in _ENDINGS if (p := place / (name + e)).is_file()), None)
            if path is not None:
                found.setdefault(name, path)
    return found


def environment_of(
    settings: ScriptSettings,
    *,
    conf: Path,
    data: Path,
    logs: Path,
    secrets: Mapping[str, str],
) -> dict[str, str]:
    """Return all that the scripts of a provider find in their environment, but for the tag of a request."""
    return {
        "PATH": settings.path,
        "LC_ALL": "C.UTF-8",
        "PRO_LSF_TOP": settings.lsf_top,
        "PRO_CONF_DIR": str(conf),
        "PRO_DATA_DIR": str(data),
        "PRO_LSF_LOGDIR": str(logs),
        "PROVIDER_NAME": settings.name,
        "SCRIPT_OPTIONS": settings.options,
        "LSF_ENVDIR": settings.lsf_envdir,
        "HF_PROVIDER_NAME": settings.name,
        "HF_PROVIDER_CONFDIR": str(conf),
        "HF_PROVIDER_WORKDIR": str(data),
        "HF_PROVIDER_LOGDIR": str(logs),
        **secrets,
        **settings.environment,
    }


def given_secrets(settings: ScriptSettings) -> dict[str, str]:
    """Return the variables of our own environment that the settings pass on.

    Raises:
        InputError: one is not set.
    """
    missing = [name for name in settings.secrets if name not in os.environ]
    if missing:
        raise InputError.of(
            f"provider {settings.name}",
            f"the environment has no {', '.join(missing)}",
            path="secrets",
        )
    return {name: os.environ[name] for name in settings.secrets}

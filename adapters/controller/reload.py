"""A configuration that is read anew while the controller works: what can change at once does, and the change is an event."""

import json
from hashlib import sha256
from typing import Any, Final

from xce.adapters.controller.live import LiveController
from xce.domain.engine.commands import DeclareShared
from xce.domain.engine.messages import Caller
from xce.domain.engine.site_commands import RecordConfiguration
from xce.domain.formats.controller_config import ControllerConfig

#: Whose configuration it is.
DAEMON: Final = "controller"
#: Keys whose change works at once; the others wait for a start.
AT_ONCE: Final = frozenset({"shared", "tokens"})
#: Longest value that a change shows.
_SHOWN_MAX: Final = 120


def digest_of(config: ControllerConfig) -> str:
    """Return the SHA-256 of a configuration with its defaults filled in."""
    return sha256(config.to_json().encode()).hexdigest()


def changes_between(old: ControllerConfig, new: ControllerConfig) -> tuple[str, ...]:
    """Return what is different, one line for each key, and whether it waits for a start."""
    before: dict[str, Any] = json.loads(old.to_json())
    after: dict[str, Any] = json.loads(new.to_json())
    found: list[str] = []
    for key, value in after.items():
        if value == before[key]:
            continue
        if key == "shared":
            found += _pools(before[key], value)
            continue
        if key == "alerts":  # an address may be a secret
            found.append("alerts: changed (from the next start)")
            continue
        later = "" if key in AT_ONCE else " (from the next start)"
        found.append(f"{key}: {_shown(before[key])} -> {_shown(value)}{later}")
    return tuple(found)


def _pools(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    old = {pool["name"]: pool for pool in before}
    new = {pool["name"]: pool for pool in after}
    found = [
        f"shared: {name} is not configured any more; it stays declared"
        for name in old
        if name not in new
    ]
    for name, pool in new.items():
        if name not in old:
            found.append(f"shared: {name} is new, {pool['owned']} owned")
            continue
        found += [
            f"shared: {name}.{key}: {_shown(old[name][key])} -> {_shown(value)}"
            for key, value in pool.items()
            if value != old[name][key]
        ]
    return found


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 4]} ..."


def apply(
    live: LiveController, caller: Caller, old: ControllerConfig, new: ControllerConfig
) -> tuple[str, ...]:
    """Put a changed configuration to work, all or nothing, with the change as an event; return what is different.

    Raises:
        XceError: it cannot be recorded; nothing has changed.
    """
    changes = changes_between(old, new)
    if changes:
        known = {pool.name: pool for pool in old.shared}
        declared = [DeclareShared.of(pool) for pool in new.shared if known.get(pool.name) != pool]
        record = RecordConfiguration(DAEMON, digest_of(new), changes)
        live.submit(caller, *declared, record).result()
    return changes

"""Folders of small shell scripts as providers under test."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xce.adapters.providers.evidence import Evidence
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.formats.provider import Kind
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Ask

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
#: Counts its runs in a file of the provider's own data folder.
COUNT = 'echo x >>"$PRO_DATA_DIR/runs"; '
ACCEPTS = COUNT + """echo '{"requestId": "add-1", "message": ""}'"""


def write_scripts(folder: Path, bodies: Mapping[str, str]) -> Path:
    """Write ``scripts/NAME.sh`` for each body, which is shell; return the folder."""
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    for name, body in bodies.items():
        path = folder / "scripts" / f"{name}.sh"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return folder


def provider(
    folder: Path,
    bodies: Mapping[str, str],
    *,
    on_call: Callable[[Evidence], None] | None = None,
    **settings: Any,
) -> ScriptProvider:
    """Return a provider of such scripts, which keeps what it keeps beside them."""
    write_scripts(folder / "provider", bodies)
    made = ScriptSettings.model_validate(
        {"name": "p", "folder": str(folder / "provider"), "call_limit": "60s", **settings}
    )
    return ScriptProvider(made, folder / "kept", on_call=on_call)


def hosts(amount: int = 1, tag: str = "R1") -> Ask:
    """Return an ask for hosts."""
    return Ask(tag, Kind.HOST, "t1", amount)


def prints(text: str, code: int = 0) -> str:
    """Return a script that prints a text and ends with an exit code."""
    return f"cat <<'END'\n{text}\nEND\nexit {code}"


def runs(tmp_path: Path) -> int:
    """Return how often the scripts that count have run."""
    path = tmp_path / "kept" / "data" / "runs"
    return len(path.read_text().split()) if path.exists() else 0


def status_of(machines: list[dict[str, object]], status: str = "complete") -> str:
    """Return what a status script prints of the request add-1."""
    return json.dumps(
        {"requests": [{"requestId": "add-1", "status": status, "machines": machines}]}
    )

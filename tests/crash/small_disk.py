"""A disk of its own, small, full at times and read-only at others: run in a mount namespace, says as JSON what happened on it."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.service.running import TOKENS, running
from xce.adapters.client import Client
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.commands import DeclareShared
from xce.domain.engine.messages import Role
from xce.domain.errors import TransientError, XceError

SIZE_MIB = 4
HOUR = timedelta(hours=1)
COMMAND = [sys.executable, "-m", "xce.adapters.cli.main"]


def mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Leave not one byte free."""
    with ballast.open("wb", buffering=0) as file:
        for size in (64 * 1024, 4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def declare(client: Client, name: str, key: str | None = None) -> None:
    client.command(DeclareShared(name, 1, None, 0, 1, HOUR, HOUR), key=key)


def outcome(path: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, *words, str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def error_of_opening(path: Path) -> str:
    try:
        open_log(path).close()
    except XceError as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def full(folder: Path) -> dict[str, Any]:
    """A service whose disk fills up, and has room again."""
    path, ballast = folder / "events.db", folder / "ballast"
    fill(ballast)
    new = error_of_opening(path)
    left = sorted(file.name for file in folder.iterdir())
    ballast.unlink()
    acknowledged: list[str] = []
    with (
        running(folder) as service,
        Client(service.address, token=TOKENS[Role.ADMIN], attempts=1) as client,
    ):
        declare(client, "before")
        fill(ballast)
        refused, name = "", ""
        while not refused:
            name = f"r{len(acknowledged)}"
            try:
                declare(client, name, key=name)
            except TransientError as error:
                refused = str(error)
            else:
                acknowledged.append(name)
        reads = client.status().position
        ballast.unlink()
        declare(client, name, key=name)
        acknowledged.append(name)
    with open_log(path, read_only=True) as log:
        found = [one.event.originator_id for one in log.read()]
        passed = verify(log).passed
    return {
        "new": new,
        "left": left,
        "refused": refused,
        "read while it was full": reads == len(acknowledged) * 2,
        "lost": [name for name in ["before", *acknowledged] if f"shared:{name}" not in found],
        "twice": len(found) != len(set(found)),
        "passed": passed,
    }


def read_only(folder: Path) -> dict[str, Any]:
    """A log that cannot be written, and may be read."""
    path = folder / "events.db"
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    try:
        code, text = outcome(path, "audit", "verify")
        writing = error_of_opening(path)
        new = error_of_opening(folder / "new.db")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    with running(folder) as service, Client(service.address, token=TOKENS[Role.ADMIN]) as client:
        declare(client, "after")
    return {"verify": code, "said": text, "writing": writing, "new": new}


def main() -> None:
    folder = Path(sys.argv[1])
    mount(folder, f"size={SIZE_MIB}m")
    print(json.dumps({"full": full(folder), "read_only": read_only(folder)}))


if __name__ == "__main__":
    main()

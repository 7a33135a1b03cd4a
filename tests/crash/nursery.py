"""Daemons that start at once: a process that has imported everything makes each of them by a fork, and says how it ended.

Run as a module it is that process: lines ``start COMMAND CONFIG LOG [DOOM]``, ``wait PID`` and ``look PID`` come on stdin, ``PID`` and the
exit code are the answers.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.conftest import ROOT
from tests.crash.doom import Doom
from tests.service.running import TOKENS
from xce.adapters.client import Client
from xce.domain.engine.messages import Role
from xce.domain.errors import XceError

UP_WITHIN_S = 60.0
#: No exit code: it has not ended.
LIVES = 1000


@dataclass
class Child:
    """One daemon process; ``code`` is its exit code, or minus the signal that ended it, once that was seen."""

    nursery: "Nursery"
    pid: int
    code: int | None = None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Return its exit code when it has ended."""
        if self.code is None:
            self.code = self.nursery.ask(f"wait {self.pid}")
        return self.code

    def has_ended(self) -> bool:
        """Return whether it has, without waiting."""
        if self.code is None:
            found = self.nursery.ask(f"look {self.pid}")
            self.code = None if found == LIVES else found
        return self.code is not None


class Nursery:
    """Starts controllers and provisioners."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Begin; ``environment`` is added to that of the daemons."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"], cwd=ROOT, env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=UP_WITHIN_S)

    def ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, config: Path, command: str = "controller", doom: Doom | None = None) -> Child:
        words = ["start", command, str(config), str(config.with_suffix(".log"))]
        return Child(self, self.ask(" ".join([*words, *(doom.words if doom else ())])))


def wait_until_it_serves(address: str) -> float:
    """Return when it did, on the monotonic clock."""
    deadline = time.monotonic() + UP_WITHIN_S
    with Client(address, attempts=1, token=TOKENS[Role.ADMIN], timeout_s=2.0) as client:
        while time.monotonic() < deadline:
            try:
                client.status()
                return time.monotonic()
            except XceError:
                time.sleep(0.02)
    raise AssertionError(f"{address} does not serve")


def main() -> None:
    from xce.adapters.cli import main as command_line

    for module in (
        "xce.adapters.controller.service",
        "xce.adapters.store.postgresql.factory",
        "xce.adapters.provisioner.service",
    ):
        import_module(module)
    children: set[int] = set()
    for line in sys.stdin:
        order, *words = line.split()
        if order in ("wait", "look"):
            ended, status = os.waitpid(int(words[0]), os.WNOHANG if order == "look" else 0)
            print(os.waitstatus_to_exitcode(status) if ended else LIVES, flush=True)
            children.discard(ended)
            continue
        command, config, log, *doom = words
        pid = os.fork()
        if pid:
            children.add(pid)
            print(pid, flush=True)
            continue
        with open(log, "ab") as err, open(os.devnull, "r+b") as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(nothing.fileno(), 1)
            os.dup2(err.fileno(), 2)
        if doom:
            Doom.of(doom).install(command)
        sys.argv = ["xce", command, "--config", config]
        code = 1
        try:
            command_line.main()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        finally:
            sys.stderr.flush()
            os._exit(code)
    for pid in children:  # whoever started them is gone, perhaps in the middle
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()

"""``xce sim repl`` in a real pseudo-terminal: completion, history, and an interrupt."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.unit.prompt.sites import TEXT

#: A bound, on a machine that is busy; nothing waits for it.
TIME_LIMIT_S = 120
#: One that nobody waits for: it goes on for a long time.
ENDLESS = """name: endless
cluster:
  hosts: [{name: own1, total: {slots: 1}}]
workload:
  jobs: [{id: "j[1-90000]", every: 1s, run_time: 1s}]
"""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """Somebody at the keyboard."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self._child: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            ["-m", "xce.adapters.cli.main", "sim", "repl", *arguments],
            cwd=str(folder),
            env=environment,
            encoding="utf-8",
            timeout=TIME_LIMIT_S,
            dimensions=(40, 200),
        )

    def prompt(self, prompt: str) -> str:
        """Wait for a prompt; return what was shown before it, without what moves the cursor."""
        self._child.expect_exact(prompt)
        return _CONTROL.sub("", self._child.before or "")

    def see(self, text: str) -> None:
        """Wait for a text."""
        self._child.expect_exact(text)

    def type(self, text: str) -> None:
        """Type."""
        self._child.send(text)

    def enter(self, line: str) -> None:
        """Type a line."""
        self._child.send(f"{line}\r")

    def interrupt(self, until: str) -> None:
        """Press Ctrl-C until a text is there: too early, it is a key of the line that is typed."""
        for _ in range(TIME_LIMIT_S):
            self._child.send("\x03")
            if self._child.expect_exact([until, pexpect.TIMEOUT], timeout=1) == 0:
                return
        raise AssertionError(f"{until!r} was not seen")

    def end(self) -> int | None:
        """Wait for the end; return the exit code."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        return self._child.exitstatus

    def close(self) -> None:
        """End it, whatever it does."""
        self._child.close(force=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workshop.yaml").write_text(TEXT)
    (tmp_path / "endless.yaml").write_text(ENDLESS)
    return tmp_path


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for one in opened:
        one.close()


def test_commands_and_names_are_completed_and_typed_lines_are_kept_for_the_next_time(
    folder: Path, terminals: list[Terminal]
) -> None:
    first = Terminal(folder, "workshop.yaml")
    terminals.append(first)
    first.prompt("main 2026-03-01 10:00:00>")
    first.type("run until sess\t")
    first.see("ion")
    first.enter("")
    first.see("job a1 starts")
    first.prompt("main 2026-03-01 10:00:00>")
    first.type("why nev\t")
    first.see("er")
    first.enter("")
    first.see("job never has not been submitted yet")
    first.enter("sett price small 1")
    first.see("'sett' is no command here; did you mean set?")
    first.enter("fork other")
    first.prompt("other 2026-03-01 10:00:00>")
    first.type("half a li\x03")
    first.prompt("other 2026-03-01 10:00:00>")
    first.enter("quit")
    assert first.end() == 0

    history = folder / "state" / "xce" / "repl-history"
    assert history.stat().st_mode & 0o077 == 0
    assert "+why never" in history.read_text().splitlines()

    second = Terminal(folder, "workshop.yaml")
    terminals.append(second)
    second.prompt("main 2026-03-01 10:00:00>")
    second.type("run until s")
    second.type("\x1b[A")  # up: the line that begins so
    second.see("ession")
    second.enter("")
    second.see("job a1 starts")
    second.type("\x04")  # the end of input
    assert second.end() == 0


def test_an_interrupt_stops_a_run_at_a_whole_moment_and_one_goes_on(
    folder: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(folder, "endless.yaml")
    terminals.append(terminal)
    terminal.prompt("main 2026-03-01 10:00:00>")
    terminal.enter("run until 10:00:05")
    terminal.prompt("main 2026-03-01 10:00:05>")
    terminal.enter("run")
    terminal.interrupt("; interrupted")
    terminal.enter("info")
    terminal.see("endless, seed 1: 2026-03-0")
    terminal.enter("step")
    terminal.see(": 1 moment")
    terminal.enter("quit")

    assert terminal.end() == 0

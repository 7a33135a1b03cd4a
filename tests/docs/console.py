"""Runs what a page of the documentation shows: files that the reader writes, commands, and what they print.

A page marks its code blocks with comments, which readers do not see:

    <!-- file: site.yaml -->      the block is what the reader puts into this file
    <!-- not run: why -->         the console block is only read
    <!-- before: xce demo -->     a command that the reader has run before; it may stand anywhere

In a ``console`` block a command follows ``$``; the lines up to the next command are what it prints, ``...`` stands for any
lines. Where none are shown, only the exit code is checked: it is 0, unless ``echo $?`` comes next and shows another.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from xce.adapters.cli import main as entry

TIME_LIMIT_S = 120
ANY_LINES = "..."
_FENCE = re.compile(r"^```(\w*)\s*$")
_DIRECTIVE = re.compile(r"^<!-- (file|not run|before): (.*?) -->$")
#: Of a command without its quoted parts: what only a shell understands.
_NEEDS_SHELL = re.compile(r"[<>;&*`\n]|\$\(|^for ")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
#: The parts of a pipe.
_PART = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^|\"'])+")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page, what it is said to print, and where: the lines ``first`` to ``last`` of the page."""

    text: str
    shown: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(slots=True)
class Page:
    """What a page has its reader do, in order."""

    before: list[str] = field(default_factory=list[str])
    steps: list[Command | WrittenFile] = field(default_factory=list["Command | WrittenFile"])


def read_page(text: str) -> Page:
    """Return what a page has its reader do."""
    page = Page()
    lines = text.splitlines()
    directive: tuple[str, str] | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        if found := _DIRECTIVE.match(line):
            if found[1] == "before":
                page.before.append(found[2])
            else:
                directive = (found[1], found[2])
        elif fence := _FENCE.match(line):
            end = next(i for i in range(number + 1, len(lines)) if lines[i].startswith("```"))
            if directive is not None and directive[0] == "file":
                text = "\n".join(lines[number + 1 : end]) + "\n"
                page.steps.append(WrittenFile(directive[1], text))
            elif fence[1] == "console" and directive is None:
                page.steps += _commands(lines, number + 1, end)
            number, directive = end, None
        elif line.strip():
            directive = None
        number += 1
    return page


def _commands(lines: list[str], first: int, end: int) -> Iterator[Command]:
    starts = [i for i in range(first, end) if lines[i].startswith("$ ")]
    assert starts[:1] == [first], f"line {first + 1}: a console block begins with a command"
    for start, following in zip(starts, [*starts[1:], end], strict=True):
        output = start + 1
        text = lines[start].removeprefix("$ ")
        while text.endswith("\\"):
            text = f"{text[:-1]} {lines[output].strip()}"
            output += 1
        yield Command(text, tuple(lines[output:following]), output, following)


class Shell:
    """A reader at a terminal: a folder, and the exit code of the last command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0

    def run(self, command: str) -> str:
        """Return what a command prints, on both streams."""
        words = shlex.split(command)
        if words == ["echo", "$?"]:
            code, self.code = self.code, 0
            return f"{code}\n"
        if words[0] == "cd":
            self.folder /= words[1]
            self.code = 0
            return ""
        if _NEEDS_SHELL.search(_QUOTED.sub("", command)):
            return self._run_in_bash(command, "")
        text, codes = "", list[int]()
        for part in _PART.findall(command):
            words = shlex.split(part)
            here = words[0] == "xce"
            text = self._run_here(words, text) if here else self._run_in_bash(part, text)
            codes.append(self.code)
        self.code = next((code for code in reversed(codes) if code), 0)
        return text

    def _run_in_bash(self, command: str, text: str) -> str:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        self.code = done.returncode
        return done.stdout

    def _run_here(self, words: list[str], text: str) -> str:
        """Run ``xce`` in this process, which is ten times faster."""
        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            mock.patch.object(sys, "argv", words),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()))),
        ):
            try:
                entry.main()
                self.code = 0
            except SystemExit as end:
                self.code = end.code if isinstance(end.code, int) else 0
        return printed.getvalue()


def agrees(shown: tuple[str, ...], printed: str) -> bool:
    """Return whether a command printed what the page shows; blanks at the end of lines do not count."""
    wanted = _trimmed(list(shown))
    if not wanted:
        return True
    pattern = "".join(
        r"(?:.*\n)*" if line == ANY_LINES else re.escape(line) + r"\n" for line in wanted
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _trimmed(printed))) is not None


def _trimmed(text: str | list[str]) -> list[str]:
    lines = [line.rstrip() for line in (text.splitlines() if isinstance(text, str) else text)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def with_output(text: str, command: Command, printed: str) -> str:
    """Return a page with what a command printed in place of what it shows."""
    lines = text.splitlines()
    lines[command.first : command.last] = _trimmed(printed)
    return "\n".join(lines) + "\n"

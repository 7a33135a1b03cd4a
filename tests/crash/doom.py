"""The moment at which a daemon dies: at the n-th passing of a named boundary, by a signal to itself. Installed in a child that was forked.

Boundaries of a provisioner are each order to the controller and each script that changes or tells something, of a controller each append
to the log. Before and after are two: in the first case nothing has happened yet, in the second it has and nobody has heard. ``during`` a
script the provider acts when nobody is left to hear.
"""

import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

#: Scripts that change something, or whose answer comes only once.
SCRIPTS = ("requestMachines", "getRequestStatus", "requestReturnMachines")


@dataclass
class Doom:
    """Notes each boundary in a file, and dies, or freezes, at one of them; number 0: at none."""

    passed: Path
    name: str = ""
    number: int = 0
    how: signal.Signals = signal.SIGKILL
    _seen: Counter[str] = field(default_factory=Counter[str])
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, words: Sequence[str]) -> "Doom":
        """Return what ``words`` says."""
        passed, name, number, how = words
        return cls(Path(passed), name, int(number), signal.Signals(int(how)))

    @property
    def words(self) -> list[str]:
        return [str(self.passed), self.name or "-", str(self.number), str(int(self.how))]

    def pass_by(self, name: str) -> None:
        with self._lock:
            self._seen[name] += 1
            with self.passed.open("a") as file:
                file.write(name + "\n")
            if (name, self._seen[name]) == (self.name, self.number):
                os.kill(os.getpid(), self.how)

    def install(self, command: str) -> None:
        """Set the boundaries of a daemon that begins in this process."""
        if command == "provisioner":
            self._in_books()
            self._in_scripts()
        else:
            self._in_log()

    def _in_books(self) -> None:
        from xce.adapters.provisioner.books import ClientBooks
        from xce.domain.engine.commands import Command

        record = ClientBooks.record

        def recorded(
            books: ClientBooks, commands: tuple[Command, ...], epochs: Mapping[str, int]
        ) -> None:
            what = type(commands[0]).__name__
            self.pass_by(f"before:{what}")
            record(books, commands, epochs)
            self.pass_by(f"after:{what}")

        ClientBooks.record = recorded  # type: ignore[method-assign, assignment]  # in a child of its own

    def _in_scripts(self) -> None:
        from xce.adapters.providers import call

        run, spawn = call.run, os.posix_spawn

        def ran(script: Path, *more: Any, **others: Any) -> call.Ran:
            told = script.stem in SCRIPTS
            if told:
                self.pass_by(f"before:{script.stem}")
            result = run(script, *more, **others)
            if told:
                self.pass_by(f"after:{script.stem}")
            return result

        def spawned(program: Any, arguments: Any, *more: Any, **others: Any) -> int:
            pid = spawn(program, arguments, *more, **others)
            script = Path(os.fsdecode(arguments[-3])).stem
            if script in SCRIPTS:
                self.pass_by(f"during:{script}")
            return pid

        call.run = ran
        os.posix_spawn = spawned

    def _in_log(self) -> None:
        from xce.adapters.store.log import StoredLog
        from xce.domain.events.base import Aggregate
        from xce.domain.events.recorded import Recorded

        append = StoredLog.append

        def appended(
            log: StoredLog,
            aggregates: Sequence[Aggregate[Any]],
            *,
            fences: Mapping[str, int] | None = None,
        ) -> Sequence[Recorded]:
            new = [event for one in aggregates for event in one.pending_events]
            what = type(new[0]).__qualname__ if new else ""
            what = "" if what.startswith("Alert.") else what  # by the clock, and nobody acts on it
            if what:
                self.pass_by(f"before:{what}")
            found = append(log, aggregates, fences=fences)
            if what:
                self.pass_by(f"after:{what}")
            return found

        StoredLog.append = appended  # type: ignore[method-assign, assignment]  # in a child of its own

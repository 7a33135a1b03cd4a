"""Observers of each kind behind one port, and how often they look."""

import io
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from xce.adapters.observers.flexnet.mapping import observations
from xce.adapters.observers.flexnet.parser import parse_file
from xce.adapters.observers.flexnet.report import Report
from xce.adapters.observers.run import run
from xce.domain.errors import InputError, PermanentError, TransientError
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.observers import (
    CommandObserver,
    FlexNetObserver,
    ObserverConfig,
    RecordedObserver,
)
from xce.domain.ports import Clock, Observer

#: Runs a tool; what ``run`` does.
Run = Callable[..., tuple[bytes, int]]
_FIELDS: Final = {
    "in_use": "in_use", "inUse": "in_use", "issued": "issued", "queued": "queued",
    "reserved": "reserved", "lingering": "lingering", "matched": "matched",
}  # fmt: skip


class FlexNet:
    """Looks at FlexNet servers with ``lmutil lmstat -a``."""

    def __init__(self, config: FlexNetObserver, clock: Clock, runner: Run = run) -> None:
        self.config = config
        self._clock = clock
        self._run = runner

    def look(self, sequence: int) -> tuple[Observation, ...]:
        """Ask every server once; one that does not answer leaves lower bounds."""
        began = self._clock.now()
        reports = [self._report(server) for server in self.config.servers]
        return observations(
            reports,
            self.config.features,
            source=self.config.name,
            sequence=sequence,
            observed_at=began,
            received_at=self._clock.now(),
        )

    def _report(self, server: str) -> Report | None:
        arguments = (self.config.lmutil, "lmstat", "-a", "-c", server)
        try:
            text, _ = self._run(arguments, self.config.time_limit.total_seconds())
        except TransientError:
            return None
        # The tool has ended by itself, so that a last whole line is the end of its text.
        return parse_file(io.BytesIO(text + b"\n" if text.endswith(b"\n") else text))


class Command:
    """Looks by a command that prints ``{"resources": [{"name": ..., "in_use": 7, "issued": 20}]}``, or ``{"NAME": 7}``."""

    def __init__(self, config: CommandObserver, clock: Clock, runner: Run = run) -> None:
        self.config = config
        self._clock = clock
        self._run = runner

    def look(self, sequence: int) -> tuple[Observation, ...]:
        """Run the command once."""
        began = self._clock.now()
        note = ""
        said: dict[str, dict[str, Any]] = {}
        try:
            text, code = self._run(self.config.command, self.config.time_limit.total_seconds())
            if code:
                note = f"it ended with exit code {code}"
            else:
                said = read_numbers(text)
        except (TransientError, InputError) as error:
            note = str(error)
        received = self._clock.now()
        return tuple(
            self._observation(name, said.get(name), note, sequence, began, received)
            for name in self.config.resources
        )

    def _observation(
        self,
        name: str,
        said: dict[str, Any] | None,
        note: str,
        sequence: int,
        began: datetime,
        received: datetime,
    ) -> Observation:
        numbers = said or {}
        known = numbers.get("in_use") is not None
        return Observation(
            resource=name,
            source=self.config.name,
            sequence=sequence,
            quality=Quality.OK if known else Quality.UNREACHABLE,
            observed_at=began,
            received_at=received,
            note=(note or ("" if known else "it does not say what is in use"))[:500],
            **numbers,
        )


def read_numbers(text: bytes) -> dict[str, dict[str, Any]]:
    """Return what a command says of each resource, by our names of the numbers.

    Raises:
        InputError: it is not JSON of one of the two forms; a number is below 0, or none.
    """
    source = "the command's output"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.of(source, f"is not JSON: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        raise InputError.of(source, "is no JSON object")
    entries: Any = document.get("resources")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of others
    if not isinstance(entries, list):
        entries = [{"name": name, "in_use": number} for name, number in document.items()]  # pyright: ignore[reportUnknownVariableType]
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):  # pyright: ignore[reportUnknownMemberType]
            raise InputError.of(source, "an entry of resources has no name")
        values: dict[str, Any] = {
            ours: entry[theirs] for theirs, ours in _FIELDS.items() if theirs in entry
        }
        _require_counts(source, str(entry["name"]), values)  # pyright: ignore[reportUnknownArgumentType]
        found[str(entry["name"])] = values  # pyright: ignore[reportUnknownArgumentType]
    return found


def _require_counts(source: str, name: str, values: dict[str, Any]) -> None:
    numbers = [value for field, value in values.items() if field != "matched"]
    matched: Any = values.get("matched", {})
    if not isinstance(matched, dict):
        raise InputError.of(source, f"{name}: matched is no object")
    numbers += matched.values()  # pyright: ignore[reportUnknownMemberType]
    for number in numbers:
        whole = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**53
        if number is not None and not whole:
            raise InputError.of(source, f"{name}: {number!r:.80} is no count")


class Recorded:
    """Replays observations of a file, each once its time has come."""

    def __init__(self, config: RecordedObserver, clock: Clock, lines: Iterable[str]) -> None:
        self.config = config
        self._clock = clock
        self._waiting = [Observation.from_json(line, config.file) for line in lines if line.strip()]

    def look(self, sequence: int) -> tuple[Observation, ...]:
        """Return those that have become due since the last look."""
        now = self._clock.now()
        due = tuple(each for each in self._waiting if each.received_at <= now)
        self._waiting = [each for each in self._waiting if each.received_at > now]
        return due


def observer_of(config: ObserverConfig, folder: Path, clock: Clock, runner: Run = run) -> Observer:
    """Return the observer of a configuration; relative files start at ``folder``.

    Raises:
        PermanentError: a recorded file cannot be read.
        InputError: it holds something else.
    """
    match config:
        case FlexNetObserver():
            return FlexNet(config, clock, runner)
        case CommandObserver():
            return Command(config, clock, runner)
        case RecordedObserver():
            try:
                lines = (folder / config.file).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError) as error:
                raise PermanentError(f"{config.file} cannot be read: {error}") from None
            return Recorded(config, clock, lines)


#: Takes what one look gave: the controller's client, or a meter.
Sink = Callable[[tuple[Observation, ...]], None]


class Looker:
    """Looks with some observers, each not more often than its interval; told the monotonic time by who drives it."""

    def __init__(self, observers: Iterable[Observer], sink: Sink, *, first: int = 1) -> None:
        """Begin to count looks with ``first``: above all that an earlier life counted, such as milliseconds since 1970."""
        self._observers = list(observers)
        self._due_s: dict[int, float] = {}
        self._sequence = first - 1
        self._sink = sink

    def step(self, now_s: float) -> float:
        """Look with all that are due, and return when the next one is."""
        for number, observer in enumerate(self._observers):
            if now_s < self._due_s.get(number, 0.0):
                continue
            self._sequence += 1
            # The next look is counted from the beginning of this one: a look that hangs is not repeated at once either.
            self._due_s[number] = now_s + observer.config.interval.total_seconds()
            found = observer.look(self._sequence)
            if found:
                self._sink(found)
        return min(self._due_s.values(), default=float("inf"))

"""``xce sim repl``: stand in the middle of a simulation, look around, change something, and compare."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, Protocol, Self, TextIO

import typer
from rich.status import Status
from rich.table import Table as RichTable
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.sim_run import jobs_of
from xce.adapters.cli.visible import cell, visible
from xce.adapters.recordings import RecordingFile, read_lines
from xce.adapters.settings import load_config
from xce.adapters.settings.load import load_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.workloads import load_workload
from xce.domain.errors import InputError, Problem, XceError
from xce.domain.formats.scenario import Scenario, ScenarioWorkload
from xce.domain.ports import EventLog
from xce.replay.prompt.answers import Answer, Table
from xce.replay.prompt.completion import Candidate, candidates
from xce.replay.prompt.play import Site
from xce.replay.prompt.prompt import Prompt
from xce.replay.prompt.walk import Kept, KeptLog, KeptRecording
from xce.replay.prompt.walker import Walker
from xce.replay.recording import RecordingWriter

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

#: A longer line is no command.
LINE_MAX: Final = 64 * 1024
HISTORY: Final = "repl-history"
#: What takes longer shows that it goes on.
PATIENCE_S: Final = 0.5
_GZIP: Final = b"\x1f\x8b"
_SQLITE: Final = b"SQLite format 3\x00"
Show = Callable[[Answer], None]


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A scenario (YAML), or with --config a trace; a recording or a log, to walk through; none: begin with the command load.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="The cluster, providers and policy for a trace (YAML)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Overrides driver.seed of the file.")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="SCRIPT",
            help="Carry out the commands in this file, one a line; the first that is wrong ends it with 2.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Answer each command with one line of JSON, for programs."),
    ] = False,
) -> None:
    """Simulate step by step: look around, change prices, limits and providers, fork, and compare what comes of it.

    A recording or a log is walked through, session by session or position by position, forwards and back.
    Commands come from the terminal, from --file, or from standard input where that is no terminal. Type help there.
    """
    if config is not None and file is None:
        raise InputError.of("--config", "is for a trace; wanted: xce sim repl TRACE --config FILE")
    with Edge(seed) as edge:
        prompt: Answers
        kept = None if file is None or config is not None else edge.kept(file)
        if kept is not None:
            if seed is not None:
                raise InputError.of(
                    "--seed", "is for a simulation; this is something that was kept of one"
                )
            prompt = Walker(kept, edge.is_interrupted)
        else:
            prompt = Prompt(edge)
        if file is not None and isinstance(prompt, Prompt):
            prompt.begin(edge.load((str(file), *(() if config is None else (str(config),)))))
        show = _show_json if as_json else _show
        if script is not None:
            _run_script(prompt, _lines_of(script), str(script), show)
        elif sys.stdin is None or not sys.stdin.isatty():
            _run_script(prompt, _standard_input(), "<stdin>", show)
        else:
            _talk(prompt, edge, show)


class Answers(Protocol):
    """Something that answers commands: a simulation, or a walk through what was kept of one."""

    @property
    def is_loaded(self) -> bool:
        """Whether there is something to answer about."""
        ...

    @property
    def current(self) -> str:
        """Where one stands, in a few words."""
        ...

    @property
    def now(self) -> datetime | None:
        """The time there."""
        ...

    def carry_out(self, line: str) -> Answer | None:
        """Carry out a line; None: it has no command."""
        ...


class Edge:
    """The files and the keyboard around a prompt; see ``Outside``."""

    def __init__(
        self, seed: int | None, *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._seed = seed
        self._monotonic_s = monotonic_s
        self._logs = ExitStack()
        self._interrupted = False
        self._moments = 0
        #: When the present command began; None: nobody waits at a keyboard.
        self._begun: float | None = None
        self._status: Status | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close all logs."""
        self._logs.close()

    def load(self, words: tuple[str, ...]) -> Site:
        """See ``Outside.load``."""
        match words:
            case (scenario,):
                path = Path(scenario)
                _require_scenario(path)
                found = load_scenario(path)
                return Site(found, jobs_of(found, path, self._seed), self._seed)
            case (trace, config):
                return _trace(Path(trace), Path(config), self._seed)
            case _:
                raise InputError.of("load", "wanted: load SCENARIO | TRACE CONFIG")

    def kept(self, path: Path) -> Kept | None:
        """Return what is in a file that was kept of something: a recording or a log; None: it is none of these."""
        try:
            with path.open("rb") as file:
                start = file.read(16)
        except (OSError, ValueError):
            return None  # reading it will say
        if start == _SQLITE:
            log = self._logs.enter_context(open_log(path, read_only=True))
            return KeptLog(path.name, log.read)
        if start.startswith((_GZIP, b'{"kind"')) and _is_recording(path):
            return KeptRecording(path.name, partial(read_lines, path))
        return None

    def new_log(self) -> EventLog:
        """See ``Outside.new_log``."""
        return self._logs.enter_context(open_log(MEMORY))

    @contextmanager
    def new_recording(self, path: str, site: Site) -> Generator[RecordingWriter]:
        """See ``Outside.new_recording``; one that comes to nothing leaves no file."""
        document = site.scenario.config(site.seed).model_dump(mode="json")
        start = site.scenario.start
        recording = RecordingFile(Path(path), by="xce sim repl", at=start, config=document)
        try:
            with recording as file:
                yield file.writer
        except BaseException:
            recording.path.unlink(missing_ok=True)
            raise

    def is_interrupted(self) -> bool:
        """See ``Outside.is_interrupted``; what takes long shows that it goes on."""
        self._moments += 1
        if self._begun is not None and self._monotonic_s() - self._begun > PATIENCE_S:
            said = f"{self._moments:,} moments; Ctrl-C stops"
            if self._status is None:
                self._status = terminal.err.status(said)
                self._status.start()
            else:
                self._status.update(said)
        return self._interrupted

    @contextmanager
    def listening(self) -> Generator[None]:
        """Take an interrupt from the keyboard as the wish to stop after the present moment."""

        def noted(number: int, frame: FrameType | None) -> None:
            self._interrupted = True

        before = signal.signal(signal.SIGINT, noted)
        self._interrupted, self._moments, self._begun = False, 0, self._monotonic_s()
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self._begun = None
            if self._status is not None:
                self._status.stop()
                self._status = None


def _require_scenario(path: Path) -> None:
    """Say of what is taken for a scenario, and is something else of ours, what it is."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except (OSError, ValueError):
        return  # reading it will say
    if start.startswith(_SQLITE):
        raise InputError.of(str(path), f"is a log; to walk through it: xce sim repl {path.name}")
    if start.startswith((_GZIP, b"{", b";")):
        raise InputError.of(
            str(path), "is no scenario; its jobs are run with a configuration too: --config FILE"
        )


def _is_recording(path: Path) -> bool:
    try:
        first = next(iter(read_lines(path)), "")
        return isinstance(document := json.loads(first), dict) and "kind" in document
    except (InputError, ValueError, RecursionError):
        return False


def _trace(trace: Path, config: Path, seed: int | None) -> Site:
    """Return a trace under a configuration as a site."""
    settings = load_config(config)
    driver = settings.driver
    workload = load_workload(
        trace,
        settings.workload,
        seed=driver.seed if seed is None else seed,
        time_zero=driver.time_zero,
    )
    if not workload.jobs:
        raise InputError.of(str(trace), "has no jobs to run")
    scenario = Scenario(
        name=trace.name,
        start=workload.start,
        cluster=settings.cluster,
        providers=settings.providers,
        workload=ScenarioWorkload(file=trace.name, rules=settings.workload),
        session=settings.session,
        policy=settings.policy,
        lifecycle=settings.lifecycle,
        driver=driver,
    )
    return Site(scenario, workload, seed)


# ----------------------------------------------------------------------- scripts
def _lines_of(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from _commands(file, str(path))
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        why = getattr(error, "strerror", None) or error
        raise InputError.of(repr(str(path))[1:-1], f"cannot be read: {why}") from None


def _standard_input() -> Iterator[str]:
    if sys.stdin is None:  # closed by the caller: `<&-`
        raise InputError.of("<stdin>", "is closed; wanted commands")
    yield from _commands(sys.stdin, "<stdin>")


def _commands(file: TextIO, source: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(LINE_MAX + 1)
        except UnicodeDecodeError:
            raise InputError.of(source, "is not UTF-8 text", line=number) from None
        if not line:
            return
        if len(line) > LINE_MAX:
            raise InputError.of(source, f"is longer than {LINE_MAX:,} characters", line=number)
        yield line


def _run_script(prompt: Answers, lines: Iterable[str], source: str, show: Show) -> None:
    """Carry out all lines, each with its answer; the first that is wrong ends it."""
    for number, line in enumerate(lines, start=1):
        try:
            answer = prompt.carry_out(line)
        except InputError as error:
            _echo(line, show)
            raise InputError(source, [Problem(one, line=number) for one in error.lines()]) from None
        if answer is None:
            continue
        _echo(line, show)
        show(answer)
        if answer.over:
            return


def _echo(line: str, show: Show) -> None:
    """Print a command before its answer, so that the whole can be read; programs have it in the answer."""
    if show is _show:
        _say(f"> {line.strip()}")


# ---------------------------------------------------------------------- a terminal
def _talk(prompt: Answers, edge: Edge, show: Show) -> None:
    """Ask for commands until the end."""
    session = _session(prompt)
    if not prompt.is_loaded:
        terminal.err.print("nothing is loaded yet; try: load SCENARIO, or help")
    while True:
        try:
            line = session.prompt(_message(prompt))
        except KeyboardInterrupt:
            continue  # what was typed is given up
        except EOFError:
            return
        try:
            with edge.listening():
                answer = prompt.carry_out(line)
        except XceError as error:
            for one in str(error).splitlines():
                terminal.err.print(Text(visible(one), "red"), soft_wrap=True)
            continue
        if answer is not None:
            show(answer)
            if answer.over:
                return


def _message(prompt: Answers) -> str:
    if prompt.now is None:
        return f"{visible(prompt.current)}> " if isinstance(prompt, Walker) else "> "
    return f"{visible(prompt.current)} {prompt.now:%Y-%m-%d %H:%M:%S}> "


def _session(prompt: Answers) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    place = _history()
    return PromptSession(
        history=InMemoryHistory() if place is None else FileHistory(str(place)),
        completer=_completer(prompt),
        complete_while_typing=False,
        enable_history_search=True,
    )


def _history() -> Path | None:
    """Return where typed lines are kept, readable for this user alone; None: there is no place for them."""
    home = os.environ.get("HOME")
    base = os.environ.get("XDG_STATE_HOME") or (f"{home}/.local/state" if home else None)
    if base is None:
        return None
    place = Path(base) / "xce" / HISTORY
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.touch(mode=0o600)
        with place.open("ab"):
            pass
    except OSError as error:
        why = error.strerror or error
        terminal.err.print(f"no history is kept: {place}: {why}", soft_wrap=True)
        return None
    return place


def _completer(prompt: Answers) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion

    class OfPrompt(Completer):
        def get_completions(
            self, document: "Document", complete_event: "CompleteEvent"
        ) -> Iterable["Completion"]:
            text = document.text_before_cursor
            found: Iterable[Candidate] = ()
            if isinstance(prompt, Walker):
                found = prompt.candidates(text)
            elif isinstance(prompt, Prompt):
                found = candidates(prompt, text)
            for one in found:
                yield Completion(one.text, start_position=-one.typed, display_meta=one.about)

    return OfPrompt()


# ------------------------------------------------------------------------ answers
def _show(answer: Answer) -> None:
    for part in answer.parts:
        if isinstance(part, Table):
            terminal.print_table(_table(part))
        else:
            _say(part)


def _show_json(answer: Answer) -> None:
    terminal.write_json(json.dumps(dict(answer.document), ensure_ascii=False))


def _table(table: Table) -> RichTable:
    shown = RichTable(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(table.headings):
        shown.add_column(cell(heading), justify="right" if at in table.numbers else "left")
    for row in table.rows:
        shown.add_row(*(cell(value) for value in row))
    return shown


def _say(line: str) -> None:
    terminal.out.print(Text(visible(line)), soft_wrap=True, highlight=False)

"""The prompt: branches of a run by name, and the commands that move, show and change them.

A branch that is not stood on may be its journal alone; it is made again where somebody goes on in it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from xce.domain.errors import InputError
from xce.domain.ports import EventLog
from xce.replay.prompt import difference
from xce.replay.prompt.answers import Answer, Document, clock, counted, stamp, table
from xce.replay.prompt.explain import trace, why
from xce.replay.prompt.help import CommandHelp, Manual
from xce.replay.prompt.info import TOPICS, info
from xce.replay.prompt.names import Names
from xce.replay.prompt.orders import act_of, setting_of
from xce.replay.prompt.play import Journal, Play, Site
from xce.replay.prompt.telling import done, moved, parted
from xce.replay.prompt.until import At, Until, When, read_length, read_until, words_of
from xce.replay.prompt.words import known, split, whole
from xce.replay.recording import RecordingWriter

MAIN: Final = "main"
OVER: Final = "nothing more happens by itself"
INTERRUPTED: Final = "interrupted"


class Outside(Protocol):
    """What the prompt needs of the world of files and keyboards."""

    def load(self, words: tuple[str, ...]) -> Site:
        """Read a scenario, or a trace and its configuration.

        Raises:
            InputError: it cannot be read, or is wrong.
        """
        ...

    def new_log(self) -> EventLog:
        """Return a new log, which need not be kept."""
        ...

    def new_recording(self, path: str, site: Site) -> AbstractContextManager[RecordingWriter]:
        """Begin a recording in a new file.

        Raises:
            InputError: the file exists, or cannot be made.
        """
        ...

    def is_interrupted(self) -> bool:
        """Return whether somebody wants what goes on to stop; it is looked at after each moment."""
        ...


@dataclass(slots=True)
class Branch:
    """One course of events.

    Attributes:
        play: None: it stands at the end of its journal, and is made when it is wanted.
        of: where it was forked; None: the first one.
    """

    journal: Journal
    play: Play | None
    of: str | None = None

    @property
    def now_journal(self) -> Journal:
        """What was done to it so far."""
        return self.journal if self.play is None else self.play.journal


COMMANDS: Final[Mapping[str, CommandHelp]] = {
    "load": CommandHelp("load SCENARIO | TRACE CONFIG", "begin with another file; all branches go", "load evening.yaml"),
    "step": CommandHelp("step [N]", "let the next moment happen, or the next N", "step 5"),
    "run": CommandHelp("run [LENGTH | until ...]", "go on: to the end, for a time, or until a time, a session, start or end of a job, an event, a measure", "run until waiting >= 3"),
    "info": CommandHelp("info [TOPIC]", "show what there is", "info demand"),
    "why": CommandHelp("why JOB", "why a job waits, what was asked for it, and when it may start", "why j1"),
    "trace": CommandHelp("trace JOB", "what the newest session tried for a job", "trace j1"),
    "set": CommandHelp("set WHAT ...", "change a price, a limit, an owned total, the policy, how a provider behaves", "set policy minimum_hold 10min"),
    "do": CommandHelp("do ACT [KEY=VALUE ...]", "do anything that a scenario's timeline can", "do cut-off provider=cloud lasts=10min"),
    "fork": CommandHelp("fork NAME", "begin another course of events here, and go on in it", "fork cheaper"),
    "switch": CommandHelp("switch NAME", "go on in another course of events", "switch main"),
    "branches": CommandHelp("branches", "show all courses of events", "branches"),
    "diff": CommandHelp("diff A [B]", "the first session or decision that differs, and what both amount to; B: where you stand", "diff main"),
    "record": CommandHelp("record FILE", "write what has happened here so far as a recording, for xce replay verify", "record cheaper.rec.gz"),
    "help": CommandHelp("help [COMMAND]", "show this", "help run"),
    "quit": CommandHelp("quit", "end", "quit"),
}  # fmt: skip
_MANUAL: Final = Manual(COMMANDS, TOPICS)


class Prompt:
    """Carries out one command after the other."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._branches: dict[str, Branch] = {}
        self._site: Site | None = None
        self.current = MAIN
        self._handlers: dict[str, Callable[[list[str]], Answer]] = {
            "load": self._load,
            "step": self._step,
            "run": self._run,
            "info": self._info,
            "why": self._why,
            "trace": self._trace,
            "set": self._set,
            "do": self._do,
            "fork": self._fork,
            "switch": self._switch,
            "branches": self._list,
            "diff": self._diff,
            "record": self._record,
            "help": _MANUAL.help,
            "quit": _MANUAL.quit,
        }
        assert self._handlers.keys() == COMMANDS.keys(), "each command has its help"

    # -------------------------------------------------------------------- state
    @property
    def is_loaded(self) -> bool:
        """Whether there is a run."""
        return self._site is not None

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the courses of events."""
        return tuple(self._branches)

    @property
    def now(self) -> datetime | None:
        """The time where one stands; None: nothing is loaded."""
        return self.play("").now if self.is_loaded else None

    def names(self) -> Names | None:
        """Return the names of the run where it stands; None: nothing is loaded."""
        return Names.of(self.play("")) if self.is_loaded else None

    def begin(self, site: Site) -> None:
        """Begin with a site."""
        self._site = site
        self.current = MAIN
        self._branches = {MAIN: Branch((), Play(site, self._outside.new_log()))}

    def play(self, command: str) -> Play:
        """Return the run where one stands.

        Raises:
            InputError: nothing is loaded.
        """
        if self._site is None:
            raise InputError.of(command, "nothing is loaded; try: load SCENARIO")
        branch = self._branches[self.current]
        if branch.play is None:
            branch.play = self._made(command, branch.journal)
        return branch.play

    def _made(self, command: str, journal: Journal, record: RecordingWriter | None = None) -> Play:
        """Return a run again.

        Raises:
            InputError: it was interrupted.
        """
        assert self._site is not None, "looked at before"
        play = Play(self._site, self._outside.new_log(), record=record)
        play.follow(journal, lambda: self._go_on(command))
        return play

    def _go_on(self, command: str) -> None:
        if self._outside.is_interrupted():
            raise InputError.of(command, "interrupted; everything is as it was before")

    # ------------------------------------------------------------------ commands
    def carry_out(self, line: str) -> Answer | None:
        """Carry out one line; None: it has no command.

        Raises:
            InputError: there is no such command, or it is used wrongly; nothing was done.
        """
        words = split(line)
        if not words:
            return None
        name = known(words[0], "command", words[0], COMMANDS)
        answer = self._handlers[name](words[1:])
        document = {"command": line.strip(), "branch": self.current, "now": stamp(self.now), **answer.document}  # fmt: skip
        return Answer(document, answer.parts, over=answer.over)

    def _load(self, words: list[str]) -> Answer:
        if not words:
            raise _MANUAL.misused("load")
        site = self._outside.load(tuple(words))
        self.begin(site)
        return info(None, self.play("load"))

    def _step(self, words: list[str]) -> Answer:
        if len(words) > 1:
            raise _MANUAL.misused("step")
        count = whole("step", words[0]) if words else 1
        play = self.play("step")
        mark, before = play.runner.mark(), play.now
        steps, stopped = 0, None
        while steps < count and stopped is None:
            if not play.step():
                stopped = OVER
                break
            steps += 1
            if self._outside.is_interrupted():
                stopped = INTERRUPTED
        return moved(play, mark, before, steps, stopped, everything=True)

    def _run(self, words: list[str]) -> Answer:
        play = self.play("run")
        names = Names.of(play)
        until: Until | None
        match words:
            case []:
                until = None
            case ["until", *rest]:
                until = read_until(rest, play, names)
            case [length]:
                until = At(play.now + read_length("run", length))
            case _:
                raise _MANUAL.misused("run")
        mark, before = play.runner.mark(), play.now
        steps, stopped = self._go(play, until)
        return moved(play, mark, before, steps, stopped, everything=False)

    def _go(self, play: Play, until: Until | None) -> tuple[int, str]:
        """Go on until then; return the number of moments, and why it stopped."""
        steps = 0
        if isinstance(until, When) and until.holds():
            return 0, f"holds already: {until.words}"
        while True:
            if isinstance(until, At) and _is_behind(play, until.time):
                end = play.site.scenario.end
                play.wait(until.time if end is None else min(until.time, end))
                return steps, words_of(until, play.site.scenario.start)
            if not play.step():
                return steps, OVER
            steps += 1
            if isinstance(until, When) and until.holds():
                return steps, until.words
            if self._outside.is_interrupted():
                return steps, INTERRUPTED

    # ------------------------------------------------------------------- looking
    def _info(self, words: list[str]) -> Answer:
        if len(words) > 1:
            raise _MANUAL.misused("info")
        return info(words[0] if words else None, self.play("info"))

    def _job(self, command: str, words: list[str]) -> tuple[str, Play]:
        if len(words) != 1:
            raise _MANUAL.misused(command)
        play = self.play(command)
        return known(command, "job", words[0], Names.of(play).jobs), play

    def _why(self, words: list[str]) -> Answer:
        return why(*self._job("why", words))

    def _trace(self, words: list[str]) -> Answer:
        return trace(*self._job("trace", words))

    # ------------------------------------------------------------------ changing
    def _set(self, words: list[str]) -> Answer:
        play = self.play("set")
        return done("set", play.act(setting_of(words, play, Names.of(play))))

    def _do(self, words: list[str]) -> Answer:
        play = self.play("do")
        return done("do", play.act(act_of(words, play, Names.of(play))))

    # ------------------------------------------------------------------ branches
    def _fork(self, words: list[str]) -> Answer:
        if len(words) != 1:
            raise _MANUAL.misused("fork")
        (name,) = words
        play = self.play("fork")
        if name in self._branches:
            raise InputError.of("fork", f"{name!r} is there already; wanted another name")
        here, at = self._branches[self.current], f"{self.current} at {clock(play.now)}"
        # What goes on is the new one; the other one is made again where it is wanted.
        here.journal, here.play = play.journal, None
        self._branches[name] = Branch(play.journal, play, at)
        self.current = name
        return Answer({"forked": at}, (f"{name} begins here: {at}",))

    def _switch(self, words: list[str]) -> Answer:
        if len(words) != 1:
            raise _MANUAL.misused("switch")
        self.play("switch")
        before, self.current = self.current, known("switch", "branch", words[0], self._branches)
        try:
            play = self.play("switch")
        except InputError:
            self.current = before
            raise
        return Answer({}, (f"{self.current}: {clock(play.now)} UTC",))

    def _list(self, words: list[str]) -> Answer:
        if words:
            raise _MANUAL.misused("branches")
        self.play("branches")
        rows: list[Document] = [
            {
                "name": name,
                "current": name == self.current,
                "forked_from": branch.of,
                "moves": len(branch.now_journal),
            }
            for name, branch in self._branches.items()
        ]
        shown = table(
            "BRANCH HERE FORKED-FROM",
            ((row["name"], "*" if row["current"] else "", row["forked_from"]) for row in rows),
        )
        return Answer({"branches": rows}, (shown,))

    def _diff(self, words: list[str]) -> Answer:
        if not 1 <= len(words) <= 2:
            raise _MANUAL.misused("diff")
        self.play("diff")
        left, right = (
            known("diff", "branch", name, self._branches) for name in (*words, self.current)[:2]
        )
        if left == right:
            raise InputError.of("diff", f"{left!r} is the same twice; wanted two branches")
        one, other = (Play(self._of("diff"), self._outside.new_log()) for _ in range(2))
        found = difference.parting(
            one, self._branches[left].now_journal, other, self._branches[right].now_journal,
            lambda: self._go_on("diff"),
        )  # fmt: skip
        return parted(left, one, right, other, found)

    def _of(self, command: str) -> Site:
        self.play(command)
        assert self._site is not None, "looked at before"
        return self._site

    def _record(self, words: list[str]) -> Answer:
        if len(words) != 1:
            raise _MANUAL.misused("record")
        play = self.play("record")
        with self._outside.new_recording(words[0], self._of("record")) as writer:
            again = self._made("record", play.journal, writer)
            again.finish_recording()
            counts = writer.counts
        said = f"{words[0]}: {counted(counts.sessions, 'session')}, {counted(counts.events, 'event')}, {counted(counts.answers, 'answer')} of providers"
        return Answer({"file": words[0], **counts.document()}, (said,))


def _is_behind(play: Play, time: datetime) -> bool:
    """Return whether the next moment is after a time, or there is none before it."""
    following = play.world.next_time
    return play.is_over or following is None or following > time

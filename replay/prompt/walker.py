"""The prompt over something that was kept: the sessions of a recording or the events of a log, forwards and backwards, and two of them compared."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from xce.domain.errors import InputError
from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.formats.policy import DecisionKind
from xce.replay.prompt import apart
from xce.replay.prompt.answers import Answer, Document, Table, clock, counted, stamp, table, text
from xce.replay.prompt.completion import CANDIDATES_MAX, Candidate
from xce.replay.prompt.explain import trace, why
from xce.replay.prompt.help import CommandHelp, Manual
from xce.replay.prompt.info import EVERYWHERE, ROWS_MAX, rows_of
from xce.replay.prompt.telling import LINES_MAX, WIDTH, cut
from xce.replay.prompt.trail import Trail
from xce.replay.prompt.until import SIGNS, bound_of, parts_of, read_length, read_moment, topics
from xce.replay.prompt.walk import Kept, Moment, Place, Walk
from xce.replay.prompt.words import assignments, known, split, whole
from xce.replay.scenario.run import event_words

OVER: Final = "it ends here"
INTERRUPTED: Final = "interrupted"
_UNTIL: Final = "run until"


COMMANDS: Final[Mapping[str, CommandHelp]] = {
    "step": CommandHelp("step [N]", "go on to the next moment, or by N: a session of a recording, what was written at one time of a log", "step 5"),
    "back": CommandHelp("back [N]", "go back by one moment, or by N", "back"),
    "goto": CommandHelp("goto N", "go to session N of a recording, to position N of a log", "goto 12"),
    "run": CommandHelp("run [LENGTH | until ...]", "go on: to the end, for a time, or until a time, session, start JOB, an event, a measure", "run until start 101"),
    "info": CommandHelp("info [TOPIC]", "show what there is", "info demand"),
    "why": CommandHelp("why JOB", "why a job waits, what was asked for it, and when it may start", "why 101"),
    "trace": CommandHelp("trace JOB", "what the session tried for a job", "trace 101"),
    "diff": CommandHelp("diff A [B]", "what is not the same in two sessions, or at two positions of a log; B: where you stand", "diff 3 7"),
    "help": CommandHelp("help [COMMAND]", "show this", "help run"),
    "quit": CommandHelp("quit", "end", "quit"),
}  # fmt: skip


class Walker:
    """Carries out one command after the other."""

    def __init__(self, kept: Kept, is_interrupted: Callable[[], bool]) -> None:
        """Stand before the first moment; ``is_interrupted`` is asked after each."""
        self._kept = kept
        self._walk = Walk(kept)
        self._trail = Trail(kept)
        self._is_interrupted = is_interrupted
        self._handlers: dict[str, Callable[[list[str]], Answer]] = {
            "step": self._step,
            "back": self._back,
            "goto": self._goto,
            "run": self._run,
            "info": self._info,
            "why": self._why,
            "trace": self._trace,
            "diff": self._diff,
            "help": _MANUAL.help,
            "quit": _MANUAL.quit,
        }
        assert self._handlers.keys() == COMMANDS.keys(), "each command has its help"

    # -------------------------------------------------------------------- state
    @property
    def is_loaded(self) -> bool:
        """Whether there is something to go through."""
        return True

    @property
    def current(self) -> str:
        """Where one stands, for the prompt."""
        return self._place(self._walk)

    @property
    def now(self) -> datetime | None:
        """The time where one stands; None: before the first moment."""
        return self._walk.now if self._walk.steps else None

    def candidates(self, line: str) -> tuple[Candidate, ...]:
        """Return what the last word of a line can be."""
        try:
            words = split(line)
        except InputError:
            return ()
        typed = "" if not line or line[-1].isspace() else words.pop() if words else ""
        found: list[tuple[str, str]] = []
        match words:
            case []:
                found = [(name, one.about) for name, one in COMMANDS.items()]
            case ["help"]:
                found = [(name, "") for name in COMMANDS]
            case ["info"]:
                found = [(name, "") for name in _TOPICS]
            case ["why" | "trace"] | ["run", "until", "start"]:
                found = [(name, "") for name in self._jobs()]
            case ["run"]:
                found = [("until", "a time, an event or a measure")]
            case ["run", "until"]:
                found = [(name, "") for name in ("session", "start", *self._measures(), *topics())]
            case _:
                pass
        fitting = [one for one in found if one[0].startswith(typed)]
        return tuple(Candidate(name, len(typed), about) for name, about in fitting[:CANDIDATES_MAX])

    # ------------------------------------------------------------------ commands
    def carry_out(self, line: str) -> Answer | None:
        """Carry out one line; None: it has no command.

        Raises:
            InputError: there is no such command, or it is used wrongly.
        """
        words = split(line)
        if not words:
            return None
        name = known(words[0], "command", words[0], COMMANDS)
        answer = self._handlers[name](words[1:])
        document = {"command": line.strip(), "at": self._stand(self._walk), "now": stamp(self.now), **answer.document}  # fmt: skip
        return Answer(document, answer.parts, over=answer.over)

    def _step(self, words: list[str]) -> Answer:
        count = self._one("step", words)
        return self._moved(lambda walk, steps: steps >= count, f"{counted(count, 'moment')}")

    def _back(self, words: list[str]) -> Answer:
        target = self._walk.steps - self._one("back", words)
        if target < 0:
            raise InputError.of("back", f"there are {self._walk.steps} moments before this one")
        walk = self._trail.walk(self._walk, lambda place: place.steps <= target)
        while walk.steps < target:
            self._advance("back", walk)
        return self._arrive(walk)

    def _goto(self, words: list[str]) -> Answer:
        if len(words) != 1:
            raise _MANUAL.misused("goto")
        return self._arrive(self._at("goto", words[0]))

    def _run(self, words: list[str]) -> Answer:
        match words:
            case []:
                return self._moved(lambda walk, steps: False, "")
            case ["until", *rest]:
                return self._moved(*self._until(rest))
            case [length]:
                end = self._walk.now + read_length("run", length)
                return self._moved(lambda walk, steps: walk.now >= end, clock(end))
            case _:
                raise _MANUAL.misused("run")

    # -------------------------------------------------------------------- looking
    def _info(self, words: list[str]) -> Answer:
        if len(words) > 1:
            raise _MANUAL.misused("info")
        if not words:
            return self._overview()
        topic = known("info", "topic", words[0], _TOPICS)
        if topic in _OF_SESSIONS and self._walk.seen.snapshot is None:
            raise self._no_session(f"info {topic}")
        if topic in _OF_BOOKS and self._walk.no_books is not None:
            raise InputError.of(f"info {topic}", f"is not known: {self._walk.no_books}")
        return _TOPICS[topic](self._walk)

    def _overview(self) -> Answer:
        walk = self._walk
        found = apart.figures(walk)
        counts = {"moments": walk.steps, "sessions": walk.seen.sessions, "events": len(walk.events)}
        document = {"name": self._kept.name, "counts": counts, "figures": found}
        said = f"{counted(walk.seen.sessions, 'session')}, " if self._kept.has_sessions else ""
        head = f"{self._kept.name}: {self.current}, {said}{counted(len(walk.events), 'event')}"
        lines = () if walk.no_books is None else (f"no books: {walk.no_books}",)
        return Answer(document, (head, *lines, table("MEASURE VALUE", found.items(), (1,))))

    def _why(self, words: list[str]) -> Answer:
        return why(self._job("why", words), self._walk)

    def _trace(self, words: list[str]) -> Answer:
        job = self._job("trace", words)
        if self._walk.seen.snapshot is None:
            raise self._no_session("trace")
        return trace(job, self._walk)

    def _job(self, command: str, words: list[str]) -> str:
        if len(words) != 1:
            raise _MANUAL.misused(command)
        return known(command, "job", words[0], self._jobs())

    def _jobs(self) -> tuple[str, ...]:
        walk = self._walk
        asked = (job for one in walk.history.requests.values() for job in one.jobs)
        names = (*(one.id for one in walk.pending), *(one.id for one in walk.running), *asked)
        return tuple(dict.fromkeys(names))

    # ------------------------------------------------------------------ comparing
    def _diff(self, words: list[str]) -> Answer:
        if not 1 <= len(words) <= 2:
            raise _MANUAL.misused("diff")
        one = self._at("diff", words[0])
        other = self._at("diff", words[1]) if len(words) == 2 else self._walk
        left, right = apart.state_of(one), apart.state_of(other)
        ends = self._place(one), self._place(other)
        rows = [("time", text(one.now), text(other.now))]
        rows += [(name, value, right.figures.get(name, "")) for name, value in left.figures.items()]
        found = [*apart.differing(left, right)]
        document: Document = {
            "left": {**self._stand(one), "now": stamp(one.now), "figures": left.figures},
            "right": {**self._stand(other), "now": stamp(other.now), "figures": right.figures},
            "differences": [{"what": w, "left": a, "right": b} for w, a, b in found],
        }
        parts: list[str | Table] = [table(("MEASURE", *ends), rows, (1, 2))]
        shown = table(("WHAT", *ends), found[:ROWS_MAX])
        parts.append(shown if found else "nothing else differs")
        if len(found) > ROWS_MAX:
            parts.append(f"and {len(found) - ROWS_MAX} more")
        return Answer(document, tuple(parts))

    def _at(self, command: str, word: str) -> Walk:
        """Return a walk that stands at a session or position.

        Raises:
            InputError: there is none, or it was interrupted.
        """
        wanted = whole(command, word)
        walk = self._trail.walk(self._walk, lambda place: self._number(place) < wanted)
        while self._number(walk) < wanted:
            self._advance(command, walk)
            if walk.is_over:
                there = f"{self._unit} {self._number(walk)}"
                raise InputError.of(command, f"there is no {self._unit} {wanted}; the last is {there}")  # fmt: skip
        return walk

    def _advance(self, command: str, walk: Walk) -> None:
        walk.step()
        self._trail.note(walk)
        if self._is_interrupted():
            raise InputError.of(command, "interrupted; you stand where you stood")

    # --------------------------------------------------------------------- moving
    def _moved(self, holds: Callable[[Walk, int], bool], words: str) -> Answer:
        """Go on until something holds after a moment; return what happened last."""
        walk, before, steps = self._walk, len(self._walk.events), 0
        stopped = OVER
        while walk.step():
            steps += 1
            self._trail.note(walk)
            if holds(walk, steps):
                stopped = words
                break
            if self._is_interrupted():
                stopped = INTERRUPTED
                break
        events = len(walk.events) - before
        head = f"{counted(steps, 'moment')}, {counted(events, 'event')}; {stopped}"
        document: Document = {"moments": steps, "events": events, "stopped": stopped}
        return self._told(head, document, nothing=not steps)

    def _arrive(self, walk: Walk) -> Answer:
        self._walk = walk
        return self._told("", {})

    def _told(self, head: str, document: Document, *, nothing: bool = False) -> Answer:
        walk = self._walk
        if not walk.steps:
            return Answer({**document, "happened": []}, (f"before the first moment {head}".rstrip(),))  # fmt: skip
        lines = [] if nothing else _lines(walk.moment)
        place = f"{self.current}, {clock(walk.now)}"
        last = f"{place}: {head}" if head else place
        shown = [cut(line, WIDTH) for line in lines[:LINES_MAX]]
        if len(lines) > LINES_MAX:
            shown.append(f"and {len(lines) - LINES_MAX} more")
        return Answer({**document, "happened": lines}, (*shown, last))

    # ---------------------------------------------------------------------- until
    def _until(self, words: list[str]) -> tuple[Callable[[Walk, int], bool], str]:
        said = " ".join(words)
        match words:
            case ["session"] if self._kept.has_sessions:
                before = self._walk.seen.sessions
                return lambda walk, _: walk.seen.sessions > before, said
            case ["session"]:
                raise self._no_session(_UNTIL)
            case ["start", job] if self._kept.has_sessions:
                return lambda walk, _: job in walk.moment.starts, f"job {job} starts"
            case [word] if word[:1].isdigit():
                start = self._first_time()
                at = read_moment(word, start, self.now or start)
                return lambda walk, _: walk.now >= at, clock(at)
            case [topic, *where] if "." in topic:
                return self._event(topic, where), said
            case _:
                return self._measure(words), said

    def _first_time(self) -> datetime:
        walk = Walk(self._kept)
        walk.step()
        return walk.now

    def _event(self, word: str, where: list[str]) -> Callable[[Walk, int], bool]:
        topic = known(_UNTIL, "event", word.removeprefix("xce."), topics())
        fields = assignments(_UNTIL, where)

        def happened(walk: Walk, _: int) -> bool:
            return any(_fits(entry.event, topic, fields) for entry in walk.moment.events)

        return happened

    def _measures(self) -> tuple[str, ...]:
        return tuple(apart.measures(self._walk)) if self._walk.steps else ()

    def _measure(self, words: list[str]) -> Callable[[Walk, int], bool]:
        parts = list(parts_of(words))
        if not parts:
            raise InputError.of(_UNTIL, "wanted a time, session, start JOB, an event, or a measure with a bound")  # fmt: skip
        walk = self._walk if self._walk.steps else self._ahead()
        name = known(_UNTIL, "measure, time or event", parts[0], (*apart.measures(walk), "session", "start"))  # fmt: skip
        if len(parts) != 3 or parts[1] not in SIGNS:
            raise InputError.of(_UNTIL, f"wanted a bound after {name}, such as: {name} >= 1")
        sign, bound = SIGNS[parts[1]], bound_of(parts[2])

        def holds(walk: Walk, _: int) -> bool:
            value = apart.measures(walk).get(name)
            return value is not None and sign(value, bound)

        return holds

    def _ahead(self) -> Walk:
        walk = Walk(self._kept)
        walk.step()
        return walk

    # ---------------------------------------------------------------------- other
    @property
    def _unit(self) -> str:
        return "session" if self._kept.has_sessions else "position"

    def _number(self, at: Walk | Place) -> int:
        return at.seen.sessions if self._kept.has_sessions else at.position

    def _place(self, walk: Walk) -> str:
        return f"{self._unit} {self._number(walk)}" if walk.steps else "the beginning"

    def _stand(self, walk: Walk) -> Document:
        sessions = walk.seen.sessions if self._kept.has_sessions else None
        return {"moment": walk.steps, "session": sessions, "position": walk.position}

    def _no_session(self, command: str) -> InputError:
        if self._kept.has_sessions:
            return InputError.of(command, "there was no session yet; try: run until session")
        return InputError.of(command, "a log has no sessions, only what came of them; a recording has")  # fmt: skip

    @staticmethod
    def _one(command: str, words: list[str]) -> int:
        if len(words) > 1:
            raise _MANUAL.misused(command)
        return whole(command, words[0]) if words else 1


def _fits(event: DomainEvent, topic: str, where: Mapping[str, str]) -> bool:
    if type(event).TOPIC.removeprefix("xce.") != topic:
        return False
    fields = {**event.model_dump(mode="json"), "id": name_of(event.originator_id)}
    return all(str(fields.get(name)) == value for name, value in where.items())


# ------------------------------------------------------------------ what happened
def _lines(moment: Moment) -> list[str]:
    lines = [
        f"{one.event.timestamp:%H:%M:%S} {one.position:>5} {event_words(one.event)}"
        for one in moment.events
    ]
    if moment.session is not None:
        session = moment.session
        time = f"{session.snapshot.now:%H:%M:%S}     -"
        lines += [
            f"{time} session {session.number}: starts {one['job']} on {_on(one)}"
            for one in session.result["allocations"]
        ]
        waits = len(session.result["pending"])
        wanted = ", ".join(
            f"{one['count']} of {one['template']}" for one in session.result["demand"]["hosts"]
        )
        lines.append(
            f"{time} session {session.number}: {counted(waits, 'job')} left waiting, wants {wanted or 'nothing'}"
        )
    for entry in moment.rounds:
        time = f"{entry.inputs.now:%H:%M:%S}     -"
        deeds = [one for one in entry.decisions if one.kind is not DecisionKind.HOLD]
        lines += [f"{time} round {entry.number}: {one.kind}: {one.reason}" for one in deeds]
        if holds := len(entry.decisions) - len(deeds):
            lines.append(f"{time} round {entry.number}: {counted(holds, 'hold')}")
    return lines


def _on(allocation: Document) -> str:
    return " ".join(use["name"] for use in allocation["hosts"])


# -------------------------------------------------------------------------- topics
def _shared(walk: Walk) -> Answer:
    snapshot = walk.seen.snapshot
    rows: list[Document] = [] if snapshot is None else [one.model_dump(mode="json") for one in snapshot.shared]  # fmt: skip
    return rows_of("shared", rows, "SHARED TOTAL OWNED BORROWED ELSEWHERE", "name total owned borrowed used_elsewhere", (1, 2, 3, 4))  # fmt: skip


def _limits(walk: Walk) -> Answer:
    snapshot = walk.seen.snapshot
    rows: list[Document] = [] if snapshot is None else [one.model_dump(mode="json") for one in snapshot.limits]  # fmt: skip
    return rows_of("limits", rows, "LIMIT OF AMOUNT PER USERS QUEUES", "name resource amount per users queues", (2,))  # fmt: skip


def _session(walk: Walk) -> Answer:
    snapshot = walk.seen.snapshot
    document: Document = {} if snapshot is None else snapshot.settings.model_dump(mode="json")
    return Answer({"session": document}, (table("KEY VALUE", document.items()),))


_TOPICS: Final[Mapping[str, Callable[[Walk], Answer]]] = {
    **EVERYWHERE,
    "shared": _shared,
    "limits": _limits,
    "session": _session,
}
_OF_SESSIONS: Final = frozenset(("jobs", "hosts", "demand", "idle", "shared", "limits", "session"))
_OF_BOOKS: Final = frozenset(("requests", "instances", "grants", "leases", "costs", "decisions"))
_MANUAL: Final = Manual(COMMANDS, _TOPICS)

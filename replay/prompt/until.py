"""Until when a run goes on: a time, something that happens, or a measure that comes to a bound."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from xce.domain.errors import InputError
from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.events.stored import EVENTS
from xce.domain.formats.expectations import ExpectValue, Measure
from xce.domain.values import read_duration, write_duration
from xce.replay.prompt.answers import clock, number
from xce.replay.prompt.names import Names
from xce.replay.prompt.play import Play
from xce.replay.prompt.words import assignments, known

#: Said at the head of an error.
COMMAND: Final = "run until"
SIGNS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OF_JOBS: Final = frozenset((Measure.WAITING, Measure.RUNNING, Measure.ENDED, Measure.DEMAND))
OF_SHARED: Final = frozenset((Measure.TOTAL, Measure.BORROWED, Measure.OCCUPIED, Measure.FREE))
OF_ITEMS: Final = frozenset(Measure) - OF_JOBS - OF_SHARED - {Measure.LONGEST_WAIT, Measure.MEAN_WAIT, Measure.EVENTS}  # fmt: skip
#: What can be waited for by one word.
WORDS: Final = ("session", "start", "end")
_PREFIX: Final = "xce."
_TIME_OF_DAY: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
#: No measure has more digits before or after its point; a bound with more could not be written out.
_POWER_MAX: Final = 30
_DIGIT: Final = re.compile(r"\d", re.ASCII)
_GLUED: Final = re.compile(r"(==|!=|<=|>=|=|<|>)")


@dataclass(frozen=True, slots=True)
class At:
    """A time."""

    time: datetime


@dataclass(frozen=True, slots=True)
class When:
    """Something that is looked for after each moment.

    Attributes:
        words: what it is, in words.
        holds: whether it is so; it is asked first where the run stands, and then after each moment.
    """

    words: str
    holds: Callable[[], bool]


Until = At | When


def topics() -> tuple[str, ...]:
    """Return the names of all events, without what all begin with."""
    return tuple(sorted(one.TOPIC.removeprefix(_PREFIX) for one in EVENTS.event_classes()))


def read_until(words: list[str], play: Play, names: Names) -> Until:
    """Return what the words after ``until`` say.

    Raises:
        InputError: they say nothing that can be waited for.
    """
    if not words:
        raise InputError.of(
            COMMAND,
            "wanted a time, session, start JOB, end JOB, an event, or a measure with a bound",
        )
    first = words[0]
    if _DIGIT.match(first) and len(words) == 1:
        return At(read_moment(first, play.site.scenario.start, play.now))
    match words:
        case ["session"]:
            sessions = play.seen.sessions
            return When("a session", lambda: play.seen.sessions > sessions)
        case ["start" | "end", job]:
            return _job(first, known(COMMAND, "job", job, names.jobs), play)
        case ["start" | "end", *_]:
            raise InputError.of(COMMAND, f"{first} of which job? Wanted: {first} JOB")
        case _ if "." in first:
            return _event(words, play)
        case _:
            return _measure(words, play, names)


def read_length(command: str, word: str) -> timedelta:
    """Return a length of time.

    Raises:
        InputError: it is none.
    """
    try:
        return read_duration(int(word) if word.isascii() and word.isdigit() else word)
    except ValueError as error:
        raise InputError.of(command, str(error)) from None


# ------------------------------------------------------------------------- times
def read_moment(word: str, start: datetime, now: datetime) -> datetime:
    """Return a time: a length after the start, a time of day, which is the next such one, or RFC 3339.

    Raises:
        InputError: it is none.
    """
    if found := _TIME_OF_DAY.fullmatch(word):
        hour, minute, second = (int(part or 0) for part in found.groups())
        at = now.astimezone(UTC).replace(hour=hour, minute=minute, second=second)
        return at if at > now else at + timedelta(days=1)
    try:
        return start + read_duration(word)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(word)
    except ValueError:
        raise InputError.of(
            COMMAND,
            f"{word!r} is no time; wanted a length after the start such as 2h30min, a time of day such as 11:30,"
            " or such as 2026-03-01T11:30:00Z",
        ) from None
    if at.tzinfo is None:
        raise InputError.of(COMMAND, f"{word!r} says no time zone; wanted Z or +01:00 at its end")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise InputError.of(COMMAND, f"{word!r} is out of range in UTC") from None


# ------------------------------------------------------------------------ events
def _job(what: str, job: str, play: Play) -> When:
    counted = play.seen.starts if what == "start" else play.seen.ends
    before = counted[job]
    return When(f"job {job} {what}s", lambda: counted[job] > before)


def _event(words: list[str], play: Play) -> When:
    topic = known(COMMAND, "event", words[0].removeprefix(_PREFIX), topics())
    where = assignments(COMMAND, words[1:])
    since = len(play.runner.gauge.events)

    def happened() -> bool:
        return any(_fits(entry.event, topic, where) for entry in play.runner.gauge.events[since:])

    return When(" ".join((topic, *words[1:])), happened)


def _fits(event: DomainEvent, topic: str, where: Mapping[str, str]) -> bool:
    if _PREFIX + topic != type(event).TOPIC:
        return False
    if not where:
        return True
    fields = {**event.model_dump(mode="json"), "id": name_of(event.originator_id)}
    return all(str(fields.get(name)) == value for name, value in where.items())


# ---------------------------------------------------------------------- measures
def measured(of: Measure, name: str | None = None, *, names: Names | None = None) -> ExpectValue:
    """Return a measure, of one job, shared resource, provider or template where a name is given."""
    fields: dict[str, Any] = {}
    if name is not None:
        if of in OF_JOBS:
            fields["job"] = name
        elif of in OF_SHARED:
            fields["shared"] = name
        else:
            fields["provider" if names is None or name in names.providers else "item"] = name
    return ExpectValue.model_construct(of=of, equals=Decimal(0), **fields)


def _measure(words: list[str], play: Play, names: Names) -> When:
    parts = list(parts_of(words))
    of = Measure(known(COMMAND, "measure, time or event", parts[0], (*Measure, *WORDS)))
    name: str | None = None
    rest = parts[1:]
    if rest[:1] == ["of"] and len(rest) > 1:
        name = known(COMMAND, *_names_of(of, rest[1], names))
        rest = rest[2:]
    elif of in OF_SHARED:
        raise InputError.of(COMMAND, f"{of} of what? Wanted: {of} of NAME")
    if len(rest) != 2 or rest[0] not in SIGNS:
        raise InputError.of(
            COMMAND,
            f"wanted a bound after {of}, such as: {of} >= 1; found {' '.join(rest) or 'nothing'}",
        )
    sign, bound = SIGNS[rest[0]], bound_of(rest[1])
    wanted = measured(of, name, names=names)

    def holds() -> bool:
        value = play.runner.gauge.value(wanted)
        return value is not None and sign(value, bound)

    subject = of.value if name is None else f"{of} of {name}"
    return When(f"{subject} {rest[0]} {number(bound)}", holds)


def parts_of(words: list[str]) -> Iterator[str]:
    """Yield words, with ``a>=1`` as three."""
    for word in words:
        yield from (part for part in _GLUED.split(word) if part)


def _names_of(of: Measure, name: str, names: Names) -> tuple[str, str, tuple[str, ...]]:
    if of in OF_JOBS:
        return "job", name, names.jobs
    if of in OF_SHARED:
        return "shared resource", name, names.shared
    if of in OF_ITEMS:
        return "provider, template or resource", name, (*names.providers, *names.items)
    raise InputError.of(COMMAND, f"{of} is of everything; wanted no name")


def bound_of(word: str) -> Decimal:
    """Return a bound: a number, or a length of time in seconds.

    Raises:
        InputError: it is neither.
    """
    try:
        found = Decimal(word)
        if found.is_finite() and abs(found.adjusted()) <= _POWER_MAX:
            return found
    except InvalidOperation:
        pass
    try:
        return Decimal(round(read_duration(word).total_seconds()))
    except ValueError:
        raise InputError.of(COMMAND, f"{word!r} is no number") from None


def words_of(until: Until, start: datetime) -> str:
    """Return what is waited for, in words."""
    match until:
        case At(time=time):
            after = f", {write_duration(time - start)} after the start" if time >= start else ""
            return f"{clock(time)}{after}"
        case When(words=words):
            return words

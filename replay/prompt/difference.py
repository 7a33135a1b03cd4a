"""What is different between two runs: the first session or decision that is, and what both amount to.

Both are made again, time by time, so nothing is kept while they run. Sessions at the same time are compared as a whole. One that only one
of them has, such as the one that an order wakes, is a difference only where it starts a job or decides something. The position is
not compared, since every order moves it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from xce.domain.formats.policy import DecisionKind
from xce.domain.formats.session_result import SessionResult
from xce.replay.prompt.play import Journal, Play, Seen, Steps
from xce.replay.verification import differences

_NOT_COMPARED: Final = ("format", "position", "reason_sets")
#: What is a difference even where the other run has no session at that time.
_DEEDS: Final = ("allocations", "decisions")


@dataclass(frozen=True, slots=True)
class Told:
    """What the sessions of one time said.

    Attributes:
        number: of the last of them in its run.
        said: what it said, as JSON, without what is not compared; what all of them started and decided.
    """

    number: int
    now: datetime
    said: dict[str, Any]

    @property
    def deed(self) -> str | None:
        """The first thing that was done: ``allocations`` or ``decisions``; None: nothing was."""
        return next((name for name in _DEEDS if self.said[name]), None)


@dataclass(frozen=True, slots=True)
class Parting:
    """The first place where two runs are different.

    Attributes:
        one: the session there; None: that run has no session at that time.
        job: that the place is about; None: about no single one.
        path: such as ``demand.hosts[0].template``.
        left: what stands there, as JSON; None: nothing.
    """

    one: Told | None
    other: Told | None
    job: str | None
    path: str
    left: str | None
    right: str | None


class _Course:
    """A run that is made again, with the sessions of one time at hand."""

    def __init__(self, play: Play, journal: Journal, told: Callable[[], None]) -> None:
        self.play = play
        self._moves = iter(self._sessions(journal, told))
        self.head = next(self._moves, None)

    def advance(self) -> None:
        """Go on to the next time with a session."""
        self.head = next(self._moves, None)

    def finish(self) -> None:
        """Go on to the end, whatever there is."""
        for _ in self._moves:
            pass

    def _sessions(self, journal: Journal, told: Callable[[], None]) -> Iterator[Told]:
        seen = self.play.seen
        for move in journal:
            if not isinstance(move, Steps):
                self.play.follow((move,))
                continue
            for _ in range(move.count):
                number = seen.sessions
                self.play.step()
                told()
                if seen.sessions != number:
                    yield _told(seen)


def parting(
    one: Play, one_journal: Journal, other: Play, other_journal: Journal, told: Callable[[], None]
) -> Parting | None:
    """Do what two journals say with two new runs; return where they part, None: nowhere as far as both go.

    Both are at the end of their journals then.
    """
    left, right = _Course(one, one_journal, told), _Course(other, other_journal, told)
    found = _first(left, right)
    left.finish()
    right.finish()
    return found


def _first(left: _Course, right: _Course) -> Parting | None:
    while left.head is not None or right.head is not None:
        mine, theirs = left.head, right.head
        found: Parting | None = None
        if mine is not None and theirs is not None and mine.now == theirs.now:
            found = _difference(mine, theirs)
            left.advance()
            right.advance()
        elif theirs is None or (mine is not None and mine.now < theirs.now):
            assert mine is not None, "one of them has a session"
            if not _reaches(right, mine.now):
                return None
            found = _alone(mine, None)
            left.advance()
        else:
            if not _reaches(left, theirs.now):
                return None
            found = _alone(None, theirs)
            right.advance()
        if found is not None:
            return found
    return None


def _reaches(course: _Course, time: datetime) -> bool:
    """Return whether a run goes as far as a time: it has come there, or nothing more happens in it."""
    return course.head is not None or course.play.is_over or course.play.now >= time


def _difference(left: Told, right: Told) -> Parting | None:
    for path, job, mine, theirs in differences(left.said, right.said):
        return Parting(left, right, job or _served(path, left, right), path, mine, theirs)
    return None


def _alone(left: Told | None, right: Told | None) -> Parting | None:
    told = left or right
    assert told is not None, "one of them has a session"
    if told.deed is None:
        return None
    path = f"{told.deed}[0]"
    deed = told.said[told.deed][0]
    text = json.dumps(deed, separators=(",", ":"), ensure_ascii=False)
    job = deed.get("job") or _served(path, told)
    return Parting(
        left, right, job, path, None if left is None else text, None if right is None else text
    )


def _served(path: str, *told: Told) -> str | None:
    """Return the first job that a decision at a path serves."""
    if not path.startswith("decisions["):
        return None
    number = int(path.partition("[")[2].partition("]")[0])
    lists = (one.said["decisions"] for one in told)
    jobs = (one[number]["jobs"] for one in lists if number < len(one))
    return next((served[0] for served in jobs if served), None)


def _told(seen: Seen) -> Told:
    assert seen.snapshot is not None, "there was a session"
    assert seen.result is not None, "there was a session"
    document: dict[str, Any] = json.loads(seen.result.to_json())
    for name in _NOT_COMPARED:
        document.pop(name)
    reasons = _reasons(seen.result)
    for entry in document["pending"]:
        entry["reasons"] = reasons.get(entry["reasons"], [])
    document["allocations"] = [one.model_dump(mode="json") for one in seen.allocations]
    document["decisions"] = [
        one.model_dump(mode="json") for one in seen.decisions if one.kind is not DecisionKind.HOLD
    ]
    return Told(seen.sessions, seen.snapshot.now, document)


def _reasons(result: SessionResult) -> dict[int, list[dict[str, Any]]]:
    return {
        one.id: [reason.model_dump(mode="json") for reason in one.reasons]
        for one in result.reason_sets
    }

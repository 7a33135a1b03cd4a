"""The waiting jobs of a strict order without limits: one line, in which all behind the first that cannot start say the same."""

from collections.abc import Collection, Container, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from xce.domain.cluster.state import State
from xce.domain.formats.building import all_built
from xce.domain.formats.session_result import JobWhy, Pending, ReasonKind
from xce.domain.scheduling.explain import Failure, behind
from xce.domain.scheduling.groups import Free, Group, Place, stop_of
from xce.domain.scheduling.placement import Placed, start
from xce.domain.scheduling.trace import not_provisionable


class Blocked(NamedTuple):
    """The first job that cannot start.

    Attributes:
        at: where it stands among all jobs.
        failure: why it waits.
        order: why those behind it do.
    """

    at: int
    place: Place
    group: Group
    failure: Failure
    order: Failure


class Line(NamedTuple):
    """What came of the jobs in their order.

    Attributes:
        started: those that start, with what they are given.
        stopped: groups that something about their jobs themselves stops.
        blocked: the first that cannot start, None if all can.
    """

    started: list[tuple[Place, Placed]]
    stopped: dict[Group, Failure]
    blocked: Blocked | None

    def behind(self, places: Iterable[Place]) -> Sequence[Place]:
        """Return the jobs behind the first that cannot start; ``places``: all jobs, as they were."""
        if self.blocked is None:
            return ()
        rest = islice(places, self.blocked.at + 1, None)
        stopped = self.stopped
        return [each for each in rest if each.group not in stopped] if stopped else [*rest]


def walk(
    core: State,
    places: Iterable[Place],
    groups: Iterable[Group],
    here: Container[str],
    free: Free | None,
) -> Line:
    """Let jobs start in their order until one cannot; there are neither limits nor guarantees.

    Args:
        core: the state at the start.
        places: the jobs in job order.
        groups: the same in groups.
        here: ids of the jobs that are still here.
        free: what is free, if it is known.
    """
    stopped: dict[Group, Failure] = {}
    for group in groups:
        if group.may_stop and (stop := stop_of(group, here)) is not None:
            stopped[group] = stop
    started: list[tuple[Place, Placed]] = []
    for at, place in enumerate(places):
        own = place.group
        assert own is not None, "every job is in one"
        if own in stopped:
            continue
        failure = None if free is None else free.failure(own.job_class)
        if failure is None:
            placed = start(core, own.job_class)
            if isinstance(placed, Placed):
                started.append((place, placed))
                if free is not None:
                    free.take(placed)
                continue
            failure = placed
        blocked = Blocked(at, place, own, failure, behind(place.job.id))
        return Line(started, stopped, blocked)
    return Line(started, stopped, None)


class Said(NamedTuple):
    """What is written of a job.

    Attributes:
        reason, number: its main reason, and its reasons.
        why: why it is not counted.
        text: what a trace says of it if it stands behind the first that cannot start: as long as ``why`` is the same.
    """

    reason: ReasonKind
    number: int
    why: str
    text: str | None = None


class KeptLine:
    """What is written of the jobs of a line, kept as long as the same is said of those behind."""

    def __init__(self, stopped: Collection[Group], *, traced: bool) -> None:
        """Begin with nothing written.

        Args:
            stopped: the groups that are not in the line; with others another line is to be kept.
            traced: whether lines of a trace are kept too.
        """
        self._stopped = frozenset(stopped)
        self._traced = traced
        #: Jobs of which something else is written than of all the others, or nothing.
        self.odd: list[Place] = []
        self._said: Said | None = None
        self._blocked: tuple[Place, Said] | None = None

    def is_of(self, stopped: Collection[Group], *, traced: bool) -> bool:
        """Return whether it is the line without these groups, traced or not."""
        return self._traced is traced and self._stopped == stopped

    def write(
        self, blocked: Place, of_it: Said, behind: Sequence[Place], of_them: Said | None
    ) -> bool:
        """Write of the first that cannot start, and of those behind it, if any; return whether anything is new."""
        is_same = self._blocked == (blocked, of_it) and blocked not in self.odd
        if self._blocked is not None and not is_same:
            self.odd.append(self._blocked[0])
        is_other = not is_same
        if of_them is not None:
            before, odd = self._said, [place for place in self.odd if place is not blocked]
            self._said, self.odd = of_them, []
            is_same_reason = before is not None and before[:2] == of_them[:2]
            is_other |= _write_pending(odd if is_same_reason else behind, of_them)
            is_same_why = before is not None and before.why == of_them.why
            others = odd if is_same_why else behind
            is_other |= _write_whys(others, of_them)
            if of_them.text is not None:
                _write_traces(others, of_them.text, of_them.why)
        if not is_same:
            _write_pending((blocked,), of_it)
            _write_whys((blocked,), of_it)
            self._blocked = blocked, of_it
        return is_other


def _write_pending(places: Sequence[Place], said: Said) -> bool:
    """Write reason and reasons of jobs; return whether there are any."""
    more = {
        "reason": said.reason,
        "reasons": said.number,
        "provisioning": None,
        "expanded": None,
    }
    made = all_built(Pending, [{"job": place.name, **more} for place in places])
    for place, pending in zip(places, made, strict=True):
        place.pending = pending
    return bool(places)


def _write_whys(places: Sequence[Place], said: Said) -> bool:
    """Write why jobs are not counted; return whether there are any."""
    text = said.why
    made = all_built(JobWhy, [{"job": place.name, "why": text} for place in places])
    for place, why in zip(places, made, strict=True):
        place.why = why
    return bool(places)


def _write_traces(places: Sequence[Place], text: str, why: str) -> None:
    """Write the lines of jobs in a trace."""
    for place in places:
        name = place.name
        place.traced = (f"job {name}: {text}", not_provisionable(name, why))

"""What a verification says: one line for each check, and where in the log it found something."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

from xce.domain.events.recorded import Head, Recorded

#: Findings kept for each check; the rest is counted.
FINDINGS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where the log is not what it should be.

    Attributes:
        position: of the event; None: it is not about one event.
        aggregate: id of the aggregate; "" where there is none.
        event: stored name of the event; "" where there is none.
        message: what was found, and what was wanted.
    """

    position: int | None
    aggregate: str
    event: str
    message: str

    def __str__(self) -> str:
        place = "" if self.position is None else f"event {self.position}"
        if self.aggregate:
            place += (
                f" ({self.event} of {self.aggregate})" if self.event else f" ({self.aggregate})"
            )
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its outcome.

    Attributes:
        name: stable, short: ``chain``, ``invariant-3``.
        title: what is promised, for people.
        counted: how many things were looked at.
        findings: the first ``FINDINGS_MAX`` things that are wrong, in the order found.
        found: how many things are wrong, in all.
    """

    name: str
    title: str
    counted: int
    findings: tuple[Finding, ...]
    found: int

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.found == 0


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one log.

    Attributes:
        source: which log.
        events: how many events were read.
        head: what the log says is its end; None: it does not say.
        checks: in the order they are shown.
    """

    source: str
    events: int
    head: Head | None
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    def check(self, name: str) -> Check:
        """Return one check by its name; raises KeyError if there is none."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)


class Tally:
    """Collects what one check counts and finds."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.counted = 0
        self.found = 0
        self._findings: list[Finding] = []

    def find(
        self, message: str, *, position: int | None = None, aggregate: str = "", event: str = ""
    ) -> None:
        """Note one thing that is wrong."""
        self.found += 1
        if len(self._findings) < FINDINGS_MAX:
            self._findings.append(Finding(position, aggregate, event, message))

    def check(self) -> Check:
        """Return the outcome so far."""
        return Check(self.name, self.title, self.counted, tuple(self._findings), self.found)


class Invariant(ABC):
    """One promise. It sees every event once, in order, then the end."""

    NAME: ClassVar[str]
    TITLE: ClassVar[str]

    def __init__(self) -> None:
        self._tally = Tally(self.NAME, self.TITLE)
        self._now: Recorded | None = None

    def see(self, recorded: Recorded) -> None:
        """Take the next event into account."""
        self._now = recorded
        self._see(recorded)

    @property
    def found(self) -> int:
        """How many things are wrong so far."""
        return self._tally.found

    def end(self) -> Check:
        """Take the end of the log into account and return the outcome."""
        return self._tally.check()

    @abstractmethod
    def _see(self, recorded: Recorded) -> None: ...

    def _count(self) -> None:
        self._tally.counted += 1

    def _find(self, message: str, at: Recorded | None = None) -> None:
        where = at or self._now
        if where is None:
            self._tally.find(message)
            return
        self._tally.find(
            message,
            position=where.position,
            aggregate=where.event.originator_id,
            event=where.event.TOPIC,
        )

    def _require(self, holds: bool, message: str) -> None:
        self._tally.counted += 1
        if not holds:
            self._find(message)

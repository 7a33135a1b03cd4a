"""Which refused attempts are noted in the audit trail now: the first of its kind at once, equal ones counted for a while."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

#: Equal attempts within so many seconds are noted together.
INTERVAL_S: Final = 60.0
#: Kinds of attempts that are told apart at once; further callers share one line.
KINDS_MAX: Final = 500
#: Stands for callers beyond ``KINDS_MAX``, and for those nobody knows.
OTHERS: Final = "unauthenticated/others"
#: Attempts whose caller cannot be told.
UNKNOWN: Final = "unauthenticated/unknown"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Who tried what, and what they were told."""

    caller: str
    action: str
    why: str


@dataclass(slots=True)
class _Line:
    noted_s: float
    count: int = 0


class RefusalNotes:
    """Counts refused attempts; bounded in memory, and in what it lets into the log."""

    def __init__(self) -> None:
        self._lines: dict[Attempt, _Line] = {}

    def count(self, attempt: Attempt, elapsed_s: float) -> tuple[Attempt, int] | None:
        """Count an attempt; return what is to be noted now, with how many; None: later."""
        line = self._lines.get(attempt)
        if line is None and len(self._lines) >= KINDS_MAX:
            attempt = Attempt(OTHERS, attempt.action, "refused")
            line = self._lines.get(attempt)
        if line is None:
            self._lines[attempt] = _Line(elapsed_s)
            return attempt, 1
        line.count += 1
        return None

    def due(self, elapsed_s: float) -> Iterator[tuple[Attempt, int]]:
        """Yield what was counted and is to be noted now; a line that nobody added to is forgotten."""
        for attempt, line in list(self._lines.items()):
            if elapsed_s - line.noted_s < INTERVAL_S:
                continue
            if line.count:
                yield attempt, line.count
                line.noted_s, line.count = elapsed_s, 0
            else:
                del self._lines[attempt]

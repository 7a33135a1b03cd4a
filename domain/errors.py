"""Every error raised on purpose, in one tree, split by what the caller does next.

================== ========================================= ====
class              what the caller does                      exit
================== ========================================= ====
InputError         mend the file, argument or message        2
RejectedError      tell the person: the state does not allow 3
PermanentError     give up: trying again cannot help         4
TransientError     try again later                           75
================== ========================================= ====
"""

from collections.abc import Iterable
from dataclasses import dataclass


class XceError(Exception):
    """Base of all errors raised on purpose by this package.

    Attributes:
        code: stable, lower-case identifier; used in JSON output and problem details.
    """

    code = "internal"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input.

    Attributes:
        message: the value found and what was wanted.
        path: where in the document, dotted, indices in brackets: ``hosts[2].total.mem``; "" for the whole.
        line: 1-based line of the text, where the text has lines that mean something.
        column: 1-based column, where known.
    """

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InputError(XceError):
    """An input (file, string, message) cannot be read; nothing was done with any of it.

    Attributes:
        source: file name, or "<stdin>", or what the text is ("resource requirement").
        problems: all that was found wrong, at least one, in document order.
    """

    code = "input"

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        assert self.problems, "an InputError says what is wrong"
        super().__init__("\n".join(self.lines()))

    @classmethod
    def of(
        cls,
        source: str,
        message: str,
        *,
        path: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> "InputError":
        """Return the error for a single problem."""
        return cls(source, [Problem(message, path, line, column)])

    def lines(self) -> list[str]:
        """Return one line for each problem: ``source:line:column: path: message``.

        A column without a line is one of a text at that path of the document; it stands with the message, never where a line would.
        """
        return [self._line(problem) for problem in self.problems]

    def _line(self, problem: Problem) -> str:
        line, column = problem.line, problem.column
        if problem.path and line is None and column is not None:
            return f"{self.source}: {Problem(f'column {column}: {problem.message}', problem.path)}"
        place = (self.source, line, column)
        return ":".join(str(part) for part in place if part is not None) + f": {problem}"


class RejectedError(XceError):
    """A command is not valid in the current state; nothing was recorded."""

    code = "rejected"


class NotFoundError(RejectedError):
    """A command or question names something that does not exist."""

    code = "not-found"


class IllegalTransitionError(RejectedError):
    """The command's event is not allowed from the aggregate's current state."""

    code = "illegal-transition"

    def __init__(self, aggregate: str, event: str, state: str) -> None:
        super().__init__(f"{event} is not allowed while the {aggregate} is {state}")
        self.aggregate = aggregate
        self.event = event
        self.state = state


class StaleEpochError(RejectedError):
    """A fence in the store refused the write: another holder has taken over; stop acting."""

    code = "stale-epoch"

    def __init__(self, fence: str, mine: int, current: int) -> None:
        super().__init__(f"{fence}: epoch {mine} was superseded by epoch {current}")
        self.fence = fence
        self.mine = mine
        self.current = current


class ForbiddenError(RejectedError):
    """The caller's role does not allow it; nothing was done, and the attempt is in the audit trail."""

    code = "forbidden"


class LeaseHeldError(RejectedError):
    """Another instance holds the lease of the provider, and its term is not over."""

    code = "lease-held"


class StaleVersionError(RejectedError):
    """The aggregate has changed since the caller read it: read it again, decide again."""

    code = "stale-version"

    def __init__(self, aggregate_id: str, mine: int, current: int) -> None:
        super().__init__(f"{aggregate_id} is at version {current}, not {mine}: read it again")
        self.mine = mine
        self.current = current


class KeyReusedError(RejectedError):
    """The idempotency key was used for something else; a new command needs a new key."""

    code = "key-reused"


class BrokenLogError(XceError):
    """The log itself is not what was written: a digest, a number or a name does not fit.

    Attributes:
        position: number of the first event that does not fit, or None when the log has no such event.
    """

    code = "broken-log"

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class AdapterError(XceError):
    """Something outside the process failed."""

    code = "adapter"


class TransientError(AdapterError):
    """Worth retrying: a timeout, throttling, a lost connection."""

    code = "transient"


class ConflictError(TransientError):
    """Another writer was first: nothing was saved. Load the aggregates again and decide again."""

    code = "conflict"


class PermanentError(AdapterError):
    """Retrying cannot help: bad credentials, unknown template, quota exceeded."""

    code = "permanent"


class AllocatorError(PermanentError):
    """An allocator from another package cannot be loaded, or breaks its contract."""

    code = "allocator"

    def __init__(self, name: str, fault: str) -> None:
        super().__init__(f"allocator {name!r} {fault}")
        self.name = name

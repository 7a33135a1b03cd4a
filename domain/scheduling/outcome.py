"""What came of a session for a driver that starts jobs: the whole result is written only if somebody reads it."""

from collections.abc import Callable

from xce.domain.formats.session_result import Allocation, CountDemand, SessionResult


class Outcome:
    """What a session decided.

    Attributes:
        allocations: what starts, and where.
        countable: what is missing of shared resources, as ``result.demand`` has it.
    """

    __slots__ = ("_position", "_result", "_write", "allocations", "countable")

    def __init__(
        self,
        position: int,
        allocations: tuple[Allocation, ...],
        countable: tuple[CountDemand, ...],
        write: Callable[[], SessionResult],
    ) -> None:
        """Have a result that ``write`` makes of what the session worked on, which is to stay as it is until then."""
        self.allocations = allocations
        self.countable = countable
        self._position = position
        self._write: Callable[[], SessionResult] | None = write
        self._result: SessionResult | None = None

    @classmethod
    def of(cls, result: SessionResult) -> "Outcome":
        """Return what a result says, written as it is."""
        made = cls(result.position, result.allocations, result.demand.countable, lambda: result)
        made._result, made._write = result, None
        return made

    @property
    def is_written(self) -> bool:
        """Return whether somebody has read the result, or it was there from the start."""
        return self._result is not None

    @property
    def result(self) -> SessionResult:
        """Return the whole result; where it is not written yet this is the time."""
        if self._result is None:
            assert self._write is not None, "it is there until it was called"
            self._result, self._write = self._write(), None
        return self._result

    def at(self, position: int) -> "Outcome":
        """Return the same of a session at another position of the log."""
        if position == self._position:
            return self
        return Outcome(
            position,
            self.allocations,
            self.countable,
            lambda: self.result.model_copy(update={"position": position}),
        )

    def only_while(self, holds: Callable[[], bool]) -> "Outcome":
        """Return the same; a result that was not written before ``holds`` ends cannot be read any more."""
        write = self._write
        if write is None:
            return self

        def written() -> SessionResult:
            assert holds(), "a result is read before the next delta, or not at all"
            return write()

        self._write = written
        return self

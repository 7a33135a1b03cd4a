"""Virtual time: what happens when, threads that wait in the middle of a call while others go on, and clocks that jump.

A thread that waits runs everything else up to the end of its wait, inside its own call; so the real, blocking code of a process runs
here unchanged. One order of everything, from the agenda alone.
"""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

START: Final = datetime(2026, 3, 2, 8, tzinfo=UTC)
#: Waits within waits; during deeper ones nothing else happens.
DEEPEST: Final = 14
#: A run is over after a few thousand; more is something that goes round for ever.
HAPPENINGS_MAX: Final = 12_000


class Killed(BaseException):
    """The process ends here; no handler eats it."""


class NeverRestsError(BaseException):
    """Things go on happening without end; nothing between may eat it."""


class Time:
    """The agenda of everything. Things at the same time keep the order in which they were put down."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._depth = 0
        self._happened = 0

    @property
    def stamp(self) -> datetime:
        """What a clock that is right shows."""
        return START + timedelta(seconds=self.now_s)

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        """Put something down for later."""
        self._count += 1
        heapq.heappush(self._heap, (self.now_s + delay_s, self._count, do))

    def pass_until(self, end_s: float) -> None:
        """Let everything happen up to a time; may be called from within."""
        if self._depth >= DEEPEST:
            self.now_s = max(self.now_s, end_s)  # what is due meanwhile happens late
            return
        self._depth += 1
        try:
            while self._heap and self._heap[0][0] <= end_s:
                at, _, do = heapq.heappop(self._heap)
                self.now_s = max(self.now_s, at)
                self._happened += 1
                if self._happened > HAPPENINGS_MAX:
                    raise NeverRestsError(f"{HAPPENINGS_MAX} things have happened")
                do()
            self.now_s = max(self.now_s, end_s)
        finally:
            self._depth -= 1


class MachineClock:
    """The clock of one machine: its stamps jump with its wall clock but never go back, its durations do neither."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self._off_s = 0.0
        self._last = START

    def now(self) -> datetime:
        """See ``Clock.now``."""
        self._last = max(self._last, self._time.stamp + timedelta(seconds=self._off_s))
        return self._last

    def not_before(self, stamp: datetime) -> None:
        """Learn of a stamp that was given elsewhere."""
        self._last = max(self._last, stamp)

    def elapsed_s(self) -> float:
        """Return seconds that nobody can set."""
        return self._time.now_s

    def jump(self, seconds: float) -> None:
        """Somebody sets the wall clock: so far off what it should be."""
        self._off_s = seconds

    def mend(self) -> None:
        """The wall clock is right again."""
        self._off_s = 0.0


class Living(Protocol):
    """A process."""

    dead: bool


class Threads:
    """Who runs now, so that a wait knows whose it is."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self.running: Thread | None = None
        #: For how many seconds a thread that has something to do does not get its turn.
        self.held_up_s: Callable[[], float] = lambda: 0.0

    def wait(self, seconds: float) -> None:
        """Let the running thread wait; whoever was killed meanwhile ends."""
        mine = self.running
        if seconds > 0:
            self.time.pass_until(self.time.now_s + seconds)
        self.running = mine
        if mine is not None and mine.life.dead:
            raise Killed(mine.name)


class Thread:
    """Does one step after the other; a step says how long there is nothing to do."""

    def __init__(
        self, threads: Threads, life: Living, name: str, step: Callable[[], float]
    ) -> None:
        self.life = life
        self.name = name
        self._threads = threads
        self._step = step
        self._turn = 0
        self._news = False
        self.busy = False

    def halt(self) -> None:
        """Do no step any more, unless woken."""
        self._turn += 1

    def wake(self, delay_s: float = 0.0) -> None:
        """Do a step then, and not at any time that was set before; who is at a step does another one after it."""
        if self.busy:
            self._news = True
            return
        self._turn += 1
        turn = self._turn
        delay_s += self._threads.held_up_s()
        self._threads.time.after(delay_s, lambda: self._fire(turn))

    def _fire(self, turn: int) -> None:
        if turn != self._turn or self.busy or self.life.dead:
            return
        before = self._threads.running
        self._threads.running = self
        self.busy = True
        self._news = False
        try:
            rest_s = self._step()
        except Killed:
            return
        finally:
            self.busy = False
            self._threads.running = before
        if not self.life.dead and turn == self._turn:
            self.wake(0.0 if self._news else rest_s)

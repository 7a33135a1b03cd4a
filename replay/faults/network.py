"""Calls between processes: late, lost on the way there or back, done twice, or cut off; and a death around each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from xce.domain.errors import TransientError, XceError
from xce.replay.faults.chance import Chance
from xce.replay.faults.time import Killed, Threads

T = TypeVar("T")

#: A caller that hears nothing gives up after this.
TIMEOUT_S: Final = 10.0


@dataclass(slots=True)
class Line:
    """The way from one process to another."""

    name: str
    cut: bool = False


class Network:
    """Carries calls."""

    def __init__(self, threads: Threads, chance: Chance) -> None:
        self._threads = threads
        self._chance = chance
        #: Kills the running process.
        self.kill: Callable[[], None] = lambda: None

    def call(
        self,
        line: Line,
        do: Callable[[], T],
        *,
        slowest_s: int = 20,
        twice: bool = False,
        frail: int = 1,
    ) -> T:
        """Carry a call; ``twice``: it may arrive a second time, later; ``frail``: how many times as often it fails, or kills.

        Raises:
            TransientError: nothing was heard; whether it was done is unknown.
        """
        chance, threads = self._chance, self._threads
        self._die("before", frail)
        if line.cut:
            threads.wait(TIMEOUT_S)
            raise TransientError(f"{line.name} is cut")
        if chance.fires("late call", 60 * frail):
            threads.wait(chance.size("late call", 1, slowest_s))
        if chance.fires("lost call", 40 * frail):
            threads.wait(TIMEOUT_S)
            raise TransientError(f"{line.name}: the call was lost")
        if twice and chance.fires("call twice", 40):
            threads.time.after(chance.size("call twice", 1, 90), lambda: _again(do))
        answer = do()
        if chance.fires("lost answer", 40 * frail):
            threads.wait(TIMEOUT_S)
            raise TransientError(f"{line.name}: the answer was lost")
        if chance.fires("late answer", 60 * frail):
            threads.wait(chance.size("late answer", 1, slowest_s))
        self._die("after", frail)
        return answer

    def _die(self, where: str, frail: int) -> None:
        thread = self._threads.running
        if thread is not None and self._chance.fires(f"death {where} a call", 8 * frail):
            self.kill()
            raise Killed(thread.name)


def _again(do: Callable[[], object]) -> None:
    try:
        do()
    except XceError:
        return  # nobody hears of it

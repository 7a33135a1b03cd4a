"""Signals, told to a thread: the handler of one runs in the middle of whatever the main thread does, and must take no lock that it may hold."""

import os
import signal
from collections.abc import Callable
from threading import Thread
from types import FrameType


class Signals:
    """Tells of signals in a thread of its own. For the main thread of a process, which it lasts as long as."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        """``tell`` is given the number of each signal; it may log, lock and take its time."""
        self._tell = tell
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        Thread(target=self._run, name="signals", daemon=True).start()

    def on(self, *numbers: int) -> None:
        """Tell of these signals from now on."""
        for number in numbers:
            signal.signal(number, self.note)

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """Pass a signal on: all that its handler does."""
        os.write(self._writing, bytes((number,)))

    def _run(self) -> None:
        while told := os.read(self._reading, 64):
            for number in told:
                self._tell(number)

"""Signals reach those who are told of them without a lock of the main thread in between."""

import os
import signal
from collections.abc import Iterator
from threading import Event, Lock

import pytest

from xce.adapters.signals import Signals


@pytest.fixture
def restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("restored")
def test_a_signal_that_comes_while_the_main_thread_holds_what_is_needed_for_it_is_told_after() -> (
    None
):
    """A controller that was told to stop while it wrote a line of its log hung for ever."""
    console, told = Lock(), Event()
    heard: list[int] = []

    def tell(number: int) -> None:
        with console:
            heard.append(number)
            told.set()

    Signals(tell).on(signal.SIGUSR1)
    with console:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert not told.wait(0.05), "the main thread goes on, and nobody gets in between"

    assert told.wait(60)
    assert heard == [signal.SIGUSR1]

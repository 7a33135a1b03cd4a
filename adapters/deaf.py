"""Processes that a key press does not reach: whoever began them is told, and ends them."""

import signal
from multiprocessing.context import SpawnProcess
from multiprocessing.resource_tracker import ensure_running


def start_deaf(process: SpawnProcess) -> None:
    """Start a process to which a key press is never told, not even while it imports: its parent is told, and ends it."""
    ensure_running()  # it would let key presses through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ended_with(code: int | None) -> str:
    """Return how people read the exit code of a process."""
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"

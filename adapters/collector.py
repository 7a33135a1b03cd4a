"""Long work without the cyclic collector: it would look through millions of new objects again and again and free none."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused() -> Generator[None]:
    """Collect no cycles for as long as this takes: readings, sessions and folds of events make none, and it would be a quarter of their time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

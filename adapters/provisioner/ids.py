"""Ids that were never given before, on any machine: a time for people, and chance."""

import secrets
from datetime import datetime
from threading import Lock
from typing import Final

from xce.domain.ports import Clock

#: Without letters that look like digits.
_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_CHANCE: Final = 8


class UniqueIds:
    """Fulfils ``IdSource``: ``R-261129-2207-4k7q0w3z``. Threads may share it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = ""
        self._lock = Lock()

    def next_id(self, prefix: str) -> str:
        """Return an id; 40 bits of chance within one minute."""
        with self._lock:
            made = f"{prefix}-{_minute(self._clock.now())}-{_chance()}"
            while made == self._last:
                made = f"{prefix}-{_minute(self._clock.now())}-{_chance()}"
            self._last = made
            return made


def _minute(now: datetime) -> str:
    return f"{now:%y%m%d-%H%M}"


def _chance() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_CHANCE))

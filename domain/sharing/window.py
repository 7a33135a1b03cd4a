"""The largest need within the idle window: what stayed unused for all of it may go back."""

from collections import deque
from datetime import datetime, timedelta
from typing import NamedTuple


class _Past(NamedTuple):
    """A need that lasted until ``end``."""

    end: datetime
    need: int


class PeakWindow:
    """A sliding-window maximum over a need that holds from one note to the next.

    The peak is unknown, and unknown is not zero, until needs have been noted without a break for the whole window: nothing is
    known of what was needed before the first note, or before a restart, so nothing goes back until then.
    """

    def __init__(self, length: timedelta) -> None:
        self._length = length
        #: Since when every need is known; None: the present one is not.
        self._since: datetime | None = None
        self._last: datetime | None = None
        self._need = 0
        #: Needs of before, the oldest first; each is above all behind it, so the first is the largest.
        self._past = deque[_Past]()

    def note(self, now: datetime, need: int | None) -> None:
        """Say what is needed from ``now`` on; None: it is unknown, and the window begins again with the next note.

        A time before that of the last note counts as that of the last note.
        """
        now = self._forward(now)
        if need is None:
            self._since = None
            self._past.clear()
            return
        if self._since is None:
            self._since = now
        elif need != self._need:
            while self._past and self._past[-1].need <= self._need:
                self._past.pop()
            self._past.append(_Past(now, self._need))
        self._need = need
        self._forget(now)

    def peak(self, now: datetime) -> int | None:
        """Return the largest need of the window that ends now; None: it is unknown."""
        now = self._forward(now)
        if self._since is None or now - self._since < self._length:
            return None
        self._forget(now)
        return max(self._need, self._past[0].need) if self._past else self._need

    def next_fall(self, now: datetime) -> datetime | None:
        """Return when the peak falls, or becomes known, if nothing is noted until then; None: never."""
        if self._since is None:
            return None
        now = self._forward(now)
        known_from = self._since + self._length
        if now < known_from:
            return known_from
        self._forget(now)
        if not self._past or self._past[0].need <= self._need:
            return None
        return self._past[0].end + self._length

    def _forward(self, now: datetime) -> datetime:
        self._last = now if self._last is None else max(now, self._last)
        return self._last

    def _forget(self, now: datetime) -> None:
        while self._past and self._past[0].end <= now - self._length:
            self._past.popleft()

"""Places of walks through something that was kept, so that going back does not begin at the beginning: so many and no more."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from xce.replay.prompt.walk import Kept, Place, Walk

#: Places over the whole way that was gone; each holds one session and what it takes to read on.
PLACES_MAX: Final = 32
#: Places of late, which are so many moments apart.
LATE_MAX: Final = 8
APART: Final = 64


class Trail:
    """Notes places as walks go on; where there are too many, every second one is forgotten and the next ones are twice as far apart."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._places: list[Place] = []
        self._apart = APART
        self._late: deque[Place] = deque(maxlen=LATE_MAX)

    def note(self, walk: Walk) -> None:
        """A walk has gone on by a moment; what is known is not noted again."""
        if walk.steps % APART or (self._late and walk.steps <= self._late[-1].steps):
            return
        place = walk.place()
        self._late.append(place)
        if place.steps % self._apart:
            return
        self._places.append(place)
        if len(self._places) > PLACES_MAX:
            self._apart *= 2
            self._places = [one for one in self._places if one.steps % self._apart == 0]

    def walk(self, here: Walk, is_before: Callable[[Place], bool]) -> Walk:
        """Return a walk that stands at the last place known that is before something; ``here``: where one stands."""
        known = [one for one in self._known(here) if is_before(one)]
        if not known:
            return Walk(self._kept)
        return Walk.at(self._kept, max(known, key=lambda one: one.steps))

    def _known(self, here: Walk) -> Iterator[Place]:
        yield from self._places
        yield from self._late
        if here.steps:
            yield here.place()

"""Which faults happen, from one seed: each opportunity is numbered within its kind, so that a run can be told which ones to have."""

from collections import Counter
from collections.abc import Collection
from typing import Final
from zlib import crc32

_MASK: Final = 2**64 - 1
_OUT_OF: Final = 10_000


def mix(word: int) -> int:
    """Return 64 well mixed bits (splitmix64): the same everywhere, without a generator that remembers."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


class Chance:
    """Draws by seed, kind and number; says which faults have happened."""

    def __init__(self, seed: int, only: Collection[str] | None = None) -> None:
        """Make it; ``only``: these faults happen (``kill:17``) and no others; None: by chance."""
        self.fired: list[str] = []
        self.active = True
        #: Of 100; how often faults happen, against the rates that are asked for.
        self.scale = 100
        self._base = mix(seed)
        self._only = None if only is None else frozenset(only)
        self._counts = Counter[str]()
        self._bases: dict[str, int] = {}

    def fires(self, kind: str, rate: int) -> bool:
        """Return whether a fault happens now; ``rate``: of 10,000 opportunities."""
        if not self.active:
            return False
        self._counts[kind] += 1
        number = self._counts[kind]
        if self._only is not None:
            hit = f"{kind}:{number}" in self._only
        else:
            hit = self._word(kind, number) % _OUT_OF < rate * self.scale // 100
        if hit:
            self.fired.append(f"{kind}:{number}")
        return hit

    def size(self, kind: str, low: int, high: int) -> int:
        """Return how large the fault of a kind that happens now is, from ``low`` to ``high``."""
        return low + self._word(f"{kind} size", self._counts[kind]) % (high - low + 1)

    def draw(self, purpose: str, number: int, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high`` for something that is no fault."""
        return low + self._word(purpose, number) % (high - low + 1)

    def _word(self, kind: str, number: int) -> int:
        base = self._bases.get(kind)
        if base is None:
            base = self._bases[kind] = mix(self._base ^ crc32(kind.encode()))
        return mix(base + number)

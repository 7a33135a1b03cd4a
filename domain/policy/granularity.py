"""The sizes of an ask: at least a minimum, in steps, at most so much in one request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which amounts can be asked, in one request or in several.

    Attributes:
        minimum: least of one request, a multiple of ``step``.
        step: every request is a multiple of it.
        maximum: most of one request, a multiple of ``step``; None: no bound. Below ``minimum``: nothing can be asked.
    """

    minimum: int = 1
    step: int = 1
    maximum: int | None = None

    @classmethod
    def of(cls, minimum: int, step: int, maximum: int | None = None) -> "Sizes":
        """Return the sizes with both bounds moved inwards to multiples of the step."""
        return cls(
            -(-minimum // step) * step, step, None if maximum is None else maximum // step * step
        )

    @property
    def possible(self) -> bool:
        """Whether any amount can be asked at all."""
        return self.maximum is None or self.maximum >= self.minimum

    def up(self, amount: int) -> int:
        """Return the least amount that can be asked and is not below ``amount``; 0 for 0."""
        assert self.possible
        if amount <= 0:
            return 0
        whole = -(-amount // self.step) * self.step
        return max(whole, self._requests(whole) * self.minimum)

    def down(self, amount: int) -> int:
        """Return the largest amount that can be asked and is not above ``amount``; 0 if there is none."""
        whole = amount // self.step * self.step
        if not self.possible or whole < self.minimum:
            return 0
        requests = self._requests(whole)
        if requests * self.minimum <= whole:
            return whole
        assert self.maximum is not None, "without a maximum one request is enough"
        return (requests - 1) * self.maximum

    def split(self, amount: int) -> list[int]:
        """Return an amount that can be asked as requests, the fullest first."""
        parts: list[int] = []
        for others in range(self._requests(amount) - 1, -1, -1):
            part = amount - others * self.minimum
            part = part if self.maximum is None else min(part, self.maximum)
            parts.append(part)
            amount -= part
        assert amount == 0, "the amount can be asked"
        return parts

    def _requests(self, amount: int) -> int:
        return -(-amount // self.maximum) if self.maximum is not None else min(amount, 1)

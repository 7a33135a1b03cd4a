"""Until when each held lease lasts, on the process's monotonic clock. In memory only (decision 19).

After a start nobody knows when the last renewal was: every held lease gets one full term from then on.
"""

from collections.abc import Iterable
from datetime import timedelta


class LeaseTerms:
    """Ends of terms by provider. What a batch does counts once the batch is appended."""

    def __init__(self) -> None:
        self._end_s: dict[str, float] = {}
        self._pending: dict[str, float | None] = {}

    def start(self, held: Iterable[tuple[str, timedelta]], elapsed_s: float) -> None:
        """Give every held lease (provider, term) one full term of grace."""
        for provider, term in held:
            self._end_s[provider] = elapsed_s + term.total_seconds()

    def drop(self, provider: str) -> None:
        """Nobody holds the lease, as was found in the log."""
        self._end_s.pop(provider, None)

    def begin(self, provider: str, term: timedelta, elapsed_s: float) -> None:
        """A term begins, or begins anew."""
        self._pending[provider] = elapsed_s + term.total_seconds()

    def end(self, provider: str) -> None:
        """Nobody holds the lease any more."""
        self._pending[provider] = None

    def left_s(self, provider: str, term: timedelta, elapsed_s: float) -> float:
        """Return the seconds that are left; 0 or below: it is over. An unknown one begins now."""
        end = self._pending.get(provider, self._end_s.get(provider))
        if end is None:
            end = self._end_s[provider] = elapsed_s + term.total_seconds()
        return end - elapsed_s

    def over(self, elapsed_s: float) -> list[str]:
        """Return the providers whose lease was not renewed in time."""
        return [
            provider
            for provider, end in self._end_s.items()
            if end <= elapsed_s and provider not in self._pending
        ]

    def ends(self) -> dict[str, float]:
        """Return the ends of all terms, on the monotonic clock."""
        return dict(self._end_s)

    def appended(self) -> None:
        """What the batch did counts now."""
        for provider, end in self._pending.items():
            if end is None:
                self._end_s.pop(provider, None)
            else:
                self._end_s[provider] = end
        self._pending = {}

    def forget(self) -> None:
        """The batch did not come to be."""
        self._pending = {}

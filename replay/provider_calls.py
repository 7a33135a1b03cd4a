"""Whether a simulated provider answers at all: outages, and too many calls."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime

from xce.domain.errors import TransientError
from xce.domain.formats.simulated_provider import CallKind, Throttle


class Line:
    """The way to one provider."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._cut: dict[CallKind, datetime] = {}
        self._calls = deque[datetime]()

    def cut(self, until: datetime, calls: Iterable[CallKind]) -> None:
        """Let no call of these kinds through until then."""
        for call in calls:
            self._cut[call] = until

    def require(self, call: CallKind, now: datetime, throttle: Throttle | None) -> None:
        """Let a call through.

        Raises:
            TransientError: it does not come through, or there were too many; nothing was done.
        """
        until = self._cut.get(call)
        if until is not None and now < until:
            raise TransientError(f"{self._provider} does not answer")
        if throttle is None or (throttle.of is not None and call not in throttle.of):
            return
        while self._calls and self._calls[0] <= now - throttle.per:
            self._calls.popleft()
        if len(self._calls) >= throttle.calls:
            raise TransientError(f"{self._provider}: too many requests")
        self._calls.append(now)

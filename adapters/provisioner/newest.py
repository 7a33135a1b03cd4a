"""The newest session result that the controller pushed: demand, and the sign that somebody looks at the cluster."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Event, Lock

from xce.domain.formats.rest import DemandMessage
from xce.domain.formats.session_result import SessionResult


@dataclass(frozen=True, slots=True)
class Published:
    """A session result, and since when it counts, on the monotonic clock; None: demand is unknown."""

    result: SessionResult | None
    since_s: float
    digest: str | None = None

    @classmethod
    def of(cls, message: DemandMessage, now_s: float) -> "Published":
        """Return what a message says."""
        result = message.result
        digest = None if result is None else sha256(result.to_json().encode()).hexdigest()
        return cls(result, now_s - message.age_s, digest)


class Newest:
    """The newest demand; one that nobody took in time is skipped (SPEC P9)."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._published: Published | None = None
        self.news = Event()

    def put(self, published: Published) -> None:
        """Replace what was there."""
        with self._lock:
            self._published = published
        self.news.set()

    def get(self) -> Published | None:
        """Return what is there; None: nothing was heard yet."""
        with self._lock:
            return self._published

    def looked_at(self, now: datetime, now_s: float) -> datetime | None:
        """Return when the scheduler last looked at its cluster, with joins told before; None: nobody knows.

        ``now`` and ``now_s`` are the same moment on the two clocks.
        """
        published = self.get()
        if published is None or published.result is None:
            return None
        return now - timedelta(seconds=max(0.0, now_s - published.since_s))

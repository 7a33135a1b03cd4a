"""Values over time, each of which holds until the next time."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

Value = int | Decimal


@dataclass(frozen=True, slots=True)
class Timeline:
    """Several series over the same times.

    Attributes:
        times: ascending, no time twice.
        values: by name, as many as there are times.
    """

    times: tuple[datetime, ...]
    values: Mapping[str, tuple[Value, ...]]

    def __post_init__(self) -> None:
        assert all(len(series) == len(self.times) for series in self.values.values()), (
            "one value a time"
        )

    def largest(self, name: str) -> Value:
        """Return the largest value of a series, 0 for an empty one."""
        return max(self.values[name], default=0)

    def thinned(self, count: int) -> "Timeline":
        """Return at most ``count`` points: spans of equal length, each with the largest value that held in it.

        Peaks stay; a series that fits is returned as it is.
        """
        if len(self.times) <= count:
            return self
        first, last = self.times[0], self.times[-1]
        step = (last - first) / count
        starts = tuple(_whole(first + i * step) for i in range(count))
        bounds = [bisect_right(self.times, start) - 1 for start in starts] + [len(self.times) - 1]
        return Timeline(
            starts,
            {
                name: tuple(max(series[bounds[i] : bounds[i + 1] + 1]) for i in range(count))
                for name, series in self.values.items()
            },
        )


class TimelineBuilder:
    """Collects points; a series that a point does not name is 0 there, and one at the time of the last point replaces it."""

    def __init__(self) -> None:
        self._times: list[datetime] = []
        self._values: dict[str, list[Value]] = {}

    def add(self, at: datetime, values: Mapping[str, Value]) -> None:
        """Add a point; times must not go back."""
        if self._times and at == self._times[-1]:
            for series in self._values.values():
                series.pop()
            self._times.pop()
        assert not self._times or self._times[-1] < at, "times do not go back"
        for name, value in values.items():
            known = self._values.get(name)
            if known is None:
                known = self._values[name] = [0] * len(self._times)
            known.append(value)
        self._times.append(at)
        if len(values) < len(self._values):
            for series in self._values.values():
                if len(series) < len(self._times):
                    series.append(0)

    def build(self) -> Timeline:
        """Return what was collected."""
        return Timeline(
            tuple(self._times), {name: tuple(series) for name, series in self._values.items()}
        )


def _whole(at: datetime) -> datetime:
    return at - timedelta(microseconds=at.microsecond)

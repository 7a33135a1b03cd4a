"""A simulated licence server: who holds tokens in truth, and what it shows of that.

Tools take their tokens some time after their job starts, and the server has them back some time after it ends; users outside the
cluster take some as well. A checkout that finds none free is denied. Chance is drawn from the seed and the attempt.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from xce.domain.formats.licence_server import FeatureBehaviour, LicenceServerConfig
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.simulated_provider import outside_use
from xce.replay.draws import delay


@dataclass(slots=True)
class _Use:
    """Tokens of one attempt: taken from ``since`` on, back ``until`` then; None: not taken yet, or not back."""

    amount: int
    since: datetime | None = None
    until: datetime | None = None

    def held(self, now: datetime) -> int:
        if self.since is None or (self.until is not None and self.until <= now):
            return 0
        return self.amount


class LicenceServer:
    """One server."""

    def __init__(self, config: LicenceServerConfig, seed: int) -> None:
        self.name = config.name
        self.every = config.every
        self._features = {feature.name: feature for feature in config.features}
        self._seed = seed
        self._uses: dict[str, dict[tuple[str, int], _Use]] = {name: {} for name in self._features}
        self._outside: dict[str, int] = {}
        self._blind_until: datetime | None = None
        self._sequence = 0

    # -------------------------------------------------------------------- truth
    def take_on(self, feature: str, job: str, attempt: int, amount: int, now: datetime) -> datetime:
        """Return when an attempt that starts now takes its tokens."""
        self._uses.setdefault(feature, {})[job, attempt] = _Use(amount)
        spread = self._of(feature).checkout
        return now + delay(spread, self._seed, self.name, "checkout", f"{feature} {job} {attempt}")

    def check_out(
        self, job: str, attempt: int, totals: Mapping[str, int], now: datetime
    ) -> tuple[str, ...]:
        """Take the tokens of an attempt; return the features of which none were free."""
        denied: list[str] = []
        for feature, uses in self._uses.items():
            use = uses.get((job, attempt))
            if use is None or use.since is not None:
                continue
            if self.in_use(feature, now) + use.amount > totals.get(feature, use.amount):
                denied.append(feature)
                del uses[job, attempt]
            else:
                use.since = now
        return tuple(denied)

    def give_back(self, feature: str, job: str, now: datetime) -> None:
        """A job's last attempt has ended: its tokens linger for a while."""
        uses = self._uses.get(feature, {})
        for (name, attempt), use in list(uses.items()):
            if name != job or use.until is not None:
                continue
            if use.since is None:
                del uses[name, attempt]
                continue
            spread = self._of(feature).linger
            use.until = now + delay(
                spread, self._seed, self.name, "linger", f"{feature} {name} {attempt}"
            )

    def in_use(self, feature: str, now: datetime) -> int:
        """Return what is in use in truth, by us and by others."""
        uses = self._uses.get(feature, {})
        for key in [key for key, use in uses.items() if use.until is not None and use.until <= now]:
            del uses[key]
        ours = sum(use.held(now) for use in uses.values())
        others = self._outside.get(feature, outside_use(self._of(feature).outside, now))
        return ours + others

    # ------------------------------------------------------------ interference
    def set_outside(self, feature: str, amount: int) -> None:
        """Let others take this much from now on, whatever the time of day."""
        self._outside[feature] = amount

    def blind(self, until: datetime) -> None:
        """Show nothing until then."""
        self._blind_until = until

    # -------------------------------------------------------------------- shown
    def look(self, now: datetime) -> tuple[Observation, ...]:
        """Return what it shows now, one observation for each feature."""
        self._sequence += 1
        blind = self._blind_until is not None and now < self._blind_until
        return tuple(
            Observation(
                resource=name,
                source=self.name,
                sequence=self._sequence,
                quality=Quality.UNREACHABLE if blind else Quality.OK,
                in_use=None if blind else max(0, self.in_use(name, now) + feature.counted_twice),
                observed_at=now,
                received_at=now,
            )
            for name, feature in self._features.items()
        )

    def _of(self, feature: str) -> FeatureBehaviour:
        return self._features.get(feature) or FeatureBehaviour(name=feature)

"""The observers of a provisioner: they look in a thread of their own, and what they see goes to the controller."""

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Final

import structlog

from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.adapters.observers.looking import Looker, observer_of
from xce.domain.errors import XceError
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.observers import ObserverConfig

_LOG = structlog.get_logger("xce.provisioner")
#: Waits at most so long before it looks whether to stop.
_NAP_S: Final = 1.0


class Observing:
    """Looks when it is due, and reports; a controller that is away costs a report, never the next look."""

    def __init__(
        self,
        observers: Sequence[ObserverConfig],
        folder: Path,
        client: Client,
        clock: SystemClock,
        *,
        elapsed_s: Callable[[], float],
    ) -> None:
        """Make the observers.

        Raises:
            XceError: a recorded file cannot be read.
        """
        self._client = client
        self._elapsed_s = elapsed_s
        self._said: dict[str, Quality] = {}
        self._looker = Looker(
            [observer_of(config, folder, clock) for config in observers],
            self._report,
            first=int(clock.now().timestamp() * 1000),
        )

    def run(self, stopping: Event) -> None:
        """Look until it is to stop."""
        while not stopping.is_set():
            due_s = self._looker.step(self._elapsed_s())
            stopping.wait(max(0.0, min(_NAP_S, due_s - self._elapsed_s())))

    def _report(self, observations: tuple[Observation, ...]) -> None:
        for one in observations:
            if self._said.get(one.resource) is not one.quality:
                self._said[one.resource] = one.quality
                _LOG.info(
                    "observed",
                    resource=one.resource,
                    observer=one.source,
                    quality=one.quality.value,
                    in_use=one.in_use,
                    note=one.note,
                )
        try:
            self._client.report_observations(observations)
        except XceError as error:
            _LOG.warning("observations not reported", error=str(error))

"""The controller as the provisioner sees it: what is known, and what is to be made durable."""

from collections.abc import Mapping
from threading import Lock
from typing import Final, Protocol

from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.domain.engine.commands import Command
from xce.domain.errors import RejectedError
from xce.domain.formats.rest import LeaseEntry, Supply

#: Refusals that say: you may not act on this provider any more.
LEASE_CODES: Final = frozenset({"stale-epoch", "no-lease", "epoch-missing", "lease-held"})


class Books(Protocol):
    """The log, through the controller. Threads may share it."""

    def supply(self, not_before_s: float) -> Supply:
        """Return what is known, as it was at ``not_before_s`` of the monotonic clock or later.

        Raises:
            TransientError: it cannot be reached.
        """
        ...

    def orphans(self, provider: str) -> Mapping[str, str | None]:
        """Return the open orphans of a provider, by its ids: the id of the return under way, None: none is.

        Raises:
            TransientError: it cannot be reached.
        """
        ...

    def record(self, commands: tuple[Command, ...], epochs: Mapping[str, int]) -> None:
        """Make commands durable, all or nothing.

        Raises:
            RejectedError: the state does not allow it; nothing is recorded.
            TransientError: it cannot be reached; whether it is recorded is unknown.
        """
        ...


class ClientBooks:
    """Fulfils ``Books`` over REST. One reading serves all that ask for it at about the same time."""

    def __init__(
        self, client: Client, clock: SystemClock, *, good_for_s: float, zones: tuple[str, ...] = ()
    ) -> None:
        """Make it; a reading is used for ``good_for_s`` where nobody needs a newer one. ``zones``: whose days and months have budgets."""
        self._client = client
        self._clock = clock
        self._good_for_s = good_for_s
        self._zones = zones
        self._lock = Lock()
        self._read_s = float("-inf")
        self._supply: Supply | None = None

    def supply(self, not_before_s: float) -> Supply:
        """Return what is known, as it was at a moment or later."""
        with self._lock:
            now = self._clock.elapsed_s()
            oldest = max(not_before_s, now - self._good_for_s)
            if self._supply is None or self._read_s < oldest:
                supply = self._client.supply(self._zones)
                self._supply, self._read_s = supply, now
            return self._supply

    def orphans(self, provider: str) -> Mapping[str, str | None]:
        """Return the open orphans of a provider."""
        return {
            one.theirs: one.return_id for one in self._client.orphans() if one.provider == provider
        }

    def record(self, commands: tuple[Command, ...], epochs: Mapping[str, int]) -> None:
        """Make commands durable."""
        self._client.command(*commands, epochs=epochs)

    def leases(self) -> Mapping[str, LeaseEntry]:
        """Return the leases by provider."""
        return {one.provider: one for one in self._client.leases()}


def is_about_the_lease(error: RejectedError) -> bool:
    """Return whether a refusal says that we may not act on the provider."""
    return error.code in LEASE_CODES

"""The right to act on providers: taken, renewed, given up; and what this process knows of it at any moment (SPEC P1, F23).

A lease counts from when its last good renewal was *sent*, on a clock that cannot be set: whoever is frozen for a while finds on
waking that its time is over, before it does anything.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Lock
from typing import Final, Protocol

import structlog

from xce.domain.errors import LeaseHeldError, RejectedError, XceError
from xce.domain.formats.rest import LeaseEntry
from xce.domain.provisioning.lease import LeaseState

_LOG = structlog.get_logger("xce.provisioner")
#: Renewals within one term.
RENEWALS: Final = 3
#: Leases that are renewed in one order.
TOGETHER: Final = 50
#: A lease in doubt is tried to be taken anew after this.
DOUBT_S: Final = 5.0


class LeaseDesk(Protocol):
    """Where leases are given."""

    def leases(self) -> Mapping[str, LeaseEntry]:
        """Return the leases by provider."""
        ...

    def take(self, provider: str, holder: str, term: timedelta) -> int:
        """Take a lease; return its epoch."""
        ...

    def renew(self, epochs: Mapping[str, int], holder: str) -> None:
        """Renew leases, all or none."""
        ...

    def release(self, provider: str, holder: str) -> None:
        """Give a lease up."""
        ...


@dataclass(frozen=True, slots=True)
class _Held:
    epoch: int
    until_s: float


class Leases:
    """What is held now. Threads may share it.

    An order that was sent and not answered may still arrive, at any time. From then on its provider is in doubt: facts may be
    recorded and calls made, but nothing new is decided until the lease is taken anew, under an epoch that shuts out what is on its way.
    """

    def __init__(
        self, elapsed_s: Callable[[], float], doubted: Callable[[], None] = lambda: None
    ) -> None:
        """Hold nothing; ``doubted`` is told when a provider comes in doubt."""
        self._elapsed_s = elapsed_s
        self._doubted = doubted
        self._held: dict[str, _Held] = {}
        self._in_doubt: dict[str, int] = {}
        self._lock = Lock()

    def epoch(self, provider: str) -> int | None:
        """Return the epoch under which we may act on a provider now; None: we may not."""
        with self._lock:
            held = self._held.get(provider)
            if held is None or self._elapsed_s() >= held.until_s:
                return None
            return held.epoch

    def left_s(self, provider: str, epoch: int | None) -> float:
        """Return for how many seconds from now we may act on a provider under an epoch; 0: no more."""
        with self._lock:
            held = self._held.get(provider)
            if held is None or held.epoch != epoch:
                return 0.0
            return max(0.0, held.until_s - self._elapsed_s())

    def mine(self) -> dict[str, int]:
        """Return the epochs of all that may be acted on now."""
        now = self._elapsed_s()
        with self._lock:
            return {name: one.epoch for name, one in self._held.items() if now < one.until_s}

    def holds(self, provider: str, epoch: int, until_s: float) -> None:
        """A lease was taken, or renewed."""
        with self._lock:
            self._held[provider] = _Held(epoch, until_s)
            if self._in_doubt.get(provider) != epoch:
                self._in_doubt.pop(provider, None)

    def lost(self, provider: str) -> None:
        """It is somebody else's, or nobody's."""
        with self._lock:
            self._held.pop(provider, None)
            self._in_doubt.pop(provider, None)

    def doubt(self, provider: str, epoch: int) -> None:
        """An order under an epoch was sent, and nobody knows whether it arrives."""
        with self._lock:
            held = self._held.get(provider)
            if held is None or held.epoch != epoch:
                return  # it cannot arrive any more, or that is for the next holder
            self._in_doubt[provider] = epoch
        self._doubted()

    def in_doubt(self) -> frozenset[str]:
        """Return the providers of which something may still be on its way."""
        with self._lock:
            return frozenset(self._in_doubt)


class Permit:
    """For how long calls of one provider may begin, asked at the last moment before one does.

    A call is decided on under an epoch. Whoever is frozen between that and the call must not make it when somebody else has acted
    meanwhile, not even if the lease is ours again by then.
    """

    def __init__(self, leases: Leases, provider: str) -> None:
        self._leases = leases
        self._provider = provider
        #: What the provider's thread has begun to act under.
        self.epoch: int | None = None

    def left_s(self) -> float:
        """Return for how many seconds from now a call may begin; 0: no more."""
        return self._leases.left_s(self._provider, self.epoch)


class LeaseKeeper:
    """Takes what is free, renews what is held, in a thread of its own (``run``), so that nothing that takes long costs a lease."""

    def __init__(
        self,
        desk: LeaseDesk,
        leases: Leases,
        providers: Iterable[str],
        *,
        holder: str,
        term: timedelta,
        elapsed_s: Callable[[], float],
        taken: Callable[[str], None] = lambda provider: None,
    ) -> None:
        """Prepare; ``taken`` is told of each provider that becomes ours."""
        self._desk = desk
        self._leases = leases
        self._providers = tuple(providers)
        self._holder = holder
        self._term = term
        self._elapsed_s = elapsed_s
        self._taken = taken
        self._stopping = Event()
        self._news = Event()

    @property
    def period_s(self) -> float:
        """How long until the next step."""
        period_s = self._term.total_seconds() / RENEWALS
        return min(period_s, DOUBT_S) if self._leases.in_doubt() else period_s

    def run(self) -> None:
        """Keep leases until ``stop``; then give them up."""
        while not self._stopping.is_set():
            self._news.clear()
            self.step()
            self._news.wait(self.period_s)

    def wake(self) -> None:
        """Do a step now."""
        self._news.set()

    def stop(self) -> None:
        """End ``run``."""
        self._stopping.set()
        self._news.set()

    def step(self) -> None:
        """Renew what is held, take what is free, and take anew what is in doubt, once."""
        doubted = self._leases.in_doubt()
        self._renew(doubted)
        wanted = [
            one for one in self._providers if one in doubted or self._leases.epoch(one) is None
        ]
        if wanted and not self._stopping.is_set():
            self._take(wanted)

    def release(self) -> None:
        """Give up all that is held, so that another one need not wait for the term to end."""
        for provider in self._leases.mine():
            self._leases.lost(provider)
            try:
                self._desk.release(provider, self._holder)
            except XceError as error:
                _LOG.warning("lease not released", provider=provider, error=str(error))

    def _renew(self, doubted: Collection[str]) -> None:
        mine = [one for one in self._leases.mine().items() if one[0] not in doubted]
        for start in range(0, len(mine), TOGETHER):
            some = dict(mine[start : start + TOGETHER])
            if not self._renewed(some) and len(some) > 1:
                for provider, epoch in some.items():
                    self._renewed({provider: epoch})

    def _renewed(self, epochs: Mapping[str, int]) -> bool:
        """Renew; return whether no other try is needed."""
        until_s = self._elapsed_s() + self._term.total_seconds()
        try:
            self._desk.renew(epochs, self._holder)
        except RejectedError as error:
            if len(epochs) > 1:
                return False
            for provider in epochs:
                self._leases.lost(provider)
                _LOG.warning("lease lost", provider=provider, error=str(error))
            return True
        except (
            XceError
        ) as error:  # it lasts until its term ends; perhaps the next renewal comes through
            _LOG.warning("leases not renewed", providers=sorted(epochs), error=str(error))
            return True
        for provider, epoch in epochs.items():
            self._leases.holds(provider, epoch, until_s)
        return True

    def _take(self, wanted: Iterable[str]) -> None:
        try:
            known = self._desk.leases()
        except XceError as error:
            _LOG.warning("leases cannot be read", error=str(error))
            return
        for provider in wanted:
            entry = known.get(provider)
            others = (
                entry is not None
                and entry.state is LeaseState.HELD
                and entry.holder != self._holder
                and (entry.left_s or 0.0) > 0.0
            )
            if others:
                self._leases.lost(provider)
                continue
            until_s = self._elapsed_s() + self._term.total_seconds()
            try:
                epoch = self._desk.take(provider, self._holder, self._term)
            except LeaseHeldError:
                self._leases.lost(provider)
                continue
            except XceError as error:
                if isinstance(error, RejectedError):
                    self._leases.lost(provider)
                _LOG.warning("lease not taken", provider=provider, error=str(error))
                continue
            self._leases.holds(provider, epoch, until_s)
            _LOG.info("lease taken", provider=provider, epoch=epoch)
            self._taken(provider)

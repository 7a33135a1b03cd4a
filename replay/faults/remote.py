"""A provider as a process sees it: over a network that is late and loses, with its answers kept on the machine until they are recorded."""

from collections.abc import Callable, Iterable, Mapping

from xce.domain.errors import AdapterError
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    Holding,
    Refused,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)
from xce.replay.faults.checks import Checks
from xce.replay.faults.cloud import Cloud
from xce.replay.faults.network import Line, Network

#: Calls that change something fail so many times as often: nothing else matters as much.
_FRAIL = 4
#: Answers to asks that were heard on this machine, by tag.
Spool = dict[str, Accepted | Refused]


class RemoteProvider:
    """Fulfils ``FullProvider`` for one process."""

    def __init__(
        self,
        cloud: Cloud,
        line: Line,
        network: Network,
        checks: Checks,
        caller: str,
        spool: Spool,
        busy: Callable[[str], str | None],
    ) -> None:
        self._cloud = cloud
        self._line = line
        self._network = network
        self._checks = checks
        self._caller = caller
        self._spool = spool
        self._busy = busy

    def ask(self, ask: Ask, now: object) -> Accepted | Refused:
        """See ``Provider.ask``."""
        tags = self._cloud.means.tags
        self._checks.may_act(self._caller, self._cloud.name, f"ask for {ask.tag}")
        self._checks.asks(ask, self._cloud.name, tags=tags)

        def do() -> Accepted | Refused:
            return self._cloud.ask(ask)

        answer = self._network.call(self._line, do, slowest_s=400, twice=tags, frail=_FRAIL)
        self._spool[ask.tag] = answer
        self._network.call(Line("its own disk"), lambda: None, slowest_s=1, frail=_FRAIL)
        return answer

    def recall(self, tag: str, kind: Kind) -> Accepted | Refused | None:
        """See ``FullProvider.recall``."""
        return self._spool.get(tag)

    def status(self, provider_request_id: str, now: object) -> StatusAnswer:
        """See ``Provider.status``."""
        return self._network.call(self._line, lambda: self._cloud.status(provider_request_id))

    def statuses(
        self, ids: Iterable[str], now: object
    ) -> Mapping[str, StatusAnswer | AdapterError]:
        """See ``FullProvider.statuses``."""
        found: dict[str, StatusAnswer | AdapterError] = {}
        for one in ids:
            try:
                found[one] = self.status(one, now)
            except AdapterError as error:
                found[one] = error
        return found

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: object,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """See ``Provider.give_back``."""
        self._checks.may_act(self._caller, self._cloud.name, f"give {return_id} back")
        name = self._cloud.name

        def do() -> Accepted | Refused:
            self._checks.gives_back(name, return_id, machines, grants, self._busy)
            return self._cloud.give_back(return_id, machines, grants)

        return self._network.call(self._line, do, slowest_s=200, twice=True, frail=_FRAIL)

    def return_status(
        self, return_id: str, now: object, *, theirs: str | None = None
    ) -> ReturnStatus:
        """See ``Provider.return_status``."""
        return self._network.call(self._line, lambda: self._cloud.return_status(return_id))

    def describe(self, now: object) -> ProviderDescription | None:
        """See ``FullProvider.describe``."""
        return self._network.call(self._line, self._cloud.describe)

    def holdings(self, now: object) -> tuple[Holding, ...] | None:
        """See ``FullProvider.holdings``."""
        return self._network.call(self._line, self._cloud.holdings)

    def take_backs(self, machines: Mapping[str, str], now: object) -> tuple[TakeBack, ...]:
        """See ``FullProvider.take_backs``."""
        return self._network.call(self._line, lambda: self._cloud.take_backs(machines))

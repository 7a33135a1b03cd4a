"""A cloud that knows what it has really made, by whatever means it can be asked; and deaths at every boundary around it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from xce.domain.errors import AdapterError, TransientError
from xce.domain.formats.provider import (
    Capabilities,
    Kind,
    ProviderDescription,
    TemplateOffer,
)
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    Holding,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)


class Means(StrEnum):
    """How a provider can be asked what an ask has done."""

    TAG = "tag"
    LISTING = "listing"
    NEITHER = "neither"


class Killed(BaseException):
    """The process dies here; no handler eats it."""


@dataclass(slots=True)
class Fate:
    """Counts the boundaries of a run, and dies at one of them; 0: at none."""

    die_at: int = 0
    passed: int = 0
    names: list[str] = field(default_factory=list[str])

    def pass_by(self, name: str) -> None:
        self.passed += 1
        self.names.append(name)
        if self.passed == self.die_at:
            raise Killed(name)


@dataclass(slots=True)
class TrueMachine:
    machine: str
    tag: str
    template: str
    made_at: datetime
    gone: bool = False


class Cloud:
    """The truth. Without the means to recognise a tag, the same ask again makes more machines, as real ones do."""

    def __init__(self, means: Means, name: str = "cloud") -> None:
        self.means = means
        self.name = name
        self.machines: dict[str, TrueMachine] = {}
        #: How often each tag was asked.
        self.asks: Counter[str] = Counter()
        self.most_at_once = 0
        self.returned: Counter[str] = Counter()
        self.refuse: Refused | None = None
        self.fail: AdapterError | None = None
        #: Listings show so many machines fewer.
        self.hidden: set[str] = set()
        self.notices: tuple[TakeBack, ...] = ()
        #: Requests say that they run, and show nothing.
        self.stuck = False
        self.returns_refused: frozenset[str] = frozenset()
        self._requests: dict[str, tuple[str, ...]] = {}
        self._returns: dict[str, tuple[str, ...]] = {}

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        if self.fail is not None:
            raise self.fail
        if self.refuse is not None:
            return self.refuse
        theirs = f"add-{ask.tag}"
        if self.means is Means.TAG and theirs in self._requests:
            return Accepted(theirs)
        self.asks[ask.tag] += 1
        number = len(self.machines)
        made = [f"m{number + i + 1}" for i in range(self.make(ask.item, ask.amount))]
        for machine in made:
            self.machines[machine] = TrueMachine(machine, ask.tag, ask.item, now)
        self._requests[theirs] = (*self._requests.get(theirs, ()), *made)
        self.most_at_once = max(self.most_at_once, len(self.present()))
        return Accepted(theirs)

    def make(self, template: str, amount: int) -> int:
        """Return how many machines it makes when so many are asked."""
        return amount

    def recall(self, tag: str, kind: Kind) -> Accepted | Refused | None:
        return None

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        machines = self._requests.get(provider_request_id)
        if machines is None:
            return StatusAnswer(RequestStatus.COMPLETE_WITH_ERROR, message="no such request")
        if self.stuck:
            return StatusAnswer(RequestStatus.RUNNING)
        return StatusAnswer(
            RequestStatus.COMPLETE,
            tuple(MachineReport(one, one, MachineResult.SUCCEED) for one in machines),
        )

    def statuses(
        self, ids: Iterable[str], now: datetime
    ) -> Mapping[str, StatusAnswer | AdapterError]:
        return {one: self.status(one, now) for one in ids}

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        self._returns[return_id] = machines
        for machine in (one for one in machines if one not in self.returns_refused):
            self.machines[machine].gone = True
            self.returned[machine] += 1
        return Accepted(f"ret-{return_id}")

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        machines = frozenset(self._returns.get(return_id, ()))
        refused = tuple((one, "not now") for one in sorted(machines & self.returns_refused))
        status = RequestStatus.COMPLETE_WITH_ERROR if refused else RequestStatus.COMPLETE
        return ReturnStatus(status, machines - self.returns_refused, refused)

    def describe(self, now: datetime) -> ProviderDescription | None:
        return ProviderDescription(
            name=self.name,
            capabilities=Capabilities(
                request_tag=self.means is Means.TAG, listing=self.means is not Means.NEITHER
            ),
            templates=(TemplateOffer(template_id="c4"),),
        )

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        if self.means is Means.NEITHER:
            return None
        if self.fail is not None:
            raise self.fail
        return tuple(
            Holding(
                one.machine, Kind.HOST, one.template, one.tag, one.machine, launched_at=one.made_at
            )
            for one in self.present()
            if one.machine not in self.hidden
        )

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        return tuple(one for one in self.notices if one.machine in machines)

    def present(self) -> list[TrueMachine]:
        return [one for one in self.machines.values() if not one.gone]


class DyingCloud(Cloud):
    """Dies before and after each call that changes or tells something: after it, the cloud has acted and nobody heard."""

    def __init__(self, means: Means, fate: Callable[[], Fate]) -> None:
        super().__init__(means)
        self._fate = fate

    def _around(self, name: str) -> "_Around":
        return _Around(self._fate(), name)

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        with self._around("ask"):
            return super().ask(ask, now)

    def statuses(
        self, ids: Iterable[str], now: datetime
    ) -> Mapping[str, StatusAnswer | AdapterError]:
        with self._around("status"):
            return super().statuses(ids, now)

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        with self._around("give back"):
            return super().give_back(return_id, machines, grants, now, names=names)

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        with self._around("return status"):
            return super().return_status(return_id, now, theirs=theirs)

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        with self._around("listing"):
            return super().holdings(now)


@dataclass(slots=True)
class _Around:
    fate: Fate
    name: str

    def __enter__(self) -> None:
        self.fate.pass_by(f"before {self.name}")

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.fate.pass_by(f"after {self.name}")


AWAY = TransientError("too many requests")
MINUTE = timedelta(minutes=1)

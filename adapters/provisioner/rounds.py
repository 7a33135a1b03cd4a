"""Rounds of the policy: the newest demand becomes intents, each with the driver of its provider.

Every instance decides over all providers that somebody acts on, and carries out what concerns its own: so two instances come to one
plan without talking to each other.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from threading import Event
from typing import Final, Protocol

import structlog

from xce.adapters.provisioner.books import Books
from xce.adapters.provisioner.driver import Driver
from xce.adapters.provisioner.newest import Newest
from xce.adapters.provisioner.supplies import policy_of
from xce.domain.engine.calls import Step
from xce.domain.engine.commands import PauseProvider, RecordDecision
from xce.domain.engine.provisioner import Provisioner
from xce.domain.errors import XceError
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provisioner_config import Rhythm
from xce.domain.formats.rest import Supply
from xce.domain.formats.session_result import Demand, Idle
from xce.domain.formats.standing import BudgetUse, HeldBack, StandingReport
from xce.domain.policy.bounds import budget_uses
from xce.domain.provisioning.lease import LeaseState
from xce.domain.sharing.wants import terms_of_entry

_LOG = structlog.get_logger("xce.provisioner")
_NO_DEMAND: Final = Demand()
#: Holds of a round that the controller is told, and jobs of each.
HOLDS_TOLD: Final = 1000
#: Bounds of budgets that the controller is told, the fullest: as many as a report takes.
BUDGETS_TOLD: Final = 10_000
JOBS_TOLD: Final = 100
_NOT_IDLE: Final = Idle()


class Watch(Protocol):
    """Told what happens, for metrics."""

    def decided(self, decision: Decision) -> None:
        """Something was decided."""
        ...


class NoWatch:
    """Looks away."""

    def decided(self, decision: Decision) -> None:
        """Nothing."""


class Recorder(Protocol):
    """Keeps rounds."""

    def decided(
        self, inputs: PolicyInput, digest: str | None, decisions: tuple[Decision, ...]
    ) -> None:
        """The policy decided; ``digest`` is of the session result that the demand is of."""
        ...


class Rounds:
    """Decides again and again, in a thread of its own (``run``)."""

    def __init__(
        self,
        books: Books,
        engine: Provisioner,
        drivers: Mapping[str, Driver],
        newest: Newest,
        policy: PolicyConfig,
        rhythm: Rhythm,
        *,
        elapsed_s: Callable[[], float],
        wake: Callable[[str], None],
        watch: Watch | None = None,
        recorder: Recorder | None = None,
        tell: Callable[[StandingReport], None] | None = None,
    ) -> None:
        """Prepare; ``wake`` is told of each provider whose driver has something to do."""
        self._books = books
        self._engine = engine
        self._drivers = drivers
        self._newest = newest
        self._policy = policy
        self._settings = policy.settings()
        self._rhythm = rhythm
        self._elapsed_s = elapsed_s
        self._wake = wake
        self._watch = watch or NoWatch()
        self._recorder = recorder
        self._tell = tell
        self._said: frozenset[str] = frozenset()

    def run(self, stopping: Event) -> None:
        """Decide when there is news, and now and then without, until told to stop."""
        while not stopping.is_set():
            self._newest.news.wait(self._rhythm.review.total_seconds())
            self._newest.news.clear()
            if stopping.is_set():
                return
            try:
                if not self.once():
                    self._newest.news.set()  # again after the usual pause
            except XceError as error:
                _LOG.warning("no round", error=str(error))
            except Exception:  # noqa: BLE001 - the outermost loop: it says so and goes on
                _LOG.exception("a round met a defect")
            stopping.wait(self._rhythm.round.total_seconds())

    def once(self) -> bool:
        """Decide once, and carry it out; return whether all of that could be done.

        While an order of ours may still be on its way nothing is decided: it could bring what is decided a second time. What another
        thread records of a provider between the reading and the intents was not counted: these are left to the next round.

        Raises:
            TransientError: the controller cannot be reached.
        """
        drivers = self._drivers
        if any(driver.in_doubt for driver in drivers.values()):
            return False
        # Before anything is read: what is recorded later, under this epoch or another one, is not known here.
        under = {name: driver.decides_under for name, driver in drivers.items()}
        came = {name: driver.came for name, driver in drivers.items()}
        supply = self._books.supply(self._elapsed_s())
        inputs, digest = self.inputs(supply)
        asking = frozenset[str]().union(*(one.asking for one in drivers.values()))
        decisions, steps = self._engine.round(inputs, digest, asking)
        if self._recorder is not None:
            self._recorder.decided(inputs, digest, decisions)
        self._say(decisions)
        self._report(inputs, decisions)
        by_provider: dict[str, list[Step]] = {}
        for step in steps:
            by_provider.setdefault(_provider_of(step), []).append(step)
        complete = True
        for provider, some in by_provider.items():
            if under.get(provider) is None:
                continue  # it is another one's to carry out
            known = came[provider]
            if known is None:
                complete = False
                continue
            complete &= drivers[provider].submit(some, under=under[provider], came=known)
            self._wake(provider)
        return complete

    def inputs(self, supply: Supply) -> tuple[PolicyInput, str | None]:
        """Return the input of a round, and the digest of the session result that it is about."""
        published = self._newest.get()
        result = None if published is None else published.result
        acting = {one.provider for one in supply.leases if one.state is LeaseState.HELD}
        pools = {pool.name: pool for pool in supply.pools}
        return (
            PolicyInput(
                now=supply.now,
                position=supply.position if result is None else result.position,
                computed_at=self._newest.looked_at(supply.now, self._elapsed_s()),
                demand=_NO_DEMAND if result is None else result.demand,
                idle=_NOT_IDLE if result is None else result.idle,
                providers=tuple(one.description for one in supply.providers if one.name in acting),
                inventory=supply.inventory,
                budgets=self._policy.budgets,
                pauses=tuple(pause for one in supply.providers for pause in one.pauses),
                asked=supply.asked,
                failures=supply.failures,
                losses=supply.losses,
                spent=supply.spent,
                shared=tuple(
                    terms_of_entry(entry, pools.get(entry.name)) for entry in supply.shared
                ),
                settings=policy_of(self._settings, supply),
            ),
            None if published is None else published.digest,
        )

    def _report(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """Tell the controller how far budgets are used, and what is held and why; a round does not depend on it."""
        if self._tell is None:
            return
        holds = [one for one in decisions if one.kind is DecisionKind.HOLD]
        try:
            self._tell(
                StandingReport.model_construct(
                    budgets=_fullest(budget_uses(inputs)),
                    held_back=tuple(
                        HeldBack.model_construct(provider=name, why=why)
                        for name, driver in self._drivers.items()
                        if (why := driver.disbelieved) is not None
                    ),
                    holds=tuple(
                        one.model_copy(update={"jobs": one.jobs[:JOBS_TOLD]})
                        for one in holds[:HOLDS_TOLD]
                    ),
                )
            )
        except XceError as error:
            _LOG.warning("the controller was not told how we stand", error=str(error))

    def _say(self, decisions: tuple[Decision, ...]) -> None:
        """Log each decision; what is held back, or not carried out, once for as long as it is.

        What is decided about a provider that somebody else acts on is that one's to carry out and to log.
        """
        observing = self._settings.observe_only
        held = frozenset(
            one.reason for one in decisions if observing or one.kind is DecisionKind.HOLD
        )
        for decision in decisions:
            if not self._is_ours(decision):
                continue
            self._watch.decided(decision)
            if decision.reason in held and decision.reason in self._said:
                continue
            _LOG.info(
                "would do" if observing else "decided",
                decision=decision.kind.value,
                provider=decision.provider,
                item=decision.template or decision.resource,
                amount=decision.count if decision.count is not None else decision.amount,
                reason=decision.reason,
                jobs=len(decision.jobs),
            )
        self._said = held

    def _is_ours(self, decision: Decision) -> bool:
        """Return whether we are to carry a decision out, or it is to do nothing."""
        if decision.kind is DecisionKind.HOLD or decision.provider is None:
            return True
        driver = self._drivers.get(decision.provider)
        return driver is not None and driver.acts


def _fullest(uses: tuple[BudgetUse, ...]) -> tuple[BudgetUse, ...]:
    """Return the uses, in their order; of more than a report takes, those that are used the most."""
    if len(uses) <= BUDGETS_TOLD:
        return uses

    def fullness(number: int) -> tuple[bool, Fraction]:
        use = uses[number]
        share = Fraction(use.used) / Fraction(use.limit) if use.limit else Fraction(0)
        return (not use.limit and bool(use.used), share)

    told = sorted(range(len(uses)), key=fullness, reverse=True)[:BUDGETS_TOLD]
    return tuple(uses[number] for number in sorted(told))


def _provider_of(step: Step) -> str:
    if not step.commands:
        return step.calls[0].provider
    return next(
        one.provider for one in step.commands if isinstance(one, RecordDecision | PauseProvider)
    )

"""A provider that is a folder of scripts, behind the port: one call at a time, and every outcome found again after a crash."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from xce.adapters.providers import answers
from xce.adapters.providers.describing import Describing
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.providers.evidence import Evidence
from xce.adapters.providers.reading import Answered
from xce.adapters.providers.requests import accepted_or_refused
from xce.adapters.providers.returns import Returns
from xce.adapters.providers.runner import Reading, Runner
from xce.adapters.providers.statuses import Statuses
from xce.domain.errors import AdapterError, TransientError
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.provider_messages import (
    PER_CALL_MAX,
    CheckedMachine,
    CheckMachines,
    CheckMachinesAnswer,
    GetReturnRequestsAnswer,
    Given,
    GrantName,
    ListGrantsAnswer,
    ListMachinesAnswer,
    MachineName,
    Machines,
    Nothing,
    NotUnderstoodError,
    ObservedResource,
    ObserveResourcesAnswer,
    RenewResources,
    RenewResourcesAnswer,
    RequestMachines,
    RequestResources,
    TemplateCount,
    understood,
)
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import (
    Accepted,
    Ask,
    Checked,
    GrantBack,
    Holding,
    Refused,
    Renewed,
    ReportedMachine,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)

M = TypeVar("M", bound=BaseModel)


class ScriptProvider:
    """Fulfils ``FullProvider``. Calls may come from several threads and run one after the other.

    ``on_call`` is told of each call, in the calling thread, before the method returns or raises.
    """

    def __init__(
        self,
        settings: ScriptSettings,
        folder: Path,
        *,
        on_call: Callable[[Evidence], None] | None = None,
        left_s: Callable[[], float] | None = None,
    ) -> None:
        """Keep what is kept in ``folder``, which is the provider's own and must outlive the process.

        ``left_s`` says for how many seconds from now a script may begin; None: at any time.

        Raises:
            InputError: a secret that the settings name is not in the environment.
        """
        self.settings = settings
        self._runner = Runner(settings, folder, on_call, left_s)
        self._describing = Describing(self._runner)
        self._statuses = Statuses(self._runner)
        described = self._describing.known()
        self._returns = Returns(self._runner, self._statuses, tagged=described.contract >= 2)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.settings.name

    # --------------------------------------------------------------------- requests
    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Ask for hosts or units; an ask that was made from this machine is not made again, unless the provider knows its tag.

        Raises:
            OutcomeUnknownError: it is not known whether anything was created.
            TransientError: the script could not be started.
        """
        with self._runner.alone():
            script, given = self._input_of(ask)
            if not self._runner.has(script):
                return Refused("ScriptMissing", f"there is no script {script}")
            heard = self._runner.recall(script, ask.tag, subject=ask.tag)
            if heard is not None:
                try:
                    return self._accepted_or_refused(heard, script, ask.tag)
                except OutcomeUnknownError:
                    if not self._describing.known().capabilities.request_tag:
                        raise
                self._runner.folder.aside(self._runner.folder.kept_call(script, ask.tag))
            heard = self._runner.call(script, given, subject=ask.tag, key=ask.tag, tag=ask.tag)
            return self._accepted_or_refused(heard, script, ask.tag)

    def recall(self, tag: str, kind: Kind = Kind.HOST) -> Accepted | Refused | None:
        """Return what was answered to an ask made from this machine, without asking; None: it was not made from here.

        Raises:
            OutcomeUnknownError: it was made, and its answer is lost or cannot be read.
        """
        script = "requestResources" if kind is Kind.COUNTABLE else "requestMachines"
        if not self._runner.has(script):
            return None
        heard = self._runner.recall(script, tag, subject=tag)
        return None if heard is None else self._accepted_or_refused(heard, script, tag)

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Return where a request is; a terminal answer that was heard once is not asked for again."""
        answer = self.statuses([provider_request_id], now)[provider_request_id]
        if isinstance(answer, AdapterError):
            raise answer
        return answer

    def statuses(
        self, ids: Iterable[str], now: datetime
    ) -> Mapping[str, StatusAnswer | AdapterError]:
        """Return where requests are, by id, with as few calls as may be; the error of an id is its value."""
        found: dict[str, StatusAnswer | AdapterError] = {}
        names: dict[str, str] = {}
        for theirs, heard in self._statuses.of(ids).items():
            if isinstance(heard, AdapterError):
                found[theirs] = heard
                continue
            answer = found[theirs] = answers.status_answer(heard)
            names.update({one.machine: one.name for one in answer.machines})
        self._runner.folder.learn(names)
        return found

    # ---------------------------------------------------------------------- returns
    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """Give machines or amounts back; what was accepted under the same id is not given back again."""
        return self._returns.give_back(return_id, machines, grants, names or {})

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Return what became of a return, by machine id and grant id."""
        return self._returns.status(return_id, theirs)

    def renew(self, grants: tuple[str, ...], now: datetime) -> Renewed:
        """Put the ends of grants off; without the script they end when they would have."""
        script = "renewResources"
        if not self._runner.has(script):
            return Renewed()
        ends: list[tuple[str, datetime]] = []
        for start in range(0, len(grants), PER_CALL_MAX):
            some = tuple(
                GrantName(grant_id=grant) for grant in grants[start : start + PER_CALL_MAX]
            )
            answer = self._answer(script, RenewResources(grants=some), RenewResourcesAnswer)
            ends += [
                (one.grant_id, one.expires_at)
                for one in answer.grants
                if one.expires_at is not None
            ]
        return Renewed(tuple(ends))

    def check(self, machines: tuple[ReportedMachine, ...], now: datetime) -> Checked:
        """Look whether machines are in order; may be repeated."""
        script = "checkMachines"
        if not self._runner.has(script):
            return Checked()
        asked = tuple(
            CheckedMachine(
                name=one.name, machine_id=one.machine, host=one.host, template_id=one.template
            )
            for one in machines
        )
        answer = self._answer(script, CheckMachines(machines=asked), CheckMachinesAnswer)
        return Checked(
            tuple(
                (one.machine_id, one.result, one.message or one.status) for one in answer.machines
            )
        )

    # --------------------------------------------------------------- what there is
    def describe(self, now: datetime) -> ProviderDescription | None:
        """Return what the scripts and the settings say; None: nothing new, the last good description holds."""
        return self._describing.ask()

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """Return everything the provider has for us; None: it cannot list what it brings."""
        kinds = self._describing.known().kinds
        hosts = self._listed("listMachines", ListMachinesAnswer, Kind.HOST in kinds)
        grants = self._listed("listGrants", ListGrantsAnswer, Kind.COUNTABLE in kinds)
        if hosts is None or grants is None:
            return None
        found = answers.machine_holdings(hosts.machines if hosts else ())
        self._runner.folder.learn({one.theirs: one.name for one in found})
        return (*found, *answers.grant_holdings(grants.grants if grants else ()))

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        """Return which machines the provider takes back, or says are gone; without the script it never does."""
        script = "getReturnRequests"
        if not self._runner.has(script):
            return ()
        found: dict[str, TakeBack] = {}
        pairs = list(machines.items())
        for start in range(0, len(pairs), PER_CALL_MAX):
            some = pairs[start : start + PER_CALL_MAX]
            named = tuple(MachineName(name=name, machine_id=machine) for machine, name in some)
            answer = self._answer(script, Machines(machines=named), GetReturnRequestsAnswer)
            for one in answers.take_backs(answer.requests, machines):
                found.setdefault(one.machine, one)
        return tuple(found.values())

    def observe(self, now: datetime) -> tuple[ObservedResource, ...] | None:
        """Return what a monitor of the provider sees; None: it has none."""
        if not self._runner.has("observeResources"):
            return None
        return self._answer("observeResources", Nothing(), ObserveResourcesAnswer).resources

    # ----------------------------------------------------------------------- inside
    def _accepted_or_refused(self, heard: Reading, script: str, tag: str) -> Accepted | Refused:
        theirs: str | None = None
        try:
            answer = accepted_or_refused(heard, script)
            theirs = answer.provider_request_id if isinstance(answer, Accepted) else None
        except OutcomeUnknownError as error:
            theirs = error.suspect
            raise
        finally:
            if theirs is not None:
                run = self._runner.folder.kept_call(script, tag)
                self._runner.folder.forget_answer_before(run, theirs)
        return answer

    def _input_of(self, ask: Ask) -> tuple[str, Given]:
        if ask.kind is Kind.COUNTABLE:
            return "requestResources", RequestResources(
                resource=ask.item,
                amount=ask.amount,
                least_useful=ask.least_useful,
                request_tag=ask.tag,
            )
        return "requestMachines", RequestMachines(
            template=TemplateCount(template_id=ask.item, machine_count=ask.amount),
            rc_account=self.settings.account,
            request_tag=ask.tag if self._describing.known().contract >= 2 else None,
        )

    def _listed(self, script: str, model: type[M], wanted: bool) -> M | tuple[()] | None:
        """Return a list; () where nothing of the kind is brought, None where it cannot be listed."""
        if not wanted:
            return ()
        if not self._runner.has(script):
            return None
        return self._answer(script, Nothing(), model)

    def _answer(self, script: str, given: Given, model: type[M]) -> M:
        with self._runner.alone():
            heard = self._runner.call(script, given)
            self._runner.heard()
        if not isinstance(heard, Answered):
            raise TransientError(f"{script}: {heard.why}")
        try:
            return understood(model, heard.message)
        except NotUnderstoodError as error:
            raise TransientError(f"{script}: {error}") from None

"""What all trials of a check share: calling scripts within limits, waiting, and giving back all that was made."""

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from xce.adapters.providers import answers, call
from xce.adapters.providers.check.findings import Findings
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.adapters.providers.reading import Answered, Failed, Unclear
from xce.adapters.providers.requests import accepted_or_refused
from xce.adapters.providers.runner import Reading, Runner
from xce.adapters.providers.statuses import read_statuses
from xce.domain.errors import TransientError
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.provider_messages import (
    GetRequestStatus,
    Given,
    GrantAmount,
    ListGrantsAnswer,
    ListMachinesAnswer,
    MachineName,
    Machines,
    Nothing,
    NotUnderstoodError,
    RequestId,
    RequestReturnResources,
    StatusOfRequest,
    understood,
)
from xce.domain.formats.script_output import Message, Step
from xce.domain.ports import Accepted, MachineResult, Refused, RequestStatus

T = TypeVar("T")

_POLL_MIN_S: Final = 0.1
_POLL_MAX_S: Final = 5.0
#: After a wait that was in vain the others are short.
_SHORT_WAIT_S: Final = 5.0
_STATUS: Final = "getRequestStatus"
_ID: Final = re.compile(r"""["']requestId["']\s*:\s*["']([^"']{1,256})["']""")


@dataclass(slots=True)
class Made:
    """What the check made, and has not seen to be gone: names of machines and amounts of grants, by id; ids of open requests."""

    requests: dict[str, str] = field(default_factory=dict[str, str])
    machines: dict[str, str] = field(default_factory=dict[str, str])
    grants: dict[str, int] = field(default_factory=dict[str, int])
    unknown: list[str] = field(default_factory=list[str])


class Trial:
    """One check of one provider."""

    def __init__(self, runner: Runner, wait_s: float, tag: str) -> None:
        self.runner = runner
        self.findings = Findings()
        self.made = Made()
        self.description = ProviderDescription(name=runner.settings.name, contract=1)
        self.seconds: dict[str, float] = {}
        self._wait_s = wait_s
        self._tag = tag
        self._tags = 0
        self._hung: dict[str, int] = {}
        self.before: frozenset[str] = frozenset()
        self.asked_in_vain = 0
        self.names: dict[str, str] = {}

    # ------------------------------------------------------------------------ calls
    def new_tag(self) -> str:
        """Return a tag that was never used."""
        self._tags += 1
        return f"{self._tag}-{self._tags}"

    def call(self, script: str, given: Given, tag: str = "") -> Reading:
        """Run a script; note what it left running, and end that."""
        began = time.monotonic()
        try:
            with self.runner.alone():
                heard = self.runner.call(script, given, tag=tag)
                self._end_leftovers(script)
                self.runner.heard()
        except TransientError as error:
            return Unclear(str(error), "not started")
        self.seconds[script] = time.monotonic() - began
        if isinstance(heard, Unclear) and heard.step == "killed":
            self._hung[script] = self._hung.get(script, 0) + 1
        if isinstance(heard, Answered) and heard.step != Step.STRICT.value:
            self.findings.noted(script, f"its answer had to be looked for: {heard.step}")
        return heard

    def read(
        self,
        script: str,
        given: Given,
        what: str,
        reader: Callable[[Message], T],
        asked: str = "",
    ) -> T | None:
        """Run a script and read its answer; None: there is none that can be read, and the findings say so of ``what``."""
        heard = self.call(script, given)
        if not isinstance(heard, Answered):
            self.findings.broken(what, explained(heard) + asked)
            return None
        try:
            return reader(heard.message)
        except NotUnderstoodError as error:
            self.findings.broken(what, str(error) + asked)
            return None

    def hangs(self, script: str) -> bool:
        """Return whether a script was killed so often that it is not tried any more."""
        return self._hung.get(script, 0) >= 2

    def _end_leftovers(self, script: str) -> None:
        for folder in (self.runner.folder.path / "calls").iterdir():
            if call.end_all(folder):
                self.findings.noted(script, "left processes running, which were ended")

    # --------------------------------------------------------------------- requests
    def ask(self, script: str, given: Given, tag: str) -> Accepted | Refused | str:
        """Ask; return why where nobody knows what happened. What may come of it is seen to in the end."""
        answer = self._asked(script, given, tag)
        if isinstance(answer, Accepted):
            self.made.requests.setdefault(answer.provider_request_id, script)
        if not isinstance(answer, str):
            return answer
        self.asked_in_vain += self.description.granularity.minimum
        if self.description.capabilities.request_tag and not self.hangs(script):
            # What tags are for: the same tag is the same request.
            again = self._asked(script, given, tag)
            if isinstance(again, Accepted):
                self.made.requests.setdefault(again.provider_request_id, script)
            if not isinstance(again, str):
                return answer
        if not (_ID.search(answer) or "names the request" in answer):
            self.made.unknown.append(answer)
        return answer

    def _asked(self, script: str, given: Given, tag: str) -> Accepted | Refused | str:
        heard = self.call(script, given, tag)
        try:
            return accepted_or_refused(heard, script)
        except OutcomeUnknownError as error:
            # Every id that it may have meant is asked after in the end.
            for theirs in (error.suspect, *_ID.findall(str(error))):
                if theirs:
                    self.made.requests.setdefault(theirs, script)
            return str(error)

    def status(self, theirs: str) -> StatusOfRequest | str:
        """Return where a request or return is; why, where that cannot be known."""
        given = GetRequestStatus(requests=(RequestId(request_id=theirs),))
        heard = self.call(_STATUS, given)
        if not isinstance(heard, Answered):
            return heard.why
        answer = read_statuses(heard.message).get(theirs)
        if answer is None:
            return f"the answer has no request {theirs}"
        if not isinstance(answer, StatusOfRequest):
            return str(answer)
        if theirs in self.made.requests:
            self._note(answer)
        return answer

    def _note(self, answer: StatusOfRequest) -> None:
        for one in answers.status_answer(answer).machines:
            if one.result is not MachineResult.FAIL:
                self.made.machines.setdefault(one.machine, one.name)
        for grant in answer.grants:
            self.made.grants.setdefault(grant.grant_id, grant.amount)

    def wait_for(
        self, theirs: str, done: Callable[[StatusOfRequest], bool]
    ) -> tuple[StatusOfRequest | str, bool]:
        """Ask after a request until it is done or the wait is over; return the last answer, and whether it was done."""
        until = time.monotonic() + self._wait_s
        pause = _POLL_MIN_S
        errors = 0
        while True:
            answer = self.status(theirs)
            if isinstance(answer, StatusOfRequest):
                errors = 0
                if done(answer):
                    return answer, True
            else:
                errors += 1
                if errors >= 3 or self.hangs(_STATUS):
                    return answer, False
            if time.monotonic() + pause > until:
                self._wait_s = min(self._wait_s, _SHORT_WAIT_S)
                return answer, False
            time.sleep(pause)
            pause = min(pause * 1.5, _POLL_MAX_S)

    # --------------------------------------------------------------------- listings
    def listed(self) -> frozenset[str] | None:
        """Return the ids of all machines and grants that the provider lists; None: it does not."""
        found: set[str] = set()
        known = False
        for script in ("listMachines", "listGrants"):
            if not self.runner.has(script) or self.hangs(script):
                continue
            heard = self.call(script, Nothing())
            if not isinstance(heard, Answered):
                self.findings.broken(script, heard.why)
                return None
            try:
                found |= self._read_list(script, heard.message)
            except NotUnderstoodError as error:
                self.findings.broken(script, str(error))
                return None
            known = True
        return frozenset(found) if known else None

    def _read_list(self, script: str, message: Message) -> set[str]:
        """Return the ids of a list; what carries a tag of ours is ours."""
        if script == "listGrants":
            grants = understood(ListGrantsAnswer, message).grants
            for one in grants:
                if one.request_tag.startswith(self._tag):
                    self.made.grants.setdefault(one.grant_id, one.amount)
            return {one.grant_id for one in grants}
        machines = understood(ListMachinesAnswer, message).machines
        for machine in machines:
            self.names[machine.machine_id] = machine.name or machine.machine_id
            if machine.request_tag.startswith(self._tag) and machine.machine_id:
                self.made.machines.setdefault(
                    machine.machine_id, machine.name or machine.machine_id
                )
        return {one.machine_id or one.name for one in machines}

    # ---------------------------------------------------------------------- returns
    def give_back_machines(self, machines: Sequence[str]) -> Accepted | Refused | str:
        """Return machines."""
        tag = self.new_tag() if self.description.contract >= 2 else ""
        named = tuple(
            MachineName(name=self.made.machines.get(one, one), machine_id=one) for one in machines
        )
        return self._give_back(
            "requestReturnMachines", Machines(machines=named, request_tag=tag or None), tag
        )

    def give_back_grants(self, grants: Sequence[tuple[str, int]]) -> Accepted | Refused | str:
        """Return amounts of grants."""
        tag = self.new_tag()
        parts = tuple(GrantAmount(grant_id=grant, amount=amount) for grant, amount in grants)
        return self._give_back(
            "requestReturnResources", RequestReturnResources(grants=parts, request_tag=tag), tag
        )

    def _give_back(self, script: str, given: Given, tag: str) -> Accepted | Refused | str:
        heard = self.call(script, given, tag)
        try:
            return accepted_or_refused(heard, script)
        except OutcomeUnknownError as error:
            return str(error)

    def gone(self, items: Sequence[str]) -> None:
        """Note that machines or grants are gone."""
        for one in items:
            self.made.machines.pop(one, None)
            self.made.grants.pop(one, None)

    # --------------------------------------------------------------------- clean up
    def clean_up(self) -> tuple[str, ...]:
        """Give back all that was made; return what is left, in words."""
        if not self.hangs(_STATUS) and self.runner.has(_STATUS):
            for theirs in list(self.made.requests):
                answer = self.status(theirs)
                if isinstance(answer, StatusOfRequest) and answer.status is RequestStatus.RUNNING:
                    self.wait_for(theirs, lambda one: one.status is not RequestStatus.RUNNING)
        listed = self.listed()
        if listed is not None:
            made = (*self.made.machines, *self.made.grants)
            self.gone([one for one in made if one not in listed])
            new = listed - self.before - set(made)
            if len(new) <= self.asked_in_vain:
                self.made.machines.update({one: self.names.get(one, one) for one in new})
                self.made.unknown = []
            else:
                self.made.unknown = [f"{one} is new in the list" for one in sorted(new)]
        for _ in range(3):
            if not self.made.machines and not self.made.grants:
                break
            self._give_back_all()
        left = [f"machine {one}" for one in self.made.machines]
        left += [f"{amount} of grant {one}" for one, amount in self.made.grants.items()]
        left += [f"unknown: {why}" for why in self.made.unknown]
        return tuple(left)

    def _give_back_all(self) -> None:
        machines, grants = tuple(self.made.machines), tuple(self.made.grants.items())
        if machines and self._can("requestReturnMachines"):
            self._see_gone(self.give_back_machines(machines), machines)
        if grants and self._can("requestReturnResources"):
            self._see_gone(self.give_back_grants(grants), tuple(grant for grant, _ in grants))

    def _can(self, script: str) -> bool:
        return self.runner.has(script) and not self.hangs(script)

    def _see_gone(self, answer: Accepted | Refused | str, items: Sequence[str]) -> None:
        if isinstance(answer, Accepted):
            status, _ = self.wait_for(answer.provider_request_id, _is_over)
            if isinstance(status, StatusOfRequest):
                self.gone(tuple(answers.return_status(status, items).gone))


def _is_over(answer: StatusOfRequest) -> bool:
    return answer.status is not RequestStatus.RUNNING


def is_settled(answer: StatusOfRequest) -> bool:
    """Return whether a request is over and none of its machines is on its way."""
    return _is_over(answer) and not any(
        one.result is MachineResult.EXECUTING for one in answer.machines
    )


def explained(heard: Failed | Unclear) -> str:
    """Return why a call brought no answer."""
    return heard.why if isinstance(heard, Unclear) else f"it failed: {heard.why}"


def kill_midway(trial: Trial, script: str, given: Given, tag: str, after_s: float) -> None:
    """Start a script and kill it, with all it started, after a while."""
    folder = trial.runner.folder.passing_call(script)
    settings = trial.runner.settings
    limits = call.Limits(after_s, settings.output_limit)
    environment = trial.runner.environment(tag)
    call.run(trial.runner.scripts[script], given.to_json(), folder, environment, limits)
    call.discard(folder)


def run_raw(trial: Trial, script: str, text: str) -> Reading:
    """Run a script on an input that is none."""
    return trial.call(script, RawInput(text=text))


class RawInput(Given):
    """An input file of any text."""

    text: str

    def to_json(self) -> str:
        """Return the text as it is."""
        return self.text


def is_executable(path: Path) -> bool:
    """Return whether a script can be run by us."""
    return os.access(path, os.X_OK)

"""Where requests and returns are: asked together, one by one where a bad id fails the others, and never again once ended."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from xce.adapters.providers.answers import message_of
from xce.adapters.providers.reading import Answered
from xce.adapters.providers.runner import Reading, Runner
from xce.domain.errors import AdapterError, PermanentError, TransientError
from xce.domain.formats.provider_messages import (
    PER_CALL_MAX,
    GetRequestStatus,
    NotUnderstoodError,
    RequestId,
    StatusOfRequest,
    understood,
)
from xce.domain.formats.script_output import Message
from xce.domain.ports import RequestStatus

SCRIPT: Final = "getRequestStatus"


class Statuses:
    """The status script of a provider, and the terminal answers that were heard: some providers give them only once."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def of(self, ids: Iterable[str]) -> Mapping[str, StatusOfRequest | AdapterError]:
        """Return the answer, or the error, for each id of the provider."""
        answers: dict[str, StatusOfRequest | AdapterError] = {}
        with self._runner.alone():
            self._take_up()
            open_ids: list[str] = []
            for one in dict.fromkeys(ids):
                kept = self._kept(one)
                if kept is None:
                    open_ids.append(one)
                else:
                    answers[one] = kept
            for start in range(0, len(open_ids), PER_CALL_MAX):
                answers.update(self._asked(open_ids[start : start + PER_CALL_MAX]))
        return answers

    def one(self, theirs: str) -> StatusOfRequest:
        """Return the answer for one id.

        Raises:
            TransientError: it is not known now.
            PermanentError: there is no such script.
        """
        answer = self.of([theirs])[theirs]
        if isinstance(answer, AdapterError):
            raise answer
        return answer

    def _asked(self, ids: Sequence[str]) -> dict[str, StatusOfRequest | AdapterError]:
        if not self._runner.has(SCRIPT):
            return dict.fromkeys(ids, PermanentError(f"there is no script {SCRIPT}"))
        given = GetRequestStatus(requests=tuple(RequestId(request_id=one) for one in ids))
        try:
            reading = self._runner.call(SCRIPT, given, subject=ids[0] if len(ids) == 1 else "")
        except TransientError as error:
            return dict.fromkeys(ids, error)
        answers = self._heard(reading, ids)
        failed = [one for one in ids if isinstance(answers[one], AdapterError)]
        if len(ids) > 1 and not isinstance(reading, Answered) and reading.step != "killed":
            # One bad id may have failed them all. A script that was killed would be killed as often.
            for one in failed:
                answers.update(self._asked([one]))
        return answers

    def _heard(
        self, reading: Reading, ids: Sequence[str]
    ) -> dict[str, StatusOfRequest | AdapterError]:
        if not isinstance(reading, Answered):
            self._runner.heard()
            return {one: TransientError(f"{SCRIPT}: {reading.why}") for one in ids}
        found = read_statuses(reading.message)
        answers: dict[str, StatusOfRequest | AdapterError] = {}
        for one in ids:
            answer = found.get(one)
            if answer is None:
                answer = TransientError(f"{SCRIPT} says nothing of {one}")
            elif isinstance(answer, StatusOfRequest):
                self._keep(answer)
            answers[one] = answer
        self._runner.heard()
        return answers

    def _take_up(self) -> None:
        """Keep the terminal answers that a process heard and died."""
        for script, reading in self._runner.unread():
            if script == SCRIPT and isinstance(reading, Answered):
                for answer in read_statuses(reading.message).values():
                    if isinstance(answer, StatusOfRequest):
                        self._keep(answer)

    def _keep(self, answer: StatusOfRequest) -> None:
        if answer.status is not RequestStatus.RUNNING:
            self._runner.folder.keep_answer(answer.request_id, message_of(answer))

    def _kept(self, theirs: str) -> StatusOfRequest | None:
        message = self._runner.folder.answer(theirs)
        if message is None:
            return None
        try:
            return understood(StatusOfRequest, message)
        except NotUnderstoodError:
            return None  # of another release


def read_statuses(message: Message) -> dict[str, StatusOfRequest | AdapterError]:
    """Return what a status answer says, by id; an id with two different answers has none."""
    listed = message.get("requests")
    if listed is None and "requestId" in message:
        listed = [message]
    if isinstance(listed, dict):
        listed = [listed]
    found: dict[str, StatusOfRequest | AdapterError] = {}
    for one in listed if isinstance(listed, list) else ():
        theirs = str(one.get("requestId", "")) if isinstance(one, dict) else ""
        answer: StatusOfRequest | AdapterError
        try:
            answer = understood(StatusOfRequest, one)
        except NotUnderstoodError as error:
            answer = TransientError(f"{SCRIPT}: {theirs or 'a request'}: {error}")
        if theirs in found and found[theirs] != answer:
            answer = TransientError(f"{SCRIPT} says two different things of {theirs}")
        found[theirs] = answer
    return found

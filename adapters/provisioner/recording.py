"""What a provisioner was given, decided and heard, in a recording; what cannot be written ends the recording, never the provisioner."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from threading import Lock

import structlog

from xce.adapters.recordings import RecordingFile
from xce.domain.errors import AdapterError, TransientError, XceError
from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.ports import (
    Accepted,
    Ask,
    FullProvider,
    GrantBack,
    Holding,
    Refused,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)
from xce.replay.answers import (
    Answers,
    ask_call,
    give_back_call,
    return_status_call,
    status_call,
)
from xce.replay.recording import Line

_LOG = structlog.get_logger("xce.recording")


class ProvisionerRecorder:
    """Keeps rounds of the policy and answers of providers; any thread may call it."""

    def __init__(self, open_file: Callable[[], RecordingFile]) -> None:
        self._open = open_file
        self._lock = Lock()
        self._file: RecordingFile | None = None

    def begin(self) -> None:
        """Open the file; what was said before is not recorded.

        Raises:
            XceError: it cannot be made. Where the disk is full nothing is recorded.
        """
        try:
            self._file = self._open()
        except TransientError as error:  # that must not end the work
            _LOG.error("recording given up", why=str(error))

    def decided(
        self, inputs: PolicyInput, digest: str | None, decisions: tuple[Decision, ...]
    ) -> None:
        """The policy decided; ``digest`` is of the session result that the demand is of."""

        def write(file: RecordingFile) -> None:
            file.writer.round(inputs, decisions, digest=digest)
            file.flush()

        self._guarded(write)

    def answer(self, *, at: datetime, provider: str, call: Line, answer: Line) -> None:
        """See ``AnswerWriter.answer``."""
        self._guarded(
            lambda file: file.writer.answer(at=at, provider=provider, call=call, answer=answer)
        )

    def close(self) -> None:
        """End the recording; calls that are still under way are not recorded any more."""
        self._guarded(RecordingFile.close)
        self._file = None

    def _guarded(self, write: Callable[[RecordingFile], None]) -> None:
        with self._lock:
            file = self._file
            if file is None:
                return
            try:
                write(file)
            except XceError as error:
                self._file = None
                file.give_up()
                _LOG.error("recording given up", file=str(file.path), why=str(error))


class RecordedCalls:
    """Fulfils ``FullProvider`` by another one, and keeps what it answers, each new answer once."""

    def __init__(self, name: str, provider: FullProvider, recorder: ProvisionerRecorder) -> None:
        self._provider = provider
        self._said = Answers(name, recorder)

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """See ``Provider.ask``."""
        return self._said.of(ask_call(ask), now, partial(self._provider.ask, ask, now))

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """See ``Provider.status``."""
        make = partial(self._provider.status, provider_request_id, now)
        return self._said.of(status_call(provider_request_id), now, make)

    def statuses(
        self, ids: Iterable[str], now: datetime
    ) -> Mapping[str, StatusAnswer | AdapterError]:
        """See ``FullProvider.statuses``."""
        wanted = tuple(ids)
        try:
            answers = self._provider.statuses(wanted, now)
        except AdapterError as error:
            for one in wanted:
                self._said.failed(status_call(one), error, now)
            raise
        for one, answer in answers.items():
            if isinstance(answer, AdapterError):
                self._said.failed(status_call(one), answer, now)
            else:
                self._said.answered(status_call(one), answer, now)
        return answers

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """See ``Provider.give_back``."""
        make = partial(self._provider.give_back, return_id, machines, grants, now, names=names)
        return self._said.of(give_back_call(return_id, machines, grants), now, make)

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """See ``Provider.return_status``."""
        make = partial(self._provider.return_status, return_id, now, theirs=theirs)
        return self._said.of(return_status_call(return_id), now, make)

    def recall(self, tag: str, kind: Kind) -> Accepted | Refused | None:
        """See ``FullProvider.recall``; what was answered before is no new answer."""
        return self._provider.recall(tag, kind)

    def describe(self, now: datetime) -> ProviderDescription | None:
        """See ``FullProvider.describe``."""
        answer = self._provider.describe(now)
        if answer is not None:
            self._said.answered({"call": "describe"}, answer, now)
        return answer

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """See ``FullProvider.holdings``."""
        answer = self._provider.holdings(now)
        self._said.listed(answer, now)
        return answer

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        """See ``FullProvider.take_backs``."""
        answer = self._provider.take_backs(machines, now)
        for one in answer:
            self._said.answered({"call": "take_back", "machine": one.machine}, one, now)
        return answer

"""What a provider answered, as lines of a recording: each new answer once, so that a poll that brings nothing new is no line."""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol, TypeVar, cast

from pydantic import BaseModel

from xce.domain.errors import AdapterError
from xce.domain.ports import Ask, GrantBack, Holding
from xce.replay.recording import Line

Answer = TypeVar("Answer")

#: Calls whose last answer is remembered.
_REMEMBERED: Final = 10_000


class AnswerWriter(Protocol):
    """Keeps an answer."""

    def answer(self, *, at: datetime, provider: str, call: Line, answer: Line) -> None:
        """Record what a provider answered."""
        ...


class Answers:
    """The answers of one provider, on their way into a recording."""

    def __init__(self, provider: str, writer: AnswerWriter) -> None:
        self._provider = provider
        self._writer = writer
        self._last: dict[str, Line] = {}
        self._held: dict[tuple[str, str], Line] = {}

    def of(self, call: Line, now: datetime, make: Callable[[], Answer]) -> Answer:
        """Make a call, and record what it brings; an error is passed on.

        Raises:
            AdapterError: there is no answer.
        """
        try:
            answer = make()
        except AdapterError as error:
            self.failed(call, error, now)
            raise
        self.answered(call, answer, now)
        return answer

    def answered(self, call: Line, answer: object, now: datetime) -> None:
        """Record an answer, unless the same call had the same one before."""
        self._record(call, plain(answer), now)

    def failed(self, call: Line, error: AdapterError, now: datetime) -> None:
        """Record that there was no answer."""
        self._record(call, {"error": error.code, "why": str(error)}, now)

    def listed(self, holdings: Iterable[Holding] | None, now: datetime) -> None:
        """Record what is different from the last listing; None: the provider cannot list."""
        if holdings is None:
            return
        held = {(one.kind.value, one.theirs): plain(one) for one in holdings}
        gone = [name for name in self._held if name not in held]
        new = [one for name, one in held.items() if self._held.get(name) != one]
        self._held = held
        if gone or new:
            answer: Line = {"new": new, "gone": [list(name) for name in gone]}
            self._writer.answer(
                at=now, provider=self._provider, call={"call": "list"}, answer=answer
            )

    def _record(self, call: Line, document: Line, now: datetime) -> None:
        name = str(call)
        if self._last.get(name) == document:
            return
        self._last[name] = document
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        self._writer.answer(at=now, provider=self._provider, call=call, answer=document)


def ask_call(ask: Ask) -> Line:
    """Return an ask as it is recorded."""
    return {"call": "ask", **plain(ask)}


def status_call(provider_request_id: str) -> Line:
    """Return the question where a request is, as it is recorded."""
    return {"call": "status", "provider_request_id": provider_request_id}


def give_back_call(return_id: str, machines: Iterable[str], grants: Iterable[GrantBack]) -> Line:
    """Return a return as it is recorded."""
    parts = [plain(one) for one in grants]
    return {
        "call": "give_back", "return_id": return_id, "machines": list(machines), "grants": parts,
    }  # fmt: skip


def return_status_call(return_id: str) -> Line:
    """Return the question what became of a return, as it is recorded."""
    return {"call": "return_status", "return_id": return_id}


def plain(value: object) -> Line:
    """Return a dataclass or a model as JSON; sets are sorted."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    assert is_dataclass(value), "answers and calls are dataclasses"
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(_plain(one) for one in cast("Iterable[Any]", value))
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("Iterable[Any]", value)]
    return value

"""Invariant 2: one request for one intent, and no fact of a provider without an intent before it."""

from dataclasses import dataclass
from typing import ClassVar

from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.projections.invariants.report import Invariant


@dataclass(frozen=True, slots=True)
class _Intent:
    provider: str
    kind: Kind
    item: str


class Intents(Invariant):
    """Requests are unique, at the provider too; what came, and what went back, was intended before."""

    NAME: ClassVar[str] = "invariant-2"
    TITLE: ClassVar[str] = (
        "no two requests for one intent, and no fact of a provider without an intent before it"
    )

    def __init__(self) -> None:
        super().__init__()
        self._intents: dict[str, _Intent] = {}
        self._accepted: dict[tuple[str, str], str] = {}
        self._returns: set[tuple[str, str]] = set()
        self._returning: dict[str, str] = {}

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case Request.Intended():
                self._require(
                    event.originator_id not in self._intents,
                    f"there is an intent of {event.originator_id} before",
                )
                self._intents[event.originator_id] = _Intent(event.provider, event.kind, event.item)
            case Request.Accepted():
                self._accept(event)
            case Request.Event():
                self._intent_of(event.originator_id)
            case Instance.Granted():
                self._brought(event.request_id, event.provider, Kind.HOST, event.template)
            case Grant.Granted():
                self._brought(event.request_id, event.provider, Kind.COUNTABLE, event.resource)
            case Instance.Event():
                self._instance_return(event)
            case Grant.Event():
                self._grant_return(event)
            case _:
                pass

    def _intent_of(self, request: str) -> _Intent | None:
        intent = self._intents.get(request)
        self._require(intent is not None, f"there is no intent of {request} before it")
        return intent

    def _accept(self, event: Request.Accepted) -> None:
        intent = self._intent_of(event.originator_id)
        if intent is None:
            return
        key = (intent.provider, event.provider_request_id)
        other = self._accepted.setdefault(key, event.originator_id)
        self._require(
            other == event.originator_id,
            f"{event.provider_request_id} of provider {intent.provider} is {other} already",
        )

    def _brought(self, request: str, provider: str, kind: Kind, item: str) -> None:
        intent = self._intent_of(ids.request_id(request))
        if intent is not None:
            self._require(
                intent == _Intent(provider, kind, item),
                f"request {request} is for {intent.item} of provider {intent.provider},"
                f" not for {item} of {provider}",
            )

    def _instance_return(self, event: Instance.Event) -> None:
        instance = event.originator_id
        match event:
            case Instance.ReturnIntended():
                self._returning[instance] = event.return_id
            case Instance.ReturnAccepted():
                self._require_return(self._returning.get(instance) == event.return_id)
            case Instance.ReturnRefused():
                self._require_return(self._returning.pop(instance, None) == event.return_id)
            case Instance.Returned():
                self._require_return(self._returning.pop(instance, None) is not None)
            case Instance.Lost():
                self._returning.pop(instance, None)
            case _:
                pass

    def _grant_return(self, event: Grant.Event) -> None:
        grant = event.originator_id
        match event:
            case Grant.ReturnStarted():
                self._returns.add((grant, event.return_id))
            case Grant.ReturnConfirmed() | Grant.ReturnRefused():
                self._require_return((grant, event.return_id) in self._returns)
                self._returns.discard((grant, event.return_id))
            case _:
                pass

    def _require_return(self, known: bool) -> None:
        self._require(known, "there is no return under way that it answers")

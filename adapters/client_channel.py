"""How calls of the client library reach the controller: addresses, tries, standbys, pages, and the stream.

Every call that changes something carries an idempotency key, made once for all its tries; so an answer that was lost on the way is
asked for again without doing it again.
"""

import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import httpx
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from xce.adapters.client_errors import error_of
from xce.domain.errors import TransientError
from xce.domain.formats.base import Format
from xce.domain.formats.rest import DemandMessage, EventEntry

F = TypeVar("F", bound=Format)

#: Tries of one call, the first included: half a minute at least, which is longer than a restart or a failover takes.
ATTEMPTS: Final = 36
#: Longest wait between two tries.
WAIT_MAX_S: Final = 1.0
#: Of a question that a standby may answer, and of its answer, which says how far it has read the log.
STANDBY_HEADER: Final = "x-xce-standby"
POSITION_HEADER: Final = "x-xce-position"
#: Silence of a stream after which it is opened again; the controller says something every 15 s.
SILENCE_S: Final = 45.0


@dataclass(frozen=True, slots=True)
class Pushed:
    """One thing from the stream: an event of the log, or the newest session result."""

    event: EventEntry | None = None
    session: DemandMessage | None = None


class Channel:
    """The way to one controller, or to the one of several that is the primary. Threads may share it."""

    def __init__(
        self,
        addresses: Iterable[str],
        *,
        token: str | None,
        ca: str | Path | None,
        certificate: tuple[str | Path, str | Path] | None,
        timeout_s: float,
        attempts: int,
        sleep: Callable[[float], None],
        transport: httpx.BaseTransport | None,
        on_standby: Callable[[str, int], None] | None,
    ) -> None:
        """Make it, as ``Client`` says; nothing is called yet."""
        self._addresses = list(addresses)
        assert self._addresses, "a client has an address"
        self._current = 0
        self._sleep = sleep
        self._attempts = attempts
        self._on_standby = on_standby
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        verify: ssl.SSLContext | bool = True
        if ca is not None or certificate is not None:
            verify = ssl.create_default_context(cafile=None if ca is None else str(ca))
            if certificate is not None:
                verify.load_cert_chain(*map(str, certificate))
        self._http = httpx.Client(
            headers=headers, verify=verify, timeout=timeout_s, transport=transport
        )

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def get(self, path: str, answer: type[F]) -> F:
        """Return the answer to a question."""
        return answer.from_json(self.call("GET", path).content, path)

    def pages(self, path: str, page: type[Any]) -> Iterator[Any]:
        """Yield the items of a list, page after page."""
        cursor = ""
        while True:
            got = self.get(f"{path}?limit=1000{cursor}", page)
            yield from got.items
            if got.next is None:
                return
            cursor = f"&cursor={got.next}"

    def send(
        self, method: str, path: str, answer: type[F], document: Any, *, key: str | None = None
    ) -> F:
        """Change something, once, however often it is tried; return the answer."""
        response = self.call(
            method,
            path,
            content=json.dumps(document),
            headers={"idempotency-key": key or uuid4().hex},
        )
        return answer.from_json(response.content, path)

    def follow(self, flags: str, position: int | None) -> Iterator[Pushed]:
        """Yield what the stream says behind a position, for ever; a lost connection is opened again where it was.

        Raises:
            RejectedError: the controller refuses the caller.
            TransientError: it could not be reached in all tries.
        """
        failures = 0
        while True:
            query = flags if position is None else f"{flags}&after={position}"
            try:
                with self._http.stream(
                    "GET",
                    f"{self._addresses[self._current]}/v1/stream?{query}",
                    headers={"accept": "text/event-stream"},
                    timeout=httpx.Timeout(10.0, read=SILENCE_S),
                ) as response:
                    if response.status_code != 200:
                        response.read()
                        raise error_of(response)
                    for pushed in _messages(response.iter_lines()):
                        failures = 0
                        if pushed.event is not None:
                            position = pushed.event.position
                        yield pushed
            except (httpx.TransportError, TransientError) as error:
                failures += 1
                if failures >= self._attempts:
                    raise TransientError(f"the stream cannot be followed: {error}") from None
                self._next_address()
            self._sleep(min(WAIT_MAX_S, 0.1 * 2**failures))

    def call(
        self,
        method: str,
        path: str,
        *,
        content: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Call, again and again while it may help.

        Raises:
            RejectedError: the controller refuses.
            InputError: it cannot read it.
            TransientError: it did not answer in all tries.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(multiplier=0.05, max=WAIT_MAX_S * 0.9) + wait_random(0, 0.1),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(self._try, method, path, content, headers)
        except TransientError:
            behind = self._ask_standbys(path) if method == "GET" else None
            if behind is None:
                raise
            return behind

    def _ask_standbys(self, path: str) -> httpx.Response | None:
        """Return the answer of one that stands by; None: nobody has one, or it is not wanted."""
        if self._on_standby is None:
            return None
        for _ in self._addresses:
            address = self._addresses[self._current]
            try:
                response = self._try("GET", path, None, {STANDBY_HEADER: "allow"})
            except TransientError:
                continue  # which has gone on to the next address
            if STANDBY_HEADER in response.headers:
                self._on_standby(address, int(response.headers.get(POSITION_HEADER, "0")))
            return response
        return None

    def _try(
        self, method: str, path: str, content: str | None, headers: Mapping[str, str] | None
    ) -> httpx.Response:
        more = dict(headers or {})
        if content is not None:
            more["content-type"] = "application/json"
        address = self._addresses[self._current]
        try:
            response = self._http.request(method, f"{address}{path}", content=content, headers=more)
        except httpx.TransportError as error:
            self._next_address()
            why = f"{type(error).__name__}: {error}"
            raise TransientError(f"no answer from {address}: {method} {path}: {why}") from None
        if response.is_success:
            return response
        if response.status_code == 503:
            self._next_address()
        raise error_of(response)

    def _next_address(self) -> None:
        self._current = (self._current + 1) % len(self._addresses)


def _messages(lines: Iterable[str]) -> Iterator[Pushed]:
    """Yield what a text/event-stream says; comments are left out."""
    kind, data = "", ""
    for line in lines:
        if not line:
            if kind == "event":
                yield Pushed(event=EventEntry.from_json(data, "the stream"))
            elif kind == "session":
                yield Pushed(session=DemandMessage.from_json(data, "the stream"))
            kind, data = "", ""
            continue
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data = value.removeprefix(" ")

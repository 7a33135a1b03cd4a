"""The ASGI application: who calls, how large, how often; then one endpoint; then one line in the log.

Everything that goes wrong leaves as a problem document. Only a defect is a 500, and says where to look.
"""

import asyncio
import functools
import json
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final, cast
from urllib.parse import quote

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from xce.adapters.controller import openapi, orders, questions, stream
from xce.adapters.controller.access import Credentials, Gate, Rates
from xce.adapters.controller.calls import Call, Endpoint, Parameter, Reply, Service
from xce.adapters.controller.errors import NotPrimaryError, NotReadyError
from xce.adapters.controller.metrics import CONTENT_TYPE, Metrics
from xce.adapters.controller.problems import (
    PROBLEM_JSON,
    NoSuchMethodError,
    NoSuchPathError,
    RefusedCallError,
    TooLargeError,
    TooManyCallsError,
    UnauthenticatedError,
    WrongMediaTypeError,
    problem_of,
    retry_after_s,
    status_of,
)
from xce.adapters.controller.standby_reads import (
    ALLOW,
    POSITION_HEADER,
    PRIMARY_HEADER,
    STANDBY_HEADER,
    StandbyReads,
)
from xce.domain.engine.authorisation import Question, action_name, require
from xce.domain.engine.messages import Caller, Role
from xce.domain.engine.refusal_notes import UNKNOWN, Attempt
from xce.domain.errors import ForbiddenError, XceError
from xce.domain.formats.rest import Health

_LOG = structlog.get_logger("xce.controller")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
#: How long a body may take to come.
BODY_WITHIN_S: Final = 60.0
#: Where the TLS layer puts the common name of a verified client certificate.
COMMON_NAME: Final = "xce_common_name"

#: Stands for the caller where it does not matter who calls.
_NOBODY: Final = Caller(Role.VIEWER, "nobody")


class ControllerApp:
    """The interface of one live controller."""

    def __init__(self, service: Service, gate: Gate, metrics: Metrics) -> None:
        limits = service.config.limits
        clock = time.monotonic
        self.service = service
        self.metrics = metrics
        #: Set when the service ends: streams end then.
        self.stopping = asyncio.Event()
        self._gate = gate
        self._rates = Rates(limits.calls_per_second, limits.calls_burst, clock)
        self._failures = Rates(limits.failures_per_second, limits.failures_per_second * 4, clock)
        self._streams = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.endpoints = (*own_endpoints(self), *orders.ENDPOINTS, *questions.ENDPOINTS)
        self._document = json.dumps(openapi.document(self.endpoints))

    def asgi(self) -> Starlette:
        """Return the application."""
        routes = [
            Route(
                row.path,
                cast("Any", _Entry(self, row)),
                methods=[row.method],
                include_in_schema=False,
            )
            for row in self.endpoints
        ]
        return Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._unrouted, Exception: self._unrouted},
        )

    def end_streams(self) -> None:
        """Tell those who follow that this is the end; from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.stopping.set)

    # --------------------------------------------------------------- endpoints
    async def ready_endpoint(self, call: Call) -> Reply:
        """Whether orders are taken."""
        if not self.service.live.ready:
            raise NotReadyError("the controller takes no orders now")
        return Reply(Health())

    async def openapi_endpoint(self, call: Call) -> Reply:
        """This interface as an OpenAPI document."""
        return Reply(text=self._document)

    async def metrics_endpoint(self, call: Call) -> Reply:
        """Metrics in Prometheus' text format."""
        return Reply(text=self.metrics.text(self.service.turn.live).decode())

    async def follow_endpoint(self, call: Call) -> Reply:
        """Server-Sent Events. `event: session` has the newest session result (at once, and then each newer one; what was not
        taken in time is skipped); `event: event` has one event of the log, its position as id, none skipped."""
        raise AssertionError("a stream is not a reply")

    # ------------------------------------------------------------------- calls
    async def serve(self, row: Endpoint, request: Request, send: Any) -> None:
        """Answer one call."""
        begun = time.perf_counter()
        given = request.headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else token_hex(8)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        caller: Caller | None = None
        status = 500
        try:
            try:
                caller = self._admit(row, request)
                call = Call(
                    self.service,
                    caller or _NOBODY,
                    request.path_params,
                    request.query_params,
                    request.headers,
                    await self._body(row, request),
                    self._standby(row, request),
                )
                if row.stream:
                    status = 200
                    await self._stream(call, request, send, request_id)
                    return
                behind = None if call.standby is None else call.standby.head.position
                response = _response(row, await row.handler(call), call)
                if behind is not None:
                    response.headers[STANDBY_HEADER] = "true"
                    response.headers[POSITION_HEADER] = str(behind)
            except ClientDisconnect:
                status = 499
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets a problem document
                response = self._problem(row, error, request, caller, request_id)
            status = response.status_code
            response.headers["x-request-id"] = request_id
            with suppress(ClientDisconnect):
                await response(request.scope, request.receive, send)
        finally:
            self._done(row, request, caller, status, time.perf_counter() - begun)

    def _admit(self, row: Endpoint, request: Request) -> Caller | None:
        """Return who calls; None: it does not matter.

        Raises:
            RefusedCallError: nobody knows, or too often.
            ForbiddenError: the role does not allow it.
            NotPrimaryError: this controller stands by.
        """
        if row.open:
            return None
        peer = request.client.host if request.client is not None else "?"
        credentials = Credentials(
            request.headers.get("authorization"), request.scope.get("state", {}).get(COMMON_NAME)
        )
        try:
            caller = self._gate.caller(credentials)
        except UnauthenticatedError as error:
            self.metrics.refusal(error.code)
            self._failures.spend(peer)  # who has a token is not held up by those who have none
            self._note(Attempt(UNKNOWN, "authenticate", f"{error}; from {peer}"))
            raise
        structlog.contextvars.bind_contextvars(caller=caller.by)
        self._rates.spend(caller.by)
        if row.action is not None:
            try:
                require(caller, row.action)
            except ForbiddenError as error:
                self.metrics.refusal(error.code)
                self._note(Attempt(caller.by, action_name(row.action), str(error)))
                raise
        if not row.anywhere and self._standby(row, request) is None:
            self.service.turn.serving()
        return caller

    def _standby(self, row: Endpoint, request: Request) -> StandbyReads | None:
        """Return who answers in place of the primary; None: nobody may."""
        if not row.followed or request.headers.get(STANDBY_HEADER) != ALLOW:
            return None
        return self.service.turn.standby

    def _note(self, attempt: Attempt) -> None:
        """Put a refused attempt on the audit trail; a standby cannot write, and says it in its log."""
        live = self.service.turn.live
        if live is None:
            _LOG.warning("refused", caller=attempt.caller, action=attempt.action, why=attempt.why)
        else:
            live.refused(attempt)

    async def _body(self, row: Endpoint, request: Request) -> bytes:
        """Return the body.

        Raises:
            TooLargeError: it is larger than this endpoint takes.
            WrongMediaTypeError: it says that it is not JSON.
        """
        if request.method == "GET":
            return b""
        limits = self.service.config.limits
        largest = limits.session_mib * 1024**2 if row.large else limits.body_kib * 1024
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:15]) > largest:
            raise TooLargeError(f"the body has {length[:15]} bytes; at most {largest} are taken")
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
        if kind.lower() != "application/json":
            raise WrongMediaTypeError("wanted Content-Type: application/json")
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                async for piece in request.stream():
                    body += piece
                    if len(body) > largest:
                        raise TooLargeError(f"the body has more than {largest} bytes")
        except TimeoutError:
            raise RefusedCallError(f"the body did not come within {BODY_WITHIN_S:g} s") from None
        return bytes(body)

    async def _stream(self, call: Call, request: Request, send: Any, request_id: str) -> None:
        what = stream.wanted(call)
        if self._streams >= self.service.config.limits.streams:
            raise TooManyCallsError(
                f"{self._streams} streams are followed, which is all there may be"
            )
        self._loop = asyncio.get_running_loop()
        self._streams += 1
        self.metrics.streams.set(self._streams)
        try:
            await stream.follow(
                call,
                what,
                cast("Any", request.receive),
                send,
                stopping=self.stopping,
                request_id=request_id,
            )
        finally:
            self._streams -= 1
            self.metrics.streams.set(self._streams)

    # ------------------------------------------------------------------ errors
    def _problem(
        self,
        row: Endpoint | None,
        error: Exception,
        request: Request,
        caller: Caller | None,
        request_id: str,
    ) -> Response:
        if not isinstance(error, XceError):
            _LOG.error("a call met a defect", exc_info=error, path=request.url.path)
        response = Response(
            problem_of(error, path=request.url.path, request_id=request_id).to_json(),
            status_of(error),
            media_type=PROBLEM_JSON,
        )
        if (seconds := retry_after_s(error)) is not None:
            response.headers["retry-after"] = str(seconds)
        primary = self.service.turn.primary
        if isinstance(error, NotPrimaryError) and primary is not None and primary.url:
            response.headers[PRIMARY_HEADER] = quote(primary.url, safe=":/?&=%[]@")
        if isinstance(error, UnauthenticatedError):
            response.headers["www-authenticate"] = 'Bearer realm="xce"'
        if isinstance(error, TooLargeError):
            response.headers["connection"] = "close"
        return response

    async def _unrouted(self, request: Request, error: Exception) -> Response:
        """Answer what no endpoint is for."""
        found: Exception = error
        if isinstance(error, HTTPException):
            if error.status_code == 405:
                found = NoSuchMethodError(f"{request.method} is not among the path's methods")
            elif error.status_code == 404:
                found = NoSuchPathError("there is nothing at this path; see /v1/openapi.json")
            else:
                found = RefusedCallError("the call cannot be read")
        response = self._problem(None, found, request, None, token_hex(8))
        if isinstance(error, HTTPException) and error.headers:
            response.headers.update(error.headers)
        return response

    def _done(
        self, row: Endpoint, request: Request, caller: Caller | None, status: int, seconds: float
    ) -> None:
        operation = openapi.operation_id(row)
        self.metrics.call(operation, status, seconds)
        if self.service.config.request_log or _is_news(request.method, caller, status):
            say = _LOG.info
        else:
            say = _LOG.debug
        say(
            "call",
            method=request.method,
            path=request.url.path,
            operation=operation,
            status=status,
            seconds=round(seconds, 6),
            peer=request.client.host if request.client is not None else None,
        )
        structlog.contextvars.clear_contextvars()


def _is_news(method: str, caller: Caller | None, status: int) -> bool:
    """Return whether operators want to see a call: what a person changed, and what went wrong on either side.

    That a standby sends callers on, and that somebody calls too often, is none: there may be very many of them.
    """
    if status in (503, 429, 404, 409, 412):
        return False
    by_person = caller is not None and caller.role is Role.ADMIN and method != "GET"
    return by_person or status >= 400


def own_endpoints(app: Any = None) -> tuple[Endpoint, ...]:
    """Return the endpoints that are answered by the application itself; without one, for docs only."""
    of: Any = ControllerApp if app is None else app
    following = (
        Parameter(
            "after",
            "query",
            "position of the last event that is known; without it only new ones come",
            {"type": "integer", "minimum": 0, "maximum": questions.POSITION_MAX},
        ),
        Parameter("events", "query", "false: no events", {"type": "boolean", "default": True}),
        Parameter(
            "session",
            "query",
            "false: no session results",
            {"type": "boolean", "default": True},
        ),
    )
    return (
        Endpoint(
            "GET", "/readyz", "Whether orders are taken", of.ready_endpoint, Health, open=True
        ),
        Endpoint("GET", "/v1/openapi.json", "This document", of.openapi_endpoint, None, open=True),
        Endpoint(
            "GET",
            "/metrics",
            "Prometheus metrics",
            of.metrics_endpoint,
            None,
            Question.METRICS,
            anywhere=True,
        ),
        Endpoint(
            "GET",
            "/v1/stream",
            "Follow events and session results",
            of.follow_endpoint,
            None,
            Question.STREAM,
            None,
            following,
            stream=True,
        ),
    )


class _Entry:
    """One route as a plain ASGI application, so that a stream writes to the socket itself."""

    def __init__(self, app: ControllerApp, row: Endpoint) -> None:
        self._serve = functools.partial(app.serve, row)

    async def __call__(
        self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        await self._serve(Request(scope, receive), send)


def _response(row: Endpoint, reply: Reply, call: Call) -> Response:
    if reply.status == 204:
        return Response(status_code=204)
    media_type = CONTENT_TYPE if row.path == "/metrics" else "application/json"
    headers = {"cache-control": "no-store"}
    body = reply.body()
    etag = reply.etag
    if etag is None and row.conditional:
        etag = f'"h{sha256(body).hexdigest()[:32]}"'
        if call.has(etag):
            return Response(status_code=304, headers=headers | {"etag": etag})
    if etag is not None:
        headers["etag"] = etag
    return Response(body, reply.status, headers, media_type=media_type)

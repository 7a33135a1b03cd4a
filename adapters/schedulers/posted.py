"""A source that other schedulers post to: a small HTTP service beside the driver."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from xce.adapters.controller.access import Credentials, Gate, read_tokens
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import InputError, PermanentError, XceError
from xce.domain.formats.scheduler_config import PostedSource
from xce.domain.formats.scheduler_orders import OrdersDocument, document_of
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import SchedulerOrders

#: It must listen within this time.
STARTED_WITHIN_S: Final = 20.0
_MAY_POST: Final = frozenset({Role.SCHEDULER, Role.ADMIN})
_LOG = structlog.get_logger("xce.scheduler")


@dataclass(slots=True)
class _Board:
    """What was posted last, and what is to be done; threads share it."""

    snapshot: Snapshot | None = None
    orders: OrdersDocument = field(default_factory=lambda: OrdersDocument(position=0))
    news: threading.Event = field(default_factory=threading.Event)


class PostedSnapshots:
    """The newest snapshot that was posted."""

    def __init__(self, config: PostedSource) -> None:
        """Listen.

        Raises:
            InputError: the token file is wrong.
            PermanentError: the address is taken.
        """
        self._board = _Board()
        gate = Gate(read_tokens(Path(config.tokens)))
        self._server = uvicorn.Server(
            uvicorn.Config(
                _app(self._board, gate, config.size_mib * 1024 * 1024),
                host=config.listen.host,
                port=config.listen.port,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="xce-posted", daemon=True)
        self._thread.start()
        if not self._wait_for_start():
            raise PermanentError(
                f"cannot listen on {config.listen.host} port {config.listen.port}; is it taken?"
            )
        _LOG.info("listening for snapshots", host=config.listen.host, port=self.port)

    @property
    def port(self) -> int:
        """The port it listens on."""
        port: int = self._server.servers[0].sockets[0].getsockname()[1]
        return port

    def view(self) -> Snapshot | None:
        """Return the newest snapshot; None: none was posted since the start."""
        self._board.news.clear()
        return self._board.snapshot

    def obey(self, orders: SchedulerOrders) -> None:
        """Show the orders at ``GET /v1/orders``."""
        self._board.orders = document_of(orders)

    def wait(self, timeout_s: float) -> None:
        """Return when a snapshot was posted, or after the time."""
        self._board.news.wait(timeout_s)

    def close(self) -> None:
        """Stop listening."""
        self._server.should_exit = True
        self._board.news.set()
        self._thread.join(STARTED_WITHIN_S)

    def _serve(self) -> None:
        try:
            self._server.run()
        except SystemExit:  # the address is taken
            _LOG.error("the service for snapshots did not start")

    def _wait_for_start(self) -> bool:
        tries = round(STARTED_WITHIN_S / 0.02)
        for _ in range(tries):
            if self._server.started or not self._thread.is_alive():
                break
            self._thread.join(0.02)
        return self._server.started


def _app(board: _Board, gate: Gate, bytes_max: int) -> Starlette:
    async def put(request: Request) -> Response:
        caller = _caller(gate, request)
        if caller.role not in _MAY_POST:
            return _problem(403, "forbidden", f"the role {caller.role} may not post snapshots")
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > bytes_max:
                return _problem(413, "too-large", f"the snapshot is larger than {bytes_max} bytes")
        snapshot = await asyncio.to_thread(Snapshot.from_json, bytes(body), "the body")
        before = board.snapshot
        if before is not None and snapshot.now < before.now:
            return _problem(409, "rejected", f"there is a newer snapshot, of {before.now}")
        board.snapshot = snapshot
        board.news.set()
        return Response(status_code=204)

    async def get(request: Request) -> Response:
        _caller(gate, request)
        return Response(board.orders.to_json(), media_type="application/json")

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/v1/snapshot", _told(put), methods=["PUT"]),
            Route("/v1/orders", _told(get), methods=["GET"]),
            Route("/healthz", health, methods=["GET"]),
        ]
    )


def _caller(gate: Gate, request: Request) -> Caller:
    return gate.caller(Credentials(authorization=request.headers.get("authorization")))


def _told(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Any]:
    """Return a handler that answers errors with problem documents."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except InputError as error:
            problems = [{"path": one.path, "message": one.message} for one in error.problems]
            return _problem(422, error.code, "the snapshot cannot be accepted", problems)
        except XceError as error:
            return _problem(401, error.code, str(error))

    return handle


def _problem(
    status: int, code: str, detail: str, problems: list[dict[str, str]] | None = None
) -> Response:
    document = {
        "type": f"urn:xce:problem:{code}",
        "title": code,
        "status": status,
        "detail": detail,
        "code": code,
        "problems": problems or [],
    }
    return JSONResponse(document, status_code=status, media_type="application/problem+json")

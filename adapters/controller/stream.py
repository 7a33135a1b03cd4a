"""The push stream (Server-Sent Events): the newest session result, and events of the log.

A reader has a position and no queue. It is sent what is behind its position as fast as it takes it; of session results only the newest.
Who takes nothing for too long is cut off, and comes back with the position it had (``Last-Event-ID``).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import ClientDisconnect

from xce.adapters.controller.calls import Call
from xce.adapters.controller.questions import POSITION_MAX, demand_message
from xce.domain.formats.event_entry import event_entry

#: Sent when nothing happens, so that both ends notice a dead connection.
HEARTBEAT_S: Final = 15.0
#: Events of one message to the socket.
PIECE: Final = 200

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader wants.

    Attributes:
        after: position of the last event it knows; None: no events.
        session: whether it wants session results.
    """

    after: int | None
    session: bool


def wanted(call: Call) -> Wanted:
    """Return what a call wants to follow.

    Raises:
        RefusedCallError: the query is wrong.
    """
    present = call.live.feed.position
    after = call.number("after", present, POSITION_MAX)
    last = call.headers.get("last-event-id", "")
    if last.isascii() and last.isdigit() and len(last) <= 15:
        after = int(last)
    events = call.flag("events", True)
    return Wanted(min(after, present) if events else None, call.flag("session", True))


async def follow(
    call: Call,
    what: Wanted,
    receive: Receive,
    send: Send,
    *,
    stopping: asyncio.Event,
    request_id: str,
) -> None:
    """Send until the reader goes, stalls, or the controller stops."""
    news = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(news.set)

    unwatch = call.live.feed.watch(wake)
    gone = asyncio.ensure_future(_gone(receive))
    stop = asyncio.ensure_future(stopping.wait())
    stall_s = call.service.config.limits.stream_stall.total_seconds()
    position, known = what.after, (-1, False)
    try:
        await _send(send, stall_s, type="http.response.start", status=200,
                    headers=[*HEADERS, (b"x-request-id", request_id.encode())])  # fmt: skip
        while not (gone.done() or stop.done()):
            news.clear()
            text = ""
            if what.session:
                message = demand_message(call)
                if (message.number, message.result is None) != known:  # new, or too old by now
                    known = (message.number, message.result is None)
                    text += f"event: session\ndata: {message.to_json()}\n\n"
            more = False
            if position is not None:
                found = await asyncio.to_thread(call.live.events_after, position, PIECE)
                for recorded in found:
                    position = recorded.position
                    text += (
                        f"id: {position}\nevent: event\ndata: {event_entry(recorded).to_json()}\n\n"
                    )
                more = len(found) == PIECE
            if text:
                await _piece(send, stall_s, text)
            if not more:
                await _wait(news, gone, stop)
                if not news.is_set() and not (gone.done() or stop.done()):
                    await _piece(send, stall_s, ": nothing new\n\n")
        if not gone.done():
            await _send(send, stall_s, type="http.response.body", body=b"", more_body=False)
    finally:
        unwatch()
        gone.cancel()
        stop.cancel()


async def _wait(news: asyncio.Event, *ends: "asyncio.Future[Any]") -> None:
    waiting = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait(
            [waiting, *ends], timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        waiting.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _piece(send: Send, stall_s: float, text: str) -> None:
    await _send(send, stall_s, type="http.response.body", body=text.encode(), more_body=True)


async def _send(send: Send, stall_s: float, **message: Any) -> None:
    """Send, or give the reader up.

    Raises:
        ClientDisconnect: it took nothing for too long.
    """
    try:
        async with asyncio.timeout(stall_s):
            await send(message)
    except TimeoutError:
        raise ClientDisconnect from None

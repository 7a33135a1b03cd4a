"""A webhook on loopback that keeps what it is told, and answers as a test wants: well, with errors, never, or with malice."""

import socket
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, Event, Thread
from typing import Any

from xce.domain.formats.alert import AlertNotice

#: Bound on every wait of a test.
WITHIN_S = 60.0

#: What is done with one connection, once the call was read.
Answer = Callable[[socket.socket, "WebhookServer"], None]


@dataclass(frozen=True)
class Told:
    """One call."""

    headers: dict[str, str]
    body: bytes

    @property
    def notice(self) -> AlertNotice:
        return AlertNotice.from_json(self.body, "the call")


def status(number: int, *, headers: str = "") -> Answer:
    def answer(connection: socket.socket, server: "WebhookServer") -> None:
        text = f"HTTP/1.1 {number} X\r\ncontent-length: 0\r\n{headers}connection: close\r\n\r\n"
        connection.sendall(text.encode())

    return answer


def never(connection: socket.socket, server: "WebhookServer") -> None:
    """Take the call and say nothing until the test ends."""
    server.ending.wait(WITHIN_S)


def flood(connection: socket.socket, server: "WebhookServer") -> None:
    """Answer 200 with a body without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not server.ending.is_set():
        connection.sendall(b"x" * 65536)


def endless_headers(connection: socket.socket, server: "WebhookServer") -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not server.ending.is_set():
        connection.sendall(b"x-more: " + b"y" * 60_000 + b"\r\n")


def garbage(connection: socket.socket, server: "WebhookServer") -> None:
    connection.sendall(b"\x00\x1b[2J\xff" * 100)


class WebhookServer:
    """Answers each call with the next answer; with the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = deque(answers or (status(204),))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._news = Condition()
        self.told: list[Told] = []
        self.ending = Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/hook?key=hidden"
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def wait_for(self, number: int) -> list[Told]:
        """Return the calls, once there are so many."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.told) >= number, WITHIN_S), self.told
            return list(self.told)

    def close(self) -> None:
        self.ending.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(WITHIN_S)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            told = _read(connection)
            with self._news:
                answer = self._answers[0]
                if len(self._answers) > 1:
                    self._answers.popleft()
                self.told.append(told)
                self._news.notify_all()
            answer(connection, self)


def _read(connection: socket.socket) -> Told:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line.decode("latin-1").partition(":") for line in head.split(b"\r\n")[1:]]
    headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    while len(body) < int(headers["content-length"]):
        body += _some(connection)
    return Told(headers, body)


def _some(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise OSError("the caller is gone")
    return data


@contextmanager
def webhook(*answers: Answer) -> Generator[WebhookServer]:
    server = WebhookServer(*answers)
    try:
        yield server
    finally:
        server.close()


def settings(server: WebhookServer | str, name: str = "pager", **more: Any) -> dict[str, Any]:
    """Return the settings of a webhook that does not wait long."""
    url = server if isinstance(server, str) else server.url
    return {"name": name, "url": url, "retry_at_most": "1s", "timeout": "30s"} | more

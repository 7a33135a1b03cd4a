"""A TCP relay in front of a server that can lose things at chosen moments, as networks do."""

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread


class Proxy:
    """Relays connections to a port; ``lose_answer`` and ``hold_request`` say what befalls the next request."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        #: New connections are refused while this is set.
        self.unreachable = False
        self._lose_answer = False
        self._hold_request = False
        self._held: list[tuple[socket.socket, bytes]] = []
        self.lost = Event()
        self._sockets: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._start(self._accept)

    def lose_answer(self, *, then_unreachable: bool = False) -> None:
        """Carry the next request to the server, wait for its answer, and cut the connection instead of bringing it."""
        self._lose_answer = True
        self._then_unreachable = then_unreachable

    def hold_request(self) -> None:
        """Cut the client's side at the next request, and keep the request for ``deliver_held``."""
        self._hold_request = True

    def deliver_held(self) -> None:
        """Bring the requests that were held to the server, whose side of the connection was never cut."""
        for server, data in self._held:
            try:
                server.sendall(data)
                while server.recv(65536):
                    pass
            except OSError:
                continue  # the server has ended the session
        self._held.clear()

    def close(self) -> None:
        """Accept nothing more and end all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for relayed in self._sockets:
            with suppress(OSError):
                relayed.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for relayed in (self._listener, *self._sockets):
            relayed.close()

    def _start(self, target: Callable[..., None], *sockets: socket.socket) -> None:
        thread = Thread(target=target, args=sockets, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.unreachable:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._sockets += [client, server]
            self._start(self._requests, client, server)
            self._start(self._answers, client, server)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                if self._hold_request:
                    self._hold_request = False
                    self._held.append((server, data))
                    client.shutdown(socket.SHUT_RDWR)
                    return
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                if self._lose_answer:
                    self._lose_answer = False
                    self.unreachable = self._then_unreachable
                    client.shutdown(socket.SHUT_RDWR)
                    self.lost.set()
                    return
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

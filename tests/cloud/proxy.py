"""A relay in front of an EC2 stand-in: what EC2 does and the stand-in does not, and what clouds and networks do to chosen calls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qsl, urlencode
from xml.sax.saxutils import escape

Parameters = dict[str, str]


@dataclass(slots=True)
class Fault:
    """What befalls the next ``times`` calls of an action.

    Attributes:
        code: answered instead of acting, with an HTTP status and a message.
        acts: the call reaches the API; without a code.
        silent: the connection is cut instead of an answer, before or after it acted.
        slow: no answer comes until the client goes away.
        ask: what the API is asked instead.
        answer: what the client hears instead of the API's answer.
    """

    action: str
    times: int = 1
    code: str = ""
    status: int = 400
    message: str = "made up"
    acts: bool = False
    silent: bool = False
    slow: bool = False
    ask: Callable[[Parameters], Parameters] | None = None
    answer: Callable[[str], str] | None = None


@dataclass(slots=True)
class Seen:
    """The calls that came, in order."""

    calls: list[tuple[str, Parameters]] = field(default_factory=list[tuple[str, Parameters]])

    def of(self, action: str) -> list[Parameters]:
        """Return the parameters of the calls of an action."""
        return [parameters for name, parameters in self.calls if name == action]


class ApiProxy:
    """Relays to a port of this machine; ``faults`` are used up in their order."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.faults: list[Fault] = []
        self.seen = Seen()
        #: By client token: the parameters and the answer. The stand-in takes a repeated token for another launch.
        self.launches: dict[str, tuple[Parameters, tuple[int, str]]] = {}
        self._numbered: tuple[int, Fault] | None = None
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        # Clients keep their connections; the threads behind them end with the process.
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def befall(self, fault: Fault) -> None:
        """Let something befall the next calls of an action."""
        self.faults.append(fault)

    def befall_call(self, number: int, fault: Fault) -> None:
        """Let something befall the call of a number from now, whatever it is; the first is 1."""
        self._numbered = len(self.seen.calls) + number, fault

    def reset(self) -> None:
        """Forget what was seen and what was to come."""
        self.faults.clear()
        self.launches.clear()
        self._numbered = None
        self.seen = Seen()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def note(self, parameters: Parameters) -> Fault | None:
        """Note a call; return what befalls it."""
        action = parameters.get("Action", "")
        with self._lock:
            self.seen.calls.append((action, parameters))
            if self._numbered is not None and self._numbered[0] == len(self.seen.calls):
                return self._numbered[1]
            for fault in self.faults:
                if fault.action == action and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None


def _handler_of(proxy: ApiProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            parameters = dict(parse_qsl(body, keep_blank_values=True))
            fault = proxy.note(parameters)
            if fault is None:
                self._answer(*self._relayed(parameters))
            else:
                self._befall(fault, parameters)

        def _befall(self, fault: Fault, parameters: Parameters) -> None:
            if fault.ask is not None:
                parameters = fault.ask(parameters)
            acts = fault.acts or fault.ask is not None or fault.answer is not None
            status, text = self._relayed(parameters) if acts else (fault.status, "")
            if fault.code:
                status, text = fault.status, _error(fault.code, fault.message)
            if fault.answer is not None:
                text = fault.answer(text)
            if fault.slow:
                # The client sends nothing more on this connection: it hangs up, or the test would be stuck.
                self.connection.settimeout(60)
                self.connection.recv(1)
            if fault.slow or fault.silent:
                self.close_connection = True
                return
            self._answer(status, text)

        def _relayed(self, parameters: Parameters) -> tuple[int, str]:
            if parameters.get("Action") != "RunInstances":
                return self._asked(parameters)
            token = parameters.get("ClientToken", "")
            known = proxy.launches.get(token)
            if known is None:
                # EC2 brings as many as it can; the stand-in brings no more than it must.
                known = (
                    parameters,
                    self._asked({**parameters, "MinCount": parameters["MaxCount"]}),
                )
                if token:
                    proxy.launches[token] = known
            elif known[0] != parameters:
                return 400, _error("IdempotentParameterMismatch", "made up")
            return known[1]

        def _asked(self, parameters: Parameters) -> tuple[int, str]:
            connection = HTTPConnection("127.0.0.1", proxy.server_port, timeout=60)
            kept = ("Authorization", "X-Amz-Date", "Content-Type", "X-Amz-Security-Token")
            headers = {name: self.headers[name] for name in kept if self.headers[name]}
            try:
                connection.request("POST", "/", urlencode(parameters), headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            finally:
                connection.close()

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


def _error(code: str, message: str) -> str:
    return (
        f"<Response><Errors><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error></Errors>"
        "<RequestID>5f1e3c0a-made-up</RequestID></Response>"
    )

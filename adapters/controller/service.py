"""``xce controller`` as a process: configuration, log, TLS, signals, and a stop that loses nothing."""

import errno
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final, TextIO, cast

import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from xce.adapters.clock import SystemClock
from xce.adapters.controller.access import Gate, read_tokens, require_name
from xce.adapters.controller.alerts import WATCHMAN, Alerts, Surroundings, posters_of
from xce.adapters.controller.app import COMMON_NAME, ControllerApp
from xce.adapters.controller.calls import Board, Service
from xce.adapters.controller.live import LiveController
from xce.adapters.controller.metrics import Metrics
from xce.adapters.controller.reload import apply, changes_between
from xce.adapters.controller.turn import Turn, name_of
from xce.adapters.log_lines import LogLines
from xce.adapters.settings.load import bytes_of, read_model
from xce.adapters.signals import Signals
from xce.adapters.store.open import open_log
from xce.domain.alerts.alert import AlertKind
from xce.domain.engine.commands import DeclareShared
from xce.domain.engine.messages import Caller, Role
from xce.domain.engine.site_commands import RaiseAlert
from xce.domain.errors import InputError, PermanentError, TransientError, XceError
from xce.domain.formats.controller_config import ControllerConfig, problems

#: Who declares what the configuration has.
CONFIGURATION: Final = Caller(Role.ADMIN, "configuration")
_LOG = structlog.get_logger("xce.controller")


def read_controller_config(path: Path) -> ControllerConfig:
    """Return the configuration in a YAML file, with the names of files resolved against its folder.

    Raises:
        InputError: it cannot be read, or is wrong; it lists every problem with its line.
    """
    config = read_model(bytes_of(path), str(path), ControllerConfig, problems)
    folder = path.absolute().parent

    def placed(name: str) -> str:
        return str(folder / name)

    tls = config.tls
    if tls is not None:
        for client in tls.clients:
            require_name(client.name, str(path))
        tls = tls.model_copy(
            update={
                "certificate": placed(tls.certificate),
                "key": placed(tls.key),
                "client_ca": None if tls.client_ca is None else placed(tls.client_ca),
            }
        )
    log = config.log if "://" in config.log else placed(config.log)
    return config.model_copy(update={"log": log, "tokens": placed(config.tokens), "tls": tls})


def set_up_logging(*, pretty: bool | None = None, debug: bool = False) -> None:
    """Log to stderr: one JSON line for each thing that happened; for people on a terminal. ``debug``: each call, too."""
    on_terminal = sys.stderr.isatty() if pretty is None else pretty
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if debug else logging.INFO
        ),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, LogLines(sys.stderr))),
        cache_logger_on_first_use=False,
    )


class _Protocol(H11Protocol):
    """HTTP that tells the application whose certificate the TLS layer has verified."""

    def connection_made(self, transport: Any) -> None:
        """Take the common name from the connection."""
        certificate: Any = transport.get_extra_info("peercert") or {}
        names = [
            value
            for part in certificate.get("subject", ())
            for key, value in part
            if key == "commonName"
        ]
        self.app_state = {**self.app_state, COMMON_NAME: names[0] if len(names) == 1 else None}
        super().connection_made(transport)


class _Server(uvicorn.Server):
    """A server that tells its streams to end as soon as it is told to stop."""

    def __init__(
        self, config: uvicorn.Config, note: Callable[[int], None], started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._note = note
        self._told_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._told_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: stop, and go on to close the log. The library would raise it again and end the process before that."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._note(sig)


class ControllerService:
    """One controller process, or the same in a thread of a test."""

    def __init__(self, config: ControllerConfig, source: Path | None = None) -> None:
        """Read tokens and certificates; nothing is opened yet.

        Raises:
            InputError: a file is missing or wrong.
        """
        self.config = config
        self._source = source
        certificates = {
            client.common_name: Caller(client.role, client.name)
            for client in (config.tls.clients if config.tls is not None else ())
        }
        self._gate = Gate(read_tokens(Path(config.tokens)), certificates)
        self._tls = None if config.tls is None else _tls_context(config)
        self._posters = posters_of(config.alerts)
        self._board = Board()
        self._metrics = Metrics()
        self._alerts: Alerts | None = None
        self._server: _Server | None = None
        self._app: ControllerApp | None = None
        self._turn: Turn | None = None
        self._told_to_stop = False
        self._signals: Signals | None = None

    @property
    def live(self) -> LiveController:
        """The running controller."""
        live = None if self._turn is None else self._turn.live
        assert live is not None, "it is the primary"
        return live

    @property
    def port(self) -> int:
        """The port it listens on; 0: it does not yet."""
        server = self._server
        if server is None or not server.started:
            return 0
        port: int = server.servers[0].sockets[0].getsockname()[1]
        return port

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or ``stop``, at first perhaps standing by; what was acknowledged is on disk.

        Raises:
            TransientError: another controller has taken the log over.
            XceError: the log cannot be opened or owned, or the address is taken.
        """
        config = self.config
        if current_thread() is main_thread():
            self._signals = Signals(self._on_signal)
            if self._source is not None:
                self._signals.on(signal.SIGHUP)
        metrics = self._metrics
        # First: who cannot be reached must not become the primary.
        with _bound(config) as listener, open_log(config.log) as log:
            turn = self._turn = Turn(
                log, config, metrics, on_primary=self._take_up, on_end=self.stop
            )
            try:
                turn.begin()
                self._serve(turn, metrics, listener)
            finally:
                if self._alerts is not None:
                    self._alerts.close()
                turn.close()
        live = turn.live
        _LOG.info("stopped", position=turn.position)
        if turn.failure is not None:
            raise turn.failure
        if live is not None and live.lost is not None:
            raise TransientError(
                f"{config.log}: this controller does not own the log any more: {live.lost}"
            )

    def stop(self) -> None:
        """End as after a signal; may be called from another thread."""
        self._told_to_stop = True
        if self._server is not None:
            self._end_streams()
            self._server.should_exit = True

    def reload(self, source: Path) -> tuple[str, ...]:
        """Read the configuration and the tokens anew; return what is different. What cannot change at once waits for the next start.

        Raises:
            InputError: the file is wrong; it lists every problem, and nothing has changed.
            XceError: this controller is not the primary, or the change cannot be recorded.
        """
        new = read_controller_config(source)
        tokens = read_tokens(Path(new.tokens))
        live = None if self._turn is None else self._turn.live
        if live is None:  # one that stands by declares it when it takes over
            changes = changes_between(self.config, new)
        else:
            changes = apply(live, CONFIGURATION, self.config, new)
        self._gate.replace(tokens)
        self.config = new
        return changes

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._reload()
            return
        _LOG.info("stopping", signal=number)
        self._end_streams()

    def _note(self, number: int) -> None:
        if self._signals is not None:  # a server in a thread hears of none
            self._signals.note(number)

    def _reload(self) -> None:
        assert self._source is not None, "the signal is handled only then"
        try:
            changes = self.reload(self._source)
        except XceError as error:
            _LOG.error("configuration not reloaded", why=str(error), code=error.code)
        else:
            _LOG.info("configuration reloaded", changes=list(changes))

    def _take_up(self, live: LiveController) -> None:
        """Do what a new primary does before anybody gives it an order."""
        for pool in self.config.shared:
            live.submit(CONFIGURATION, DeclareShared.of(pool)).result()
        settings, board, clock = self.config.alerts, self._board, SystemClock()
        name, turn = name_of(self.config), self._turn
        assert turn is not None, "it is this turn's primary"
        if AlertKind.TAKEN_OVER in settings.kinds and (before := turn.before) is not None:
            live.submit(
                WATCHMAN,
                RaiseAlert(
                    AlertKind.TAKEN_OVER,
                    f"epoch {live.epoch}",
                    f"{name} took the place of {before.name}, which did not end by itself",
                ),
            ).result()
        around = Surroundings(
            live=live,
            name=name,
            pools=lambda: self.config.shared,
            standing=lambda: board.standing_at(clock.elapsed_s()),
            no_session=lambda: board.no_session_at(clock.elapsed_s()),
            watch=self._metrics,
            clock=clock,
        )
        self._alerts = Alerts(around, settings, self._posters)
        self._alerts.start()

    def _serve(self, turn: Turn, metrics: Metrics, listener: socket.socket) -> None:
        config = self.config
        self._app = app = ControllerApp(Service(turn, config, self._board), self._gate, metrics)
        uvicorn_config = uvicorn.Config(
            app.asgi(),
            host=config.listen.host,
            port=config.listen.port,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=max(1, round(config.stop_within.total_seconds())),
            timeout_keep_alive=30,
            backlog=512,
            h11_max_incomplete_event_size=64 * 1024,
        )
        uvicorn_config.load()
        uvicorn_config.ssl = self._tls

        def say_so() -> None:
            _LOG.info(
                "serving",
                host=config.listen.host,
                port=listener.getsockname()[1],
                tls=self._tls is not None,
                primary=turn.live is not None,
                position=turn.position,
            )

        self._server = server = _Server(uvicorn_config, self._note, say_so)
        server.should_exit = self._told_to_stop  # it may have been while there was none
        server.run([listener])

    def _end_streams(self) -> None:
        app = self._app
        if app is not None:
            app.end_streams()


def _bound(config: ControllerConfig) -> socket.socket:
    """Return a socket that has the address; nobody can connect to it yet.

    Raises:
        PermanentError: it cannot be had; says what to do.
    """
    host, port = config.listen.host, config.listen.port
    place = f"cannot listen on {host} port {port}"
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
    except OSError as error:
        raise PermanentError(f"{place}: {error.strerror or error}; see listen.host") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        hint = {
            errno.EADDRINUSE: "another program listens there, perhaps a controller that runs already: "
            "end it, or give this one another listen.port",
            errno.EADDRNOTAVAIL: "this machine does not have that address; see listen.host",
            errno.EACCES: "ports below 1024 need a privilege; give another listen.port",
        }.get(error.errno or 0, "see listen in the configuration")
        raise PermanentError(f"{place}: {os.strerror(error.errno or 0).lower()}: {hint}") from None
    return made


def _tls_context(config: ControllerConfig) -> ssl.SSLContext:
    tls = config.tls
    assert tls is not None, "called with TLS only"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise InputError.of(
            tls.certificate, f"no certificate and key to serve with: {error}"
        ) from None
    if tls.client_ca is not None:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise InputError.of(
                tls.client_ca, f"no certificates of an authority: {error}"
            ) from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context

"""Prometheus metrics and health of one provisioner, served on a port of its own."""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, Final
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from xce.domain.errors import PermanentError
from xce.domain.formats.policy import Decision
from xce.domain.formats.provisioner_config import Monitor

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0)


class Metrics:
    """What is counted; the watch of drivers and rounds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "xce_provider_calls",
            "Calls of providers",
            ("provider", "call", "outcome"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "xce_provider_call_seconds",
            "Time of one call of a provider",
            ("provider", "call"),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._decisions = Counter(
            "xce_decisions", "Decisions of the policy", ("kind",), registry=self.registry
        )
        self._held = Gauge(
            "xce_losses_held_back",
            "1: a listing lacks so much that it is asked again",
            ("provider",),
            registry=self.registry,
        )
        self._leases = Gauge(
            "xce_lease_held", "1: we act on this provider", ("provider",), registry=self.registry
        )
        self._waiting = Gauge(
            "xce_calls_waiting", "Calls that wait", ("provider",), registry=self.registry
        )
        self._restarts = Gauge(
            "xce_worker_restarts",
            "How often the worker of a provider met a defect",
            ("provider",),
            registry=self.registry,
        )

    def called(self, provider: str, call: str, outcome: str, seconds: float) -> None:
        """A call was made."""
        kind = "listed" if outcome.endswith(" held") else outcome
        self._calls.labels(provider, call, kind).inc()
        self._seconds.labels(provider, call).observe(seconds)

    def held_back(self, provider: str, why: str | None) -> None:
        """Losses that a listing shows are not believed yet; None: nothing is held back."""
        self._held.labels(provider).set(0 if why is None else 1)

    def decided(self, decision: Decision) -> None:
        """Something was decided."""
        self._decisions.labels(decision.kind).inc()

    def watch_leases(self, providers: Iterable[str], epoch: Callable[[str], int | None]) -> None:
        """Read at each scrape which leases are held."""
        for name in providers:
            self._leases.labels(name).set_function(
                lambda name=name: 0 if epoch(name) is None else 1  # type: ignore[misc]  # bound now
            )

    def watch_worker(
        self, provider: str, waiting: Callable[[], int], restarts: Callable[[], int]
    ) -> None:
        """Read at each scrape what waits, and how often the worker was started again."""
        self._waiting.labels(provider).set_function(waiting)
        self._restarts.labels(provider).set_function(restarts)

    def serve(self, monitor: Monitor) -> "Served":
        """Serve them on a port until closed.

        Raises:
            PermanentError: the port is taken.
        """
        try:
            server, thread = start_http_server(monitor.port, monitor.host, self.registry)
        except OSError as error:
            raise PermanentError(
                f"cannot listen on {monitor.host} port {monitor.port}: {error.strerror or error}"
            ) from None
        return Served(server, thread)


class Served:
    """Metrics on a port."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        self._server: Any = server
        self._thread = thread

    @property
    def port(self) -> int:
        """The port."""
        port: int = self._server.server_port
        return port

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

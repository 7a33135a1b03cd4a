"""Prometheus metrics of one controller, in a registry of its own."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from xce.adapters.controller.live import LiveController
from xce.domain.alerts.alert import AlertKind

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_SIZES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class Metrics:
    """What is counted; also the writer's watch."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._appends = Histogram(
            "xce_append_seconds", "Time of one append", registry=self.registry, buckets=_SECONDS
        )
        self._batches = Histogram(
            "xce_batch_orders", "Orders of one append", registry=self.registry, buckets=_SIZES
        )
        self._events = Counter("xce_events", "Events appended", registry=self.registry)
        self._calls = Counter(
            "xce_calls", "Calls answered", ("operation", "status"), registry=self.registry
        )
        self._call_seconds = Histogram(
            "xce_call_seconds",
            "Time of one call",
            ("operation",),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._refusals = Counter(
            "xce_refusals", "Calls refused for who called", ("why",), registry=self.registry
        )
        self.streams = Gauge("xce_streams", "Streams that are followed", registry=self.registry)
        self._position = Gauge(
            "xce_log_position", "Position of the last event", registry=self.registry
        )
        self._primary = Gauge(
            "xce_primary", "1: this controller owns the log", registry=self.registry
        )
        self._session_age = Gauge(
            "xce_session_age_seconds",
            "Age of the newest session result; -1: none",
            registry=self.registry,
        )
        self._hosts = Gauge(
            "xce_instances", "Instances that exist", ("state",), registry=self.registry
        )
        self._open = Gauge("xce_requests", "Requests", ("state",), registry=self.registry)
        self._units = Gauge(
            "xce_shared_units", "Shared resources", ("resource", "part"), registry=self.registry
        )
        self._drift = Gauge(
            "xce_shared_drift",
            "Seen by the licence server less booked; not there: unknown",
            ("resource",),
            registry=self.registry,
        )
        self._cost = Gauge("xce_cost_per_hour", "What lives costs per hour", registry=self.registry)

        self._alerts = Gauge(
            "xce_alerts", "Alerts that are raised", ("kind",), registry=self.registry
        )
        self._notices = Counter(
            "xce_notices",
            "Notices of alerts: delivered, refused, expired; failed: a try",
            ("webhook", "outcome"),
            registry=self.registry,
        )
        self._notices_waiting = Gauge(
            "xce_notices_waiting",
            "Notices that a webhook is still to be told",
            ("webhook",),
            registry=self.registry,
        )

    def batch(self, orders: int, events: int, seconds: float) -> None:
        """A batch was appended."""
        self._batches.observe(orders)
        if events:
            self._appends.observe(seconds)
            self._events.inc(events)

    def call(self, operation: str, status: int, seconds: float) -> None:
        """A call was answered."""
        self._calls.labels(operation, str(status)).inc()
        self._call_seconds.labels(operation).observe(seconds)

    def refusal(self, why: str) -> None:
        """A call was refused for who called."""
        self._refusals.labels(why).inc()

    def notice(self, webhook: str, outcome: str) -> None:
        """A notice was settled, or a try failed."""
        self._notices.labels(webhook, outcome).inc()

    def waiting(self, webhook: str, notices: int) -> None:
        """So many notices wait for a webhook."""
        self._notices_waiting.labels(webhook).set(notices)

    def text(self, live: LiveController | None) -> bytes:
        """Return all metrics, with those of the present state; None: of a standby, which has none."""
        if live is None:
            self._primary.set(0)
            return generate_latest(self.registry)
        states: dict[str, int] = {}
        requests: dict[str, int] = {}
        totals, cost = live.read(
            lambda views: (
                views.projections.totals.all(),
                views.projections.spending.per_hour(views.now),
            )
        )
        inventory = live.read(lambda views: views.projections.inventory.view())
        for instance in inventory.instances:
            states[instance.state] = states.get(instance.state, 0) + 1
        for request in inventory.requests:
            requests[request.state] = requests.get(request.state, 0) + 1
        for gauge, counts in ((self._hosts, states), (self._open, requests)):
            gauge.clear()
            for state, count in counts.items():
                gauge.labels(state).set(count)
        for total in totals:
            for part in ("owned", "borrowed", "in_flight", "returning"):
                self._units.labels(total.name, part).set(getattr(total, part))
        self._show_use(live)
        raised = live.read(lambda views: views.projections.alerts.raised())
        for kind in AlertKind:
            self._alerts.labels(kind).set(sum(1 for row in raised if row.kind is kind))
        session = live.feed.session
        self._cost.set(float(cost))
        self._position.set(live.feed.position)
        self._primary.set(1 if live.ready else 0)
        self._session_age.set(-1 if session is None else live.age_s(session))
        return generate_latest(self.registry)

    def _show_use(self, live: LiveController) -> None:
        """Show what the scheduler reported of shared resources; what is unknown is not there."""
        occupied, reports = live.read(lambda views: (dict(views.occupied), dict(views.reports)))
        self._drift.clear()
        for name, report in reports.items():
            if report.drift is not None:
                self._drift.labels(name).set(report.drift)
            self._units.labels(name, "wanted").set(report.wanted)
            if report.booked is not None:
                self._units.labels(name, "booked").set(report.booked)
        for name, amount in occupied.items():
            if amount is None:
                self._units.remove(name, "occupied")
            else:
                self._units.labels(name, "occupied").set(amount)

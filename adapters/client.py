"""The client library of the controller: typed answers, retries that do nothing twice, and a stream that comes back by itself.

The calls by their names are here; ``adapters/client_channel.py`` is how they reach a controller.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from time import sleep as real_sleep
from types import TracebackType
from typing import Self
from urllib.parse import quote

import httpx

from xce.adapters.client_channel import ATTEMPTS, Channel, Pushed
from xce.domain.engine.commands import Command, ReleaseLease, RenewLease, TakeLease
from xce.domain.engine.wire import write_command
from xce.domain.events.base import cut
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, RequestEntry
from xce.domain.formats.no_session import NoSession
from xce.domain.formats.observation import Observation
from xce.domain.formats.periods import Period
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.rest import (
    AlertEntry,
    AlertPage,
    Bookings,
    Costs,
    DecisionEntry,
    DecisionPage,
    DemandMessage,
    DrainEntry,
    DrainPage,
    DrainWish,
    EventEntry,
    EventPage,
    GrantPage,
    HostAnswer,
    InstancePage,
    JobEntry,
    JoinReport,
    LeaseEntry,
    LeasePage,
    ObservationReport,
    Observations,
    OrderAnswer,
    OrphanEntry,
    OrphanPage,
    ProviderEntry,
    ProviderPage,
    RequestPage,
    SharedEntry,
    SharedPage,
    SiteEntry,
    SpentPeriods,
    Status,
    Supply,
)
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import Catalog, Snapshot
from xce.domain.formats.standing import Standing, StandingReport


class Client:
    """Talks to one controller, or to the one of several that is the primary. Threads may share it."""

    def __init__(
        self,
        addresses: str | Iterable[str],
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        certificate: tuple[str | Path, str | Path] | None = None,
        timeout_s: float = 10.0,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = real_sleep,
        transport: httpx.BaseTransport | None = None,
        on_standby: Callable[[str, int], None] | None = None,
    ) -> None:
        """Make a client; nothing is called yet.

        Args:
            addresses: such as ``http://127.0.0.1:8470``; of several, the next one is tried when one does not answer.
            token: of the caller; None: the certificate says who calls.
            ca: certificates of the authority that signed the controller's.
            certificate: the caller's own certificate and key.
            timeout_s: of one try.
            attempts: tries of one call, the first included.
            sleep: waits between tries.
            transport: for tests.
            on_standby: given, a question that no primary answers is answered by a standby that can, and this is told its address and the
                position up to which it has read the log. For people only: whoever acts on an answer must see its own last deed.
        """
        self._channel = Channel(
            [addresses] if isinstance(addresses, str) else addresses,
            token=token,
            ca=ca,
            certificate=certificate,
            timeout_s=timeout_s,
            attempts=attempts,
            sleep=sleep,
            transport=transport,
            on_standby=on_standby,
        )

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self._channel.close()

    # ----------------------------------------------------------------- commands
    def command(
        self, *commands: Command, key: str | None = None, epochs: Mapping[str, int] | None = None
    ) -> OrderAnswer:
        """Carry out commands, all or nothing; when it returns, they are durable.

        Args:
            commands: at least one.
            key: an idempotency key; None: one is made for this call and its retries.
            epochs: by provider, the lease epoch under which the caller acts.

        Raises:
            RejectedError: the controller refused: nothing was recorded.
            InputError: the controller cannot read it.
            TransientError: it did not answer in all tries; whether it was done is unknown: ask again with the same key.
        """
        document = {
            "commands": [write_command(command) for command in commands],
            "epochs": dict(epochs or {}),
        }
        return self._channel.send("POST", "/v1/commands", OrderAnswer, document, key=key)

    def take_lease(self, provider: str, holder: str, term: timedelta) -> int:
        """Take the lease of a provider; return its epoch."""
        return self.command(TakeLease(provider, holder, term)).epochs[provider]

    def renew_lease(self, provider: str, holder: str, epoch: int) -> None:
        """Say that the holder still acts."""
        self.command(RenewLease(provider, holder, epoch))

    def release_lease(self, provider: str, holder: str) -> None:
        """Give a lease up."""
        self.command(ReleaseLease(provider, holder))

    def describe(self, description: ProviderDescription) -> OrderAnswer:
        """A provider says what it is."""
        path = f"/v1/providers/{quote(description.name)}"
        return self._channel.send("PUT", path, OrderAnswer, json.loads(description.to_json()))

    def pause(
        self, provider: str, until: datetime, why: str, item: str | None = None
    ) -> OrderAnswer:
        """Ask nothing of a provider, or of one item of it, for a while."""
        body = {"item": item, "until": until.isoformat(), "why": why}
        return self._channel.send(
            "POST", f"/v1/providers/{quote(provider)}/pause", OrderAnswer, body
        )

    def resume(self, provider: str, item: str | None = None) -> OrderAnswer:
        """End a pause before its time."""
        path = f"/v1/providers/{quote(provider)}/resume"
        return self._channel.send("POST", path, OrderAnswer, {"item": item})

    def join(self, report: JoinReport) -> OrderAnswer:
        """A host reports to the cluster."""
        return self._channel.send(
            "POST", "/v1/hosts/join", OrderAnswer, json.loads(report.to_json())
        )

    def drain(self, host: str, why: str, wish: DrainWish | None = None) -> HostAnswer:
        """Close a host to new work; ``wish`` says what happens at a deadline."""
        body = (wish or DrainWish()).model_copy(update={"why": why})
        path = f"/v1/hosts/{quote(host)}/drain"
        return self._channel.send("POST", path, HostAnswer, json.loads(body.to_json()))

    def open_host(self, host: str, why: str) -> HostAnswer:
        """End the drain of a host."""
        return self._channel.send("POST", f"/v1/hosts/{quote(host)}/open", HostAnswer, {"why": why})

    def looked(self, host: str, jobs: Iterable[str]) -> OrderAnswer:
        """Report what runs on a host that is drained, seen after it was closed."""
        body = {"jobs": list(jobs)}
        return self._channel.send("POST", f"/v1/hosts/{quote(host)}/looked", OrderAnswer, body)

    def freeze(self, why: str) -> OrderAnswer:
        """Let nothing new be asked, drained or given back."""
        return self._channel.send("POST", "/v1/freeze", OrderAnswer, {"why": why})

    def unfreeze(self, why: str) -> OrderAnswer:
        """End a freeze."""
        return self._channel.send("POST", "/v1/unfreeze", OrderAnswer, {"why": why})

    def report_bookings(
        self,
        occupied: Mapping[str, int | None],
        reports: Mapping[str, SharedReport] | None = None,
        *,
        of: Supply | None = None,
    ) -> OrderAnswer:
        """Report what is in use of shared resources, None: unknown; and what else is known of them.

        Args:
            occupied: by resource.
            reports: by resource.
            of: the supply that the session was of; with it a report that comes late is refused.

        Raises:
            RejectedError: it comes late; the next session's report counts.
        """
        known = {} if of is None else {"primary": of.primary, "as_of": of.now.isoformat()}
        body = known | {
            "occupied": dict(occupied),
            "reports": {name: one.model_dump(mode="json") for name, one in (reports or {}).items()},
        }
        return self._channel.send("PUT", "/v1/bookings", OrderAnswer, body)

    def publish_session(self, result: SessionResult) -> None:
        """Publish a session's result; it replaces the one before."""
        self._channel.call("PUT", "/v1/session", content=result.to_json())

    def report_no_session(self, why: str) -> None:
        """Tell why there can be no session now."""
        self._channel.call("PUT", "/v1/no-session", content=NoSession(why=cut(why)).to_json())

    def post_snapshot(self, snapshot: Snapshot) -> None:
        """Post the snapshot of a session."""
        self._channel.call("PUT", "/v1/snapshot", content=snapshot.to_json())

    def report_observations(self, observations: Iterable[Observation]) -> None:
        """Tell what an observer saw."""
        report = ObservationReport(observations=tuple(observations))
        self._channel.call("PUT", "/v1/observations", content=report.to_json())

    def report_standing(self, report: StandingReport) -> None:
        """Tell how far budgets are used, and which losses are not believed yet."""
        self._channel.call("PUT", "/v1/standing", content=report.to_json())

    # ---------------------------------------------------------------- questions
    def status(self) -> Status:
        """Return where the controller is."""
        return self._channel.get("/v1/status", Status)

    def requests(self) -> Iterator[RequestEntry]:
        """Yield the requests that are open, or of which something lives."""
        return self._channel.pages("/v1/requests", RequestPage)

    def request(self, name: str) -> RequestEntry:
        """Return one request."""
        return self._channel.get(f"/v1/requests/{quote(name)}", RequestEntry)

    def job(self, name: str) -> JobEntry:
        """Return what was asked for one job."""
        return self._channel.get(f"/v1/jobs/{quote(name)}", JobEntry)

    def instances(self) -> Iterator[InstanceEntry]:
        """Yield the instances that exist."""
        return self._channel.pages("/v1/instances", InstancePage)

    def instance(self, name: str) -> InstanceEntry:
        """Return one instance."""
        return self._channel.get(f"/v1/instances/{quote(name)}", InstanceEntry)

    def grants(self) -> Iterator[GrantEntry]:
        """Yield the grants of which the lender has not all back."""
        return self._channel.pages("/v1/grants", GrantPage)

    def shared(self) -> Iterator[SharedEntry]:
        """Yield the shared resources."""
        return self._channel.pages("/v1/shared", SharedPage)

    def providers(self) -> Iterator[ProviderEntry]:
        """Yield the providers."""
        return self._channel.pages("/v1/providers", ProviderPage)

    def leases(self) -> Iterator[LeaseEntry]:
        """Yield the leases."""
        return self._channel.pages("/v1/leases", LeasePage)

    def drains(self) -> Iterator[DrainEntry]:
        """Yield the hosts that take no new work."""
        return self._channel.pages("/v1/drains", DrainPage)

    def orphans(self) -> Iterator[OrphanEntry]:
        """Yield what nobody owns."""
        return self._channel.pages("/v1/orphans", OrphanPage)

    def decisions(self) -> Iterator[DecisionEntry]:
        """Yield the newest decisions, newest first."""
        return self._channel.pages("/v1/decisions", DecisionPage)

    def alerts(self) -> Iterator[AlertEntry]:
        """Yield the alerts that are raised and the last that are over, the newest first."""
        return self._channel.pages("/v1/alerts", AlertPage)

    def standing(self) -> Standing:
        """Return how provisioners stand: budgets, and losses that are not believed yet."""
        return self._channel.get("/v1/standing", Standing)

    def site(self) -> SiteEntry:
        """Return what holds for the whole site."""
        return self._channel.get("/v1/site", SiteEntry)

    def costs(self) -> Costs:
        """Return what everything costs."""
        return self._channel.get("/v1/costs", Costs)

    def catalog(self) -> Catalog:
        """Return what could be obtained, and what is on its way."""
        return self._channel.get("/v1/catalog", Catalog)

    def spent(self, period: Period, zone: str = "UTC") -> SpentPeriods:
        """Return what was spent in each day or month, by the clocks of a time zone."""
        return self._channel.get(f"/v1/spent?period={period}&zones={quote(zone)}", SpentPeriods)

    def supply(self, zones: Sequence[str] = ()) -> Supply:
        """Return catalog, shared resources, inventory, providers and leases, all of it at one position; and what was spent today and
        this month in time zones.
        """
        named = f"?zones={quote(','.join(zones))}" if zones else ""
        return self._channel.get(f"/v1/supply{named}", Supply)

    def bookings(self) -> Bookings:
        """Return what is in use of shared resources."""
        return self._channel.get("/v1/bookings", Bookings)

    def observations(self) -> Observations:
        """Return what observers saw last, and how the configuration wants it to be read."""
        return self._channel.get("/v1/observations", Observations)

    def session(self) -> DemandMessage:
        """Return the newest session result; its ``result`` is None when demand is unknown."""
        return self._channel.get("/v1/session", DemandMessage)

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot that was posted."""
        return self._channel.get("/v1/snapshot", Snapshot)

    def events(self, after: int = 0, limit: int = 1000) -> Iterator[EventEntry]:
        """Yield the events behind a position, up to the present end."""
        while True:
            page = self._channel.get(f"/v1/events?after={after}&limit={limit}", EventPage)
            yield from page.items
            if page.next is None:
                return
            after = page.next

    def follow(
        self, after: int | None = None, *, events: bool = True, session: bool = True
    ) -> Iterator[Pushed]:
        """Yield events and session results as they come, for ever; a lost connection is opened again where it was.

        No event is skipped or repeated; of session results the newest comes at once, and those that nobody took in time are skipped.

        Raises:
            RejectedError: the controller refuses the caller.
            TransientError: it could not be reached in all tries.
        """
        position = after
        flags = f"events={str(events).lower()}&session={str(session).lower()}"
        if position is None and events:
            position = self.status().position
        yield from self._channel.follow(flags, position)

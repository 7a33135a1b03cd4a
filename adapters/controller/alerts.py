"""Alerts at work: one look at the site every few seconds, and each webhook told in the order of the log. In a thread of its own.

A webhook that is down, slow or hostile holds up itself only: neither the controller, nor the looks, nor another webhook wait for it. What
was raised, and what each webhook was told, are events: whoever is the primary next goes on from there. A notice whose answer was lost is
sent again, with the same id.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Event, Thread
from typing import Any, Final, Protocol

import structlog
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    wait_exponential,
    wait_random,
)

from xce.adapters.clock import SystemClock
from xce.adapters.controller.live import LiveController
from xce.adapters.controller.views import Views
from xce.adapters.controller.webhooks import Poster, RefusedNoticeError, address_of
from xce.domain.alerts.alert import AlertKind, AlertState
from xce.domain.alerts.webhook import Outcome
from xce.domain.engine.alerting import Alerting, Condition
from xce.domain.engine.commands import Command
from xce.domain.engine.messages import Caller, Role
from xce.domain.engine.site_commands import RaiseAlert, RecordTold
from xce.domain.errors import TransientError, XceError
from xce.domain.events.base import cut
from xce.domain.formats.alert import AlertNotice
from xce.domain.formats.alert_settings import AlertSettings, WebhookSettings
from xce.domain.formats.config import SharedPool
from xce.domain.formats.no_session import NoSession
from xce.domain.formats.standing import StandingReport
from xce.projections.alerts import Notice
from xce.projections.conditions import Look, conditions, unknown

#: Who raises alerts, and settles notices.
WATCHMAN: Final = Caller(Role.ADMIN, "alerts")
#: A webhook looks for notices at least so often; the looks wake it when there are any.
IDLE_S: Final = 5.0
#: A task that met a defect begins again after a second, and later after so long.
RESTART_MAX_S: Final = 60.0
#: How long ``close`` waits for a post under way to be cut off.
STOP_WITHIN_S: Final = 10.0

_LOG = structlog.get_logger("xce.controller")


class Watch(Protocol):
    """Told what happens, for metrics."""

    def notice(self, webhook: str, outcome: str) -> None:
        """A notice was settled, or a try failed."""
        ...

    def waiting(self, webhook: str, notices: int) -> None:
        """So many notices wait for a webhook."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What alerts need of the controller.

    Attributes:
        name: of this controller, for those who are told.
        pools: shared resources of the configuration, as it is now.
        standing: reports of provisioners that are not too old.
        no_session: why schedulers can hold no session, as those said that are not too old.
        sleep: waits; for tests.
    """

    live: LiveController
    name: str
    pools: Callable[[], tuple[SharedPool, ...]]
    standing: Callable[[], Mapping[str, StandingReport]]
    no_session: Callable[[], Mapping[str, NoSession]]
    watch: Watch
    clock: SystemClock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Alerts:
    """The alerts of one primary, from ``start`` to ``close``."""

    def __init__(
        self,
        around: Surroundings,
        settings: AlertSettings,
        posters: Mapping[str, Poster],
    ) -> None:
        """Prepare; ``posters`` has one for each webhook, by its name."""
        self._around = around
        self._settings = settings
        self._posters = posters
        self._alerting = Alerting(settings.clear_after)
        self._thread = Thread(target=self._run, name="xce-alerts", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told_to_stop = Event()
        self._stop: asyncio.Event | None = None
        self._news: dict[str, asyncio.Event] = {}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; what was not settled is told by the next primary. May be repeated."""
        self._told_to_stop.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(stop.set)
        if self._thread.ident is not None:
            self._thread.join(STOP_WITHIN_S)

    # -------------------------------------------------------------------- tasks
    def _run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._told_to_stop.is_set():
            return
        tasks = [asyncio.create_task(self._supervised("looks", self._looks))]
        for webhook in self._settings.webhooks:
            self._news[webhook.name] = asyncio.Event()
            tasks.append(
                asyncio.create_task(self._supervised(webhook.name, self._telling(webhook)))
            )
        await self._stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _supervised(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something for ever; after a defect begin again, after a while."""
        wait_s = 1.0
        while self._around.live.lost is None:
            try:
                await work()
            except XceError as error:
                _LOG.warning("alerts", of=name, error=str(error), code=error.code)
            except Exception:  # noqa: BLE001 - the outermost loop: it says so and goes on
                _LOG.exception("alerts met a defect", of=name)
            await self._around.sleep(wait_s)
            wait_s = min(RESTART_MAX_S, wait_s * 2)

    async def _submit(self, *commands: Command) -> None:
        await asyncio.wrap_future(self._around.live.submit(WATCHMAN, *commands))

    # -------------------------------------------------------------------- looks
    async def _looks(self) -> None:
        while self._around.live.lost is None:
            await self.look()
            await self._around.sleep(self._settings.look.total_seconds())

    async def look(self) -> None:
        """Look once at what is so, and record what is new or over.

        Raises:
            TransientError: it cannot be recorded now.
        """
        around = self._around
        there, raised, unseen = around.live.read(self._seen)
        found = self._alerting.look(
            there, raised, unknown=unseen, elapsed_s=around.clock.elapsed_s()
        )
        if not found:
            return
        await self._submit(*found)
        for command in found:
            if isinstance(command, RaiseAlert):
                _LOG.warning("alert", kind=command.kind, subject=command.subject, text=command.text)
            else:
                _LOG.info("alert is over", kind=command.kind, subject=command.subject)
        for news in self._news.values():
            news.set()

    def _seen(
        self, views: Views
    ) -> tuple[tuple[Condition, ...], frozenset[tuple[AlertKind, str]], frozenset[AlertKind]]:
        look = Look(
            projections=views.projections,
            now=views.now,
            settings=self._settings,
            reports=views.reports,
            pools=self._around.pools(),
            standing=self._around.standing(),
            no_session=self._around.no_session(),
            has_session=views.session is not None,
        )
        raised = frozenset((row.kind, row.subject) for row in views.projections.alerts.raised())
        return conditions(look), raised, unknown(look)

    # ------------------------------------------------------------------ telling
    def _telling(self, webhook: WebhookSettings) -> Callable[[], Coroutine[Any, Any, None]]:
        async def tell() -> None:
            while self._around.live.lost is None:
                waiting = self._waiting(webhook)
                self._around.watch.waiting(webhook.name, len(waiting))
                if waiting:
                    await self._tell(webhook, waiting[0])
                    continue
                news = self._news[webhook.name]
                news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), IDLE_S)

        return tell

    def _waiting(self, webhook: WebhookSettings) -> list[Notice]:
        notices = self._around.live.read(
            lambda views: views.projections.alerts.notices(webhook.name)
        )
        return [one for one in notices if not webhook.kinds or one.alert.kind in webhook.kinds]

    async def _tell(self, webhook: WebhookSettings, notice: Notice) -> None:
        """Settle one notice: tell it until it is taken or refused, or is too old."""
        outcome, why = Outcome.DELIVERED, ""
        try:
            await self._post(webhook, notice)
        except RefusedNoticeError as error:
            outcome, why = Outcome.REFUSED, str(error)
        except TransientError as error:
            outcome, why = Outcome.EXPIRED, str(error)
        if outcome is not Outcome.DELIVERED:
            _LOG.error("notice not delivered", webhook=webhook.name, outcome=outcome, why=why)
        self._around.watch.notice(webhook.name, outcome)
        while True:
            try:
                await self._submit(RecordTold(webhook.name, notice.position, outcome, cut(why)))
                return
            except TransientError as error:  # told, and not recorded: it must not be told again
                if self._around.live.lost is not None:
                    raise
                _LOG.warning("not recorded yet", webhook=webhook.name, error=str(error))
                await self._around.sleep(1.0)

    async def _post(self, webhook: WebhookSettings, notice: Notice) -> None:
        clock = self._around.clock

        def is_old(state: RetryCallState) -> bool:
            return clock.now() - notice.at > webhook.give_up_after

        def failed(state: RetryCallState) -> None:
            self._around.watch.notice(webhook.name, "failed")
            error = None if state.outcome is None else state.outcome.exception()
            _LOG.warning(
                "webhook not told yet",
                webhook=webhook.name,
                tries=state.attempt_number,
                error=str(error),
            )

        longest = webhook.retry_at_most.total_seconds()
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=is_old,
            wait=wait_exponential(multiplier=1.0, max=longest) + wait_random(0, 1),
            sleep=self._around.sleep,
            before_sleep=failed,
            reraise=True,
        )
        await retrying(self._posters[webhook.name].post, notice_of(notice, self._around.name))


def notice_of(notice: Notice, controller: str) -> AlertNotice:
    """Return what a webhook is told."""
    row = notice.alert
    over = notice.state is AlertState.CLEARED
    return AlertNotice(
        id=f"{row.id}@{notice.position}",
        alert=row.id,
        kind=row.kind,
        subject=row.subject,
        state=notice.state,
        text=f"over: {row.text}" if over else row.text,
        at=notice.at,
        raised_at=row.raised,
        position=notice.position,
        controller=controller,
    )


def trial_notice(webhook: WebhookSettings, controller: str, now: datetime) -> AlertNotice:
    """Return a notice that says that it is none, of a kind that the webhook wants."""
    kind = (webhook.kinds or tuple(AlertKind))[0]
    return AlertNotice(
        id=f"trial@{now.isoformat()}",
        alert=f"{kind}/trial",
        kind=kind,
        subject="trial",
        state=AlertState.CLEARED,
        text=f"a trial: the controller {controller} can tell {webhook.name}",
        at=now,
        raised_at=now,
        position=1,
        controller=controller,
    )


def posters_of(settings: AlertSettings) -> dict[str, Poster]:
    """Return who posts to each webhook of a configuration.

    Raises:
        InputError: a variable that it names is not set.
    """
    return {one.name: Poster(one, address_of(one), time.time) for one in settings.webhooks}

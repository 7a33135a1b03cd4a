"""One process's time on a log: it stands by, becomes the primary when its turn comes, and serves until it is stopped or somebody else has its place."""

import os
import socket
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

import structlog

from xce.adapters.controller.errors import NotPrimaryError
from xce.adapters.controller.live import LiveController, LiveSettings, Watch
from xce.adapters.controller.standby_reads import StandbyReads
from xce.adapters.store.election import Role
from xce.adapters.store.log import StoredLog
from xce.adapters.store.seat import Sign
from xce.adapters.store.snapshots import SnapshotKeeper, open_follower
from xce.adapters.store.standby import Standby
from xce.domain.formats.controller_config import ControllerConfig

_LOG = structlog.get_logger("xce.controller")
#: Looks of a standby between two lines in the log about the same trouble.
_LOOKS: Final = 100


def name_of(config: ControllerConfig) -> str:
    """Return the name of this controller, for people."""
    return config.name or f"{socket.gethostname()}/{os.getpid()}"


class Turn:
    """From standing by to the end. ``begin``, serve, ``close``."""

    def __init__(
        self,
        log: StoredLog,
        config: ControllerConfig,
        watch: Watch,
        *,
        on_primary: Callable[[LiveController], None],
        on_end: Callable[[], None],
    ) -> None:
        """Read the log to its end, from its last snapshot; nobody is told yet.

        Args:
            log: open for writing; the caller closes it.
            config: of the service.
            watch: told of each batch.
            on_primary: called when orders are taken, before anybody may give one.
            on_end: called once, when this process must end; from any thread.

        Raises:
            XceError: the log cannot be read.
        """
        self._log = log
        self._config = config
        self._watch = watch
        self._on_primary = on_primary
        self._on_end = on_end
        self._stop = Event()
        self._thread = Thread(target=self._run, name="turn", daemon=True)
        self._live: LiveController | None = None
        self._keeper: SnapshotKeeper | None = None
        self._standby = Standby(
            log,
            open_follower(log, config.templates),
            name=name_of(config),
            url=config.url or "",
            detection_s=config.detection.total_seconds(),
        )
        #: Why it ended without having been told to; None: it did not.
        self.failure: Exception | None = None

    def begin(self) -> None:
        """Take the seat if it is free, and go on in a thread.

        Raises:
            XceError: this process cannot become the primary.
        """
        if self._standby.step() is Role.PRIMARY:
            self._become_primary()
        else:
            _LOG.info("standing by", who=self._who(), position=self.position)
        self._thread.start()

    def serving(self) -> LiveController:
        """Return the controller that serves.

        Raises:
            NotPrimaryError: another one is the primary, or may be.
        """
        live = self._live
        if live is None:
            raise NotPrimaryError(f"this controller stands by; {self._who()}")
        if live.lost is not None:
            raise NotPrimaryError(f"this controller is not the primary any more: {live.lost}")
        if not self._standby.leads:
            raise NotPrimaryError(
                "this controller could not show that it is alive; another may be the primary"
            )
        return live

    @property
    def standby(self) -> StandbyReads | None:
        """What this controller can say of the log that it follows; None: it is the primary, or was."""
        if self._live is not None:
            return None
        return StandbyReads(self._log, self._standby.follower)

    @property
    def primary(self) -> Sign | None:
        """Who is the primary, as last seen; None: nobody, or nobody knows."""
        return self._standby.primary

    @property
    def live(self) -> LiveController | None:
        """The controller of this process; None: it stands by."""
        return self._live

    @property
    def before(self) -> Sign | None:
        """Who was the primary before this one and did not end by itself; None: whoever it was did."""
        return self._standby.before

    @property
    def position(self) -> int:
        """Of the last event that this process has read."""
        return self._standby.follower.position

    def close(self) -> None:
        """Finish what was taken, keep a snapshot, and give the seat up; may be repeated."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        else:
            self._finish()
        self._standby.close()

    # ------------------------------------------------------------------- thread
    def _run(self) -> None:
        try:
            if self._live is None and self._wait() is Role.PRIMARY:
                self._become_primary()
            if self._live is not None:
                with self._standby.signs(self._lost):
                    self._stop.wait()
                    self._finish()
        except Exception as error:  # noqa: BLE001 - shown by whoever waits for the end
            self.failure = error
            self._on_end()
            self._finish()

    def _wait(self) -> Role:
        said, looks = "", 0
        while (role := self._standby.step()) is Role.STANDBY:
            trouble = "" if self._standby.problem is None else str(self._standby.problem)
            looks += 1
            if trouble and (trouble != said or looks >= _LOOKS):
                _LOG.warning("standing by with trouble", error=trouble)
                looks = 0
            said = trouble
            if self._stop.wait(self._standby.step_s):
                break
        return role

    def _become_primary(self) -> None:
        config, follower = self._config, self._standby.follower
        keeper = self._keeper = SnapshotKeeper(self._log, follower)
        live = LiveController(
            self._log,
            settings=LiveSettings(
                demand_time_to_live=config.demand_time_to_live, templates=config.templates
            ),
            follower=follower,
            watch=self._watch,
            on_lost=self._on_end,
            on_folded=keeper.see,
        )
        live.start(self._standby.epoch)
        _LOG.info("primary", epoch=live.epoch, position=live.feed.position)
        try:
            self._on_primary(live)
        except BaseException:
            live.close()
            raise
        self._live = live

    def _lost(self) -> None:
        live = self._live
        assert live is not None, "who loses the seat had it"
        live.lose_seat()

    def _finish(self) -> None:
        live, keeper = self._live, self._keeper
        if live is None or keeper is None:
            return
        live.close()
        keeper.close(keep=live.lost is None)
        if keeper.problem is not None:
            _LOG.warning("no snapshot was kept", error=str(keeper.problem))

    def _who(self) -> str:
        sign = self._standby.primary
        if sign is None:
            return "nobody is the primary yet"
        return f"the primary is {sign.name}" + (f" at {sign.url}" if sign.url else "")

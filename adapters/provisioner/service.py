"""``xce provisioner``: one process with its providers, from start to a clean stop. It keeps no state that matters."""

import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Final

import structlog

from xce.adapters.client import Client
from xce.adapters.client_channel import ATTEMPTS
from xce.adapters.clock import SystemClock
from xce.adapters.files import why_unread
from xce.adapters.providers.script_provider import ScriptProvider
from xce.adapters.provisioner.books import ClientBooks
from xce.adapters.provisioner.driver import Driver
from xce.adapters.provisioner.hearing import Heard
from xce.adapters.provisioner.ids import UniqueIds
from xce.adapters.provisioner.leases import LeaseKeeper, Leases, Permit
from xce.adapters.provisioner.metrics import Metrics
from xce.adapters.provisioner.newest import Newest, Published
from xce.adapters.provisioner.observing import Observing
from xce.adapters.provisioner.recording import ProvisionerRecorder, RecordedCalls
from xce.adapters.provisioner.rounds import Rounds
from xce.adapters.provisioner.surroundings import Surroundings
from xce.adapters.provisioner.worker import Worker
from xce.adapters.recordings import RecordingFile, free_name
from xce.adapters.settings.load import bytes_of, read_model
from xce.adapters.signals import Signals
from xce.domain.engine.commands import ReleaseLease, RenewLease, TakeLease
from xce.domain.engine.provisioner import Provisioner
from xce.domain.errors import InputError, XceError
from xce.domain.formats.observers import RecordedObserver
from xce.domain.formats.provisioner_config import ControllerLink, ProvisionerConfig, problems
from xce.domain.formats.rest import LeaseEntry
from xce.domain.ports import FullProvider
from xce.replay.providers import SimulatedProvider

_LOG = structlog.get_logger("xce.provisioner")
#: A stop waits so long for calls that are being made; longer ones are looked up by whoever acts next.
STOP_WITHIN_S: Final = 10.0
#: One reading of the supply serves all workers that look within this time.
SUPPLY_GOOD_FOR_S: Final = 2.0
TOKEN_VARIABLE: Final = "XCE_TOKEN"


def read_provisioner_config(path: Path) -> ProvisionerConfig:
    """Return the configuration in a YAML file, with the names of files resolved against its folder.

    Raises:
        InputError: it cannot be read, or is wrong; it lists every problem with its line.
    """
    config = read_model(bytes_of(path), str(path), ProvisionerConfig, problems)
    folder = path.absolute().parent

    def placed(name: str | None) -> str | None:
        return None if name is None else str(folder / name)

    link = config.controller
    return config.model_copy(
        update={
            "state": placed(config.state),
            "record": placed(config.record),
            "controller": link.model_copy(
                update={
                    "token_file": placed(link.token_file),
                    "ca": placed(link.ca),
                    "certificate": placed(link.certificate),
                    "key": placed(link.key),
                }
            ),
            "scripts": tuple(
                one.model_copy(
                    update={
                        "folder": placed(one.folder),
                        "conf": placed(one.conf),
                        "health_check": placed(one.health_check),
                    }
                )
                for one in config.scripts
            ),
            "observers": tuple(
                one.model_copy(update={"file": placed(one.file)})
                if isinstance(one, RecordedObserver)
                else one
                for one in config.observers
            ),
        }
    )


def token_of(link: ControllerLink) -> str | None:
    """Return the token of the configuration; None: the certificate says who calls.

    Raises:
        InputError: the file cannot be read, or is empty.
    """
    if link.token_file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        words = Path(link.token_file).read_text("utf-8").split()
    except (OSError, ValueError) as error:
        raise InputError.of(link.token_file, why_unread(error)) from None
    if not words:
        raise InputError.of(link.token_file, "is empty; wanted a token")
    return words[-1]  # alone, or as xce controller token showed it


def client_of(link: ControllerLink, *, attempts: int = ATTEMPTS) -> Client:
    """Return a client of the controller; ``attempts``: tries of one call."""
    pair = None if link.certificate is None or link.key is None else (link.certificate, link.key)
    return Client(
        link.addresses,
        token=token_of(link),
        ca=link.ca,
        certificate=pair,
        timeout_s=link.timeout.total_seconds(),
        attempts=attempts,
    )


class ClientDesk:
    """Leases over REST. Each call is tried once: the next renewal is the next try, and a frozen one must not come late."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def leases(self) -> Mapping[str, LeaseEntry]:
        """Return the leases by provider."""
        return {one.provider: one for one in self._client.leases()}

    def take(self, provider: str, holder: str, term: timedelta) -> int:
        """Take a lease; return its epoch."""
        return self._client.command(TakeLease(provider, holder, term)).epochs[provider]

    def renew(self, epochs: Mapping[str, int], holder: str) -> None:
        """Renew leases, all or none."""
        self._client.command(
            *(RenewLease(provider, holder, epoch) for provider, epoch in epochs.items())
        )

    def release(self, provider: str, holder: str) -> None:
        """Give a lease up."""
        self._client.command(ReleaseLease(provider, holder))


def make_providers(
    config: ProvisionerConfig,
    state: Path,
    heard: Mapping[str, Heard],
    permits: Mapping[str, Permit],
) -> dict[str, FullProvider]:
    """Return the providers by name, each script provider with a folder of its own below ``state``.

    A script begins only while its provider's permit lasts.

    Raises:
        InputError: a secret is missing in the environment, or the folder cannot be made.
    """
    made: dict[str, FullProvider] = {}
    for settings in config.scripts:
        folder = state / settings.name.replace("/", "_")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError.of(str(folder), f"cannot be made: {error.strerror}") from None
        made[settings.name] = ScriptProvider(
            settings,
            folder,
            on_call=heard[settings.name].put,
            left_s=permits[settings.name].left_s,
        )
    for simulated in config.simulated:
        made[simulated.name] = SimulatedProvider(simulated, config.seed)
    return made


class ProvisionerService:
    """One provisioner process, or the same in a thread of a test."""

    def __init__(
        self,
        config: ProvisionerConfig,
        *,
        providers: Mapping[str, FullProvider] | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        """Make everything; nothing is called yet.

        Raises:
            InputError: a file or a secret is missing.
        """
        self.config = config
        self.clock = clock or SystemClock()
        self.metrics = Metrics()
        self.leases = Leases(self.clock.elapsed_s, lambda: self._keeper.wake())
        self.port = 0
        self._stopping = Event()
        self._client = client_of(config.controller)
        self._lease_client = client_of(config.controller, attempts=1)
        self._stream_client = client_of(config.controller)
        books = ClientBooks(
            self._client,
            self.clock,
            good_for_s=SUPPLY_GOOD_FOR_S,
            zones=config.policy.zones(),
        )
        ids = UniqueIds(self.clock)
        engine = Provisioner(ids)
        self.newest = Newest()
        around = Surroundings(
            books=books,
            leases=self.leases,
            engine=engine,
            ids=ids,
            clock=self.clock,
            elapsed_s=self.clock.elapsed_s,
            pause=lambda seconds: not self._stopping.wait(seconds),
            newest=self.newest,
            policy=config.policy.settings(),
            lifecycle=config.lifecycle,
            watch=self.metrics,
        )
        heard = {name: Heard() for name in config.provider_names()}
        permits = {name: Permit(self.leases, name) for name in config.provider_names()}
        made = (
            make_providers(config, Path(config.state), heard, permits)
            if providers is None
            else providers
        )
        self._recorder = None if config.record is None else ProvisionerRecorder(self._recording)
        if self._recorder is not None:
            made = {
                name: RecordedCalls(name, provider, self._recorder)
                for name, provider in made.items()
            }
        self.workers = {
            name: Worker(
                Driver(name, provider, around, heard.get(name)),
                self.leases,
                config.rhythm,
                elapsed_s=self.clock.elapsed_s,
                stopping=self._stopping,
                permit=permits.get(name),
            )
            for name, provider in made.items()
        }
        self.rounds = Rounds(
            books,
            engine,
            {name: worker.driver for name, worker in self.workers.items()},
            self.newest,
            config.policy,
            config.rhythm,
            elapsed_s=self.clock.elapsed_s,
            wake=lambda name: self.workers[name].wake(),
            watch=self.metrics,
            recorder=self._recorder,
            tell=self._client.report_standing,
        )
        self._observing = Observing(
            config.observers,
            Path(config.state).parent,
            self._client,
            self.clock,
            elapsed_s=self.clock.elapsed_s,
        )
        self._keeper = LeaseKeeper(
            ClientDesk(self._lease_client),
            self.leases,
            self.workers,
            holder=config.name,
            term=config.rhythm.lease_term,
            elapsed_s=self.clock.elapsed_s,
            taken=lambda name: self.workers[name].wake(),
        )
        self.metrics.watch_leases(self.workers, self.leases.epoch)
        for name, worker in self.workers.items():
            self.metrics.watch_worker(
                name,
                lambda worker=worker: worker.driver.waiting,  # type: ignore[misc]  # bound now
                lambda worker=worker: worker.restarts,  # type: ignore[misc]  # bound now
            )

    def _recording(self) -> RecordingFile:
        """Open the recording that the configuration asks for, under a name that is not taken."""
        assert self.config.record is not None, "there is a recorder"
        path = free_name(Path(self.config.record))
        document = self.config.model_dump(mode="json")
        return RecordingFile(path, by="xce provisioner", at=self.clock.now(), config=document)

    # --------------------------------------------------------------- begin, end
    def run(self) -> None:
        """Work until SIGTERM or SIGINT, or ``stop``.

        Raises:
            PermanentError: the metrics' port is taken.
            XceError: the recording cannot be made.
        """
        if self._recorder is not None:
            self._recorder.begin()
        monitor = self.config.monitor
        served = None if monitor is None else self.metrics.serve(monitor)
        self.port = 0 if served is None else served.port
        _LOG.info(
            "running", name=self.config.name, providers=sorted(self.workers), metrics=self.port
        )
        threads = [
            Thread(target=self._keeper.run, name="leases", daemon=True),
            Thread(target=self._listen, name="demand", daemon=True),
            Thread(target=self.rounds.run, args=(self._stopping,), name="rounds", daemon=True),
        ]
        if self.config.observers:
            looking = self._observing.run
            threads.append(
                Thread(target=looking, args=(self._stopping,), name="observers", daemon=True)
            )
        for thread in threads:
            thread.start()
        for worker in self.workers.values():
            worker.start()
        try:
            while not self._stopping.wait(1.0):
                pass  # a signal is seen between two waits
        finally:
            self._end(threads[0], threads[2])
            if served is not None:
                served.close()

    def stop(self) -> None:
        """End as after a signal; may be called from another thread."""
        self._stopping.set()
        self._keeper.stop()
        self.newest.news.set()
        for worker in self.workers.values():
            worker.wake()

    def stop_on_signals(self) -> None:
        """Stop on SIGTERM and SIGINT; for the main thread."""
        Signals(self._on_signal).on(signal.SIGTERM, signal.SIGINT)

    def _on_signal(self, number: int) -> None:
        _LOG.info("stopping", signal=number)
        self.stop()

    def _end(self, *threads: Thread) -> None:
        """Let calls end that are being made, record their answers, then give the leases up."""
        self.stop()
        until = self.clock.elapsed_s() + STOP_WITHIN_S
        busy = [
            name
            for name, worker in self.workers.items()
            if not worker.join(max(0.0, until - self.clock.elapsed_s()))
        ]
        for thread in threads:
            thread.join(max(0.1, until - self.clock.elapsed_s()))
        for name, worker in self.workers.items():
            if name not in busy:
                worker.driver.withdraw()
                continue
            # The call ends by its own limit, and its lease by its term.
            _LOG.warning("a call goes on; its outcome will be looked up", provider=name)
            self.leases.lost(name)
        self._keeper.release()
        if self._recorder is not None:
            self._recorder.close()
        for client in (self._client, self._lease_client, self._stream_client):
            client.close()
        _LOG.info("stopped", name=self.config.name)

    # ------------------------------------------------------------------- demand
    def _listen(self) -> None:
        """Follow the controller's demand; a reconnect gets the newest at once."""
        while not self._stopping.is_set():
            try:
                for pushed in self._stream_client.follow(events=False):
                    if self._stopping.is_set():
                        return
                    if pushed.session is not None:
                        self.newest.put(Published.of(pushed.session, self.clock.elapsed_s()))
            except XceError as error:
                _LOG.warning("no demand", error=str(error))
            except Exception:  # noqa: BLE001 - the connection was closed under it
                if not self._stopping.is_set():
                    _LOG.exception("following demand met a defect")
            self._stopping.wait(1.0)

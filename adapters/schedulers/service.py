"""``xce scheduler`` as a process: configuration, source, client, signals."""

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, cast

import structlog

from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.adapters.files import why_unread
from xce.adapters.recordings import LiveRecorder, RecordingFile, free_name
from xce.adapters.schedulers.driver import LiveScheduler
from xce.adapters.schedulers.fake import FakeFile, FakeScheduler
from xce.adapters.schedulers.watched import WatchedFiles, require_folder
from xce.adapters.settings.load import bytes_of, read_model
from xce.adapters.signals import Signals
from xce.domain.errors import InputError, PermanentError, TransientError
from xce.domain.formats.scheduler_config import ControllerAccess, SchedulerConfig, problems
from xce.domain.ports import SchedulerSource

_LOG = structlog.get_logger("xce.recording")
#: Third parties register sources here: a callable that takes the options and returns a ``SchedulerSource``.
GROUP: Final = "xce.sources"
#: Has the token, where the configuration names no file.
TOKEN_VARIABLE: Final = "XCE_TOKEN"


def read_scheduler_config(path: Path) -> SchedulerConfig:
    """Return the configuration in a YAML file, with the names of files resolved against its folder.

    Raises:
        InputError: it cannot be read, or is wrong; it lists every problem with its line.
    """
    config = read_model(bytes_of(path), str(path), SchedulerConfig, problems)
    folder = path.absolute().parent

    def placed(name: str | None) -> str | None:
        return None if name is None else str(folder / name)

    access, source = config.controller, config.source
    watched, posted, fake, slurm = source.watched, source.posted, source.fake, source.slurm
    if watched is not None:
        names = {"path": placed(watched.path), "orders": placed(watched.orders)}
        watched = watched.model_copy(update=names)
    if posted is not None:
        posted = posted.model_copy(update={"tokens": placed(posted.tokens)})
    if fake is not None:
        fake = fake.model_copy(update={"path": placed(fake.path)})
    if slurm is not None:
        files = {
            name: placed(getattr(slurm, name)) for name in ("conf", "commands", "rest_token_file")
        }
        slurm = slurm.model_copy(update=files)
    return config.model_copy(
        update={
            "controller": access.model_copy(
                update={
                    name: placed(getattr(access, name))
                    for name in ("token_file", "ca", "certificate", "key")
                }
            ),
            "source": source.model_copy(
                update={"watched": watched, "posted": posted, "fake": fake, "slurm": slurm}
            ),
            "record": placed(config.record),
        }
    )


def token_of(access: ControllerAccess) -> str | None:
    """Return the token of this daemon; None: its certificate says who it is.

    Raises:
        InputError: the file cannot be read or is empty, or there is neither token nor certificate.
    """
    if access.token_file is not None:
        try:
            lines = Path(access.token_file).read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError.of(access.token_file, why_unread(error)) from None
        if not lines:
            raise InputError.of(access.token_file, "is empty; wanted a token")
        return lines[-1]  # the output of xce controller token, or the token alone
    token = os.environ.get(TOKEN_VARIABLE)
    if token is None and access.certificate is None:
        raise InputError.of(
            "controller",
            f"wanted token_file, a certificate, or the environment variable {TOKEN_VARIABLE}",
        )
    return token


def client_of(access: ControllerAccess) -> Client:
    """Return the client of a controller.

    Raises:
        InputError: a file is missing or wrong.
    """
    certificate = None
    if access.certificate is not None and access.key is not None:
        certificate = (access.certificate, access.key)
    try:
        return Client(
            access.addresses, token=token_of(access), ca=access.ca, certificate=certificate
        )
    except OSError as error:
        raise InputError.of("controller", f"certificates cannot be read: {error}") from None


def source_of(
    config: SchedulerConfig, clock: SystemClock, wait: Callable[[float], object]
) -> SchedulerSource:
    """Return the source that the configuration chooses, open.

    Raises:
        InputError: no such source.
        PermanentError: it cannot be opened.
    """
    source = config.source
    if source.watched is not None:
        path = Path(source.watched.path)
        require_folder(path)
        orders = None if source.watched.orders is None else Path(source.watched.orders)
        return WatchedFiles(path, orders, source.watched.poll.total_seconds(), wait)
    if source.fake is not None:
        path = Path(source.fake.path)
        require_folder(path)
        boot_time = source.fake.boot_time if source.fake.joins else None
        return FakeScheduler(FakeFile(path), clock, boot_time=boot_time, wait=wait)
    if source.posted is not None:
        from xce.adapters.schedulers.posted import PostedSnapshots

        return PostedSnapshots(source.posted)
    if source.slurm is not None:
        from xce.adapters.schedulers.slurm.source import SlurmScheduler, reader_of

        reader, run, rest = reader_of(source.slurm)
        return SlurmScheduler(
            reader,
            run,
            clock,
            wait=wait,
            observe_only=source.slurm.observe_only,
            differences_after=source.slurm.differences_after,
            idle_host_after=source.slurm.idle_host_after,
            close=(lambda: None) if rest is None else rest.close,
        )
    assert source.plugged is not None, "the configuration was checked"
    found = entry_points(group=GROUP, name=source.plugged.name)
    if not found:
        known = ", ".join(sorted(entry.name for entry in entry_points(group=GROUP))) or "none"
        raise InputError.of(
            "source.plugged", f"there is no source {source.plugged.name!r}; installed are: {known}"
        )
    (entry, *_) = tuple(found)
    try:
        make = entry.load()
    except Exception as error:
        raise PermanentError(f"source {entry.name} ({entry.value}): {error}") from error
    return cast("SchedulerSource", make(dict(source.plugged.options)))


class SchedulerService:
    """One driver process."""

    def __init__(
        self,
        config: SchedulerConfig,
    ) -> None:
        self._config = config
        self._stop = threading.Event()
        self._driver: LiveScheduler | None = None

    def run(self, *, signals: bool = True, rounds_max: int | None = None) -> None:
        """Drive until SIGTERM or SIGINT, or ``stop``.

        Raises:
            XceError: the configuration cannot be put to work, or the controller refuses the caller.
        """
        clock = SystemClock()
        if signals:
            Signals(lambda _: self.stop()).on(signal.SIGTERM, signal.SIGINT)
        with (
            client_of(self._config.controller) as client,
            self._recording(client, clock) as recorder,
        ):
            source = source_of(self._config, clock, self._stop.wait)
            try:
                self._driver = LiveScheduler(
                    self._config,
                    client,
                    source,
                    clock=clock,
                    recorder=recorder,
                )
                if not self._stop.is_set():
                    self._driver.run(wait=self._stop.wait, rounds_max=rounds_max)
            finally:
                source.close()

    @contextmanager
    def _recording(self, client: Client, clock: SystemClock) -> Generator[LiveRecorder | None]:
        """Open the recording that the configuration asks for, under a name that is not taken."""
        if self._config.record is None:
            yield None
            return
        path = free_name(Path(self._config.record))
        document = self._config.model_dump(mode="json")
        try:
            file = RecordingFile(
                path, by="xce scheduler", at=clock.now(), config=document, trace=self._config.trace
            )
        except TransientError as error:  # the disk is full: that must not end the work
            _LOG.error("recording given up", file=str(path), why=str(error))
            yield None
            return
        recorder = LiveRecorder(file, client)
        try:
            yield recorder
        except BaseException:
            file.give_up()
            raise
        recorder.close()

    def stop(self) -> None:
        """End after the present round."""
        if self._driver is not None:
            self._driver.stop()
        self._stop.set()

"""Recordings as files: one file, compressed with gzip, readable up to where it was cut."""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from xce.adapters.files import cannot_write, require_place
from xce.domain.errors import InputError, XceError
from xce.domain.formats.rest import EventEntry, Observations, Supply
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.replay.recording import RecordingWriter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from xce.adapters.client import Client

#: A longer line is none of ours: a snapshot of a million jobs is half of it.
LINE_MAX: Final = 512 * 1024 * 1024
#: The first one has the configuration at most.
START_MAX: Final = 16 * 1024 * 1024
#: Compressed bytes that are kept until there are more, or a reader is to see them.
KEPT_MAX: Final = 64 * 1024
_LOG = structlog.get_logger("xce.recording")


class _Sink(io.RawIOBase):
    """Where compressed bytes go: all of them or, from the first that could not be written, none.

    What follows a gap could not be read, nor what came before it from then on.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = new_file(path)
        self._kept = bytearray()
        self._broken = False

    def writable(self) -> bool:
        """Return that it is."""
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        """Keep, and write now and then.

        Raises:
            OSError: once; what comes later goes nowhere.
        """
        self._kept += data
        if len(self._kept) > KEPT_MAX:
            self.flush()
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Write all that was kept.

        Raises:
            OSError: once; what comes later goes nowhere.
        """
        left, self._kept = memoryview(bytes(self._kept)), bytearray()
        try:
            while left and not self._broken:
                left = left[self._file.write(left) or 0 :]
        except OSError:
            self._broken = True
            raise

    def close(self) -> None:
        """Write what was kept, and let go of the file.

        Raises:
            OSError: it could not be written.
        """
        if self.closed:
            return
        try:
            super().close()
        finally:
            self._file.close()


def new_file(path: Path) -> io.FileIO:
    """Make a file that is written without a buffer.

    Raises:
        OSError: it exists, or cannot be made.
    """
    return io.FileIO(path, "x")


class RecordingFile:
    """A recording that is being written; closed in the end, so that it is whole."""

    def __init__(
        self, path: Path, *, by: str, at: datetime, config: dict[str, Any], trace: bool = False
    ) -> None:
        """Begin a new file.

        Raises:
            InputError: it exists, or cannot be made.
        """
        require_place(path)
        try:
            self._sink = _Sink(path)
            self._file = gzip.GzipFile(path.name, "wb", compresslevel=6, fileobj=self._sink)
        except FileExistsError:
            raise InputError.of(
                str(path), "exists already; wanted the name of a new file"
            ) from None
        except OSError as error:
            raise cannot_write(str(path), error) from None
        self.path = path
        self.writer = RecordingWriter(
            self._write, by=by, release=version("xce"), at=at, config=config, trace=trace
        )
        self._closed = False

    def __enter__(self) -> Self:
        """Return the recording itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it; after an error it stays cut off."""
        self.close(whole=error is None)

    def flush(self) -> None:
        """Let a reader see all that was recorded.

        Raises:
            XceError: it cannot be written.
        """
        try:
            self._file.flush()
        except OSError as error:
            raise cannot_write(str(self.path), error) from None

    def close(self, *, whole: bool = True) -> None:
        """End it; may be repeated.

        Raises:
            XceError: it cannot be written.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if whole:
                self.writer.end()
        finally:
            try:
                with self._sink:
                    self._file.close()
            except OSError as error:
                raise cannot_write(str(self.path), error) from None

    def give_up(self) -> None:
        """End it where it was cut off: nothing more is written, and nothing is said. May be repeated."""
        with suppress(XceError):
            self.close(whole=False)

    def _write(self, line: str) -> None:
        try:
            self._file.write(line.encode())
        except OSError as error:
            raise cannot_write(str(self.path), error) from None


def free_name(path: Path) -> Path:
    """Return a name that is not taken: ``a.rec.gz``, ``a.2.rec.gz``, ... so that a daemon that starts again records on."""
    stem, dot, rest = path.name.partition(".")
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{stem}.{number}{dot}{rest}")
    return found


class LiveRecorder:
    """Records a driver's sessions, with the events of the log between them; what cannot be written ends the recording, never the driver.

    Events that the controller does not give now follow later.
    """

    def __init__(self, file: RecordingFile, client: "Client") -> None:
        self._file = file
        self._client = client
        self._position = 0
        self._begun = False
        self._broken = False

    def seen(self, view: Snapshot, supply: Supply, observations: Observations | None) -> None:
        """Record what the next session's snapshot is made of."""
        begins, self._begun = not self._begun, True
        self._guarded(lambda: self._file.writer.seen(view, supply, observations, begins=begins))

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """Record a session, after the events that are new to it."""
        if self._broken:
            return
        try:
            new = self._events(snapshot.position)
        except XceError as error:
            _LOG.warning("events are recorded later", why=str(error))
            new = []

        def write() -> None:
            for entry in new:
                self._file.writer.event(json.loads(entry.to_json()))
                self._position = entry.position
            self._file.writer.session(snapshot, result)
            self._file.flush()

        self._guarded(write)

    def close(self) -> None:
        """End the recording, so that it is whole; may be repeated."""
        self._guarded(self._file.close)

    def _events(self, upto: int) -> "list[EventEntry]":
        """Return the events up to a session's position; the first session's are those of the whole log."""
        if upto <= self._position:
            return []
        events = self._client.events(after=self._position)
        return list(takewhile(lambda entry: entry.position <= upto, events))

    def _guarded(self, write: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            write()
        except XceError as error:
            self._give_up(error)

    def _give_up(self, error: XceError) -> None:
        self._broken = True
        self._file.give_up()
        _LOG.error("recording given up", file=str(self._file.path), why=str(error))


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a recording, plain or compressed, up to where it was cut.

    Raises:
        InputError: it cannot be read, is damaged before its end, or has a line that none of ours is as long as.
    """
    longest = START_MAX
    try:
        with path.open("rb") as probe:
            start = probe.read(16)
        if start == b"SQLite format 3\0":
            raise InputError.of(str(path), "is a log and no recording; see: xce audit verify LOG")
        is_gzip = start.startswith(b"\x1f\x8b")
        with gzip.open(path, "rb") if is_gzip else path.open("rb") as file:
            while True:
                try:
                    line = file.readline(longest)
                except EOFError:
                    return  # cut off within a block
                if not line.endswith(b"\n"):
                    if len(line) < longest:
                        return  # the end, or a line that was cut
                    raise InputError.of(
                        str(path), f"is no recording: a line of more than {longest:,} bytes"
                    )
                yield line.decode()
                longest = LINE_MAX
    except OSError as error:
        raise InputError.of(str(path), f"cannot be read: {error.strerror or error}") from None
    except (zlib.error, UnicodeDecodeError) as error:
        raise InputError.of(str(path), f"is damaged: {error}") from None


@contextmanager
def writing(path: Path) -> Generator["gzip.GzipFile"]:
    """Open a new compressed file; an error leaves none behind.

    Raises:
        InputError: it exists, or cannot be made.
    """
    require_place(path)
    try:
        file = gzip.open(path, "xb", compresslevel=6)  # noqa: SIM115 - closed below
    except FileExistsError:
        raise InputError.of(str(path), "exists already; wanted the name of a new file") from None
    except OSError as error:
        raise cannot_write(str(path), error) from None
    try:
        with file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise

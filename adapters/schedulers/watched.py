"""A source that watches snapshot files: what another scheduler writes, whole or in part, right or wrong."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from xce.domain.errors import InputError, PermanentError, TransientError
from xce.domain.formats.scheduler_orders import document_of
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import SchedulerOrders

#: Names of files that are still being written.
_PARTIAL: Final = (".tmp", ".part", ".new")
#: A larger file is no snapshot.
BYTES_MAX: Final = 1024 * 1024 * 1024
_LOG = structlog.get_logger("xce.scheduler")

_Stamp = tuple[str, int, int, int]


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part.

    Raises:
        TransientError: it cannot be written now.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise TransientError(f"{path} cannot be written: {error.strerror or error}") from None


class WatchedFiles:
    """The newest good snapshot of a file, or of a folder's ``.json`` files; a wrong one is named in the log and left out."""

    def __init__(
        self, path: Path, orders: Path | None, poll_s: float, wait: Callable[[float], object]
    ) -> None:
        """Watch ``path``; orders are written to ``orders``. ``wait`` waits for so many seconds, or until the daemon stops."""
        self._path = path
        self._orders = orders
        self._poll_s = poll_s
        self._wait = wait
        self._seen: _Stamp | None = None
        self._wrong: set[_Stamp] = set()
        self._newest: Snapshot | None = None
        self._written: str | None = None

    def view(self) -> Snapshot | None:
        """Return the newest good snapshot.

        Raises:
            TransientError: the folder cannot be read.
        """
        stamps = self._stamps()
        self._wrong.intersection_update(stamps)
        for stamp in reversed(stamps):
            if stamp == self._seen:
                break
            if stamp in self._wrong:  # said before; what is written into it makes another stamp
                continue
            read = self._read(Path(stamp[0]))
            if read is not None:
                self._seen, self._newest = stamp, read
                break
            self._wrong.add(stamp)
        return self._newest

    def obey(self, orders: SchedulerOrders) -> None:
        """Write the orders, where they are asked for and have changed.

        Raises:
            TransientError: they cannot be written.
        """
        if self._orders is None:
            return
        text = document_of(orders).to_json(indent=1) + "\n"
        if text != self._written:
            replace_file(self._orders, text)
            self._written = text

    def wait(self, timeout_s: float) -> None:
        """Return when a file has changed, or after the time."""
        left = timeout_s
        while left > 0:
            self._wait(min(left, self._poll_s))
            left -= self._poll_s
            try:
                stamps = self._stamps()
            except TransientError:
                continue
            good = [stamp for stamp in stamps if stamp not in self._wrong]
            if good and good[-1] != self._seen:
                return

    def close(self) -> None:
        """There is nothing to let go of."""

    def _stamps(self) -> list[_Stamp]:
        """Return the files that count, the newest last."""
        try:
            if self._path.is_dir():
                names = [
                    path
                    for path in self._path.iterdir()
                    if path.suffix == ".json" and not _is_partial(path) and path != self._orders
                ]
            else:
                names = [self._path] if self._path.exists() else []
            stamps: list[_Stamp] = []
            for path in names:
                try:
                    found = path.stat()
                except FileNotFoundError:
                    continue  # went away meanwhile
                stamps.append((str(path), found.st_mtime_ns, found.st_size, found.st_ino))
        except OSError as error:
            raise TransientError(f"{self._path} cannot be read: {error.strerror}") from None
        return sorted(stamps, key=lambda stamp: (stamp[1], stamp[0]))

    def _read(self, path: Path) -> Snapshot | None:
        try:
            if path.stat().st_size > BYTES_MAX:
                raise InputError.of(str(path), f"is larger than {BYTES_MAX // 1024**2} MiB")
            return Snapshot.from_json(path.read_bytes(), str(path))
        except InputError as error:
            lines = str(error).splitlines()
            _LOG.warning("snapshot skipped", file=str(path), why=lines[0], problems=len(lines))
        except OSError as error:
            _LOG.warning("snapshot skipped", file=str(path), why=str(error.strerror))
        return None


def _is_partial(path: Path) -> bool:
    return path.name.startswith(".") or path.name.endswith(_PARTIAL)


def require_folder(path: Path) -> None:
    """Check that a watched path can come to exist.

    Raises:
        PermanentError: its folder does not exist.
    """
    if not path.exists() and not path.parent.is_dir():
        raise PermanentError(f"there is no folder {str(path.parent)!r} to watch")

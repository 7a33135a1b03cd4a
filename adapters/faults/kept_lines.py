"""A file of lines that is added to, so that what takes long goes on where it was: a line that was cut off is written again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from xce.adapters.files import cannot_write, require_place
from xce.domain.errors import InputError

#: Bytes of one line.
LINE_MAX: Final = 16 * 1024 * 1024


class KeptLines:
    """The lines of one file, of which only the last may be half there: whoever wrote it was ended in the middle."""

    def __init__(self, path: Path) -> None:
        """Check that there can be such a file.

        Raises:
            InputError: it has no place, or is a folder.
        """
        require_place(path)
        self._path = path
        self._whole = 0

    def read(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of each whole line; none where there is no file yet.

        Raises:
            InputError: it cannot be read, or is no text of lines.
        """
        self._whole = 0
        number = 0
        try:
            with self._path.open("rb") as file:
                while line := file.readline(LINE_MAX):
                    number += 1
                    if not line.endswith(b"\n"):
                        if len(line) == LINE_MAX:
                            raise InputError.of(
                                str(self._path),
                                f"a line of more than {LINE_MAX >> 20} MiB",
                                line=number,
                            )
                        return
                    self._whole += len(line)
                    yield number, line.decode()
        except FileNotFoundError:
            return
        except UnicodeDecodeError:
            raise InputError.of(str(self._path), "is not UTF-8 text", line=number) from None
        except OSError as error:
            raise InputError.of(
                str(self._path), f"cannot be read: {error.strerror or error}"
            ) from None

    def begin(self) -> None:
        """Make the file where it is not there, and let go of half a line at its end.

        Raises:
            XceError: it cannot be written.
        """
        try:
            with self._path.open("ab") as file:
                if self._path.is_file() and file.tell() > self._whole:
                    file.truncate(self._whole)
        except OSError as error:
            raise cannot_write(str(self._path), error) from None

    def add(self, line: str) -> None:
        """Write one more line.

        Raises:
            XceError: it cannot be written.
        """
        try:
            with self._path.open("ab") as file:
                file.write(line.encode() + b"\n")
        except OSError as error:
            raise cannot_write(str(self._path), error) from None

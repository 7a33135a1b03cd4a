"""Writing files that people asked for: one clear error, and whether trying again can help."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from xce.domain.errors import InputError, TransientError, XceError

#: What a full disk and a used-up quota are called; they may have room later, a wrong name never will.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_file(path: Path, text: str) -> None:
    """Write a text as UTF-8; lines end as they do in the text. Half a file is not left behind.

    Raises:
        InputError: no file of this name can be written.
        TransientError: the disk is full.
    """
    with gone_after_error(path):
        try:
            path.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise cannot_write(str(path), error) from None


@contextmanager
def gone_after_error(path: Path, *suffixes: str) -> Generator[None]:
    """Make something at a path, and files beside it whose names have these further suffixes; if it fails nothing of it is left.

    What is no plain file, such as a device, stays.
    """
    try:
        yield
    except XceError:
        for one in (path, *(path.with_name(path.name + suffix) for suffix in suffixes)):
            if one.is_file():
                one.unlink(missing_ok=True)
        raise


def cannot_write(name: str, error: OSError) -> XceError:
    """Return the error for a file, or a stream, that cannot be written."""
    message = f"cannot be written: {error.strerror or error}"
    if error.errno in _NO_ROOM:
        return TransientError(f"{name}: {message}")
    return InputError.of(name, message)


def why_unread(error: Exception) -> str:
    """Return why a file could not be read, without its name: what the system says, or what is wrong with the bytes."""
    said = error.strerror if isinstance(error, OSError) else None
    return f"cannot be read: {said or error}"


def require_place(*paths: Path | None) -> None:
    """Check, before work that takes long, that files of these names can be made, each another; None asks for none.

    Raises:
        InputError: a folder is missing, a name is that of a folder or no name at all, or two are one.
    """
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        try:
            if path.is_dir():
                raise InputError.of(str(path), "is a folder; wanted the name of a file")
            if not path.parent.is_dir():
                raise InputError.of(str(path), f"there is no folder {str(path.parent)!r}")
            place = path.resolve()
            if place in seen and (place.is_file() or not place.exists()):
                raise InputError.of(
                    str(path), "is to be two files at once; wanted a name for each of them"
                )
        except OSError as error:  # such as a name that is too long
            raise cannot_write(str(path), error) from None
        seen.add(place)

"""Writing files that people asked for: one clear error, and whether trying again can help."""

import errno
from pathlib import Path
from typing import Final

from xce.domain.errors import InputError, TransientError, XceError

#: What a full disk and a used-up quota are called; they may have room later, a wrong name never will.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_file(path: Path, text: str) -> None:
    """Write a text as UTF-8; lines end as they do in the text.

    Raises:
        InputError: no file of this name can be written.
        TransientError: the disk is full.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise cannot_write(str(path), error) from None


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
    """Check, before work that takes long, that files of these names can be made; None asks for none.

    Raises:
        InputError: a folder is missing, or a name is that of a folder.
    """
    for path in paths:
        if path is not None and path.is_dir():
            raise InputError.of(str(path), "is a folder; wanted the name of a file")
        if path is not None and not path.parent.is_dir():
            raise InputError.of(str(path), f"there is no folder {str(path.parent)!r}")

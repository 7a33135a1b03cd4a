"""Where the log's lines go: a daemon whose log cannot be written goes on, and says how many lines are missing when it can again."""

import json
import os
from typing import TextIO


class LogLines:
    """Takes what ``print`` writes; whole lines reach the stream, or are lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        try:  # not through its buffer, which would keep what could not be written, and fail once more at the end
            self._descriptor: int | None = stream.fileno()
        except OSError:
            self._descriptor = None
        self._line = ""
        self._lost = 0

    def write(self, text: str) -> int:
        """Keep a part of a line."""
        self._line += text
        return len(text)

    def flush(self) -> None:
        """Write what was kept; where that cannot be, as on a full disk, it is counted."""
        lines, self._line = self._line, ""
        if not lines:
            return
        if self._lost:
            missing = {"event": "log lines are missing here", "level": "error", "lines": self._lost}
            lines = f"{json.dumps(missing)}\n{lines}"
        try:
            self._put(lines)
        except (OSError, ValueError):  # ValueError: it was closed
            self._lost += 1
        else:
            self._lost = 0

    def _put(self, lines: str) -> None:
        if self._descriptor is None:
            self._stream.write(lines)
            self._stream.flush()
            return
        left = lines.encode(errors="backslashreplace")
        while left:
            left = left[os.write(self._descriptor, left) :]

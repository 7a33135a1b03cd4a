"""One run of a tool of a licence manager, which may hang, flood, or leave processes behind."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from xce.domain.errors import TransientError

#: More is no answer about licences: 1,000,000 sessions are 105 MB.
OUTPUT_MAX: Final = 256 * 1024 * 1024
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT: Final = ("PATH", "HOME", "LM_LICENSE_FILE")
_LOOK_S: Final = 0.02


def run(
    arguments: Sequence[str], limit_s: float, more: Mapping[str, str] | None = None
) -> tuple[bytes, int]:
    """Return what a tool printed, and its exit code, which says little.

    It runs in a process group of its own, with ``LC_ALL=C`` and little else of our environment; it is killed with all it started when
    the time is over, or when it prints without end.

    Raises:
        TransientError: it could not be started, or was killed.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment = {"PATH": _PATH, **kept, **(more or {}), "LC_ALL": "C"}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env=environment,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            raise TransientError(f"{arguments[0]} cannot be started: {error}") from None
        why = ""
        until = time.monotonic() + limit_s
        try:
            while not why:
                try:
                    process.wait(_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    if os.fstat(output.fileno()).st_size > OUTPUT_MAX:
                        why = f"printed more than {OUTPUT_MAX} bytes"
                    elif time.monotonic() >= until:
                        why = f"had no end after {limit_s:g} s"
        finally:
            # Also what a tool that has ended left running.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if why:
            raise TransientError(f"{arguments[0]} {why}")
        output.seek(0)
        return output.read(OUTPUT_MAX + 1), process.returncode

"""Processes of this machine by id and start time, so that a number that was given away again is not taken for the old process. Linux."""

import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xce.domain.errors import PermanentError, TransientError

#: A process that was killed ends within this, unless it hangs in the kernel.
END_WAIT_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Process:
    """One process of one start of one machine.

    Attributes:
        pid: its number.
        started: when, in clock ticks since the machine started.
        boot: which start of the machine.
        namespace: in which its number means something: containers have their own.
    """

    pid: int
    started: int
    boot: str
    namespace: str

    @classmethod
    def of_self(cls) -> "Process":
        """Return the process that runs this."""
        pid = os.getpid()
        started = _started(pid)
        assert started is not None, "this process runs"
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return cls(pid, started, boot, os.readlink("/proc/self/ns/pid"))

    def end(self) -> None:
        """Kill it and return when it has ended; nothing happens where it has ended already.

        Raises:
            PermanentError: it belongs to another user, another container or this very process.
            TransientError: it was killed and has not ended yet.
        """
        mine = Process.of_self()
        if self.boot != mine.boot:
            return  # the machine was started again since
        if self.namespace != mine.namespace:
            raise PermanentError(
                f"process {self.pid} runs in another container: it cannot be ended from here"
            )
        if self == mine:
            raise PermanentError("the one to be ended is this process itself")
        try:
            # Whoever this is cannot become somebody else between the look and the kill.
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if _started(self.pid) != self.started:
                return
            try:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            except ProcessLookupError:
                return
            except PermissionError:
                raise PermanentError(
                    f"process {self.pid} belongs to another user: it cannot be ended from here"
                ) from None
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            if not ended.poll(END_WAIT_MS):
                raise TransientError(f"process {self.pid} was killed and has not ended yet")
        finally:
            os.close(descriptor)


def _started(pid: int) -> int | None:
    """Return when a process started; None: there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Behind the name, which may hold anything, the 20th field.
    return int(stat.rpartition(")")[2].split()[19])

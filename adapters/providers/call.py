"""One run of a script: in a folder of its own, a process group of its own, and within limits of time and output.

The folder is the record of the run. Output goes straight to a file, and a small shell around the script writes the exit code, so that
both are found again when the process that started it has died meanwhile:

    input.json       what the script was given
    boot             which start of the machine it was started in
    work/            its working directory
    stdout, stderr
    process          the shell's pid, which is also the process group, and its start time
    exit             the exit code, there whole or not at all
"""

import fcntl
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

#: Runs its arguments, unless the machine has been up for longer than the first one says, in hundredths of a second: whoever starts it may
#: be frozen just before, and wake when somebody else is to act. Field 22 of the stat line is when a process started.
_SHELL: Final = (
    'if [ -n "$1" ]; then read -r up idle </proc/uptime; [ "${up%.*}${up#*.}" -lt "$1" ] || exit 0; fi; shift; '
    "read -r a b c d e f g h i j k l m n o p q r s t u started rest </proc/$$/stat; "
    'echo "$$ $started" >../process.part; mv ../process.part ../process; '
    '"$@"; echo "$?" >../exit.part; mv ../exit.part ../exit'
)
#: The variable by which the processes of a run are found, those too that left its group.
MARK: Final = "XCE_CALL"
_LOOK_MIN_S: Final = 0.005
_LOOK_MAX_S: Final = 0.05
#: For so long a script's leftovers may hold its output after its end.
_LET_GO_S: Final = 1.0
_LOG_MAX: Final = 64 * 1024
#: Exit codes above this are signals, in the words of a shell.
SIGNALLED: Final = 128
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left.

    Attributes:
        exit_code: None: it was killed, or nobody knows how it ended.
        output: standard output up to the limit and one more.
        log: the beginning of standard error.
        why_killed: for people; "": it was not killed by us.
        seconds: how long it took; None: it was found again, and not watched.
    """

    arguments: tuple[str, ...]
    exit_code: int | None
    output: bytes
    log: bytes
    why_killed: str = ""
    seconds: float | None = None

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the output."""
        return sha256(self.output).hexdigest()


class TooLateError(Exception):
    """The script was not started, and never will be by this run: the time in which it might begin is over."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one run: seconds, and bytes of each output."""

    time_s: float
    output: int


def arguments_of(script: Path, folder: Path) -> tuple[str, ...]:
    """Return how a script is called: exactly two arguments, since most take the second blindly."""
    return (str(script), "-f", str(folder / "input.json"))


def run(
    script: Path,
    given: str,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    left_s: Callable[[], float] | None = None,
) -> Ran:
    """Run a script on an input; return when it has ended, or was killed with all it started.

    ``folder`` is made, and must not exist. Its parent must. ``left_s`` says for how many seconds from now it may begin; None: at any time.

    Raises:
        OSError: it could not be started: the disk is full, or there are too many processes.
        TooLateError: it may not begin any more, and has not.
    """
    until = "" if left_s is None else str(_uptime() + round(100 * left_s()))
    (folder / "work").mkdir(parents=True)
    _write_synced(folder / "boot", _boot())
    _write_synced(folder / "input.json", given)
    sync_folder(folder.parent)
    began = time.monotonic()
    program = ["env", "-C", str(folder / "work"), "/bin/sh", "-c", _SHELL, "sh"]
    pid = os.posix_spawn(
        "/usr/bin/env",
        [*program, until, *arguments_of(script, folder)],
        {**environment, MARK: str(folder)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder / "stdout"), _WRITE, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(folder / "stderr"), _WRITE, 0o600),
        ],
        setpgroup=0,
        setsigmask=[],
        setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM],
    )
    why = "the caller was interrupted"
    try:
        why = _watch(pid, folder, limits)
    finally:
        if why:
            # The shell is not waited for yet, so its number is still its own and that of its group.
            os.killpg(pid, signal.SIGKILL)
            end_all(folder)
        os.waitpid(pid, 0)
    if (folder / "exit").exists():
        _end_writers(folder, limits)
    elif not why:
        # Somebody has killed the shell: the script must not run beside the next one.
        end_all(folder)
    seconds = time.monotonic() - began
    if until and not why and not (folder / "process").exists() and _uptime() >= int(until):
        raise TooLateError
    return found(script, folder, limits, why=why, seconds=seconds)


def found(
    script: Path, folder: Path, limits: Limits, *, why: str = "", seconds: float | None = None
) -> Ran:
    """Return what a run that has ended left in its folder, once it is on disk."""
    exit_code = None if why else _exit_code(folder)
    return Ran(
        arguments_of(script, folder),
        exit_code,
        _read_synced(folder / "stdout", limits.output + 1),
        _read_synced(folder / "stderr", _LOG_MAX),
        why,
        seconds,
    )


def never_ran(folder: Path) -> bool:
    """Return whether it is certain that the script of a folder was never started: its starter died just before."""
    try:
        same_boot = (folder / "boot").read_text() == _boot()
    except FileNotFoundError:
        return not (folder / "input.json").exists()
    return same_boot and not (folder / "process").exists() and not any(left_of(folder))


def is_running(folder: Path) -> bool:
    """Return whether the run in a folder, started by whomever, has not ended."""
    return not (folder / "exit").exists() and _group_of(folder) is not None


def wait_for(folder: Path, limit_s: float) -> bool:
    """Wait for a run that somebody else started, at most so long from now; return whether it has ended."""
    until = time.monotonic() + limit_s
    pause = _LOOK_MIN_S
    while is_running(folder):
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, _LOOK_MAX_S)
    return True


def end_all(folder: Path) -> int:
    """Kill everything that the run in a folder started and that still runs; return how many there were."""
    count = 0
    for _ in range(10):  # what is being started while we look is found by the next look
        marked = list(left_of(folder))
        for pid in marked:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
            count += 1
        if not marked:
            break
    return count


def _end_writers(folder: Path, limits: Limits) -> None:
    """Kill what a script has left that still holds its output open: nobody reads it any more, and it could fill the disk.

    What was begun in the background just before the end has a moment to let go of it, as long as the output is within its limit.
    """
    outputs = [folder / "stdout", folder / "stderr"]
    until = time.monotonic() + _LET_GO_S
    for _ in range(10):  # as in ``end_all``
        while holders := _holders(folder, outputs):
            if time.monotonic() >= until or any(
                one.stat().st_size > limits.output for one in outputs
            ):
                break
            time.sleep(_LET_GO_S / 20)
        if not holders:
            break
        for pid in holders:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _holders(folder: Path, outputs: Sequence[Path]) -> list[int]:
    held = {str(path) for path in outputs if _may_be_written(path)}
    return [pid for pid in left_of(folder) if _holds(pid, held)] if held else []


def _may_be_written(path: Path) -> bool:
    """Return whether a process has a file open for writing; also where the file system cannot tell."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A lease for reading is given only where nobody writes.
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _holds(pid: int, files: set[str]) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            return any(os.readlink(one.path) in files for one in descriptors)
    except OSError:
        return False


def left_of(folder: Path) -> Iterator[int]:
    """Yield the processes of a run that are still there, by their environment."""
    mark = f"{MARK}={folder}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0"):
            yield int(entry.name)


def discard(folder: Path) -> None:
    """Remove the folder of a run; may be repeated."""
    shutil.rmtree(folder, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _watch(pid: int, folder: Path, limits: Limits) -> str:
    """Return when the shell has ended, with ""; or when a limit is passed, with which."""
    until = time.monotonic() + limits.time_s
    pause = _LOOK_MIN_S
    descriptor = os.pidfd_open(pid)
    end = select.poll()
    end.register(descriptor, select.POLLIN)
    try:
        while True:
            left = until - time.monotonic()
            ended = bool(end.poll(1000 * max(0.0, min(pause, left))))
            for name in ("stdout", "stderr"):
                if (folder / name).stat().st_size > limits.output:
                    return f"more than {limits.output} bytes on {name}"
            if ended:
                return ""
            if left <= 0:
                return f"no end after {limits.time_s:g} s"
            pause = min(pause * 2, _LOOK_MAX_S)
    finally:
        os.close(descriptor)


def _exit_code(folder: Path) -> int | None:
    try:
        return int((folder / "exit").read_text())
    except (OSError, ValueError):
        return None


def _uptime() -> int:
    """Return for how long the machine has been up, in hundredths of a second, by the clock that the shell reads."""
    whole, _, part = Path("/proc/uptime").read_text().split()[0].partition(".")
    return int(whole + part)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _group_of(folder: Path) -> int | None:
    """Return the process group of a run that is still there."""
    try:
        pid, started = (folder / "process").read_text().split()
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    # Behind the name: the state is field 3, the start is field 22.
    return int(pid) if stat[19] == started and stat[0] not in "ZX" else None


def _write_synced(path: Path, text: str) -> None:
    descriptor = os.open(path, _WRITE, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    sync_folder(path.parent)


def _read_synced(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            return file.read(limit)
    except FileNotFoundError:
        return b""

"""Workloads from files: what a file is, its first line says, whatever it is called."""

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, cast

from xce.adapters.recordings import read_lines
from xce.domain.errors import InputError
from xce.domain.formats.config import WorkloadConfig
from xce.replay.recording import FORMAT as RECORDING
from xce.replay.workloads.from_recording import from_recording
from xce.replay.workloads.from_slurm import from_slurm
from xce.replay.workloads.from_swf import load_swf
from xce.replay.workloads.shaping import shaped
from xce.replay.workloads.workload import Workload
from xce.replay.workloads.workload_file import FORMAT as WORKLOAD
from xce.replay.workloads.workload_file import from_lines

#: As much of a file as tells what it is.
_PROBE: Final = 64 * 1024
#: An accounting document is read as a whole.
DOCUMENT_BYTES_MAX: Final = 1024 * 1024 * 1024
#: Bytes of one line of a workload.
LINE_MAX: Final = 16 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"


class Kind(StrEnum):
    """What a file of jobs is."""

    SWF = "swf"
    SLURM = "slurm"
    RECORDING = "recording"
    WORKLOAD = "workload"


def load_workload(
    path: Path,
    config: WorkloadConfig,
    *,
    seed: int,
    time_zero: datetime | None = None,
    jobs_max: int | None = None,
) -> Workload:
    """Return the jobs of a trace, an accounting document, a recording or a workload file, as configured.

    Args:
        path: plain or gzip.
        config: how a trace is read; and what is cut, scaled and given licences.
        seed: of the licences.
        time_zero: of second 0 of a trace; None: its own.
        jobs_max: only the first so many records of a trace, jobs of the others.

    Raises:
        InputError: it cannot be read, or is none of these.
    """
    match kind_of(path):
        case Kind.SWF:
            return load_swf(path, config, seed=seed, time_zero=time_zero, jobs_max=jobs_max)
        case Kind.SLURM:
            workload = from_slurm(_document(path), config, str(path))
        case Kind.RECORDING:
            workload = from_recording(read_lines(path), str(path))
        case Kind.WORKLOAD:
            workload = from_lines(_lines(path), str(path))
    return shaped(workload.head(jobs_max), config, seed)


def kind_of(path: Path) -> Kind:
    """Return what a file is, by how it begins: JSON lines and documents say so; all else is taken for a trace.

    Raises:
        InputError: it cannot be read.
    """
    start = _start(path)
    if start.startswith(codecs.BOM_UTF8):
        raise InputError.of(str(path), "starts with a byte order mark; wanted text without", line=1)
    start = start.lstrip()
    if not start.startswith((b"{", b"[")):
        return Kind.SWF
    try:
        first: Any = json.loads(start.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return Kind.SLURM  # a document of many lines
    stated = cast("dict[str, Any]", first).get("format") if isinstance(first, dict) else None
    kind = {WORKLOAD: Kind.WORKLOAD, RECORDING: Kind.RECORDING}.get(str(stated), Kind.SLURM)
    if kind is Kind.SLURM and str(stated).startswith("xce."):
        raise InputError.of(
            str(path), f"is {str(stated)[:80]!r}; wanted {WORKLOAD} or {RECORDING}", line=1
        )
    return kind


def _start(path: Path) -> bytes:
    try:
        if path.is_fifo():
            raise InputError.of(str(path), "is a pipe; wanted a file, which can be read twice")
        with path.open("rb") as probe:
            start = probe.read(_PROBE)
        if start.startswith(_GZIP):
            with gzip.open(path, "rb") as file:
                start = file.read(_PROBE)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(repr(str(path)), f"cannot be read: {error}") from None
    return start


def _document(path: Path) -> Any:
    try:
        with gzip.open(path, "rb") if _start_is_gzip(path) else path.open("rb") as file:
            text = file.read(DOCUMENT_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    if len(text) > DOCUMENT_BYTES_MAX:
        raise InputError.of(str(path), f"is larger than {DOCUMENT_BYTES_MAX // 1024**2} MiB")
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError.of(str(path), f"is not JSON: {error}") from None
    except RecursionError:
        raise InputError.of(str(path), "is nested too deeply; no sacct prints that") from None


def _lines(path: Path) -> Iterator[str]:
    number = 0
    try:
        with gzip.open(path, "rb") if _start_is_gzip(path) else path.open("rb") as file:
            while line := file.readline(LINE_MAX + 1):
                number += 1
                if len(line) > LINE_MAX:
                    raise InputError.of(
                        str(path), f"a line of more than {LINE_MAX >> 20} MiB", line=number
                    )
                yield line.decode()
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    except UnicodeDecodeError:
        raise InputError.of(str(path), "is not UTF-8 text", line=number) from None


def _start_is_gzip(path: Path) -> bool:
    with path.open("rb") as probe:
        return probe.read(2) == _GZIP


def _unreadable(path: Path, error: Exception) -> InputError:
    why = getattr(error, "strerror", None) or error
    return InputError.of(str(path), f"cannot be read: {why}")

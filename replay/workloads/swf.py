"""The Standard Workload Format: one line a job, 18 columns, header comments; plain or packed with gzip.

Columns and meanings: Parallel Workloads Archive, "The Standard Workload Format", version 2.2. An unknown value is -1 there and
None here (any negative value is taken as unknown). Three columns may follow, as in the MetaCentrum logs of the Alea simulator:
the processor slots that ran the job, the name of its queue, and its request (see ``node_request``).
"""

import codecs
import gzip
import re
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from xce.domain.errors import InputError, Problem

#: More bytes than any line of a real log has; a longer one is not text of this format.
LINE_MAX: Final = 1 << 20
#: Lines without a record, one after the other: at the start, or anywhere.
HEADER_LINES_MAX: Final = 10_000
#: As the formats have it.
QUEUE_NAME_MAX: Final = 256
COLUMNS: Final = 18
COLUMNS_EXTENDED: Final = 21

_GZIP_MAGIC: Final = b"\x1f\x8b"
#: No job runs longer, and none is submitted later: what says so is a mistake.
HUNDRED_YEARS: Final = 100 * 366 * 86_400
YEAR_2200: Final = 7_258_118_400
_COUNT_MAX: Final = 2**53 - 1
_INTEGER = re.compile(r"[+-]?\d{1,19}(\.0*)?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d{1,19}(\.\d*)?", re.ASCII)
_HEADER = re.compile(r";+\s*([A-Za-z]\w*)\s*:\s*(.*)", re.ASCII)


class Lines(Protocol):
    """What a trace is read from."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line, at most ``size`` bytes of it, empty at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """What one column holds: its name for messages, its largest sensible value, whether it may be unknown or a fraction."""

    name: str
    largest: int
    required: bool = False
    fraction: bool = False


#: Upper bounds are far above every log of the archive: what passes them is not a record but a mistake.
COLUMN: Final[tuple[Column, ...]] = (
    Column("job number", _COUNT_MAX, required=True),
    Column("submit time", YEAR_2200, required=True),
    Column("wait time", HUNDRED_YEARS),
    Column("run time", HUNDRED_YEARS),
    Column("processors used", 1_000_000),
    Column("CPU time used", _COUNT_MAX, fraction=True),
    Column("memory used", _COUNT_MAX, fraction=True),
    Column("processors asked", 1_000_000),
    Column("time asked", HUNDRED_YEARS),
    Column("memory asked", 2**60),
    Column("status", 1_000),
    Column("user", _COUNT_MAX),
    Column("group", _COUNT_MAX),
    Column("executable", _COUNT_MAX),
    Column("queue", _COUNT_MAX),
    Column("partition", _COUNT_MAX),
    Column("preceding job", _COUNT_MAX),
    Column("think time", HUNDRED_YEARS),
)


@dataclass(frozen=True, slots=True)
class SwfJob:
    """One record. Times are seconds; ``submit`` counts from the log's start, or from 1970 where the log has no header.

    ``memory_asked`` is what column 10 says: KB per processor by the standard, something else in some logs.
    """

    line: int
    number: int
    submit: int
    wait: int | None
    run_time: int | None
    processors_used: int | None
    processors_asked: int | None
    time_asked: int | None
    memory_asked: int | None
    status: int | None
    user: int | None
    group: int | None
    executable: int | None
    queue: int | None
    partition: int | None
    preceding: int | None
    queue_name: str | None = None
    request: str | None = None
    request_column: int | None = None


class SwfTrace:
    """An open trace: its header, and its records as they are read.

    Attributes:
        source: name for messages.
        header: the ``; Key: value`` comments before the first record.
    """

    def __init__(self, stream: Lines, source: str) -> None:
        self.source = source
        self._lines = _lines(stream, source)
        self._first: tuple[int, str] | None = None
        self.header: Mapping[str, str] = self._read_header()

    @property
    def unix_start(self) -> int | None:
        """Return what second since 1970 the log's time 0 is, None where the header does not say.

        Raises:
            InputError: the header says something that is not a time.
        """
        text = self.header.get("UnixStartTime")
        if text is None:
            return None
        if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII) or not -1 <= int(text) <= YEAR_2200:
            raise InputError.of(
                self.source,
                f"UnixStartTime {_shown(text)} is not a time; wanted seconds since 1970",
                path="header",
            )
        return int(text) if int(text) >= 0 else None

    def jobs(self) -> Iterator[SwfJob]:
        """Yield the records in file order, once.

        Raises:
            InputError: at the first record that cannot be read, with all that is wrong with it.
        """
        if self._first is not None:
            yield _job(*self._first, self.source)
            self._first = None
        for number, text in self._lines:
            if not _is_comment(text):
                yield _job(number, text, self.source)

    def _read_header(self) -> dict[str, str]:
        header: dict[str, str] = {}
        for number, text in self._lines:
            if not _is_comment(text):
                self._first = (number, text)
                break
            if match := _HEADER.fullmatch(text.strip()):
                header.setdefault(match[1], match[2])
        return header


@contextmanager
def open_swf(path: Path) -> Generator[SwfTrace]:
    """Open a trace file, packed or plain: what it is, its first bytes say; the file is closed at the end.

    Raises:
        InputError: no such file, or not a text of this format (then while it is read).
    """
    source = str(path)
    try:
        plain = path.open("rb")
    except OSError as error:
        raise InputError.of(source, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(repr(source), f"cannot be read: {error}") from None
    with plain:
        try:
            packed = plain.peek(2).startswith(_GZIP_MAGIC)  # what is a pipe cannot be read twice
        except OSError as error:
            raise InputError.of(source, f"cannot be read: {error.strerror or error}") from None
        if packed:
            with gzip.GzipFile(fileobj=plain) as unpacked:
                yield SwfTrace(unpacked, source)
        elif path.suffix == ".gz":
            raise InputError.of(source, "is named .gz and is not a gzip file")
        else:
            yield SwfTrace(plain, source)


def _lines(stream: Lines, source: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank; comments may have any characters, records only ASCII."""
    number, last_record = 0, 0
    while True:
        number += 1
        try:
            raw = stream.readline(LINE_MAX + 1)
        except (EOFError, zlib.error, OSError) as error:
            raise InputError.of(source, f"cannot be read on: {error}", line=number) from None
        if not raw:
            return
        if number - last_record > HEADER_LINES_MAX:
            raise InputError.of(source, f"no record in {HEADER_LINES_MAX} lines", line=number)
        if len(raw) > LINE_MAX:
            raise InputError.of(source, f"a line of more than {LINE_MAX} bytes", line=number)
        if b"\0" in raw:
            raise InputError.of(source, "is not text: there is a zero byte", line=number)
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            raise InputError.of(
                source, "starts with a byte order mark; wanted text without", line=number
            )
        text = raw.decode("utf-8", errors="replace").rstrip()
        if not text:
            continue
        if not _is_comment(text):
            last_record = number
            if not text.isascii():
                raise InputError.of(
                    source, f"is not a record of ASCII text: {_shown(text)}", line=number
                )
        yield number, text


def _is_comment(text: str) -> bool:
    return text.lstrip().startswith(";")


def _job(line: int, text: str, source: str) -> SwfJob:
    fields = text.split()
    if len(fields) not in (COLUMNS, COLUMNS_EXTENDED):
        raise InputError.of(
            source,
            f"{len(fields)} columns, wanted {COLUMNS}, or {COLUMNS_EXTENDED} with slots, queue name and request",
            line=line,
        )
    problems: list[Problem] = []
    values: list[int | None] = []
    for index, (column, field) in enumerate(zip(COLUMN, fields, strict=False)):
        try:
            values.append(_value(column, field))
        except ValueError as error:
            problems.append(Problem(str(error), line=line, column=_column_of(text, index)))
    if problems:
        raise InputError(source, problems)
    number, submit = values[0], values[1]
    assert number is not None, "a required column has a value"
    assert submit is not None, "a required column has a value"
    extended = len(fields) == COLUMNS_EXTENDED
    if extended and len(fields[19]) > QUEUE_NAME_MAX:
        raise InputError.of(
            source,
            f"queue name {_shown(fields[19])} is longer than {QUEUE_NAME_MAX} characters",
            line=line,
            column=_column_of(text, 19),
        )
    return SwfJob(
        line=line,
        number=number,
        submit=submit,
        wait=values[2],
        run_time=values[3],
        processors_used=values[4],
        processors_asked=values[7],
        time_asked=values[8],
        memory_asked=values[9],
        status=values[10],
        user=values[11],
        group=values[12],
        executable=values[13],
        queue=values[14],
        partition=values[15],
        preceding=values[16],
        queue_name=fields[19] if extended else None,
        request=fields[20] if extended else None,
        request_column=_column_of(text, 20) if extended else None,
    )


def _value(column: Column, field: str) -> int | None:
    wanted = "a number" if column.fraction else "a whole number"
    if not (_DECIMAL if column.fraction else _INTEGER).fullmatch(field):
        raise ValueError(f"{column.name} {_shown(field)} is not {wanted}")
    value = int(field.partition(".")[0])
    if value > column.largest:
        raise ValueError(
            f"{column.name} {_shown(field)} is absurd; wanted at most {column.largest}"
        )
    if value >= 0 and not field.startswith("-"):
        return value
    if column.required:
        raise ValueError(f"{column.name} {_shown(field)} is negative; it must be known")
    return None


def _column_of(text: str, index: int) -> int:
    """Return the 1-based place of the index-th word."""
    for i, match in enumerate(re.finditer(r"\S+", text)):
        if i == index:
            return match.start() + 1
    return 1


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")

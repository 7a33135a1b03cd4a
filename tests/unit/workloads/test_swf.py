"""Reading the Standard Workload Format: what is read, and what every kind of wrong file is told."""

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.records import EXTENDED, RECORD, changed, written
from xce.domain.errors import InputError
from xce.replay.workloads.swf import COLUMN, SwfJob, open_swf


def read(path: Path) -> list[SwfJob]:
    with open_swf(path) as trace:
        return list(trace.jobs())


def test_a_record_is_read_column_by_column(tmp_path: Path) -> None:
    (job,) = read(written(tmp_path, RECORD + "\n"))

    assert (job.line, job.number, job.submit, job.wait, job.run_time) == (1, 7, 30, 5, 600)
    assert (job.processors_used, job.processors_asked, job.time_asked) == (4, 4, 3600)
    assert (job.memory_asked, job.status, job.user, job.group) == (1048576, 1, 62, 1)
    assert (job.executable, job.queue, job.partition) == (3, 2, 1)
    assert (job.queue_name, job.request) == (None, None)


def test_minus_one_is_unknown_and_so_is_any_negative_run_time(tmp_path: Path) -> None:
    lines = [changed(4, "-1"), changed(4, "-1359980917"), changed(10, "-1")]

    jobs = read(written(tmp_path, "\n".join(lines)))

    assert [job.run_time for job in jobs] == [None, None, 600]
    assert [job.memory_asked for job in jobs] == [1048576, 1048576, None]


def test_the_three_further_columns_are_read_where_they_are(tmp_path: Path) -> None:
    (job,) = read(written(tmp_path, EXTENDED))

    assert (job.queue_name, job.request) == ("q_1d", "1:ppn=4")
    assert job.request_column == EXTENDED.index("1:ppn=4") + 1


def test_header_comments_blank_lines_and_trailing_blanks_are_no_records(tmp_path: Path) -> None:
    text = f"; Version: 2.2\n;UnixStartTime: 843480031\n; Note: uses EASY\n;\n\n{RECORD}\n; later\n   \n \n"
    with open_swf(written(tmp_path, text)) as trace:
        assert trace.unix_start == 843480031
        assert trace.header["Version"] == "2.2"
        assert len(list(trace.jobs())) == 1


def test_a_header_may_hold_any_characters(tmp_path: Path) -> None:
    path = tmp_path / "latin.swf"
    path.write_bytes(b"; Acknowledge: \xc5ke Sandgren\n" + RECORD.encode())

    assert len(read(path)) == 1


def test_packed_and_plain_files_read_the_same_whatever_their_name(tmp_path: Path) -> None:
    plain = written(tmp_path, RECORD)
    packed = tmp_path / "packed.swf"
    packed.write_bytes(gzip.compress(RECORD.encode()))

    assert read(packed) == read(plain)


def test_a_file_without_records_has_none(tmp_path: Path) -> None:
    assert read(written(tmp_path, "; only a header\n")) == []
    assert read(written(tmp_path, "")) == []


#: What is in the file, and the parts that its one message must have.
MALFORMED: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("a word for a number", changed(4, "abc").encode(), (":1:", "run time 'abc' is not a whole number")),
    ("a part of a second", changed(9, "1.5").encode(), ("time asked '1.5' is not a whole number",)),
    ("hexadecimal", changed(1, "0x10").encode(), ("job number '0x10'",)),
    ("not a number", changed(2, "nan").encode(), ("submit time 'nan'",)),
    ("endless", changed(4, "inf").encode(), ("run time 'inf'",)),
    ("exponent", changed(4, "1e3").encode(), ("run time '1e3'",)),
    ("thousands separator", changed(4, "1,000").encode(), ("run time '1,000'",)),
    ("digits of another script", changed(4, "٣").encode(), ("not a record of ASCII text",)),
    ("too few columns", b"1 2 3", ("3 columns, wanted 18",)),
    ("too many columns", (RECORD + " 9").encode(), ("19 columns",)),
    ("two lines in one", (RECORD + " " + RECORD).encode(), ("36 columns",)),
    ("a run of centuries", changed(4, "9999999999").encode(), ("run time '9999999999' is absurd", "at most")),
    ("a million processors", changed(8, "1000001").encode(), ("processors asked '1000001' is absurd",)),
    ("more digits than a number", changed(10, "9" * 30).encode(), ("memory asked",)),
    ("submitted before time", changed(2, "-5").encode(), ("submit time '-5' is negative",)),
    ("no job number", changed(1, "-1").encode(), ("job number '-1' is negative",)),
    ("a zero byte", b"1 2\x003 4", ("zero byte",)),
    ("binary", bytes(range(128, 256)), ("not a record of ASCII text",)),
    ("another format", b'{"jobs": []}', ("2 columns",)),
    ("a very long line", b"1 " * 600_000, ("a line of more than",)),
    ("a header without an end", b"; x\n" * 10_001, ("no record in 10000 lines",)),
    ("blank lines without an end", b"\n" * 10_001, ("no record in 10000 lines",)),
    ("a tail without an end", RECORD.encode() + b"\n" * 10_002, ("no record in 10000 lines",)),
    ("a byte order mark", b"\xef\xbb\xbf" + RECORD.encode(), (":1:", "starts with a byte order mark")),
    ("a queue that is no name", EXTENDED.replace("q_1d", "q" * 257).encode(), ("queue name", "longer than 256")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "parts"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED]
)
def test_a_malformed_file_is_one_error_that_says_where_and_what(
    tmp_path: Path, content: bytes, parts: tuple[str, ...]
) -> None:
    path = tmp_path / "bad.swf"
    path.write_bytes(content)

    with pytest.raises(InputError) as caught:
        read(path)

    assert len(caught.value.problems) == 1
    assert str(caught.value).startswith(f"{path}:")
    for part in parts:
        assert part in str(caught.value)


def test_a_trace_can_come_through_a_pipe(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "wb") as writer:
        writer.write(gzip.compress(RECORD.encode()))

    try:
        (job,) = read(Path(f"/dev/fd/{ours}"))
    finally:
        os.close(ours)

    assert job.number == 7


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InputError, match=r"^/proc/self/mem: cannot be read"):
        read(Path("/proc/self/mem"))


def test_an_error_names_line_and_column_as_an_editor_shows_them(tmp_path: Path) -> None:
    bad = "   " + changed(4, "abc")
    path = written(tmp_path, f"; header\n{RECORD}\n{bad}\n")

    with pytest.raises(InputError) as caught:
        read(path)

    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, bad.index("abc") + 1)


def test_all_that_is_wrong_with_a_record_is_said_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, changed(4, "abc", changed(8, "def")))

    with pytest.raises(InputError) as caught:
        read(path)

    assert [problem.message[:10] for problem in caught.value.problems] == [
        "run time '",
        "processors",
    ]


@pytest.mark.parametrize("start", ["tomorrow", "99999999999999", "-5", "1.5"])
def test_a_start_time_that_is_none_is_an_error(tmp_path: Path, start: str) -> None:
    with (
        open_swf(written(tmp_path, f"; UnixStartTime: {start}\n{RECORD}")) as trace,
        pytest.raises(InputError, match="UnixStartTime"),
    ):
        _ = trace.unix_start


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(tmp_path / "none.swf")


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)


def test_a_plain_file_named_gz_is_said_to_be_no_gzip_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a gzip file"):
        read(written(tmp_path, RECORD, "trace.swf.gz"))


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_gzip_file_is_an_error_with_the_line_reached(tmp_path: Path, damage: str) -> None:
    packed = bytearray(gzip.compress((RECORD + "\n").encode() * 2000))
    if damage == "cut":
        del packed[-40:]
    else:
        packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "trace.swf.gz"
    path.write_bytes(packed)

    with pytest.raises(InputError) as caught:
        read(path)

    assert caught.value.problems[0].line is not None


@given(values=st.tuples(*(st.integers(0, column.largest) for column in COLUMN)))
def test_any_record_within_the_bounds_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, values: tuple[int, ...]
) -> None:
    path = written(tmp_path_factory.mktemp("swf"), " ".join(map(str, values)))

    (job,) = read(path)

    assert (job.number, job.submit, job.run_time, job.memory_asked) == (
        values[0], values[1], values[3], values[9],
    )  # fmt: skip


@given(
    content=st.binary(max_size=300)
    | st.text(alphabet="0123456789 -.\n;:x", max_size=300).map(str.encode)
)
def test_any_bytes_at_all_are_read_or_are_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "trace.swf"
    path.write_bytes(content)
    with suppress(InputError):
        read(path)


@pytest.mark.parametrize(
    ("name", "count", "start"),
    [
        ("KTH-SP2-1996-2.swf.gz", 28_489, 843480031),
        ("METACENTRUM-wagap-2013-q1.swf.gz", 17_900, None),
        ("HPC2N-2002-2.2-head3170.swf.gz", 3_170, 1027839845),
        ("NASA-iPSC-1993-3.1-cln.swf.gz", 18_239, 749458803),
    ],
)
def test_real_traces_are_read_whole(shared: Path, name: str, count: int, start: int | None) -> None:
    with open_swf(shared / "traces" / name) as trace:
        assert trace.unix_start == start
        assert sum(1 for _ in trace.jobs()) == count

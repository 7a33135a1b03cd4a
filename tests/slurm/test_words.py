"""The small forms: host lists, array indexes, amounts, times, and lines that users have a hand in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.adapters.schedulers.slurm import text
from xce.adapters.schedulers.slurm.lists import (
    array_tasks,
    generic_resources,
    host_names,
    licences,
)
from xce.adapters.schedulers.slurm.reasons import Waits, waits_for


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("", []),
        ("(null)", []),
        ("a,b", ["a", "b"]),
        ("a[1-3,07],b", ["a1", "a2", "a3", "a07", "b"]),
        ("r[1-2]n[08-10]", ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
    ],
)
def test_host_lists(written: str, names: list[str]) -> None:
    assert host_names(written) == names


@pytest.mark.parametrize("written", ["a[1-3", "a[x]", "a[1-x]", "a]1[", "a[1-99999999999]"])
def test_what_is_no_host_list_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"host list|names"):
        host_names(written)


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(1, 3))
def test_a_host_list_of_ranges_has_every_name_once(numbers: set[int], width: int) -> None:
    parts = ",".join(str(number).zfill(width) for number in sorted(numbers))

    assert host_names(f"n[{parts}]") == [f"n{str(n).zfill(width)}" for n in sorted(numbers)]


@pytest.mark.parametrize(
    ("written", "indexes", "limit"),
    [
        ("5", [5], None),
        ("1-4%2", [1, 2, 3, 4], 2),
        ("0-20:8", [0, 8, 16], None),
        ("[1,3,5-6]%10", [1, 3, 5, 6], 10),
        ("1-2%0", [1, 2], None),
    ],
)
def test_array_indexes(written: str, indexes: list[int], limit: int | None) -> None:
    assert array_tasks(written) == (indexes, limit)


@pytest.mark.parametrize("written", ["1-2,...", "x", "1-9999999999", ""])
def test_what_is_no_list_of_indexes_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"array index|elements"):
        array_tasks(written)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("gpu:2", {"gpu": 2}),
        ("gpu", {"gpu": 1}),
        ("gres:gpu:a100:2", {"gpu": 2, "gpu:a100": 2}),
        ("gres/gpu=2", {"gpu": 2}),
        ("gres/gpu:a100=2", {"gpu": 2, "gpu:a100": 2}),
        ("gpu:a100:2(S:0-1),gpu:h100:1(IDX:0),shard:4", {"gpu": 3, "gpu:a100": 2, "gpu:h100": 1, "shard": 4}),
        ("bandwidth:lustre:no_consume:4G", None),
        ("gpu:a100", {"gpu": 1, "gpu:a100": 1}),
        ("craynetwork:4K", {"craynetwork": 4096}),
        ("(null)", {}),
    ],
)  # fmt: skip
def test_generic_resources(written: str, found: dict[str, int] | None) -> None:
    if found is None:
        with pytest.raises(ValueError, match="generic resource"):
            generic_resources(written)
    else:
        assert generic_resources(written) == found


def test_licences_are_added_up() -> None:
    assert licences("tool@srv:2,other,tool@srv:1") == {"tool@srv": 3, "other": 1}
    for wrong in ("a:1|b:2", "a:x", "a:b=3"):
        with pytest.raises(ValueError, match="licence"):
            licences(wrong)


@pytest.mark.parametrize(
    ("written", "mib"),
    [("100M", 100), ("100", 100), ("2G", 2048), ("1.5G", 1536), ("1K", 1), ("1T", 1024**2), ("N/A", None), ("0", 0)],
)  # fmt: skip
def test_memory(written: str, mib: int | None) -> None:
    assert text.mebibytes(written) == mib


@pytest.mark.parametrize("written", ["16Q", "16MW", "many", "-1M"])
def test_memory_of_an_unknown_unit_is_never_a_number(written: str) -> None:
    with pytest.raises(ValueError, match="wanted"):
        text.mebibytes(written)


@pytest.mark.parametrize(
    ("written", "minutes"),
    [("00:10:00", 10), ("1-12:00:00", 2160), ("30", 30), ("10:30", 11), ("2-0", 2880), ("UNLIMITED", None)],
)  # fmt: skip
def test_time_limits(written: str, minutes: int | None) -> None:
    assert text.minutes(written) == minutes


LINE = (
    "JobId=7 JobName={name} UserId=ann(1000) GroupId=users(100) MCS_label=N/A Priority=5 Account=chip QOS=normal "
    "JobState=RUNNING Reason=None NodeList=n1 NumNodes=1 NumCPUs=1 Nodes=n1 CPU_IDs=0 Mem=100 GRES= MinCPUsNode=1 "
    "Features=(null) Command=/x WorkDir=/ Comment={comment}"
)


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "a b",
        "x Account=boss QOS=high",
        "x UserId=root(0) GroupId=root(0) MCS_label=N/A Account=boss",
        "x JobName=y NodeList=n9",
        "x\nJobId=8 JobName=y UserId=root(0) GroupId=root(0) MCS_label=N/A Account=boss",
        "x\n   NodeList=n9",
    ],
)
def test_a_user_cannot_name_a_job_into_another_account(name: str) -> None:
    line = LINE.format(name=name, comment="Account=boss Nodes=n9 CPU_IDs=0 Mem=1 GRES=")
    (record,) = text.records(line, "JobId", has="JobState=")

    assert record["JobName"].split() == name.split()
    assert (record["UserId"], record["Account"], record["QOS"]) == ("ann(1000)", "chip", "normal")
    assert (record["NodeList"], record[text.PLACED]) == ("n1", "n1 0 100")


def test_broken_lines_are_one_record_as_without_the_option_for_one_line() -> None:
    broken = LINE.format(name="a b", comment="none").replace(" UserId", "\n   UserId")
    broken = broken.replace(" Nodes=n1 CPU", "\n     Nodes=n1 CPU").replace(
        " Command", "\n\n   Command"
    )

    whole = text.records(LINE.format(name="a b", comment="none"), "JobId", has="JobState=")
    assert text.records(f"{broken}\n\n{broken}\n", "JobId", has="JobState=") == whole * 2


def test_lines_of_one_word_are_records() -> None:
    assert text.records("none\nLicenseName=a\nLicenseName=b\n", "LicenseName") == [
        {"LicenseName": "a"},
        {"LicenseName": "b"},
    ]


@pytest.mark.parametrize(
    ("word", "waits"),
    [
        ("ReqNodeNotAvail, May be reserved for other job", Waits.RESOURCES),
        ("ReqNodeNotAvail,_UnavailableNodes:n1", Waits.RESOURCES),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", Waits.RESOURCES),
        ("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved", Waits.RESOURCES),
        ("Licenses", Waits.LICENCES),
        ("QOSMaxJobsPerUserLimit", Waits.LIMIT),
        ("AssocGrpCPUMinutesLimit", Waits.LIMIT),
        ("launch failed requeued held", Waits.HELD),
        ("JobArrayTaskLimit", Waits.ARRAY),
        ("SomethingNew", Waits.UNKNOWN),
    ],
)  # fmt: skip
def test_reasons(word: str, waits: Waits) -> None:
    assert waits_for(word) is waits

"""The samples beside the project: whole, and cut at every byte."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from xce.adapters.observers.flexnet.parser import parse, parse_file
from xce.adapters.observers.flexnet.report import document_of

SAMPLES = (
    "01_single_modern.txt",
    "02_triad_one_node_down.txt",
    "03_reservations.txt",
    "04_queued_and_odd_columns.txt",
    "05_linger_and_borrow.txt",
    "06_uncounted_and_feature_errors.txt",
    "07_unreachable.txt",
    "08_vendor_daemon_down.txt",
    "09_two_servers_crlf.txt",
    "10_several_pools_double_spaced.txt",
    "11_two_vendors_year_end.txt",
    "12_overdraft_and_hidden_users.txt",
)
NUMBERS = (
    "issued",
    "in_use_reported",
    "checked_out",
    "reserved",
    "borrowed",
    "queued",
    "in_use",
)


def expected(shared: Path, name: str) -> dict[str, Any]:
    folder = shared / "samples" / "lmstat"
    documents: dict[str, dict[str, Any]] = json.loads((folder / "expected.json").read_text())
    return documents[name]


def text_of(shared: Path, name: str) -> str:
    return (shared / "samples" / "lmstat" / name).read_bytes().decode()


def test_all_samples_are_tested(shared: Path) -> None:
    found = sorted(path.name for path in (shared / "samples" / "lmstat").glob("*.txt"))
    assert found == list(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_whole_sample_gives_its_expected_values(shared: Path, name: str) -> None:
    report = parse(text_of(shared, name))
    assert document_of(report) == expected(shared, name)
    assert report.cut is None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_read_as_a_file_says_the_same(shared: Path, name: str) -> None:
    text = text_of(shared, name)
    assert parse_file(io.BytesIO(text.encode())) == parse(text)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_cut_anywhere_gives_only_numbers_of_the_whole_and_says_that_it_is_cut(
    shared: Path, name: str
) -> None:
    text, whole = text_of(shared, name), expected(shared, name)
    double_spaced = name.startswith("10")
    for length in range(len(text)):
        report = parse(text[:length])
        found = document_of(report)
        for entry, of_whole in zip(found["features"], whole["features"], strict=False):
            assert entry["feature"] == of_whole["feature"]
            # No line ever counts in part, and a section that goes on is left out. That sessions of an uncounted
            # feature follow behind its blank line is the one thing that a text does not show.
            exact = [key for key in NUMBERS if key != "checked_out" or entry["kind"] == "counted"]
            assert {key: entry[key] for key in exact} == {key: of_whole[key] for key in exact}
            assert entry["checked_out"] <= of_whole["checked_out"]
        between_sections = (
            text[:length].replace("\r", "").endswith("\n" if double_spaced else "\n\n")
        )
        if not between_sections and found != whole:
            assert report.cut is not None, repr(text[:length][-60:])
        if report.cut is not None:
            assert found["state"] in ("partial", "unreachable")


def test_free_is_never_below_zero_and_unknown_where_there_is_no_limit(shared: Path) -> None:
    report = parse(text_of(shared, "12_overdraft_and_hidden_users.txt"))
    assert [feature.free for feature in report.features] == [0, 939, None]

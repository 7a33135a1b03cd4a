"""The grammar of lmstat in small texts: sessions and not lines, unknown and not zero, whole numbers or none."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.observers.lmstat_text import HEAD, pool, server, session, users
from xce.adapters.observers.flexnet.parser import parse
from xce.adapters.observers.flexnet.report import Feature, FeatureKind, ReportState


def only(text: str) -> Feature:
    (feature,) = parse(HEAD + server() + text).features
    return feature


def test_a_session_that_stands_in_two_parts_of_a_feature_counts_once() -> None:
    twice = session(handle=1) + session(handle=2) + "\n"
    feature = only(users("F", 4, 2) + pool("F") + twice + pool("F", version="v2.0") + twice)
    assert (feature.checked_out, feature.in_use, feature.free) == (2, 2, 2)


def test_the_larger_use_counts_where_header_and_sessions_disagree() -> None:
    three = "".join(session(handle=handle) for handle in (1, 2, 3)) + "\n"
    feature = only(users("F", 4, 2) + pool("F") + three)
    assert (feature.in_use, feature.free) == (3, 1)


def test_more_in_use_than_issued_leaves_nothing_free_and_nothing_negative() -> None:
    feature = only(users("F", 4, 6) + pool("F") + session(end=", 4 licenses") + "\n")
    assert (feature.in_use, feature.free) == (6, 0)


@pytest.mark.parametrize(
    "who",
    [
        "Pat Reed desk (v9.9) x (other/1 2), start Mon 1/1 0:00, 50 licenses",
        "o'brien (guest) host (lab) :0",
        "7 RESERVATIONs for GROUP",
        "a b c ) queued for 9 licenses",
        "用户 主机 /dev/tty",
        "x y (linger: 5 / 9)",
        'quote "F" v1, vendor: other',
    ],
)
def test_a_session_is_read_from_its_right_hand_end(who: str) -> None:
    feature = only(users("F", 9, 3) + pool("F") + session(who, end=", 3 licenses, PID: 12 ") + "\n")
    assert (feature.checked_out, feature.queued, feature.reserved) == (3, 0, 0)
    assert (feature.borrowed, feature.vendor) == (0, "northlm")


@pytest.mark.parametrize(
    ("end", "licences", "borrowed"),
    [
        ("", 1, 0),
        (", 1 license", 1, 0),
        (", 12 licenses, PID: 7", 12, 0),
        (" (linger: 60)", 1, 1),
        ("  (linger: 1 / 60)", 1, 1),
        (", 2 licenses  (linger: 0 / 60)", 2, 0),
        (", 2 licenses  (linger: 9 / 60), PID: 7", 2, 2),
        (", 2 licenses, PID: 7 (linger: 0)", 2, 0),
    ],
)
def test_licences_and_lingering_ones_are_counted(end: str, licences: int, borrowed: int) -> None:
    feature = only(users("F", 20, licences) + pool("F") + session(end=end) + "\n")
    assert (feature.checked_out, feature.borrowed) == (licences, borrowed)


@pytest.mark.parametrize(
    "start", ["Di 5/12 8:03", "mar. 5/12 8:03", "周二 5/12 8:03", "12.05. 8:03 Uhr", "5/12 8:03"]
)
def test_dates_of_other_languages_lose_no_licences(start: str) -> None:
    line = session(start=start, end=", 3 licenses  (linger: 5 / 9)")
    feature = only(users("F", 20, 3) + pool("F") + line + "\n")
    assert (feature.checked_out, feature.borrowed) == (3, 3)


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ("Tue 5/12/2026 14:07", datetime(2026, 5, 12, 14, 7)),  # noqa: DTZ001
        ("Di 5/12/2026 14:07", datetime(2026, 5, 12, 14, 7)),  # noqa: DTZ001
        ("Di 12.05.2026 14:07", datetime(2026, 5, 12, 14, 7)),  # noqa: DTZ001
        ("2026-05-12 14:07:31", datetime(2026, 5, 12, 14, 7)),  # noqa: DTZ001
        ("Tue 5/12/2026 2:07 PM", datetime(2026, 5, 12, 14, 7)),  # noqa: DTZ001
        ("Tue 25/12/2026 14:07", datetime(2026, 12, 25, 14, 7)),  # noqa: DTZ001
        ("Tue 13/13/2026 14:07", None),
    ],
)
def test_the_time_of_a_report_is_read_or_unknown(stated: str, read: datetime | None) -> None:
    assert parse(f"Flexible License Manager status on {stated}\n").reported_at == read


def test_a_leap_day_lies_in_the_last_leap_year() -> None:
    head = HEAD.replace("5/12/2026", "1/2/2026")
    line = session("fern n1", start="Sat 2/29 7:00")
    report = parse(head + server() + users("F", 2, 1) + pool("F") + line + "\n")
    assert report.starts == (("fern", datetime(2024, 2, 29, 7, 0)),)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("header", "issued"),
    [
        ("Users of F: Cannot get users of F: No such feature exists. (-5,222)", None),
        ("Users of F:  (Error: 4 licenses, unsupported by licensed server)", 4),
        ("Users of F:  something that no version of the tool printed yet", None),
        (
            "Users of F:  (Total of 9999999999999999999999 licenses issued;  Total of 1 licenses in use)",
            None,
        ),
    ],
)
def test_a_feature_that_cannot_be_counted_is_unknown_and_not_zero(
    header: str, issued: int | None
) -> None:
    feature = only(header + "\n\n")
    assert (feature.kind, feature.issued) == (FeatureKind.ERROR, issued)
    assert (feature.in_use, feature.free) == (None, None)


def test_numbers_of_a_dead_vendor_daemon_are_unknown() -> None:
    vendors = "    northlm: The desired vendor daemon is down. (-97,121)\n    other: UP v1\n"
    text = users("F", 8, 0) + pool("F") + "\n" + users("G", 8, 0) + pool("G", "other") + "\n"
    report = parse(HEAD + server(vendors=vendors) + text + users("H", 1, 0))
    assert report.state is ReportState.DEGRADED
    assert [feature.in_use for feature in report.features] == [None, 0, 0]
    assert report.features[0].issued is None


def test_a_server_that_does_not_answer_makes_sums_lower_bounds() -> None:
    dead = (
        "-" * 40
        + "\nLicense server status: 27020@gone\n\n"
        + 'gone: Cannot connect to license server system. (-15,570:111 "refused")\n'
    )
    report = parse(HEAD + server() + users("F", 8, 0) + dead)
    assert report.state is ReportState.PARTIAL
    assert [(each.host, each.up) for each in report.servers] == [("keys", True), ("gone", False)]


def test_a_server_that_gives_only_an_error_makes_sums_lower_bounds() -> None:
    text = HEAD + server() + users("F", 8, 0) + "-" * 40 + "\nError getting status: gone (-15)\n"
    assert parse(text).state is ReportState.PARTIAL


def test_a_triad_of_which_nobody_answers_is_unreachable() -> None:
    nodes = "".join(f"t{i}: Cannot connect to license server system. (-15)\n" for i in (1, 2, 3))
    report = parse(HEAD + "License server status: 1@t1,1@t2,1@t3\n\n" + nodes)
    assert (report.state, report.features) == (ReportState.UNREACHABLE, ())


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_double_spaced_texts_say_the_same(ending: str) -> None:
    text = HEAD + server() + users("F", 9, 4) + pool("F") + session(end=", 4 licenses") + "\n"
    text += users("G", 3, 0)
    lines = [line for line in text.split("\n") if line]
    spaced = "".join(f"{line}{ending}{ending}" for line in lines).removesuffix(ending)
    assert parse(spaced) == parse(text)
    assert parse(text).cut is None


def test_a_text_whose_beginning_is_missing_keeps_its_numbers_and_is_partial() -> None:
    report = parse(users("F", 8, 0))
    assert (report.state, report.features[0].in_use) == (ReportState.PARTIAL, 0)


def test_nothing_at_all_is_unreachable() -> None:
    assert parse("").state is ReportState.UNREACHABLE


_WHO = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20
).filter(lambda text: text.strip() and "vendor_string:" not in text)
_SESSION = st.tuples(
    _WHO, st.integers(1, 500), st.sampled_from(["", "  (linger: 7 / 9)", ", PID: 5"])
)


@given(
    st.lists(st.tuples(st.lists(_SESSION, max_size=4), st.integers(0, 3)), max_size=4),
    st.integers(0, 5000),
)
def test_any_text_gives_its_numbers_and_any_cut_gives_no_others(
    features: list[tuple[list[tuple[str, int, str]], int]], at: int
) -> None:
    text = HEAD + server()
    for number, (sessions, reserved) in enumerate(features):
        used = sum(amount for _, amount, _ in sessions)
        text += users(f"f{number}", 2 * used + reserved, used + reserved)
        if sessions or reserved:
            text += pool(f"f{number}")
            text += f"\t{reserved} RESERVATIONs for GROUP g (keys/27020)\n" if reserved else ""
            for handle, (who, amount, end) in enumerate(sessions):
                text += session(who, handle, f", {amount} licenses{end}")
            text += "\n"
    whole = parse(text)
    assert [(each.in_use, each.reserved) for each in whole.features] == [
        (sum(amount for _, amount, _ in sessions), reserved) for sessions, reserved in features
    ]
    cut = parse(text[:at])
    assert cut.features == whole.features[: len(cut.features)]


@given(st.text(max_size=400))
def test_any_text_at_all_is_read_without_an_error(text: str) -> None:
    parse(HEAD + server() + text)
    parse(text)

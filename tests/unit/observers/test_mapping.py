"""Which features are a resource, and what of several servers and vendors is known."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.observers.lmstat_text import HEAD, pool, server, session, users
from xce.adapters.observers.flexnet.mapping import observations
from xce.adapters.observers.flexnet.parser import parse
from xce.adapters.observers.flexnet.report import Report
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.observers import FeatureMapping

NOW = datetime(2026, 5, 12, 14, 7, tzinfo=UTC)


def used(name: str, licences: int, vendor: str = "northlm") -> str:
    return (
        users(name, 20, licences)
        + pool(name, vendor)
        + session(end=f", {licences} licenses")
        + "\n"
    )


def seen(*reports: Report | None, **mapping: Any) -> Observation:
    wanted = FeatureMapping.model_validate({"resource": "sim", "feature": "F", **mapping})
    (made,) = observations(
        reports, [wanted], source="o", sequence=1, observed_at=NOW, received_at=NOW
    )
    return made


def test_all_servers_are_added_up() -> None:
    one, two = parse(HEAD + server("k1") + used("F", 3)), parse(HEAD + server("k2") + used("F", 4))
    made = seen(one, two)
    assert (made.quality, made.in_use, made.issued) == (Quality.OK, 7, 40)


def test_case_30_one_of_two_servers_that_does_not_answer_leaves_a_lower_bound() -> None:
    one = parse(HEAD + server("k1") + used("F", 3))
    for other in (None, parse(HEAD + "Error getting status: (-15)\n")):
        made = seen(one, other)
        assert (made.quality, made.in_use, made.issued) == (Quality.PARTIAL, 3, None)


def test_case_31_features_are_mapped_by_server_vendor_and_spelling() -> None:
    vendors = "    a: UP v1\n    b: UP v1\n"
    text = used("F", 3, "a") + used("F", 4, "b") + used("f", 5, "a")
    report = parse(HEAD + server("Keys.Example", vendors) + text)
    assert seen(report).in_use == 7
    assert seen(report, vendor="b").in_use == 4
    assert seen(report, vendor="a", any_case=True).in_use == 8
    assert seen(report, server="27020@keys.example", vendor="a").in_use == 3
    assert seen(report, server="keys.example", feature="f").in_use == 5
    assert seen(report, server="other").quality is Quality.UNREACHABLE


@pytest.mark.parametrize(
    "text",
    [
        "Users of F: Cannot get users of F: No socket connection (-7)\n\n",
        "Users of F:  (Error: 4 licenses, unsupported by licensed server)\n\n",
        "Users of F:  (Uncounted, node-locked)\n\n",
        users("F", 2147483647, 0),
        users("G", 4, 0),
    ],
)
def test_case_06_and_37_what_is_not_counted_is_no_observation_and_not_zero(text: str) -> None:
    made = seen(parse(HEAD + server() + text))
    assert (made.quality, made.in_use, made.issued) == (Quality.UNREACHABLE, None, None)
    assert made.note


def test_a_cut_text_gives_a_lower_bound_only() -> None:
    text = HEAD + server() + used("F", 3) + users("G", 9, 5)[:40]
    made = seen(parse(text))
    assert (made.quality, made.in_use) == (Quality.PARTIAL, 3)


def test_a_node_of_a_triad_that_is_down_leaves_the_numbers_whole() -> None:
    head = server().replace(
        "\n\nVendor", "\nk2: Cannot connect to license server system. (-15)\n\nVendor"
    )
    made = seen(parse(HEAD + head + used("F", 3)))
    assert (made.quality, made.in_use) == (Quality.DEGRADED, 3)


def of_triad(text: str) -> Report:
    triad = server().replace("27020@keys", "27020@k1,27020@k2,27020@k3")
    assert "27020@k1,27020@k2,27020@k3" in triad
    return parse(HEAD + triad + text)


def test_a_triad_whose_nodes_are_all_asked_is_counted_once_by_its_fullest_answer() -> None:
    made = seen(of_triad(used("F", 3)), of_triad(used("F", 4)), of_triad(used("F", 2)))

    assert (made.quality, made.in_use, made.issued) == (Quality.OK, 4, 20)


def test_nodes_of_a_triad_that_disagree_about_what_there_is_leave_a_lower_bound() -> None:
    more = used("F", 3).replace("Total of 20", "Total of 60")
    assert more != used("F", 3)

    made = seen(of_triad(used("F", 3)), of_triad(more))

    assert (made.quality, made.in_use, made.issued) == (Quality.PARTIAL, 3, None)
    assert "two answers differ" in made.note


def test_case_29_reservations_are_not_in_use() -> None:
    text = users("F", 60, 31) + pool("F") + "  13 RESERVATIONs for GROUP g (keys/27020)\n"
    made = seen(parse(HEAD + server() + text + session(end=", 18 licenses") + "\n"))
    assert (made.in_use, made.reserved) == (18, 13)

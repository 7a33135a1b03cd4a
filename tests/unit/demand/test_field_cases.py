"""Field cases as snapshot files: the right answer of each, and the whole result beside it.

``XCE_ACCEPT=1`` writes the results anew; the difference is to be read before it is committed.
"""

import os
import re

import pytest

from tests.conftest import ROOT
from tests.reference.comparison import differences
from xce.adapters.cli.session import session
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session

CASES = ROOT / "examples" / "field-cases"
RESULTS = ROOT / "tests" / "data" / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.json"))
#: Those that the plain reference can judge in a moment.
SMALL = [name for name in NAMES if not name.startswith("f29")]


def read(name: str) -> Snapshot:
    return Snapshot.from_json((CASES / f"{name}.json").read_bytes(), name)


def hosts(name: str) -> dict[str, int]:
    result = session((CASES / f"{name}.json").read_bytes(), name)
    return {demand.template: demand.count for demand in result.demand.hosts}


def why(result: SessionResult) -> dict[str, str]:
    demand = result.demand
    return {each.job: each.why for each in (*demand.impossible, *demand.not_counted)}


@pytest.mark.parametrize("name", SMALL)
def test_the_result_of_a_case_is_the_one_beside_it(name: str) -> None:
    path = RESULTS / f"{name}.result.json"
    said = run_session(read(name)).to_json(indent=1) + "\n"
    if os.environ.get("XCE_ACCEPT"):
        path.write_text(said)

    assert said == path.read_text()


@pytest.mark.parametrize("name", SMALL)
def test_the_reference_finds_nothing_wrong_with_a_case(name: str) -> None:
    snapshot = read(name)

    assert differences(snapshot, run_session(snapshot)) == []


def test_every_case_is_in_the_table_of_its_folder() -> None:
    page = (CASES / "README.md").read_text()
    named: set[str] = set()
    for cell in re.findall(r"^\| (`f.*?) \|", page, re.MULTILINE):
        of_cell = re.findall(r"`(\w+)`", cell)
        if " to " in cell:
            start, end = (int(name[-1]) for name in of_cell)
            of_cell = [f"{of_cell[0][:-1]}{number}" for number in range(start, end + 1)]
        named.update(of_cell)

    assert named == set(NAMES)


@pytest.mark.parametrize(("tick", "asked"), [(1, 3), (2, 0), (3, 0), (4, 1), (5, 0), (6, 0)])
def test_f01_starting_hosts_and_the_free_room_of_joined_ones_are_supply(
    tick: int, asked: int
) -> None:
    assert hosts(f"f01_tick{tick}") == ({"T": asked} if asked else {})


def test_f02_a_job_that_runs_is_not_pending_and_a_host_that_joined_is_not_in_flight() -> None:
    result = run_session(read("f02_joined_since"))

    assert result.demand.hosts == ()
    assert [(each.job, each.hosts[0].name) for each in result.allocations] == [
        ("j3", "h3"),
        ("j4", "h4"),
    ]
    assert "'i-3'" in "".join(result.warnings)


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("f12_1_17_gib", {"C": 1}),
        ("f12_2_8_gib", {"D": 1}),
        ("f12_3_four_jobs", {"C": 1}),
        ("f12_4_priority", {"A": 1}),
        ("f12_5_equal_price", {"B": 1}),
        ("f12_5_equal_price_other_order", {"B": 1}),
    ],
)
def test_f12_priority_then_the_price_of_the_whole_then_the_id(
    name: str, chosen: dict[str, int]
) -> None:
    assert hosts(name) == chosen


@pytest.mark.parametrize(("tick", "asked", "counted"), [(1, 1, 2), (2, 0, 2), (3, 1, 7)])
def test_f13_only_as_many_jobs_count_as_there_are_tokens(
    tick: int, asked: int, counted: int
) -> None:
    result = run_session(read(f"f13_tick{tick}"))

    assert sum(demand.count for demand in result.demand.hosts) == asked
    assert len(result.demand.not_counted) == 30 - counted
    assert set(why(result).values()) == {"short 1 of simA, not provisionable"}


def test_f14_jobs_at_a_limit_held_or_dependent_bring_no_hosts() -> None:
    result = run_session(read("f14_limits"))

    (demand,) = result.demand.hosts
    assert (demand.template, demand.count) == ("T", 2)
    assert [each.job for each in demand.jobs] == ["j1", "j16"]
    assert why(result)["j2"] == "limit u1-run"
    assert why(result)["j17"] == "limit q-run"
    assert (why(result)["k1"], why(result)["m2"]) == ("held", "dependency")


def test_f15_a_gang_is_demand_as_a_whole_or_not_at_all() -> None:
    assert hosts("f15_no_fpga") == {}
    assert why(run_session(read("f15_no_fpga"))) == {"G": "no template provides 'fpga'"}
    assert hosts("f15_b_one_p") == {"P": 1, "T": 2}
    assert hosts("f15_c_no_room") == {}


def test_f16_an_impossible_gang_stops_nobody_and_is_judged_again() -> None:
    first = run_session(read("f16_tick1"))
    second = run_session(read("f16_tick2"))

    assert [(d.template, d.count) for d in first.demand.hosts] == [("T", 2)]
    assert why(first) == why(second) == {"g1": "needs 3 hosts, at most 2 are possible"}
    assert second.demand.hosts == ()
    assert hosts("f16_cap_raised") == {"T": 3}


def test_f17_a_host_that_is_smaller_than_promised_covers_nothing() -> None:
    assert hosts("f17_smaller_than_promised") == {"U": 1}


def test_f18_a_bare_number_means_what_the_setting_says_and_is_never_guessed() -> None:
    assert hosts("f18_a_kib") == {"T": 10}
    result = run_session(read("f18_b_unknown"))
    assert {pending.reason.value for pending in result.pending[:20]} == {"unit_unknown"}
    assert why(result) == {f"j{n}": "unit unknown: mem" for n in range(1, 21)}
    assert [each.job for each in result.demand.hosts[0].jobs] == ["j21", "j22"]


def test_f29_ten_thousand_jobs_of_forty_shapes_are_all_counted_or_listed() -> None:
    given = read("f29_a_forty_shapes")
    result = session((CASES / "f29_a_forty_shapes.json").read_bytes(), "f29")

    waiting = [each.job for each in result.pending]
    counted = [each.job for each in result.pending if each.provisioning is not None]
    assert len({job.resreq for job in given.pending}) == 40
    assert len(result.allocations) + len(waiting) == len(given.pending) == 10_000
    assert waiting == counted  # there is room on some template for every shape
    assert len(result.reason_sets) <= 40


@pytest.mark.parametrize("start", [0, 5000])
def test_f29_the_plan_for_shapes_is_the_one_for_jobs_one_by_one(start: int) -> None:
    whole = read("f29_a_forty_shapes")
    part = whole.model_copy(
        update={
            "hosts": whole.hosts[:5],
            "running": whole.running[:5],
            "pending": whole.pending[start : start + 60],
        }
    )

    assert differences(part, run_session(part)) == []


def test_f29_b_no_more_hosts_than_the_cap_and_as_many_jobs_as_they_hold() -> None:
    result = session((CASES / "f29_b_one_shape_at_a_cap.json").read_bytes(), "f29_b")

    assert [(each.template, each.count) for each in result.demand.hosts] == [("T", 300)]
    assert len(result.demand.hosts[0].jobs) == 300 * 16
    assert {each.why for each in result.demand.not_counted} == {
        "no more room on any template that fits"
    }

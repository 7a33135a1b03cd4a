"""What amounts of a requirement are in base units."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cluster.strategies import REQUIREMENTS, numbers
from xce.domain.cluster.requirement import Number, Requirement
from xce.domain.cluster.resreq import parse
from xce.domain.cluster.units import (
    UnitError,
    UnitSettings,
    UnitUnknownError,
    exact,
    need,
    primaries,
    unit_problems,
    unknown_units,
)
from xce.domain.formats.snapshot import MemoryUnit, Settings
from xce.domain.values import read_amount

DEFAULT = UnitSettings()
SHARED = UnitSettings(shared=frozenset(("lic",)))


def amount(text: str) -> Number:
    (primary,) = primaries(parse(f"rusage[x={text}]"))
    return primary.rusage[0].amount


@pytest.mark.parametrize(
    ("resource", "text", "wanted"),
    [
        ("mem", "2048", 2048),
        ("mem", "2048.1", 2049),
        ("mem", "8GiB", 8192),
        ("mem", "8gb", 8192),
        ("mem", "8G", 8192),
        ("mem", "1K", 1),
        ("mem", "1B", 1),
        ("mem", "0B", 0),
        ("mem", "1048576B", 1),
        ("mem", "1048577b", 2),
        ("mem", "0.5GiB", 512),
        ("mem", "1.0001MiB", 2),
        ("tmp", "10", 10),
        ("tmp", "10GiB", 10240),
        ("slots", "2", 2),
        ("slots", "1.5", 2),
        ("lic", "3", 3),
        ("lic", "0", 0),
    ],
)
def test_a_need_is_rounded_up_to_base_units(resource: str, text: str, wanted: int) -> None:
    assert need(resource, amount(text), SHARED) == wanted


@pytest.mark.parametrize(
    ("unit", "text", "wanted"),
    [
        (MemoryUnit.B, "1048577", 2),
        (MemoryUnit.KIB, "81920", 80),
        (MemoryUnit.MIB, "80", 80),
        (MemoryUnit.GIB, "0.5", 512),
        (MemoryUnit.TIB, "1", 1024 * 1024),
    ],
)
def test_a_bare_number_has_the_unit_of_the_setting(
    unit: MemoryUnit, text: str, wanted: int
) -> None:
    for resource in ("mem", "tmp"):
        units = UnitSettings({resource: unit})

        assert need(resource, amount(text), units) == wanted
        assert need(resource, amount("80M"), units) == 80


def test_a_bare_number_whose_setting_could_not_be_read_is_not_guessed() -> None:
    units = UnitSettings({"mem": None})

    with pytest.raises(
        UnitUnknownError, match="unit of a bare number of mem is not known"
    ) as raised:
        need("mem", amount("81920"), units)
    assert raised.value.resource == "mem"
    with pytest.raises(UnitUnknownError):
        exact("mem", amount("81920"), units)
    assert need("mem", amount("80M"), units) == 80
    assert need("tmp", amount("5"), units) == 5


@pytest.mark.parametrize("resource", ["slots", "lic"])
def test_counts_take_no_suffix_and_no_setting(resource: str) -> None:
    units = UnitSettings({"slots": None, "lic": MemoryUnit.GIB}, frozenset(("lic",)))

    assert need(resource, amount("4"), units) == 4
    with pytest.raises(UnitError, match=f'{resource} is a count and takes no unit, found "K"'):
        need(resource, amount("4K"), units)


def test_an_amount_past_all_that_exists_is_out_of_range() -> None:
    assert need("mem", amount("9007199254740991"), DEFAULT) == 2**53 - 1
    with pytest.raises(UnitError, match="mem is 9007199254740992, out of range"):
        need("mem", amount("9007199254740992"), DEFAULT)
    with pytest.raises(UnitError, match="out of range"):
        need("mem", amount("999999999999999999EiB"), DEFAULT)
    with pytest.raises(UnitError, match="out of range"):
        need("mem", Number(Fraction(-1)), DEFAULT)


def test_the_settings_of_a_snapshot_are_taken_over() -> None:
    units = UnitSettings.of(Settings(units={"mem": MemoryUnit.KIB}), ["lic"])

    assert need("mem", amount("1024"), units) == 1
    assert units.is_count("lic")
    assert units.is_count("slots")
    assert not units.is_count("mem")


def test_resources_with_bare_numbers_of_unknown_unit_are_named_once_in_order() -> None:
    units = UnitSettings(
        {"mem": None, "tmp": None, "lic": None, "io": MemoryUnit.KIB}, frozenset(("lic",))
    )

    def unknown(text: str) -> tuple[str, ...]:
        return unknown_units(parse(text), units)

    assert unknown("select[tmp>5 || !(mem<3) || io>1] rusage[mem=4,lic=1]") == ("mem", "tmp")
    assert unknown("{select[tmp>5G]} || {2*{rusage[mem=4]} + 1*{}}") == ("mem",)
    assert unknown("select[tmp && defined(mem) && mem==x] rusage[mem=4M,tmp=1B,lic=1]") == ()
    assert unknown_units(parse("rusage[mem=4]"), DEFAULT) == ()


def test_wrong_units_are_problems_with_their_columns() -> None:
    requirement = parse("{select[slots>1K]} || {2*{rusage[mem=1,lic=2MiB,tmp=99999999999999999]}}")

    problems = unit_problems(requirement, UnitSettings({"mem": None}, frozenset(("lic",))))

    assert [(problem.column, problem.message) for problem in problems] == [
        (9, 'slots is a count and takes no unit, found "K"'),
        (40, 'lic is a count and takes no unit, found "MiB"'),
        (49, "tmp is 99999999999999999, out of range; wanted 0 to 9007199254740991"),
    ]


def test_a_requirement_not_read_from_a_text_has_problems_without_columns() -> None:
    requirement = parse("rusage[slots=1K]")
    (primary,) = primaries(requirement)
    built = Requirement((type(primary)(rusage=(type(primary.rusage[0])("slots", amount("1K")),)),))

    (problem,) = unit_problems(built, DEFAULT)

    assert problem.column is None


@given(numbers(), st.sampled_from(["mem", "tmp"]))
def test_needs_agree_with_amounts_elsewhere(number: Number, resource: str) -> None:
    value = exact(resource, number, DEFAULT)
    if value > 2**53 - 1:
        return
    assert 0 <= need(resource, number, DEFAULT) - value < 1
    if number.unit and number.value.denominator == 1:
        text = f"{number.value}{number.unit}"
        assert need(resource, number, DEFAULT) == read_amount(text, round_up=True)


@given(
    REQUIREMENTS,
    st.sampled_from([DEFAULT, SHARED, UnitSettings({"mem": None, "type": MemoryUnit.KIB})]),
)
def test_after_no_complaint_every_amount_resolves(
    requirement: Requirement, units: UnitSettings
) -> None:
    if unit_problems(requirement, units) or unknown_units(requirement, units):
        return
    for primary in primaries(requirement):
        for usage in primary.rusage:
            assert need(usage.name, usage.amount, units) >= 0

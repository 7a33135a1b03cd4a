"""Which hosts ``select`` takes."""

from collections.abc import Mapping
from decimal import Decimal

import pytest

from xce.domain.cluster.requirement import Compare, Comparison, Flag, Primary, Selection
from xce.domain.cluster.resreq import parse
from xce.domain.cluster.selection import SelectionTypeError, matches, names_in
from xce.domain.cluster.units import UnitError, UnitSettings, UnitUnknownError
from xce.domain.formats.snapshot import Attribute, MemoryUnit

ATTRIBUTES: Mapping[str, Attribute] = {
    "type": "X86_64", "gpu": True, "spot": False, "rev": 3, "load": Decimal("0.1"), "cold": -2,
    "huge": Decimal("1E+6000"), "zero": 0, "slots": "as attribute", "tokens": False, "empty": "",
}  # fmt: skip
TOTALS = {"mem": 8192, "tmp": 5, "none": 0, "slots": 16, "lic": 4, "tokens": 7}


def selection(text: str) -> Selection:
    primary = parse(f"select[{text}]").alternatives[0]
    assert isinstance(primary, Primary)
    assert primary.select is not None
    return primary.select


def holds(text: str, units: UnitSettings | None = None) -> bool:
    return matches(selection(text), ATTRIBUTES, TOTALS, units or UnitSettings())


TRUE = """
type==X86_64
type!=arm
gpu
gpu==true
gpu!=false
spot==false
!spot
rev
rev==3
rev==3.0
rev<4
rev<=3
rev>=3
rev!=2.5
load
load==0.1
load<0.10000000000000001
load>0.09999999999999999
cold==-2
cold<-1.5
huge>999999999999999999
!slots
!tokens
!(rev<3)
!(rev>3)
!cold
!zero
!type
!none
!nowhere
mem
mem==8192
mem==8GiB
mem==8g
mem>=8388608K
mem>8191.999
mem<8589934593B
mem>8589934591B
mem<=8GB && mem>=8GB
tmp==5
tmp==5MiB
tmp>4.9
defined(mem)
defined(spot)
defined(none)
!defined(nowhere)
defined("type")
slots=="as attribute"
empty==""
!empty
!(nowhere==1)
!(nowhere!=1)
!(nowhere<1)
!(nowhere=="")
!(nowhere==true)
nowhere==1 || gpu
gpu && !spot && mem>1GiB
(spot || gpu) && (type==arm || rev==3)
"""


@pytest.mark.parametrize("text", TRUE.strip().splitlines())
def test_a_host_is_taken(text: str) -> None:
    assert holds(text)
    assert not holds(f"!({text})")


def test_without_a_selection_every_host_is_taken() -> None:
    assert matches(None, {}, {}, UnitSettings())


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("type==5", 8, 'type is the text "X86_64", compared with the number 5'),
        ("gpu && type>8GiB", 15, 'type is the text "X86_64", compared with the number 8GiB'),
        ("gpu==1", 8, "gpu is the flag true, compared with the number 1"),
        ("gpu==yes", 8, 'gpu is the flag true, compared with the text "yes"'),
        ("rev=='3'", 8, 'rev is the number 3, compared with the text "3"'),
        ("rev!=true", 8, "rev is the number 3, compared with the flag true"),
        ("load==x", 8, 'load is the number 0.1, compared with the text "x"'),
        ("mem==big", 8, 'mem is the number 8192, compared with the text "big"'),
        ("none==false", 8, "none is the number 0, compared with the flag false"),
        ("slots==16", 8, 'slots is the text "as attribute", compared with the number 16'),
        ("rev==-1.5", 8, None),
    ],
)
def test_values_of_two_kinds_do_not_compare(text: str, column: int, message: str | None) -> None:
    if message is None:
        assert not holds(text)
        return
    with pytest.raises(SelectionTypeError) as raised:
        holds(text)
    assert (raised.value.column, raised.value.message) == (column, message)
    assert str(raised.value) == message


@pytest.mark.parametrize("op", [Comparison.LT, Comparison.LE, Comparison.GT, Comparison.GE])
@pytest.mark.parametrize(
    ("name", "literal", "kind"), [("type", "Y", "text"), ("gpu", False, "flag")]
)
def test_texts_and_flags_have_no_order(
    op: Comparison, name: str, literal: str | bool, kind: str
) -> None:
    with pytest.raises(
        SelectionTypeError, match=f"{name} is a {kind}, which compares by == and != only"
    ):
        matches(Compare(name, op, literal, 9), ATTRIBUTES, TOTALS, UnitSettings())


def test_what_need_not_be_looked_at_is_not() -> None:
    assert not holds("spot && type==5")
    assert holds("gpu || type==5")


def test_a_bare_number_has_the_unit_of_the_setting() -> None:
    kib = UnitSettings({"mem": MemoryUnit.KIB})

    assert holds("mem==8388608", kib)
    assert holds("mem==8GiB", kib)
    assert holds("tmp==1", UnitSettings({"tmp": MemoryUnit.GIB})) is False
    assert holds("tmp>0.004 && tmp<0.005", UnitSettings({"tmp": MemoryUnit.GIB}))


def test_a_bare_number_of_an_unknown_unit_is_not_guessed() -> None:
    unknown = UnitSettings({"mem": None})

    assert holds("mem==8GiB", unknown)
    with pytest.raises(UnitUnknownError, match="mem"):
        holds("mem==8192", unknown)


def test_a_shared_resource_takes_no_suffix() -> None:
    with pytest.raises(UnitError, match="lic is a count"):
        holds("lic>1K", UnitSettings(shared=frozenset(("lic",))))


def test_the_names_of_a_selection_are_all_that_it_looks_at() -> None:
    assert names_in(None) == frozenset()
    assert names_in(Flag("a")) == {"a"}
    assert names_in(selection('a && (b>1 || !defined(c)) && "d e"==x && a')) == {
        "a",
        "b",
        "c",
        "d e",
    }

"""Token files, strangers and rates."""

from pathlib import Path

import pytest

from xce.adapters.controller.access import (
    BUCKETS_MAX,
    Credentials,
    Gate,
    Rates,
    digest_of,
    new_token,
    read_tokens,
    token_line,
)
from xce.adapters.controller.problems import TooManyCallsError, UnauthenticatedError
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import InputError

ALICE = Caller(Role.ADMIN, "alice")


def test_a_token_file_has_digests_only(tmp_path: Path) -> None:
    token = new_token()
    path = tmp_path / "tokens.txt"
    path.write_text(f"# people\n\n{token_line(ALICE, token)}  # since March\n")

    assert token not in path.read_text()
    assert read_tokens(path) == {digest_of(token): ALICE}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("admin alice", "2 words"),
        ("boss alice " + "0" * 64, "not a role"),
        ("admin al/ice " + "0" * 64, "not a name"),
        ("admin alice secret", "not a SHA-256"),
        ("admin a " + "0" * 64 + "\nviewer b " + "0" * 64, "there twice"),
    ],
)
def test_a_wrong_line_is_named_and_what_stands_in_it_is_not(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text(line + "\n")

    with pytest.raises(InputError, match=message) as caught:
        read_tokens(path)

    assert "secret" not in str(caught.value)
    assert ":1" in str(caught.value) or ":2" in str(caught.value)


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials(),
        Credentials(authorization="Bearer "),
        Credentials(authorization="Bearer xce_wrong"),
        Credentials(authorization="Basic eDp5"),
        Credentials(common_name="stranger"),
    ],
)
def test_a_stranger_is_nobody(credentials: Credentials) -> None:
    gate = Gate({digest_of("xce_good"): ALICE}, {"p1.example": ALICE})

    with pytest.raises(UnauthenticatedError) as caught:
        gate.caller(credentials)

    assert "wrong" not in str(caught.value)


def test_a_token_or_a_certificate_says_who_calls_and_the_token_wins() -> None:
    other = Caller(Role.PROVISIONER, "p1")
    gate = Gate({digest_of("xce_good"): ALICE}, {"p1.example": other})

    assert gate.caller(Credentials(authorization="bearer xce_good")) == ALICE
    assert gate.caller(Credentials(common_name="p1.example")) == other
    assert gate.caller(Credentials("Bearer xce_good", "p1.example")) == ALICE


def test_a_burst_is_let_through_and_then_so_many_a_second() -> None:
    now = [0.0]
    rates = Rates(2, 3, lambda: now[0])
    for _ in range(3):
        rates.spend("a")
    with pytest.raises(TooManyCallsError):
        rates.spend("a")
    rates.spend("b")  # another one is not held up

    now[0] = 0.5
    rates.spend("a")
    with pytest.raises(TooManyCallsError):
        rates.spend("a")


def test_a_clock_that_stands_still_gives_nothing_away() -> None:
    now = [10.0]
    rates = Rates(100, 1, lambda: now[0])
    rates.spend("a")
    now[0] = 9.0

    assert not rates.may("a")


def test_buckets_are_bounded() -> None:
    rates = Rates(1, 1, lambda: 0.0)
    for number in range(BUCKETS_MAX + 100):
        rates.spend(str(number))

    assert len(vars(rates)["_buckets"]) == BUCKETS_MAX

"""What is kept of outputs: no secrets, no terminal codes, whatever the text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.scripts import NOW, hosts, prints, provider
from xce.adapters.providers.evidence import HIDDEN, kept, secrets_of
from xce.domain.errors import TransientError
from xce.domain.ports import Refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("password=hunter22 next", f"password={HIDDEN} next"),
        ('{"aws_secret_access_key": "abc/def+1"}', f'{{"aws_secret_access_key": "{HIDDEN}"}}'),
        ("Authorization: Bearer abcdefgh.ijk", f"Authorization: Bearer {HIDDEN}"),
        ("key AKIAABCDEFGHIJKLMNOP used", f"key {HIDDEN} used"),
        ("https://me:pa55@host/x", f"https://me:{HIDDEN}@host/x"),
        ("no secrets here", "no secrets here"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, said: str) -> None:
    assert kept(text.encode(), (), 1000) == said


@given(st.text(max_size=200), st.text(min_size=8, max_size=20, alphabet="abcXYZ123"))
def test_a_secret_that_is_known_is_never_kept(text: str, secret: str) -> None:
    assert secret not in kept(f"{text}{secret}{text}".encode(errors="replace"), (secret,), 10_000)


@given(st.binary(max_size=300), st.integers(0, 100))
def test_any_output_is_cleaned_and_has_an_end(raw: bytes, limit: int) -> None:
    said = kept(raw, (), limit)

    assert "\x1b" not in said
    assert len(said) <= limit + 4


@pytest.mark.parametrize(
    "text", ["token" * 100_000, "a" * 500_000, "://" * 200_000, "bearer " * 90_000]
)
def test_texts_that_were_made_to_be_slow_are_not(text: str) -> None:
    kept(text.encode(), (), 100_000)


def test_variables_are_secret_by_their_name_or_because_they_were_given_as_such() -> None:
    environment = {
        "DB_PASSWORD": "longenough",
        "SITE": "berlin-1",
        "GIVEN": "something",
        "TOKEN": "x",
    }

    assert secrets_of(environment, ["GIVEN"]) == ("longenough", "something")


def test_a_secret_is_taken_out_of_texts_for_people_and_never_out_of_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_TOKEN", "s3cr3t-value")
    machines = [{"machineId": "s3cr3t-value", "result": "fail", "message": "no s3cr3t-value"}]
    text = json.dumps(
        {
            "requests": [
                {"requestId": "add-1", "status": "running", "message": "s3cr3t-value", "machines": machines}
            ]
        }
    )  # fmt: skip
    scripts = {
        "getRequestStatus": prints(text),
        "requestMachines": prints("Error Code: Denied: key s3cr3t-value", 1),
        "listMachines": prints("the key s3cr3t-value is wrong", 1),
    }
    made = provider(tmp_path, scripts, secrets=["CLOUD_TOKEN"])

    answer = made.status("add-1", NOW)

    assert answer.message == HIDDEN
    assert [(one.machine, one.message) for one in answer.machines] == [
        ("s3cr3t-value", f"no {HIDDEN}")
    ]
    assert made.ask(hosts(), NOW) == Refused("Denied", f"Error Code: Denied: key {HIDDEN}")
    with pytest.raises(TransientError, match=r"the key \[hidden\] is wrong"):
        made.holdings(NOW)

"""Addresses of logs on PostgreSQL: what they say, and that they never show a secret."""

import sys

import pytest

from xce.adapters.store.addresses import is_address
from xce.adapters.store.open import open_log
from xce.adapters.store.postgresql.address import read_address
from xce.domain.errors import InputError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann@db/log", "postgresql://ann@db/log"),
        ("postgres://ann@db:5433/log", "postgresql://ann@db:5433/log"),
        ("postgresql://ann:s%40crt@db/log", "postgresql://ann@db/log"),
        ("postgresql://ann@db/log?password=s%40crt&sslmode=require", "postgresql://ann@db/log"),
        ("postgresql://db/log?user=ann&schema=staging", "postgresql://ann@db/log?schema=staging"),
        ("postgresql://a,b:6000/log", "postgresql://a,b:6000/log"),
        ("postgresql://ann@%2Frun%2Fpostgresql/log", "postgresql://ann@%2Frun%2Fpostgresql/log"),
        ("postgresql://", "postgresql:///"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_secrets(text: str, shown: str) -> None:
    address = read_address(text)

    assert address.shown == shown
    assert "crt" not in repr(address)


def test_the_schema_is_ours_and_the_rest_is_for_libpq() -> None:
    address = read_address(
        "postgresql://ann@db/log?sslmode=require&schema=two&application_name=x%20y"
    )

    assert address.schema == "two"
    assert "schema" not in address.conninfo
    assert "sslmode=require" in address.conninfo
    assert "x y" in address.conninfo


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:s3cr%zzet@db/log",
        "postgresql://ann:s3cret/x@db/log",
        "postgresql://ann:1/s3cret@db/log",
        "postgresql://ann:s3cret?x@db/log",
        "postgresql://ann@db/log?pass=s3cret",
        "postgresql://ann@db:s3cret/log",
        "postgresql://ann:s3cret@db/log?schema=pg_catalog",
        "postgresql://ann:s3cret@db/log?schema=Robert'); DROP TABLE students",
    ],
)
def test_what_cannot_be_read_is_not_repeated(text: str) -> None:
    """A password with a character that must be escaped ends up as another part of the address."""
    with pytest.raises(InputError, match="is no address of PostgreSQL") as caught:
        open_log(text)

    assert "s3cret" not in f"{caught.value} {caught.value!r}"
    assert "zzet" not in str(caught.value)


def test_a_file_is_no_address() -> None:
    assert not is_address("postgresql.db")
    assert not is_address("./postgresql://x")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xce.adapters.store.postgresql.address", None)

    with pytest.raises(InputError, match=r"pip install 'xce\[postgresql\]'") as caught:
        open_log("postgresql://ann:s3cret@db/log")

    assert "s3cret" not in str(caught.value)

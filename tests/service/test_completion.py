"""What the shell offers behind ``xcecli``: names that the controller knows, and nothing where it cannot be asked."""

import pytest
from typer.testing import CliRunner

from tests.service.running import TOKENS
from tests.service.test_operators import busy
from tests.service.test_scheduler import Site, site
from xce.adapters.cli.operators.main import app
from xce.domain.engine.messages import Role

__all__ = ["site"]


def offered(words: str, address: str, **environment: str) -> list[str]:
    """Return what is offered for the last word, as bash would be told."""
    result = CliRunner().invoke(
        app,
        prog_name="xcecli",
        env={
            "_XCECLI_COMPLETE": "complete_bash",
            "COMP_WORDS": f"xcecli {words}",
            "COMP_CWORD": str(len(words.split()) + (1 if words.endswith(" ") else 0)),
            "XCE_ADDRESS": address,
            "XCE_TOKEN": TOKENS[Role.ADMIN],
            "HOME": "/nowhere",
        }
        | environment,
    )
    return sorted(result.stdout.split())


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("return ", ["cloud/m1"]),
        ("return cloud/x", []),
        ("provider pause ", ["cloud"]),
        ("provider pause cloud --item ", ["c4"]),
        ("orphan dismiss ", ["cloud/m9"]),
        ("cancel ", ["R1"]),
        ("shared ", ["lic"]),
        ("drain own", ["own-1"]),
    ],
)
def test_names_that_the_controller_knows_are_offered(
    site: Site, words: str, names: list[str]
) -> None:
    busy(site)

    assert offered(words, site.running.address) == names


def test_waiting_jobs_are_offered_for_why(site: Site) -> None:
    site.submit(6)
    site.round()

    assert "2" in offered("why ", site.running.address)


def test_flags_in_front_say_who_is_asked(site: Site) -> None:
    busy(site)
    words = f"--address {site.running.address} provider pause "

    assert offered(words, "http://127.0.0.1:1") == ["cloud"]


def test_where_nobody_can_be_asked_nothing_is_offered_and_nothing_is_said(site: Site) -> None:
    assert offered("return ", "http://127.0.0.1:1") == []
    assert offered("return ", site.running.address, XCE_TOKEN="wrong") == []
    assert offered("return ", "not an address") == []


def test_a_host_that_is_drained_is_offered_to_be_opened(site: Site) -> None:
    busy(site)
    assert site.running.admin.post("/v1/hosts/own-1/drain", json={}).is_success

    assert offered("open ", site.running.address) == ["own-1"]

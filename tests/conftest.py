"""Shared by all tests: where the material beside the project is, a PostgreSQL server, and hypothesis profiles."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgresql import PASSWORD, Server, server

ROOT = Path(__file__).parents[1]

settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, max_examples=2000)
#: As many examples as the soak, and the same ones each time: what is claimed of the session was seen with these.
settings.register_profile("acceptance", settings.get_profile("ci"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has begun the tests in the background. What they begin, and interrupt, would ignore that too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with traces, samples and cases beside the project.

    Tests that use it skip, with the reason, where it is missing, and fail where XCE_REQUIRE_SHARED is set.
    """
    folder = Path(os.environ.get("XCE_SHARED", ROOT.parent / "shared"))
    if folder.is_dir():
        return folder
    if os.environ.get("XCE_REQUIRE_SHARED"):
        pytest.fail(f"XCE_REQUIRE_SHARED is set and {folder} is missing")
    pytest.skip(f"no material at {folder}")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server of the tests' own; the password is in the environment, as it would be for a service."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        yield from server()

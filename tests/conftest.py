"""Shared by all tests: where the material beside the project is, and hypothesis profiles."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


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

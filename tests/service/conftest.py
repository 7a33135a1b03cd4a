"""One service for the tests that do not mind company, and one of its own for each that does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import Running, running


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("controller")) as made:
        yield made


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        yield made

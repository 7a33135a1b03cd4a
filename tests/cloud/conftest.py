"""One EC2 stand-in and one relay for all tests of a worker, empty for each."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cloud import ec2, moto
from tests.cloud.ec2 import Ec2
from tests.cloud.moto import Moto
from tests.cloud.proxy import ApiProxy


@pytest.fixture(scope="session")
def _stand_in() -> Generator[Moto, None, None]:
    with moto.running() as made:
        yield made


@pytest.fixture(scope="session")
def _relay(_stand_in: Moto) -> Generator[ApiProxy, None, None]:
    made = ApiProxy(_stand_in.port)
    yield made
    made.close()


@pytest.fixture
def stand_in(_stand_in: Moto) -> Moto:
    _stand_in.reset()
    return _stand_in


@pytest.fixture
def api(_relay: ApiProxy, stand_in: Moto) -> Generator[ApiProxy, None, None]:
    """The way to the stand-in."""
    assert stand_in.port == _relay.server_port
    yield _relay
    _relay.reset()


@pytest.fixture(scope="session")
def _account() -> Generator[None, None, None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in moto.CREDENTIALS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def make_ec2(_account: None, api: ApiProxy, tmp_path: Path) -> Callable[..., Ec2]:
    """Return how providers are made in front of the stand-in; the changes are of the configuration."""

    def make(**changes: Any) -> Ec2:
        return Ec2(tmp_path, ec2.conf(changes.pop("url", api.url), **changes))

    return make


@pytest.fixture
def provider(make_ec2: Callable[..., Ec2]) -> Ec2:
    return make_ec2()

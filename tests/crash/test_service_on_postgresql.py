"""The controller's service while its PostgreSQL server is stopped and started under load: clients wait, nothing acknowledged is lost, nothing is done twice."""

from pathlib import Path

import pytest

from tests.crash.loads import assert_all_of_it_is_there_once, four_clients
from tests.postgresql import Server
from tests.service.running import TOKENS, running
from xce.adapters.client import Client
from xce.domain.engine.messages import Role
from xce.domain.errors import TransientError


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_stopped_and_started_again_costs_its_clients_only_time(
    tmp_path: Path, postgresql: Server, mode: str
) -> None:
    place = postgresql.address()
    with (
        running(tmp_path, log=place) as service,
        Client(service.address, token=TOKENS[Role.ADMIN], attempts=1) as client,
    ):
        with four_clients([service.address]) as loads:
            for _ in range(2):
                reached = client.status().position
                while client.status().position < reached + 20:
                    pass
                postgresql.stop(mode)
                try:
                    with pytest.raises(TransientError):
                        client.resume("c0")
                finally:
                    postgresql.start()
        assert service.service.live.lost is None, "it is still the primary"
        client.resume("c0")
    assert_all_of_it_is_there_once(place, loads)

"""A backup made while a controller serves four clients, restored elsewhere: it verifies, and a controller serves from it."""

from pathlib import Path

from tests.crash.loads import four_clients
from tests.service.running import TOKENS, running
from xce.adapters.client import Client
from xce.adapters.store.backup import backup
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.messages import Role
from xce.domain.events.recorded import Head
from xce.domain.provisioning.request import Request


def test_a_backup_of_a_log_that_is_served_is_whole_and_can_be_served(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with (
        running(here) as service,
        Client(service.address, token=TOKENS[Role.ADMIN]) as client,
        four_clients([service.address]) as loads,
    ):
        while client.status().position < 50:
            pass
        acknowledged = [name for load in loads for name in list(load.opened)]
        head = backup(str(here / "events.db"), str(there / "events.db"))
        while client.status().position < head.position + 20:
            pass

    with open_log(there / "events.db", read_only=True) as log:
        requests = {
            one.event.originator_id.removeprefix("request:")
            for one in log.read()
            if isinstance(one.event, Request.Closed)
        }
        report = verify(log, anchor=head)
    assert report.passed, [str(f) for check in report.checks for f in check.findings]
    assert requests.issuperset(acknowledged)
    with open_log(here / "events.db", read_only=True) as log:
        (same,) = log.recorder.page(head.position - 1, head.position, 1)
    assert Head(same.position, same.digest) == head, "it is a beginning of what was served"
    with running(there) as service, Client(service.address, token=TOKENS[Role.ADMIN]) as client:
        assert client.status().position >= head.position
        client.resume("c0")

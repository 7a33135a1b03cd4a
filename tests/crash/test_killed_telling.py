"""kill -9 of a real controller while it tells a webhook: no alert is lost, and what is told again is told under its own id."""

import os
import signal
import socket
from pathlib import Path
from queue import Queue

import httpx

from tests.crash.nursery import Child, Nursery, wait_until_it_serves
from tests.crash.test_killed_controller import free_port, place, write_config
from tests.service.running import TOKENS, write_tokens
from tests.service.test_alerts import until
from tests.service.webhook_server import Answer, WebhookServer, flood, status, webhook
from xce.domain.engine.messages import Role

__all__ = ["place"]

ORPHANS = 6


class Reaper:
    """Ends the controller of the moment from within a call of the webhook."""

    def __init__(self) -> None:
        self.pid = 0
        self.died = Queue[int]()

    def kill(self) -> None:
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        self.died.put(pid)

    def before_the_answer(self, connection: socket.socket, server: WebhookServer) -> None:
        self.kill()

    def after_the_answer(self, connection: socket.socket, server: WebhookServer) -> None:
        status(204)(connection, server)
        self.kill()


def raise_alerts(client: httpx.Client) -> None:
    commands = [
        {"command": "describe-provider", "description": {"name": "aws"}},
        {"command": "take-lease", "provider": "aws", "holder": "p1", "term": "1h"},
        *(
            {
                "command": "report-orphan", "provider": "aws", "theirs": f"i-{number}", "kind": "unknown_to_us", "tag": None,
                "why": "listed twice",
            }
            for number in range(ORPHANS)
        ),
    ]  # fmt: skip
    answer = client.post("/v1/commands", json={"commands": commands, "epochs": {}})
    assert answer.is_success, answer.text


def test_what_it_was_telling_when_it_was_killed_is_told_by_the_next_one_under_the_same_id(
    tmp_path: Path, place: str
) -> None:
    reaper = Reaper()
    answers: list[Answer] = [
        reaper.before_the_answer, reaper.after_the_answer, status(500), status(301, headers="location: http://127.0.0.1:1/\r\n"),
        reaper.before_the_answer, flood, reaper.after_the_answer, status(204),
    ]  # fmt: skip
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    write_tokens(tmp_path)
    with webhook(*answers) as server, Nursery() as nursery:
        hook = f"{{name: pager, url: '{server.url}', retry_at_most: 1s}}"
        more = f"detection: 60s\nalerts: {{look: 1s, webhooks: [{hook}]}}\n"
        config = write_config(tmp_path, "controller", place, port, more)
        process = started(nursery, config, reaper)
        wait_until_it_serves(address)
        headers = {"authorization": f"Bearer {TOKENS[Role.ADMIN]}"}
        try:
            with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
                raise_alerts(client)
                for _ in range(4):
                    assert reaper.died.get(timeout=60) == process.pid
                    assert process.wait() == -signal.SIGKILL
                    process = started(nursery, config, reaper)  # it may be killed before it serves
                wait_until_it_serves(address)

                def waiting() -> list[str]:
                    items = client.get("/v1/alerts").json()["items"]
                    return [one["id"] for one in items if one["not_told"]]

                until(lambda: not waiting())
                events = client.get("/v1/events?limit=1000").json()["items"]
        finally:
            if not process.has_ended():
                process.signal(signal.SIGTERM)
            process.wait()

    raised = [e["position"] for e in events if e["name"].startswith("xce.alert.")]
    told = [(one.notice.position, one.notice.id) for one in server.told]
    assert len({name for _, name in told}) == len(raised) >= ORPHANS
    assert list(dict.fromkeys(position for position, _ in told)) == raised, "each, in its order"
    assert len(set(told)) == len(raised), "one id for one position"
    assert len(told) > len(raised), "some were told again"


def started(nursery: Nursery, config: Path, reaper: Reaper) -> Child:
    process = nursery.start(config)
    reaper.pid = process.pid
    return process

"""slurmrestd on loopback: the newest version is used, the token is read anew, and what fails is told apart."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.slurm.made import NOW, Slurm, job, node
from xce.adapters.schedulers.slurm.build import view_of
from xce.adapters.schedulers.slurm.reader import Reader
from xce.adapters.schedulers.slurm.rest import SlurmRest
from xce.domain.errors import InputError, PermanentError, TransientError

PATHS = [
    "/slurm/v0.0.38/jobs",
    "/slurm/v0.0.40/jobs/",
    "/slurm/v0.0.9/jobs",
    "/slurmdb/v0.0.41/jobs",
]


class Server(ThreadingHTTPServer):
    """Answers with what a test put there, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, tuple[int, Any]] = {
            "v3": (200, {"paths": {path: {} for path in PATHS}}),
            "jobs": (200, {"jobs": [job(1)]}),
            "nodes": (200, {"nodes": [node("n1")]}),
            "partitions": (200, {"partitions": [{"name": "main", "partition": {"state": ["UP"]}, "nodes": {"configured": "n1"}, "priority": {"tier": 7}, "maximums": {"time": {"set": True, "infinite": True, "number": 0}, "shares": []}}]}),
            "licenses": (200, {"licenses": [{"LicenseName": "sim", "Total": 3, "Used": 1, "Free": 2}]}),
            "reservations": (200, {"reservations": []}),
        }  # fmt: skip

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append((self.path, self.headers.get("X-SLURM-USER-TOKEN")))
        status, document = server.answers[self.path.rstrip("/").rpartition("/")[2]]
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_a_cluster_is_read_by_the_newest_interface(server: Server) -> None:
    tokens = iter(["first", "second", *["later"] * 9])
    rest = SlurmRest(server.address, token=lambda: next(tokens))
    slurm = Slurm()
    view = view_of(Reader(slurm, rest=rest).read(NOW))
    rest.close()

    assert [one.id for one in view.snapshot.pending] == ["1"]
    assert [(one.name, one.priority) for one in view.snapshot.queues] == [("main", 7)]
    assert [(one.name, one.total, one.used_elsewhere) for one in view.snapshot.shared] == [("sim", 3, 1)]  # fmt: skip
    assert server.asked[0] == ("/openapi/v3", "first")
    assert server.asked[1] == ("/slurm/v0.0.40/partitions", "second")
    assert {call[0] for call in slurm.called} == {"scontrol", "sacctmgr"}
    assert [call for call in slurm.called if call[0] == "scontrol"] == [("scontrol", "show", "config")]  # fmt: skip


def test_without_commands_limits_are_not_known_and_that_is_told(server: Server) -> None:
    rest = SlurmRest(server.address)
    slurm = Slurm()
    slurm.fails["config"] = PermanentError("scontrol cannot be run: No such file or directory")

    view = view_of(Reader(slurm, rest=rest).read(NOW))
    rest.close()

    assert "scontrol cannot be run" in str(view.troubles[0][1])
    assert view.snapshot.limits == ()


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, TransientError), (403, PermanentError), (404, TransientError), (500, TransientError)],
)
def test_refusals_are_told_apart(server: Server, status: int, error: type[Exception]) -> None:
    rest = SlurmRest(server.address)
    server.answers["jobs"] = (status, {})

    with pytest.raises(error, match=f"/slurm/v0.0.40/jobs: status {status}"):
        rest.get("jobs")
    rest.close()


def test_answers_that_are_not_understood_are_told(server: Server) -> None:
    rest = SlurmRest(server.address)
    server.answers["jobs"] = (200, b"<html>")
    with pytest.raises(InputError, match="is not JSON"):
        rest.get("jobs")
    rest.close()
    server.answers["v3"] = (200, {"paths": {}})
    rest = SlurmRest(server.address)
    with pytest.raises(PermanentError, match="offers no"):
        rest.get("jobs")
    rest.close()


def test_a_server_that_is_away_is_asked_again_later() -> None:
    rest = SlurmRest("http://127.0.0.1:9", timeout_s=5)

    with pytest.raises(TransientError, match="slurmrestd /openapi/v3"):
        rest.get("jobs")
    rest.close()

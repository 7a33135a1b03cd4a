"""The client library: typed answers, errors by name, and retries that do nothing twice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.service.running import NAMES, TOKENS, Running
from xce.adapters.client import Client
from xce.adapters.client_errors import CallError
from xce.domain.engine.commands import AcceptRequest, OpenRequest, TakeLease
from xce.domain.engine.messages import Role
from xce.domain.errors import (
    ForbiddenError,
    LeaseHeldError,
    NotFoundError,
    PermanentError,
    RejectedError,
    TransientError,
)
from xce.domain.formats.provider import Kind, ProviderDescription, TemplateOffer
from xce.domain.formats.rest import JoinReport
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Host, Snapshot

P1 = NAMES[Role.PROVISIONER]
LATER = datetime.now(UTC) + timedelta(days=1)
TERM = timedelta(seconds=30)
CLOUD = ProviderDescription(name="cloud", templates=(TemplateOffer(template_id="c4"),))


def client_of(service: Running, role: Role, transport: httpx.BaseTransport | None = None) -> Client:
    return Client(
        service.address, token=TOKENS[role], sleep=lambda seconds: None, transport=transport
    )


class Lossy(httpx.HTTPTransport):
    """Calls are carried out, and every second answer is lost on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        self.calls += 1
        if self.calls % 2:
            answer.read()
            raise httpx.ReadError("the connection was reset")
        return answer


def test_it_speaks_all_of_the_interface(service: Running) -> None:
    with (
        client_of(service, Role.PROVISIONER) as provisioner,
        client_of(service, Role.SCHEDULER) as scheduler,
    ):
        provisioner.describe(CLOUD)
        epoch = provisioner.take_lease("cloud", P1, TERM)
        provisioner.renew_lease("cloud", P1, epoch)
        provisioner.command(
            OpenRequest("R1", "cloud", Kind.HOST, "c4", 1, None, LATER, "wait", (), 0),
            AcceptRequest("R1", "add-1"),
            epochs={"cloud": epoch},
        )
        provisioner.pause("cloud", LATER, "maintenance")
        provisioner.resume("cloud")
        scheduler.report_bookings({"lic": 2})
        position = scheduler.status().position
        scheduler.publish_session(SessionResult(position=position))
        hosts = (Host(name="h"),)
        scheduler.post_snapshot(
            Snapshot(format="xce.snapshot/1", now=LATER, position=position, hosts=hosts)
        )

        assert [lease.epoch for lease in provisioner.leases()] == [1]
        assert [request.id for request in provisioner.requests()] == ["R1"]
        assert provisioner.request("R1").provider_request_id == "add-1"
        assert [one.name for one in provisioner.providers()] == ["cloud"]
        assert provisioner.session().result == SessionResult(position=position)
        assert provisioner.snapshot().position == position
        assert provisioner.bookings().occupied == {"lic": 2}
        assert len(provisioner.catalog().in_flight.hosts) == 1
        assert provisioner.costs().lines == ()
        supply = provisioner.supply()
        assert (supply.position, len(supply.inventory.requests), len(supply.leases)) == (
            position,
            1,
            1,
        )
        assert not [*provisioner.instances(), *provisioner.grants(), *provisioner.shared()]
        assert len(list(provisioner.events(limit=2))) == position
        with pytest.raises(NotFoundError):
            scheduler.join(JoinReport(host="h", booted_at=LATER))
        assert scheduler.drain("h", "idle").changed, "own hosts too"
        assert [drain.host for drain in scheduler.drains()] == ["h"]
        provisioner.release_lease("cloud", P1)


def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_done_twice(
    service: Running,
) -> None:
    with client_of(service, Role.PROVISIONER, Lossy()) as client:
        epochs = [client.take_lease("cloud", P1, TERM) for _ in range(3)]

    assert epochs == [1, 2, 3]


ERRORS: list[tuple[Callable[[Client], object], type[Exception]]] = [
    (lambda client: client.publish_session(SessionResult(position=0)), ForbiddenError),
    (lambda client: client.request("R9"), NotFoundError),
    (lambda client: client.command(AcceptRequest("R9", "x")), NotFoundError),
    (lambda client: client.take_lease("held", P1, TERM), LeaseHeldError),
    (lambda client: client.command(TakeLease("cloud", "other", TERM)), ForbiddenError),
]


@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_a_refusal_is_an_error_by_its_name(
    service: Running, call: Callable[[Client], object], error: type[Exception]
) -> None:
    with client_of(service, Role.ADMIN) as admin:
        admin.command(TakeLease("held", "somebody", TERM))
    with client_of(service, Role.PROVISIONER) as client, pytest.raises(error):
        call(client)


def answering(*statuses: int) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    calls: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        calls.append(request)
        status = statuses[min(len(calls), len(statuses)) - 1]
        problem: dict[str, object] = {
            "type": "t", "title": "t", "status": status, "detail": "d", "instance": "/", "code": "stale-version",
            "request_id": "r", "problems": [],
        }  # fmt: skip
        if status == 200:
            return httpx.Response(200, json={"changed": True, "versions": {}, "epochs": {}})
        return httpx.Response(status, json=problem)

    return httpx.MockTransport(handle), calls


def test_what_may_pass_is_tried_again_with_the_same_key() -> None:
    transport, calls = answering(503, 429, 200)
    waits: list[float] = []
    with Client("http://a", transport=transport, sleep=waits.append) as client:
        client.command(TakeLease("cloud", "p1", TERM))

    assert len({call.headers["idempotency-key"] for call in calls}) == 1
    assert (len(calls), len(waits)) == (3, 2)


@pytest.mark.parametrize(
    ("status", "error", "tries"),
    [
        (503, TransientError, 4),
        (409, CallError, 1),
        (500, PermanentError, 1),
        (412, RejectedError, 1),
    ],
)
def test_what_does_not_pass_is_said_after_a_bounded_number_of_tries(
    status: int, error: type[Exception], tries: int
) -> None:
    transport, calls = answering(status)
    client = Client("http://a", transport=transport, sleep=lambda seconds: None, attempts=4)

    with client, pytest.raises(error):
        client.take_lease("cloud", "p1", TERM)

    assert len(calls) == tries


def test_a_controller_that_does_not_answer_is_named() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    transport = httpx.MockTransport(handle)
    client = Client("http://a:8470", transport=transport, sleep=lambda s: None, attempts=1)

    with (
        client,
        pytest.raises(TransientError, match=r"no answer from http://a:8470: POST .*refused"),
    ):
        client.take_lease("cloud", "p1", TERM)


def test_of_several_addresses_the_next_one_is_tried() -> None:
    hosts: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        if request.url.host == "a":
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={"changed": True, "versions": {}, "epochs": {}})

    transport = httpx.MockTransport(handle)
    with Client(["http://a", "http://b"], transport=transport, sleep=lambda s: None) as client:
        client.release_lease("cloud", "p1")
        client.release_lease("cloud", "p1")

    assert hosts == ["a", "b", "b"]

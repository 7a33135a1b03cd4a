"""TLS, and client certificates that say who calls."""

import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from tests.service.running import TOKENS, Running, running
from xce.adapters.client import Client
from xce.domain.engine.messages import Role


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def serving(folder: Path, authority: trustme.CA) -> Any:
    server = authority.issue_cert("127.0.0.1")
    server.private_key_pem.write_to_path(str(folder / "key.pem"))
    for number, blob in enumerate(server.cert_chain_pems):
        blob.write_to_path(str(folder / "cert.pem"), append=number > 0)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    tls = {
        "certificate": str(folder / "cert.pem"),
        "key": str(folder / "key.pem"),
        "client_ca": str(folder / "ca.pem"),
        "clients": [{"common_name": "p1.example", "role": "provisioner", "name": "p1"}],
    }
    return running(folder, tls=tls)


def context(
    folder: Path, authority: trustme.CA, common_name: str | None, signed_by: trustme.CA
) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if common_name is not None:
        certificate = signed_by.issue_cert("client.example", common_name=common_name)
        with certificate.private_key_and_cert_chain_pem.tempfile(str(folder)) as path:
            made.load_cert_chain(path)
    return made


def status_as(service: Running, verify: ssl.SSLContext, **headers: str) -> httpx.Response:
    with httpx.Client(verify=verify, timeout=10) as client:
        return client.get(f"{service.address}/v1/status", headers=headers)


def test_a_certificate_says_who_calls(tmp_path: Path, authority: trustme.CA) -> None:
    with serving(tmp_path, authority) as service:
        known = context(tmp_path, authority, "p1.example", authority)
        unknown = context(tmp_path, authority, "p9.example", authority)
        nobody = context(tmp_path, authority, None, authority)

        assert status_as(service, known).status_code == 200
        assert status_as(service, unknown).json()["code"] == "unauthenticated"
        assert status_as(service, nobody).status_code == 401
        token = f"Bearer {TOKENS[Role.VIEWER]}"
        assert status_as(service, nobody, authorization=token).status_code == 200
        with httpx.Client(verify=known) as client:
            refused = client.put(f"{service.address}/v1/session", json={})
        assert "the role provisioner" in refused.json()["detail"]


def test_a_certificate_of_somebody_else_does_not_get_through(
    tmp_path: Path, authority: trustme.CA
) -> None:
    with serving(tmp_path, authority) as service:
        forged = context(tmp_path, authority, "p1.example", trustme.CA())

        with pytest.raises((ssl.SSLError, ConnectionError)):
            say_hello(int(service.address.rpartition(":")[2]), forged)


def say_hello(port: int, verify: ssl.SSLContext) -> None:
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        verify.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        wrapped.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        if not wrapped.recv(1):
            raise ConnectionError("closed")


def test_the_client_library_checks_whom_it_talks_to(tmp_path: Path, authority: trustme.CA) -> None:
    with serving(tmp_path, authority) as service:
        with Client(service.address, token=TOKENS[Role.VIEWER], ca=tmp_path / "ca.pem") as client:
            assert client.status().primary
        with httpx.Client() as blind, pytest.raises(httpx.ConnectError, match="certificate"):
            blind.get(f"{service.address}/healthz")

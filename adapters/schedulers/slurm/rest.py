"""slurmrestd, read only: on a Unix socket or by HTTP, in the newest version of its interface that it offers."""

import re
from collections.abc import Callable
from typing import Final, Protocol

from pydantic_core import from_json

from xce.adapters.schedulers.slurm.fields import WrongFieldError, document_of
from xce.domain.errors import InputError, PermanentError, TransientError

_PATH: Final = re.compile(r"/slurm/v(\d+)\.(\d+)\.(\d+)/jobs/?", re.ASCII)


class Rest(Protocol):
    """Answers of slurmrestd."""

    def get(self, what: str) -> object:
        """Return the document of jobs, nodes, partitions, licenses or reservations.

        Raises:
            TransientError: no answer now.
            PermanentError: it refuses.
            InputError: the answer is not JSON.
        """
        ...


class SlurmRest:
    """A slurmrestd at an address: ``unix:/run/slurmrestd/socket`` or ``http://host:6820``."""

    def __init__(
        self,
        address: str,
        *,
        token: Callable[[], str | None] = lambda: None,
        timeout_s: float = 30.0,
    ) -> None:
        """Ask at ``address``; ``token`` returns a JWT, anew for each call, since they end."""
        import httpx

        self._token = token
        transport = None
        if address.startswith("unix:"):
            transport = httpx.HTTPTransport(uds=address.removeprefix("unix:"))
            address = "http://localhost"
        self._client = httpx.Client(base_url=address, timeout=timeout_s, transport=transport)
        self._version: str | None = None

    def get(self, what: str) -> object:
        """Return a document; see ``Rest``."""
        if self._version is None:
            self._version = self._newest()
        return self._get(f"/slurm/{self._version}/{what}")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _newest(self) -> str:
        document = self._get("/openapi/v3")
        try:
            paths = document_of(document).record("paths").values
        except WrongFieldError as error:
            raise InputError("slurmrestd /openapi/v3", [error.problem]) from None
        found = [match.groups() for path in paths if (match := _PATH.fullmatch(path))]
        if not found:
            raise PermanentError("slurmrestd offers no /slurm/v.../jobs")
        major, minor, micro = max(found, key=lambda numbers: tuple(map(int, numbers)))
        return f"v{major}.{minor}.{micro}"

    def _get(self, path: str) -> object:
        import httpx

        token = self._token()
        headers = {} if token is None else {"X-SLURM-USER-TOKEN": token}
        try:
            answer = self._client.get(path, headers=headers)
        except httpx.HTTPError as error:
            raise TransientError(f"slurmrestd {path}: {error or type(error).__name__}") from None
        if answer.status_code == 403:
            raise PermanentError(f"slurmrestd {path}: status 403")
        if answer.status_code == 404:
            self._version = None  # another slurmrestd may answer by now
        if answer.status_code >= 300:  # also 401: whoever makes the tokens may write a new one
            raise TransientError(f"slurmrestd {path}: status {answer.status_code}")
        try:
            return from_json(answer.content, allow_inf_nan=False)
        except ValueError as error:
            raise InputError.of(f"slurmrestd {path}", f"is not JSON: {error}") from None

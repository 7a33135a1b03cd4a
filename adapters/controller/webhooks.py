"""Telling a webhook: one POST, signed, within a time, whatever the other side does.

Nothing of an answer but its status is read, so it may be as large or as slow as it likes.
"""

import asyncio
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Final

import httpx

from xce.domain.errors import InputError, PermanentError, TransientError
from xce.domain.formats.alert import AlertNotice
from xce.domain.formats.alert_settings import WebhookSettings

SIGNATURE: Final = "X-XCE-Signature"
NOTICE_ID: Final = "X-XCE-Notice"
#: Statuses that say that this very notice will never be taken; all others may be mended, here or there.
REFUSING: Final = frozenset({400, 413, 415, 422})


class RefusedNoticeError(PermanentError):
    """The webhook does not take this notice: the same again would be refused again."""

    code = "notice-refused"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a webhook is, and what it knows us by; none of it is ever logged."""

    url: str
    secret: str | None


def address_of(settings: WebhookSettings, environment: Mapping[str, str] | None = None) -> Address:
    """Return the address and the secret of a webhook.

    Raises:
        InputError: a variable that the configuration names is not set, or has no address.
    """
    variables = os.environ if environment is None else environment

    def value(name: str) -> str:
        found = variables.get(name, "").strip()
        if not found:
            raise InputError.of(
                f"webhook {settings.name}", f"the environment variable {name} is not set"
            )
        return found

    url = settings.url
    if url is None:
        assert settings.url_variable is not None, "the configuration was checked"
        url = value(settings.url_variable)
        if not url.startswith(("http://", "https://")):
            raise InputError.of(
                f"webhook {settings.name}", f"{settings.url_variable} does not hold an address"
            )
    secret = None if settings.secret_variable is None else value(settings.secret_variable)
    return Address(url, secret)


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Return the value of the header of a signed notice: HMAC-SHA256 over ``TIME.BODY``, with the time in it so that an old notice
    that somebody sends again can be told.
    """
    # A variable of the environment may hold any bytes.
    key = secret.encode(errors="surrogateescape")
    digest = hmac.new(key, f"{at_s}.".encode() + body, sha256).hexdigest()
    return f"t={at_s},v1={digest}"


class Poster:
    """Posts notices to one webhook."""

    def __init__(
        self,
        settings: WebhookSettings,
        address: Address,
        now_s: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Make one; ``now_s`` is the time of day, for signatures."""
        self._settings = settings
        self._address = address
        self._now_s = now_s
        self._transport = transport

    async def post(self, notice: AlertNotice) -> None:
        """Tell it once; it was told when this returns.

        Raises:
            RefusedNoticeError: it does not want this notice.
            TransientError: another try may help; never says the address.
        """
        body = notice.to_json().encode()
        headers = {
            "content-type": "application/json",
            "user-agent": f"xce/{version('xce')}",
            NOTICE_ID: notice.id.encode("ascii", "backslashreplace").decode(),
        }
        if self._address.secret is not None:
            headers[SIGNATURE] = signature(self._address.secret, body, int(self._now_s()))
        within_s = self._settings.timeout.total_seconds()
        try:
            async with (
                asyncio.timeout(within_s),
                httpx.AsyncClient(timeout=within_s, transport=self._transport) as client,
                client.stream("POST", self._address.url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code
        except TimeoutError:
            raise TransientError(f"no answer within {within_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise TransientError(f"no answer: {type(error).__name__}") from None
        if 200 <= status < 300:
            return
        if status in REFUSING:
            raise RefusedNoticeError(f"answered {status}")
        raise TransientError(f"answered {status}")

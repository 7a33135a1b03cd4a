"""What the controller alerts of, and whom it tells; a part of its configuration."""

import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictInt

from xce.domain.alerts.alert import AlertKind
from xce.domain.formats.base import Duration, Format, Name

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"{text!r} is not the name of an environment variable")
    return text


def _label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError(f"{text!r} is not a name; wanted up to 64 letters, digits and . _ -")
    return text


def _some_time(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be above 0")
    return value


Variable = Annotated[str, AfterValidator(_variable)]
Label = Annotated[str, AfterValidator(_label)]
SomeTime = Annotated[Duration, AfterValidator(_some_time)]


class WebhookSettings(Format):
    """Who is told of alerts: an address that takes a POST with JSON."""

    name: Label = Field(
        description="for the log: under it the controller remembers what was told; keep it when the address changes"
    )
    url: Name | None = Field(default=None, description="http or https; or `url_variable`")
    url_variable: Variable | None = Field(
        default=None,
        description="environment variable of the controller with the address, where the address is a secret itself",
    )
    secret_variable: Variable | None = Field(
        default=None,
        description="environment variable with the secret that notices are signed with; null: they are not signed",
    )
    kinds: tuple[AlertKind, ...] = Field(default=(), description="only these; empty: all")
    timeout: SomeTime = Field(
        default=timedelta(seconds=10), description="of one try, from the connection to the answer"
    )
    retry_at_most: SomeTime = Field(
        default=timedelta(minutes=5),
        description="longest wait between two tries; it grows from one second",
    )
    give_up_after: SomeTime = Field(
        default=timedelta(days=1),
        description="a notice that could not be delivered for so long is dropped, and the next one has its turn",
    )


class AlertSettings(Format):
    """What is alerted of. Drift of a shared resource is set at the resource: `drift_alert` and `drift_alert_after`."""

    kinds: tuple[AlertKind, ...] = Field(
        default=tuple(AlertKind), description="others are not looked for; empty: nothing is"
    )
    budget_percent: tuple[Annotated[StrictInt, Field(ge=1, le=100)], ...] = Field(
        default=(80, 100), description="one alert for each of these shares of a budget"
    )
    lost_hosts: Annotated[StrictInt, Field(ge=2, le=1_000)] = Field(
        default=3, description="so many hosts of one provider lost within `lost_within` are a mass"
    )
    lost_within: SomeTime = Field(default=timedelta(minutes=10), description="see lost_hosts")
    unattended_after: SomeTime = Field(
        default=timedelta(minutes=10),
        description="a provider that has something of ours, and on which nobody acts for so long, is alerted of",
    )
    no_session_after: SomeTime = Field(
        default=timedelta(minutes=2),
        description="a scheduler that says for so long that it can hold no session is alerted of",
    )
    clear_after: Duration = Field(
        default=timedelta(minutes=5),
        description="an alert is over when its reason was gone for so long",
    )
    takeover_for: SomeTime = Field(
        default=timedelta(hours=1), description="how long a take-over is alerted of"
    )
    look: SomeTime = Field(
        default=timedelta(seconds=10), description="how often it is looked whether something is so"
    )
    webhooks: tuple[WebhookSettings, ...] = ()


def problems(settings: AlertSettings) -> list[tuple[tuple[str | int, ...], str]]:
    """Return what contradicts itself: place and message."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    names: list[str] = []
    for i, webhook in enumerate(settings.webhooks):
        place = ("alerts", "webhooks", i)
        if webhook.name in names:
            found.append(((*place, "name"), f"{webhook.name} is there twice"))
        names.append(webhook.name)
        if (webhook.url is None) == (webhook.url_variable is None):
            found.append(((*place, "url"), "wanted url or url_variable, one of them"))
        if webhook.url is not None and not webhook.url.startswith(("http://", "https://")):
            found.append(
                ((*place, "url"), "is not an address; wanted one such as https://host/path")
            )
    return found

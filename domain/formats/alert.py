"""A notice: what a webhook is told of an alert (``xce.alert/1``)."""

from typing import Literal

from pydantic import Field

from xce.domain.alerts.alert import AlertKind, AlertState
from xce.domain.formats.base import Amount, Format, Name, Time


class AlertNotice(Format):
    """An alert was raised, or is over. The same notice may come twice, with the same `id`."""

    format: Literal["xce.alert/1"] = "xce.alert/1"
    id: str = Field(description="of this notice: drop one that came before")
    alert: str = Field(description="KIND/SUBJECT: the same when it is raised and when it is over")
    kind: AlertKind
    subject: Name
    state: AlertState
    text: str = Field(description="one line for people; chat programs show it")
    at: Time = Field(description="when it was raised, or over")
    raised_at: Time
    position: Amount = Field(description="of its event in the log")
    controller: str = Field(description="who tells")

"""Alert and webhook: given earlier steps, when a command, then events."""

from tests.unit.aggregates import STAMP, then
from xce.domain.alerts.alert import Alert, AlertKind
from xce.domain.alerts.webhook import Outcome, Webhook


def raised() -> Alert:
    alert = Alert.raise_first(kind=AlertKind.ORPHAN, subject="aws/i-7", text="i-7", **STAMP)
    then(alert)
    return alert


def told(position: int) -> Webhook:
    webhook = Webhook.tell_first(
        webhook="pager", position=position, outcome=Outcome.DELIVERED, why="", **STAMP
    )
    then(webhook)
    return webhook


def names(aggregate: Alert | Webhook) -> list[str]:
    return [name for name, _ in then(aggregate)]


def test_what_is_raised_is_named_by_kind_and_subject() -> None:
    alert = Alert.raise_first(kind=AlertKind.ORPHAN, subject="aws/i-7", text="i-7", **STAMP)

    assert alert.id == "alert:orphan/aws/i-7"
    assert names(alert) == ["Raised"]


def test_an_alert_is_raised_once_until_it_is_over() -> None:
    alert = raised()

    alert.raise_again(text="still", **STAMP)
    assert names(alert) == []
    alert.clear(why="gone", **STAMP)
    alert.clear(why="gone", **STAMP)
    assert names(alert) == ["Cleared"]
    alert.raise_again(text="there again", **STAMP)
    assert names(alert) == ["Raised"]


def test_a_webhook_is_told_of_each_notice_once() -> None:
    webhook = told(7)

    webhook.tell(position=7, outcome=Outcome.DELIVERED, why="", **STAMP)
    webhook.tell(position=3, outcome=Outcome.DELIVERED, why="", **STAMP)
    assert names(webhook) == []
    webhook.tell(position=9, outcome=Outcome.REFUSED, why="answered 400", **STAMP)
    assert names(webhook) == ["Told"]
    assert webhook.told == 9

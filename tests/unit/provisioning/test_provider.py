"""Provider: given earlier steps, when a command, then new events or a refusal."""

from datetime import datetime

import pytest

from tests.unit.aggregates import AT, HOUR, STAMP, Stamp, then
from xce.domain.errors import RejectedError
from xce.domain.formats.provider import ProviderDescription, TemplateOffer
from xce.domain.provisioning.provider import Provider

SMALL = ProviderDescription(name="aws", templates=(TemplateOffer(template_id="c4", max_number=4),))
LARGE = ProviderDescription(name="aws", templates=(TemplateOffer(template_id="c4", max_number=9),))


def given() -> Provider:
    provider = Provider.describe_first(description=SMALL, **STAMP)
    provider.collect_events()
    return provider


def later(at: datetime) -> Stamp:
    return {"at": at, "by": "admin/alice"}


def test_a_first_description_makes_a_provider_known() -> None:
    provider = Provider.describe_first(description=SMALL, **STAMP)

    assert provider.id == "provider:aws"
    assert [name for name, _ in then(provider)] == ["Described"]


def test_the_same_description_again_records_nothing() -> None:
    provider = given()

    provider.describe(description=SMALL, **STAMP)

    assert then(provider) == []


def test_another_description_replaces_the_one_before() -> None:
    provider = given()

    provider.describe(description=LARGE, **STAMP)

    assert [name for name, _ in then(provider)] == ["Described"]
    assert provider.description == LARGE


def test_a_description_leaves_the_pauses() -> None:
    provider = given()
    provider.pause(item="c4", until=AT + HOUR, why="capacity", **STAMP)

    provider.describe(description=LARGE, **STAMP)

    assert provider.pauses["c4"].until == AT + HOUR


def test_a_provider_does_not_become_another_one() -> None:
    with pytest.raises(RejectedError, match="cannot become 'gcp'"):
        given().describe(description=ProviderDescription(name="gcp"), **STAMP)


def test_a_pause_is_recorded_once() -> None:
    provider = given()

    provider.pause(item=None, until=AT + HOUR, why="capacity", **STAMP)
    provider.pause(item=None, until=AT + HOUR, why="capacity", **STAMP)

    assert then(provider) == [("Paused", {"item": None, "until": AT + HOUR, "why": "capacity"})]


def test_a_longer_pause_replaces_the_one_before() -> None:
    provider = given()
    provider.pause(item="c4", until=AT + HOUR, why="capacity", **STAMP)

    provider.pause(item="c4", until=AT + 2 * HOUR, why="capacity", **STAMP)

    assert provider.pauses["c4"].until == AT + 2 * HOUR


def test_a_pause_that_is_over_is_refused() -> None:
    with pytest.raises(RejectedError, match="is over at"):
        given().pause(item=None, until=AT, why="", **STAMP)


def test_a_pause_can_be_ended() -> None:
    provider = given()
    provider.pause(item="c4", until=AT + HOUR, why="capacity", **STAMP)
    provider.collect_events()

    provider.resume(item="c4", **STAMP)
    provider.resume(item="c4", **STAMP)
    provider.resume(item="c8", **STAMP)

    assert then(provider) == [("Resumed", {"item": "c4"})]


def test_a_pause_that_ended_by_itself_needs_no_event() -> None:
    provider = given()
    provider.pause(item="c4", until=AT + HOUR, why="capacity", **STAMP)
    provider.collect_events()

    provider.resume(item="c4", **later(AT + HOUR))

    assert then(provider) == []


PROMISED = ProviderDescription(
    name="aws", templates=(TemplateOffer(template_id="c4", provides={"slots": 4, "mem": 448}),)
)


def promised() -> Provider:
    provider = Provider.describe_first(description=PROMISED, **STAMP)
    provider.collect_events()
    return provider


def test_a_host_as_promised_teaches_nothing() -> None:
    provider = promised()

    provider.learn(template="c4", total={"slots": 4, "mem": 448}, host="n1", **STAMP)
    provider.learn(template="other", total={"slots": 1}, host="n1", **STAMP)

    assert then(provider) == []


def test_what_differs_is_learned_once_and_less_of_it_again() -> None:
    provider = promised()

    provider.learn(template="c4", total={"slots": 4, "mem": 440, "gpu": 1}, host="n1", **STAMP)
    provider.learn(template="c4", total={"slots": 4, "mem": 444}, host="n2", **STAMP)
    provider.learn(template="c4", total={"slots": 3, "mem": 440}, host="n3", **STAMP)

    assert [(name, fields["total"]) for name, fields in then(provider)] == [
        ("Learned", {"mem": 440}),
        ("Learned", {"mem": 440, "slots": 3}),
    ]


def test_a_template_that_promises_something_else_is_measured_anew() -> None:
    provider = promised()
    provider.learn(template="c4", total={"mem": 440}, host="n1", **STAMP)

    provider.describe(description=PROMISED.model_copy(update={"zone": "b"}), **STAMP)
    assert provider.learned == {"c4": {"mem": 440}}
    provider.describe(description=LARGE, **STAMP)

    assert provider.learned == {}

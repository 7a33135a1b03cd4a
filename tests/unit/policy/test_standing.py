"""Standing minimums: asked without jobs, kept when idle, in windows of the day of a named zone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.unit.policy.makers import (
    NOW,
    asks,
    at,
    carried_out,
    demand,
    holds,
    hosts,
    idle_host,
    instance,
    minutes,
    provider,
    request,
    returned,
    round_of,
    template,
)
from xce.domain.formats.policy import PolicyInput, PolicySettings, StandingMinimum
from xce.domain.formats.provider import LeadTime
from xce.domain.formats.session_result import Idle
from xce.domain.formats.simulated_provider import OutsideUse, Refusal
from xce.domain.formats.windows import Window
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState


def standing(hosts: int, **window: object) -> PolicySettings:
    entry = {"template": "c4", "hosts": hosts, **window}
    return PolicySettings(standing=(StandingMinimum.model_validate(entry),))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# ------------------------------------------------------------------------ asked
def test_what_is_missing_of_a_minimum_is_asked_without_a_job() -> None:
    inputs = round_of(
        provider("aws", template()),
        instances=[
            instance("busy"),
            instance("starting", state=InstanceState.STARTING),
            instance("leaving", state=InstanceState.DRAINING),
            instance("broken", state=InstanceState.NEVER_JOINED),
            instance("other", "m8"),
        ],
        requests=[request("R1", amount=2, granted=1, state=RequestState.ACCEPTED)],
        settings=standing(5),
    )

    assert asks(inputs) == [("aws", "c4", 2)]
    assert asks(carried_out(inputs)) == []


def test_the_hosts_of_a_window_are_asked_the_lead_time_before_it_begins_and_no_longer_kept_after_it() -> (
    None
):
    slow = provider("aws", template()).model_copy(
        update={"lead_time": LeadTime(p50=minutes(4), p95=minutes(10))}
    )
    quick = provider("gcp", template(price="9")).model_copy(
        update={"lead_time": LeadTime(p50=minutes(1))}
    )
    window = standing(2, start="10:20", end="12:00")

    def asked_at(minute: float) -> list[tuple[str | None, str | None, int | None]]:
        return asks(round_of(slow, quick, settings=window, now=at(minute)))

    assert [asked_at(9), asked_at(10), asked_at(20)] == [[], *[[("aws", "c4", 2)]] * 2]
    assert [asked_at(119), asked_at(120)] == [[("aws", "c4", 2)], []]
    idle = Idle(hosts=(idle_host("i-1", at(-60)),))
    kept = round_of(slow, idle=idle, instances=[instance()], settings=window, now=at(15))
    assert returned(kept) == []


def test_hosts_that_jobs_want_count_for_the_minimum_and_come_first() -> None:
    inputs = round_of(
        provider("aws", template(max_number=3)),
        wants=demand(hosts("c4", 2)),
        settings=standing(4),
    )

    assert asks(inputs) == [("aws", "c4", 3)]
    assert holds(inputs) == ["1 of 4 hosts of c4 not asked: aws: template c4: 3 of 3 used"]


def test_the_largest_of_several_minimums_counts_and_each_template_has_its_own() -> None:
    entries = [
        StandingMinimum(template=name, hosts=count)
        for name, count in (("c4", 1), ("m8", 2), ("c4", 3))
    ]
    inputs = round_of(
        provider("aws", template("c4"), template("m8")),
        settings=PolicySettings(standing=tuple(entries)),
    )

    assert asks(inputs) == [("aws", "c4", 3), ("aws", "m8", 2)]


def test_a_frozen_site_asks_for_no_minimum() -> None:
    inputs = round_of(provider("aws", template()), settings=standing(4))
    frozen = inputs.settings.model_copy(update={"freeze": True})

    assert asks(inputs.model_copy(update={"settings": frozen})) == []


# ------------------------------------------------------------------------- kept
def test_idle_hosts_go_back_down_to_the_minimum_the_dearest_first() -> None:
    prices = {"a": "0.30", "b": "0.10", "c": None, "d": "0.20"}
    inputs = round_of(
        provider("aws", template()),
        instances=[*(instance(name, price=price) for name, price in prices.items())],
        idle=Idle(hosts=tuple(idle_host(name, at(-60)) for name in prices)),
        settings=standing(2),
    )

    assert returned(inputs) == ["a", "c"]
    assert holds(inputs) == ["idle, and kept: a standing minimum of c4 holds now"]


def test_busy_hosts_count_for_the_minimum_and_hosts_that_are_still_starting_do_not() -> None:
    inputs = round_of(
        provider("aws", template()),
        instances=[
            instance("busy"),
            instance("idle1"),
            instance("idle2"),
            instance("late", state=InstanceState.STARTING),
        ],
        idle=Idle(hosts=(idle_host("idle1", at(-60)), idle_host("idle2", at(-60)))),
        settings=standing(2),
    )

    assert returned(inputs) == ["idle2"]


def test_a_minimum_holds_over_all_providers_together() -> None:
    inputs = round_of(
        provider("aws", template()),
        provider("gcp", template()),
        instances=[instance("a"), instance("g", of="gcp", price="0.10")],
        idle=Idle(hosts=(idle_host("a", at(-60)), idle_host("g", at(-60)))),
        settings=standing(1),
    )

    assert returned(inputs) == ["a"]


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_rounds_reach_the_minimum_and_then_neither_ask_nor_return(
    least: int, joined: int, idle: int, wanted: int
) -> None:
    made = [instance(f"i{n}") for n in range(joined)]
    unused = [one.id for one in made[:idle]]

    def round_with(names: list[str], want: int) -> PolicyInput:
        return round_of(
            provider("aws", template()),
            wants=demand(hosts("c4", want)) if want else None,
            instances=[one for one in made if one.id in names],
            idle=Idle(hosts=tuple(idle_host(n, at(-60)) for n in unused if n in names)),
            settings=standing(least),
        )

    first = round_with([one.id for one in made], wanted)
    came = sum(count or 0 for _, _, count in asks(first))
    gone = returned(first)
    made += [instance(f"new{n}") for n in range(came)]
    left = [one.id for one in made if one.id not in gone]

    assert not (came and gone)
    assert len(left) >= least
    assert asks(round_with(left, 0)) == []
    if not wanted:
        assert returned(round_with(left, 0)) == []


# ---------------------------------------------------------------------- windows
@pytest.mark.parametrize(
    ("window", "when", "inside"),
    [
        ({}, "2026-03-01T03:00", True),
        ({"start": "08:00", "end": "18:00"}, "2026-03-01T08:00", True),
        ({"start": "08:00", "end": "18:00"}, "2026-03-01T07:59", False),
        ({"start": "08:00", "end": "18:00"}, "2026-03-01T18:00", False),
        ({"start": "22:00", "end": "06:00"}, "2026-03-01T23:00", True),
        ({"start": "22:00", "end": "06:00"}, "2026-03-01T05:59", True),
        ({"start": "22:00", "end": "06:00"}, "2026-03-01T06:00", False),
        ({"start": "06:00", "end": "06:00"}, "2026-03-01T05:00", True),
        ({"days": ["sun"]}, "2026-03-01T12:00", True),
        ({"days": ["mon"]}, "2026-03-01T12:00", False),
        ({"start": "22:00", "end": "06:00", "days": ["sat"]}, "2026-03-01T02:00", True),
        ({"start": "22:00", "end": "06:00", "days": ["sun"]}, "2026-03-01T02:00", False),
        ({"start": "08:00", "end": "09:00", "zone": "Europe/Berlin"}, "2026-01-15T07:30", True),
        ({"start": "08:00", "end": "09:00", "zone": "Europe/Berlin"}, "2026-07-15T07:30", False),
        ({"start": "08:00", "end": "09:00", "zone": "Europe/Berlin"}, "2026-07-15T06:30", True),
        # Clocks go from 2:00 to 3:00 on 29 March 2026, and back from 3:00 to 2:00 on 25 October.
        ({"start": "02:30", "end": "02:59", "zone": "Europe/Berlin"}, "2026-03-29T00:45", False),
        ({"start": "02:30", "end": "02:59", "zone": "Europe/Berlin"}, "2026-10-25T00:45", True),
        ({"start": "02:30", "end": "02:59", "zone": "Europe/Berlin"}, "2026-10-25T01:45", True),
        ({"days": ["mon"], "zone": "Asia/Tokyo"}, "2026-03-01T16:00", True),
    ],
)
def test_a_window_is_of_local_time(window: dict[str, object], when: str, inside: bool) -> None:
    inputs = round_of(provider("aws", template()), settings=standing(1, **window), now=utc(when))

    assert asks(inputs) == ([("aws", "c4", 1)] if inside else [])


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ({"start": "08:00"}, "start and end belong together"),
        ({"zone": "Europe/Atlantis"}, "'Europe/Atlantis' is not a time zone"),
        ({"zone": "../passwd"}, "is not a time zone"),
        ({"start": "8", "end": "9"}, "'8' is not a time of day"),
    ],
)
def test_a_window_that_is_none_is_an_error(window: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        standing(1, **window)


def test_windows_and_simulated_providers_share_one_check_of_zones() -> None:
    checks = [model.model_fields["zone"].metadata for model in (Window, Refusal, OutsideUse)]

    assert checks[0], "there is one"
    assert checks[0] == checks[1] == checks[2]


def test_outside_its_window_a_minimum_keeps_nothing() -> None:
    inputs = round_of(
        provider("aws", template()),
        instances=[instance("a")],
        idle=Idle(hosts=(idle_host("a", at(-60)),)),
        settings=standing(1, start="11:00", end="12:00"),
    )

    assert returned(inputs) == ["a"]
    assert inputs.now == NOW

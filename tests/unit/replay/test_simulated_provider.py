"""What a simulated provider does beyond the contract: chance by seed and tag, windows, capacity, virtual time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.provider_cases import RESOURCE, START, TEMPLATE, simulated_config
from xce.domain.errors import TransientError
from xce.domain.formats.provider import Kind
from xce.domain.formats.simulated_provider import Refusal
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    MachineResult,
    Refused,
    RequestStatus,
    TakeBack,
)
from xce.replay.provider_truth import MachineState
from xce.replay.providers import SimulatedProvider

SECOND = timedelta(seconds=1)
MONDAY = START  # 2026-03-02, 10:00


def provider(seed: int = 1, **behaviour: object) -> SimulatedProvider:
    return SimulatedProvider(simulated_config(**behaviour), seed)


def ask_hosts(
    sim: SimulatedProvider, amount: int, tag: str = "R1", at: datetime = START
) -> Accepted | Refused:
    return sim.ask(Ask(tag, Kind.HOST, TEMPLATE, amount), at)


def ask_tokens(
    sim: SimulatedProvider, amount: int, tag: str = "R1", at: datetime = START
) -> Accepted | Refused:
    return sim.ask(Ask(tag, Kind.COUNTABLE, RESOURCE, amount), at)


def request_id(answer: Accepted | Refused) -> str:
    assert isinstance(answer, Accepted)
    return answer.provider_request_id


# ------------------------------------------------------------------------- times
def test_a_machine_is_asked_launched_booted_and_joins_one_after_the_other() -> None:
    sim = provider()
    request = request_id(ask_hosts(sim, 1))
    seen: list[tuple[int, RequestStatus, int, int]] = []
    for second in (0, 19, 20, 109, 110, 119, 120):
        now = START + second * SECOND
        answer = sim.status(request, now)
        seen.append((second, answer.status, len(answer.machines), len(sim.joins(now))))

    running, complete = RequestStatus.RUNNING, RequestStatus.COMPLETE
    assert seen == [
        (0, running, 0, 0),
        (19, running, 0, 0),
        (20, running, 1, 0),
        (109, running, 1, 0),
        (110, complete, 1, 0),
        (119, complete, 1, 0),
        (120, complete, 1, 1),
    ]


def test_virtual_time_can_jump_from_change_to_change() -> None:
    sim = provider()
    ask_hosts(sim, 2)

    times: list[datetime] = []
    now = sim.next_change(START)
    while now is not None:
        times.append(now)
        now = sim.next_change(now)

    assert [(at - START) // SECOND for at in times] == [20, 110, 120]


def test_a_return_is_a_change_too() -> None:
    sim = provider()
    ask_hosts(sim, 1)
    later = START + timedelta(hours=1)

    sim.give_back("B1", ("vm-R1-1",), (), later)

    assert sim.next_change(later) == later + 30 * SECOND


def test_a_join_is_told_once_with_what_the_template_promised() -> None:
    sim = provider()
    ask_hosts(sim, 1)

    (join,) = sim.joins(START + timedelta(hours=1))

    assert (join.machine, join.name, join.template, join.total) == (
        "vm-R1-1",
        "c8-r1-1",
        TEMPLATE,
        {"slots": 8},
    )
    assert (join.booted_at, join.joined_at) == (START + 110 * SECOND, START + 120 * SECOND)
    assert sim.joins(START + timedelta(hours=2)) == ()


def test_a_machine_that_went_back_while_it_booted_never_joins() -> None:
    sim = provider()
    ask_hosts(sim, 1)
    sim.give_back("B1", ("vm-R1-1",), (), START + 25 * SECOND)

    assert sim.joins(START + timedelta(hours=1)) == ()
    assert sim.machines()[0].state(START + timedelta(hours=1)) is MachineState.GONE


# ------------------------------------------------------------------------ chance
@given(tags=st.permutations([f"R{n}" for n in range(8)]))
def test_what_becomes_of_a_request_does_not_depend_on_the_order_of_asks(tags: list[str]) -> None:
    spread = {"lag": {"p50": "20s", "p95": "60s"}, "boot": {"p50": "2m", "p95": "5m"}, "join": "5s"}
    reference, shuffled = (
        provider(
            lead_time=spread, partial="0.3", surplus="0.3", boot_failure="0.3", never_join="0.3"
        )
        for _ in range(2)
    )
    for n in range(8):
        ask_hosts(reference, 4, f"R{n}")
    for tag in tags:
        ask_hosts(shuffled, 4, tag)

    def fates(sim: SimulatedProvider) -> dict[str, tuple[object, ...]]:
        return {
            m.machine: (m.launched_at, m.booted_at, m.joins_at, m.fails) for m in sim.machines()
        }

    assert fates(reference) == fates(shuffled)


def test_another_seed_is_other_luck_and_the_same_seed_the_same() -> None:
    def luck(seed: int) -> list[bool]:
        sim = provider(seed, boot_failure="0.5")
        ask_hosts(sim, 64)
        return [machine.fails for machine in sim.machines()]

    assert luck(1) == luck(1)
    assert luck(1) != luck(2)


@pytest.mark.parametrize("share", ["0", "1"])
def test_a_share_of_nothing_never_happens_and_a_share_of_all_always(share: str) -> None:
    sim = provider(boot_failure=share)
    request = request_id(ask_hosts(sim, 20))

    answer = sim.status(request, START + timedelta(hours=1))

    wanted = MachineResult.FAIL if share == "1" else MachineResult.SUCCEED
    assert {machine.result for machine in answer.machines} == {wanted}


def test_a_machine_that_fails_leaves_nothing_behind() -> None:
    sim = provider(boot_failure="1", capacity={TEMPLATE: 1})
    ask_hosts(sim, 1)
    later = START + timedelta(hours=1)

    assert sim.machines()[0].state(later) is MachineState.FAILED
    assert sim.joins(later) == ()
    assert isinstance(ask_hosts(sim, 1, "R2", later), Accepted)


def test_a_machine_that_never_joins_is_a_success_that_exists() -> None:
    sim = provider(never_join="1")
    request = request_id(ask_hosts(sim, 1))
    later = START + timedelta(hours=1)

    assert sim.status(request, later).status is RequestStatus.COMPLETE
    assert sim.joins(later) == ()
    assert sim.machines()[0].exists(later)


def test_a_partial_request_brings_fewer_and_says_how_many_failed() -> None:
    sim = provider(partial="1")
    answers = [
        sim.status(request_id(ask_hosts(sim, 10, f"R{n}")), START + timedelta(hours=1))
        for n in range(20)
    ]

    counts = [len(answer.machines) for answer in answers]
    assert all(0 <= count < 10 for count in counts)
    assert len(set(counts)) > 3
    assert answers[0].message == f"{10 - counts[0]} of 10 failed, no capacity"
    assert {answer.status for answer in answers} == {RequestStatus.COMPLETE_WITH_ERROR}


def test_a_surplus_request_brings_one_more() -> None:
    sim = provider(surplus="1")
    request = request_id(ask_hosts(sim, 10))

    assert len(sim.status(request, START + timedelta(hours=1)).machines) == 11


def test_a_refused_return_says_so_and_the_machine_stays() -> None:
    sim = provider(return_refusal="1")
    ask_hosts(sim, 1)
    later = START + timedelta(hours=1)

    sim.give_back("B1", ("vm-R1-1",), (), later)

    assert sim.return_status("B1", later).refused == (("vm-R1-1", "not now"),)
    assert sim.machines()[0].exists(later + timedelta(days=1))


# ---------------------------------------------------------------------- refusals
def test_a_refusal_has_the_code_and_the_time_of_its_rule() -> None:
    rule = {"code": "cannot_start_network", "why": "no network", "retry_after": "10min"}
    sim = provider(refusals=[rule])

    assert ask_hosts(sim, 1) == Refused("cannot_start_network", "no network", 600)


def test_the_answer_to_a_tag_stays_when_a_window_is_over() -> None:
    sim = provider(refusals=[{"start": "09:00", "end": "11:00"}])
    first = ask_hosts(sim, 1, "R1")
    later = START + timedelta(hours=3)

    assert isinstance(first, Refused)
    assert ask_hosts(sim, 1, "R1", later) == first
    assert isinstance(ask_hosts(sim, 1, "R2", later), Accepted)


@pytest.mark.parametrize(
    ("rule", "hour", "refused"),
    [
        ({}, 10, True),
        ({"start": "08:00", "end": "16:00"}, 8, True),
        ({"start": "08:00", "end": "16:00"}, 16, False),
        ({"start": "22:00", "end": "06:00"}, 23, True),
        ({"start": "22:00", "end": "06:00"}, 29, True),
        ({"start": "22:00", "end": "06:00"}, 30, False),
        ({"days": ["mon"]}, 10, True),
        ({"days": ["tue"]}, 10, False),
        ({"days": ["mon"], "start": "22:00", "end": "06:00"}, 29, True),
        ({"days": ["tue"], "start": "22:00", "end": "06:00"}, 29, False),
        ({"items": [TEMPLATE]}, 10, True),
        ({"items": [RESOURCE]}, 10, False),
        ({"share": "0"}, 10, False),
    ],
)
def test_a_refusal_holds_for_its_items_in_its_window_on_its_days(
    rule: dict[str, object], hour: int, refused: bool
) -> None:
    sim = provider(refusals=[rule])
    at = MONDAY.replace(hour=0) + timedelta(hours=hour)

    assert isinstance(ask_hosts(sim, 1, "R1", at), Refused) is refused


# ---------------------------------------------------------------------- capacity
def test_the_last_machines_of_a_capacity_are_a_partial_answer_and_then_a_refusal() -> None:
    sim = provider(capacity={TEMPLATE: 5})

    first, second, third = (ask_hosts(sim, 3, f"R{n}") for n in range(3))

    assert len(sim.status(request_id(first), START + timedelta(hours=1)).machines) == 3
    assert len(sim.status(request_id(second), START + timedelta(hours=1)).machines) == 2
    assert third == Refused("InsufficientInstanceCapacity", f"no more {TEMPLATE} are to be had")


def test_a_machine_takes_room_until_it_is_gone() -> None:
    sim = provider(capacity={TEMPLATE: 1})
    ask_hosts(sim, 1)
    later = START + timedelta(hours=1)
    sim.give_back("B1", ("vm-R1-1",), (), later)

    assert isinstance(ask_hosts(sim, 1, "R2", later + 29 * SECOND), Refused)
    assert isinstance(ask_hosts(sim, 1, "R3", later + 30 * SECOND), Accepted)


@pytest.mark.parametrize("enforced", [True, False])
def test_the_number_of_a_template_is_enforced_only_where_the_switch_says_so(enforced: bool) -> None:
    config = simulated_config(enforce_max_number=enforced)
    offer = config.templates[0].model_copy(update={"max_number": 2})
    sim = SimulatedProvider(config.model_copy(update={"templates": (offer,)}), 1)
    request = request_id(ask_hosts(sim, 5))

    assert len(sim.status(request, START + timedelta(hours=1)).machines) == (2 if enforced else 5)


# ------------------------------------------------------------------------ tokens
def test_tokens_come_in_steps_and_only_as_far_as_others_leave_some() -> None:
    sim = provider(outside_use={RESOURCE: [{"start": "08:00", "amount": 27}]})

    request = request_id(ask_tokens(sim, 20))

    (grant,) = sim.status(request, START + timedelta(hours=1)).grants
    assert grant.amount == 10  # 40 - 27 = 13 are free, in steps of 5
    assert isinstance(ask_tokens(sim, 5, "R2"), Refused)


@pytest.mark.parametrize(
    ("day", "hour", "used"),
    [
        (0, 7, 4),
        (0, 8, 30),
        (0, 17, 10),
        (1, 3, 10),
        (5, 9, 10),
        (6, 23, 10),
        (7, 7, 4),
        (7, 5, 10),
    ],
)
def test_outside_use_is_what_began_last(day: int, hour: int, used: int) -> None:
    entries = [
        {"start": "08:00", "amount": 30, "days": ["mon", "tue", "wed", "thu", "fri"]},
        {"start": "16:00", "amount": 10},
        {"start": "06:00", "amount": 4, "days": ["mon"]},
    ]
    behaviour = simulated_config(outside_use={RESOURCE: entries}).simulation
    at = MONDAY.replace(hour=0) + timedelta(days=day, hours=hour)

    assert behaviour.used_outside(RESOURCE, at) == used
    assert behaviour.used_outside("another", at) == 0


def test_a_grant_with_a_term_ends_by_itself_and_is_free_again() -> None:
    sim = provider(term="2h", capacity={RESOURCE: 5})
    request = request_id(ask_tokens(sim, 5))
    (grant,) = sim.status(request, START + timedelta(hours=1)).grants

    assert grant.expires_at is not None
    assert sim.next_change(grant.expires_at - SECOND) == grant.expires_at
    assert isinstance(ask_tokens(sim, 5, "R2", grant.expires_at - SECOND), Refused)
    assert isinstance(ask_tokens(sim, 5, "R3", grant.expires_at), Accepted)


def test_nothing_goes_back_before_its_hold() -> None:
    config = simulated_config()
    offer = config.resources[0].model_copy(update={"minimum_hold": timedelta(minutes=30)})
    sim = SimulatedProvider(config.model_copy(update={"resources": (offer,)}), 1)
    request = request_id(ask_tokens(sim, 5))
    (grant,) = sim.status(request, START + timedelta(hours=1)).grants
    assert grant.hold_until is not None

    sim.give_back("B1", (), (GrantBack(grant.grant, 5),), grant.hold_until - SECOND)
    sim.give_back("B2", (), (GrantBack(grant.grant, 5),), grant.hold_until)

    assert (
        "must be held until" in dict(sim.return_status("B1", grant.hold_until).refused)[grant.grant]
    )
    assert sim.return_status("B2", grant.hold_until).refused == ()


@pytest.mark.parametrize("partial", [True, False])
def test_a_part_of_a_grant_goes_back_only_where_the_provider_can_do_that(partial: bool) -> None:
    config = simulated_config()
    can = config.capabilities.model_copy(update={"partial_returns": partial})
    sim = SimulatedProvider(config.model_copy(update={"capabilities": can}), 1)
    request = request_id(ask_tokens(sim, 20))
    later = START + timedelta(hours=1)
    (grant,) = sim.status(request, later).grants

    sim.give_back("B1", (), (GrantBack(grant.grant, 5),), later)

    assert sim.grants()[0].keeps() == (15 if partial else 20)
    assert bool(sim.return_status("B1", later).refused) is not partial


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["ask", "back"]), st.integers(1, 30), st.integers(0, 3600)),
        max_size=30,
    ),
    seed=st.integers(0, 5),
)
def test_a_pool_is_never_overdrawn_and_nothing_is_lost(
    steps: list[tuple[str, int, int]], seed: int
) -> None:
    sim = provider(seed, partial="0.2", return_refusal="0.2", term="90min")
    now = START
    for n, (what, amount, seconds) in enumerate(steps):
        now += timedelta(seconds=seconds)
        if what == "ask":
            ask_tokens(sim, amount, f"R{n}", now)
        else:
            held = [grant for grant in sim.grants() if grant.keeps()]
            parts = tuple(GrantBack(grant.grant, min(amount, grant.keeps())) for grant in held[:2])
            sim.give_back(f"B{n}", (), parts, now)
        lent = sum(grant.held(now) for grant in sim.grants())
        assert 0 <= lent <= 40
        for grant in sim.grants():
            assert 0 <= grant.keeps() <= grant.amount
            assert grant.amount % 5 == 0


def test_delays_have_the_median_and_the_95th_percentile_that_were_set() -> None:
    sim = provider(lead_time={"lag": {"p50": "100s", "p95": "300s"}, "boot": "0s", "join": "0s"})
    for n in range(2000):
        ask_hosts(sim, 1, f"R{n}")

    lags = sorted((machine.launched_at - START) // SECOND for machine in sim.machines())

    assert 90 <= lags[1000] <= 110
    assert 270 <= lags[1900] <= 330
    assert lags[0] >= 10
    assert lags[-1] <= 1000


def test_the_truth_lists_every_answer() -> None:
    sim = provider(capacity={TEMPLATE: 1})
    answers = {tag: ask_hosts(sim, 1, tag) for tag in ("R1", "R2")}

    assert sim.answers() == answers


# ---------------------------------------------------------------------- trouble
def test_an_answer_that_is_lost_was_carried_out_and_is_the_answer_to_the_same_tag() -> None:
    cloud = provider(lost_answers="1")
    with pytest.raises(TransientError, match="lost"):
        ask_hosts(cloud, 2, "R1")

    assert isinstance(ask_hosts(cloud, 2, "R1"), Accepted)
    assert len(cloud.machines()) == 2


def test_too_many_calls_change_nothing_and_later_ones_are_answered() -> None:
    cloud = provider(throttle={"calls": 1, "per": "1min"})
    ask_hosts(cloud, 1, "R1", START)
    with pytest.raises(TransientError, match="too many requests"):
        ask_hosts(cloud, 1, "R2", START + timedelta(seconds=59))

    assert isinstance(ask_hosts(cloud, 1, "R2", START + timedelta(minutes=1)), Accepted)
    assert len(cloud.machines()) == 2


def test_a_late_refusal_is_accepted_and_ends_with_nothing() -> None:
    cloud = provider(refusals=[{"late": "5min", "why": "no room"}])
    theirs = request_id(ask_hosts(cloud, 2, "R1", START))

    assert cloud.status(theirs, START + timedelta(minutes=4)).status is RequestStatus.RUNNING
    answer = cloud.status(theirs, START + timedelta(minutes=5))
    assert answer.status is RequestStatus.COMPLETE_WITH_ERROR
    assert answer.machines == ()
    assert "no room" in answer.message


def test_a_machine_that_is_taken_back_says_so_before_and_is_gone_after_the_notice() -> None:
    cloud = provider(take_backs={"after": "30min", "notice": "2min"})
    ask_hosts(cloud, 1, "R1", START)
    (machine,) = cloud.machines()
    assert machine.taken_at is not None
    told = machine.taken_at - timedelta(minutes=2)

    assert cloud.take_backs({machine.machine: ""}, told - timedelta(seconds=1)) == ()
    assert cloud.take_backs({machine.machine: ""}, told) == (TakeBack(machine.machine, 120),)
    assert machine.exists(told)
    assert not machine.exists(machine.taken_at)
    assert cloud.ended(machine.taken_at) == (machine.machine,)
    assert cloud.ended(machine.taken_at) == (), "each is told once"


def test_a_window_is_of_its_zone() -> None:
    rule = Refusal(start="19:00", end="20:00", zone="Europe/Berlin")

    assert rule.covers("T", datetime(2026, 7, 1, 17, 30, tzinfo=UTC))
    assert not rule.covers("T", datetime(2026, 7, 1, 19, 30, tzinfo=UTC))
    assert rule.covers("T", datetime(2026, 1, 1, 18, 30, tzinfo=UTC)), "winter"

"""Spare hosts: without a job, and kept ready for the next ones (field case F09)."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    asks,
    at,
    carried_out,
    demand,
    holds,
    hosts,
    idle_host,
    instance,
    provider,
    request,
    returned,
    round_of,
    template,
)
from xce.domain.formats.policy import PolicyInput, PolicySettings, SpareHosts, StandingMinimum
from xce.domain.formats.session_result import Idle
from xce.domain.provisioning.instance import InstanceState


def spare(hosts: int, **window: object) -> PolicySettings:
    return PolicySettings(
        spare=(SpareHosts.model_validate({"template": "c4", "hosts": hosts, **window}),)
    )


def site(
    busy: int,
    unused: Iterable[str] | None,
    *,
    long_idle: Iterable[str] = (),
    settings: PolicySettings | None = None,
) -> PolicyInput:
    """Return a round with busy hosts, and others without a job, some of them for the whole idle time."""
    names = [*(f"busy{n}" for n in range(busy)), *(unused or ())]
    return round_of(
        provider("aws", template()),
        idle=Idle(
            hosts=tuple(idle_host(name, at(-30)) for name in long_idle),
            unused=None if unused is None else tuple(unused),
        ),
        instances=[instance(name) for name in names],
        settings=settings or spare(1),
        computed_at=at(0),
    )


def test_f09_with_one_spare_host_nothing_is_launched_or_released() -> None:
    inputs = site(3, ["i"], long_idle=["i"])

    assert asks(inputs) == []
    assert returned(inputs) == []
    assert holds(inputs) == ["idle, and kept: spare hosts of c4 are kept now"]


def test_when_the_spare_one_gets_a_job_another_is_asked_once() -> None:
    inputs = site(4, [])

    assert asks(inputs) == [("aws", "c4", 1)]
    assert asks(carried_out(inputs)) == []


def test_hosts_on_their_way_and_those_that_joined_after_the_look_count() -> None:
    inputs = round_of(
        provider("aws", template()),
        idle=Idle(unused=()),
        instances=[
            instance("starting", state=InstanceState.STARTING),
            instance("fresh", joined_at=at(0)),
            instance("busy", joined_at=at(-1)),
            instance("leaving", state=InstanceState.DRAINING),
        ],
        requests=[request("R1", amount=2)],
        settings=spare(5),
        computed_at=at(0),
    )

    assert asks(inputs) == [("aws", "c4", 1)]


def test_where_nobody_knows_which_hosts_have_a_job_none_is_asked() -> None:
    assert asks(site(4, None)) == []


def test_spare_hosts_come_behind_all_jobs_and_the_rest_of_the_idle_goes_back() -> None:
    wanted = site(0, []).model_copy(update={"demand": demand(hosts("c4", 2))})
    idle = site(1, ["a", "b", "c"], long_idle=["a", "b", "c"])

    assert asks(wanted) == [("aws", "c4", 3)]
    assert len(returned(idle)) == 2


def test_a_minimum_and_spare_hosts_hold_both() -> None:
    both = PolicySettings(
        spare=(SpareHosts(template="c4", hosts=1),),
        standing=(StandingMinimum(template="c4", hosts=3),),
    )

    assert asks(site(4, [], settings=both)) == [("aws", "c4", 1)]
    assert asks(site(1, ["i"], settings=both)) == [("aws", "c4", 1)]
    assert returned(site(2, ["i"], long_idle=["i"], settings=both)) == []


def test_outside_its_window_nothing_is_kept_ready() -> None:
    closed = spare(1, start="18:00", end="20:00")

    assert asks(site(1, [], settings=closed)) == []
    assert returned(site(1, ["i"], long_idle=["i"], settings=closed)) == ["i"]


@given(st.integers(0, 6), st.integers(0, 8), st.integers(0, 8), st.integers(0, 5))
def test_what_is_asked_fills_up_and_what_goes_back_leaves_the_spare_ones(
    busy: int, free: int, long_idle: int, wanted: int
) -> None:
    names = [f"i{n}" for n in range(free)]
    inputs = site(busy, names, long_idle=names[:long_idle], settings=spare(wanted))

    asked = sum(amount or 0 for _, _, amount in asks(inputs))
    assert asked == max(0, wanted - free)
    assert free - len(returned(inputs)) >= min(wanted, free)
    assert asks(carried_out(inputs)) == []

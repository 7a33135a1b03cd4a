"""What fails is tried again or elsewhere, in time, and what was not taken back is given back later: the driver wakes for it."""

from datetime import datetime, timedelta

import pytest

from tests.replay.test_field_cases import START, job, run
from tests.replay.worlds import Finished
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import Request

ALONE = """
cluster: {{}}
providers:
  - name: a
    kinds: [host]
    templates: [{{template_id: T, max_number: 6, price_per_hour: "1.00", provides: {{slots: 1}}}}]
    simulation: {behaviour}
session: {{idle_host_after: 30min}}
policy: {{join_limit: 10min}}
driver: {{session_interval: 1min, poll_interval: 1min, stall_limit: 12h}}
"""
SECOND = """
  - name: b
    kinds: [host]
    priority: -1
    templates: [{{template_id: T, max_number: 6, price_per_hour: "1.00", provides: {{slots: 1}}}}]
    simulation: {{lead_time: {{lag: 0s, boot: 2min, join: 0s}}}}
session:"""


def alone(behaviour: str) -> str:
    return ALONE.format(behaviour=behaviour)


def with_second(behaviour: str) -> str:
    return ALONE.replace("\nsession:", SECOND).format(behaviour=behaviour)


def minute(at: datetime) -> int:
    return int((at - START) / timedelta(minutes=1))


def asks(finished: Finished) -> list[tuple[int, str]]:
    """Return (minute, provider) of each ask."""
    return [
        (minute(entry.event.timestamp), entry.event.provider)
        for entry in finished.events
        if isinstance(entry.event, Request.Intended)
    ]


def returns(finished: Finished) -> list[int]:
    """Return the minute of each return that was begun."""
    return [
        minute(entry.event.timestamp)
        for entry in finished.events
        if isinstance(entry.event, Instance.ReturnIntended)
    ]


def test_after_a_refusal_the_next_provider_is_asked_in_the_next_session() -> None:
    finished = run(with_second("{refusals: [{share: 1}]}"), job(1, 0, 5))

    assert asks(finished) == [(0, "a"), (1, "b")]
    assert finished.report.jobs.ended == 1


def test_after_a_refusal_a_lone_provider_is_asked_again_when_its_pause_ends() -> None:
    finished = run(alone("{refusals: [{share: 0.7}]}"), job(1, 0, 5))

    assert asks(finished)[:2] == [(0, "a"), (10, "a")]
    assert finished.report.jobs.ended == 1


def test_a_provider_that_always_refuses_does_not_keep_a_run_going_for_ever() -> None:
    finished = run(alone("{refusals: [{share: 1, retry_after: 30min}]}"), job(1, 0, 5))

    assert [at for at, _ in asks(finished)] == [30 * k for k in range(25)]
    (waiting,) = finished.report.jobs.not_ended
    assert waiting.jobs == ("1",)


def test_jobs_that_come_after_a_long_gap_are_run_though_an_earlier_one_still_waits() -> None:
    config = alone("{refusals: [{share: 1, retry_after: 30min}]}")
    config = config.replace("cluster: {}", "cluster: {hosts: [{name: own, total: {slots: 1}}]}")
    impossible = job(1, 0, 5, "rusage[slots=2]")

    finished = run(config, impossible, job(2, 20 * 60, 5))

    assert finished.report.jobs.ended == 1


def test_a_machine_that_fails_to_boot_is_given_back_and_replaced_at_once() -> None:
    boots_badly = "{boot_failure: 1, lead_time: {lag: 0s, boot: 3min, join: 0s}}"

    finished = run(alone(boots_badly), job(1, 0, 5))

    assert [at for at, _ in asks(finished)[:3]] == [0, 3, 6]
    assert returns(finished)[:2] == [3, 6]


def test_a_machine_that_never_joins_is_given_back_and_replaced_at_the_limit() -> None:
    """F03: the machine is marked never joined, released, and one replacement is asked, ten minutes after it was granted."""
    never = "{never_join: 1, lead_time: {lag: 0s, boot: 1min, join: 0s}}"

    finished = run(alone(never), job(1, 0, 5))

    assert [at for at, _ in asks(finished)[:3]] == [0, 11, 22]
    assert returns(finished)[:2] == [11, 22]


def test_a_host_whose_return_is_refused_is_given_back_later() -> None:
    refusing = "{return_refusal: 0.6, lead_time: {lag: 0s, boot: 1min, join: 1s}}"

    finished = run(alone(refusing), *(job(number, 0, 5) for number in range(4)))

    refused = [e for e in finished.events if isinstance(e.event, Instance.ReturnRefused)]
    assert refused, "the seed must refuse some"
    left = finished.projections.inventory.view().instances
    assert [entry for entry in left if entry.state is not InstanceState.RETURNED] == []


def test_returns_that_are_refused_for_ever_do_not_keep_a_run_going_for_ever() -> None:
    refusing = "{return_refusal: 1, lead_time: {lag: 0s, boot: 1min, join: 1s}}"

    finished = run(alone(refusing), job(1, 0, 5))

    (kept,) = finished.projections.inventory.view().instances
    assert kept.state in (InstanceState.DRAINING, InstanceState.RETURNING)


def test_a_host_that_joins_in_the_moment_it_is_granted_is_used() -> None:
    finished = run(alone("{lead_time: {lag: 0s, boot: 0s, join: 0s}}"), job(1, 0, 15))

    assert asks(finished) == [(0, "a")]
    assert finished.end - START < timedelta(hours=1)


@pytest.mark.parametrize(("threshold", "at"), [("[[1, 60]]", 60), ("[[2, 5], [1, 90]]", 90)])
def test_demand_that_counts_after_a_time_counts_then(threshold: str, at: int) -> None:
    config = alone("{}").replace(
        "cluster: {}", f"cluster: {{queues: [{{name: q, demand_threshold: {threshold}}}]}}"
    )

    assert asks(run(config, job(1, 0, 5))) == [(at, "a")]


@pytest.mark.parametrize("name", ["eu/pool", "a:b", "grant:x/y:z", "../p"])
def test_what_is_lent_by_a_provider_of_any_name_goes_back_to_it(name: str) -> None:
    """Our id of a grant is ``provider/grant``: a stroke in the provider's name once left its tokens with us for ever."""
    config = f"""
cluster:
  hosts: [{{name: own, total: {{slots: 8}}}}]
  shared: [{{name: lic, owned: 1, provider: "{name}", max_borrow: 9, idle_return_after: 20min}}]
providers:
  - name: "{name}"
    kinds: [host, countable]
    capabilities: {{partial_returns: true}}
    templates: [{{template_id: "T/x:y", provides: {{slots: 4}}}}]
    resources: [{{name: lic, capacity: 9}}]
driver: {{session_interval: 1min, poll_interval: 1min}}
"""
    finished = run(config, *(job(number, 0, 30, "rusage[lic=1]") for number in range(10)))

    provider = finished.providers[name]
    assert sum(grant.amount for grant in provider.grants()) == 9
    assert [grant.held(finished.end) for grant in provider.grants()] == [0]
    assert [machine for machine in provider.machines() if machine.exists(finished.end)] == []

"""The live driver without I/O: what a view and the log make of one another."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from xce.domain.engine.scheduler import (
    Look,
    SchedulerMemory,
    departed,
    merged,
    orders,
    reports,
)
from xce.domain.formats.rest import Supply
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import HostState, Snapshot
from xce.domain.formats.snapshot_check import contradictions

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
BOOTED = (AT - timedelta(minutes=5)).isoformat()


def view(*hosts: dict[str, Any], **more: Any) -> Snapshot:
    document = {"format": "xce.snapshot/1", "now": AT, "hosts": hosts, **more}
    return Snapshot.model_validate(document)


def instance(machine: str, state: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"cloud/{machine}", "provider": "cloud", "template": "c4", "state": state, "machine": machine,
        "granted_at": AT, **more,
    }  # fmt: skip


def supply(*instances: dict[str, Any], names: dict[str, str] | None = None, **more: Any) -> Supply:
    """What the log says; ``names``: expected names by machine."""
    starting = [one for one in instances if one["state"] == "starting"]
    in_flight = [
        {"id": one["id"], "template": "c4", "expected_name": (names or {}).get(one["machine"])}
        for one in starting
    ]
    document: dict[str, Any] = {
        "position": 7, "now": AT, "shared": [], "providers": [], "leases": [],
        "catalog": {"templates": [{"id": "c4", "provides": {"slots": 4}}], "in_flight": {"hosts": in_flight}},
        "inventory": {"instances": instances},
    }  # fmt: skip
    return Supply.model_validate({**document, **more})


def drain(host: str, state: str, **more: Any) -> dict[str, Any]:
    return {
        "host": host, "instance": None, "state": state, "why": "", "yields": False, "deadline": None, "at_deadline": "wait",
        "since": AT, "changed": AT, "by": "admin/alice", "jobs": [], **more,
    }  # fmt: skip


def host(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "total": {"slots": 4}, **more}


def job(name: str, on: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "hosts": [{"name": on, "uses": {"slots": 1}}], **more}


def snapshot_of(seen: Snapshot, known: Supply) -> Snapshot:
    memory = SchedulerMemory()
    memory.see(seen, known, AT)
    made = merged(seen, known, memory)
    assert list(contradictions(made)) == []
    return made


def entry(name: str) -> dict[str, Any]:
    return {
        "name": name, "total": 9, "owned": 9, "borrowed": 0, "in_flight": 0, "returning": 0, "occupied": None,
        "headroom": 0, "provider": None, "max_borrow": 0, "step": 1, "idle_return_after": "10min", "min_hold": 0,
    }  # fmt: skip


# ------------------------------------------------------------------------ joins
@pytest.mark.parametrize("names_itself", ["cloud/m1", "m1"])
def test_a_host_that_names_its_instance_or_machine_has_joined(names_itself: str) -> None:
    (join,) = reports(
        view(host("n1", instance=names_itself)), supply(instance("m1", "starting"))
    ).joins

    assert (join.host, join.instance, join.total) == ("n1", "cloud/m1", {"slots": 4})


def test_a_name_alone_is_not_enough_but_with_a_boot_time_it_is() -> None:
    known = supply(instance("m1", "starting"), names={"m1": "n1"})

    assert reports(view(host("n1")), known).joins == ()
    (join,) = reports(view(host("n1", booted_at=BOOTED)), known).joins
    assert (join.host, join.instance) == ("n1", None)  # the controller compares the times


def test_a_name_that_two_are_expected_under_means_neither() -> None:
    known = supply(
        instance("m1", "starting"), instance("m2", "starting"), names={"m1": "n", "m2": "n"}
    )

    assert reports(view(host("n", booted_at=BOOTED)), known).joins == ()


CHECKING: dict[str, Any] = {
    "providers": [
        {
            "name": "cloud",
            "description": {"name": "cloud", "capabilities": {"healthCheck": True}},
            "pauses": [],
            "hosts": 1,
        }
    ]
}


def test_a_host_that_is_checked_is_closed_first_then_reported_once_and_opened_when_it_joined() -> (
    None
):
    result = SessionResult(position=7)
    seen_open = view(host("n1", instance="cloud/m1"))
    seen_closed = view(host("n1", instance="cloud/m1", state="draining", booted_at=BOOTED))
    new = supply(instance("m1", "starting"), **CHECKING)

    assert reports(seen_open, new).joins == ()
    assert orders(seen_open, new, result, []).close == ("n1",)
    (join,) = reports(seen_closed, new).joins
    assert (join.host, join.busy) == ("n1", False)

    told = {"reported_as": "n1", "booted_at": BOOTED, "reported_at": AT}
    checked = supply(instance("m1", "starting", **told), **CHECKING)
    assert reports(seen_closed, checked).joins == ()
    assert orders(seen_closed, checked, result, []).open == ()
    assert snapshot_of(seen_closed, checked).hosts == ()

    joined = supply(instance("m1", "joined", host="n1", joined_at=AT, **told), names={}, **CHECKING)
    assert orders(seen_closed, joined, result, []).open == ("n1",)
    (open_now,) = snapshot_of(seen_closed, joined).hosts
    assert open_now.state is HostState.OPEN, "else another host would be asked for its job"


def test_a_host_that_passed_its_check_long_ago_and_is_closed_counts_as_closed() -> None:
    told = {"reported_as": "n1", "booted_at": BOOTED, "reported_at": AT - timedelta(hours=2)}
    joined = supply(
        instance("m1", "joined", host="n1", joined_at=AT - timedelta(hours=1), **told), **CHECKING
    )

    (closed,) = snapshot_of(view(host("n1", instance="cloud/m1", state="draining")), joined).hosts

    assert closed.state is HostState.DRAINING


@pytest.mark.parametrize("state", ["never_joined", "returning"])
def test_a_host_that_failed_its_check_stays_closed_until_it_is_gone(state: str) -> None:
    told = {"reported_as": "n1", "booted_at": BOOTED, "reported_at": AT}
    sick = supply(instance("m1", state, **told), **CHECKING)
    result = SessionResult(position=7)

    assert orders(view(host("n1", instance="cloud/m1")), sick, result, []).close == ("n1",)
    draining = view(host("n1", instance="cloud/m1", state="draining"))
    assert orders(draining, sick, result, []).open == ()
    heir = supply(
        instance("m1", state, **told), instance("m2", "joined", host="n1", joined_at=AT), **CHECKING
    )
    assert orders(view(host("n1", instance="cloud/m2")), heir, result, []).close == ()


def test_a_host_with_a_job_is_reported_as_busy_and_left_open() -> None:
    seen = view(host("n1", instance="cloud/m1"), running=[job("1", "n1")])
    new = supply(instance("m1", "starting"), **CHECKING)

    (join,) = reports(seen, new).joins

    assert join.busy
    assert orders(seen, new, SessionResult(position=7), []).close == ()


def test_a_host_is_in_flight_or_in_the_cluster_and_never_both() -> None:
    seen = view(host("own"), host("n1", instance="cloud/m1"), host("n2", booted_at=BOOTED))
    starting = supply(instance("m1", "starting"), instance("m2", "starting"), names={"m2": "n2"})
    joined = supply(instance("m1", "joined", host="n1"), instance("m2", "joined", host="n2"))

    before, after = snapshot_of(seen, starting), snapshot_of(seen, joined)

    assert [one.name for one in before.hosts] == ["own"]
    assert [one.id for one in before.catalog.in_flight.hosts] == ["cloud/m1", "cloud/m2"]
    assert [one.instance for one in after.hosts] == [None, "cloud/m1", "cloud/m2"]
    assert (after.position, after.catalog.in_flight.hosts) == (7, ())


def test_a_host_whose_instance_is_gone_takes_no_work_while_its_jobs_end() -> None:
    seen = view(
        host("n1", instance="cloud/m1"), host("n2", instance="cloud/m2"), running=[job("1", "n1")]
    )

    made = snapshot_of(seen, supply())

    assert [(one.name, one.state, one.instance) for one in made.hosts] == [
        ("n1", HostState.CLOSED, None)
    ]
    assert departed(seen, supply()) == ["cloud/m1", "cloud/m2"]
    result = SessionResult(position=7)
    assert orders(seen, supply(), result, ["cloud/m1", "cloud/m2"]).remove == ("n2",)


def test_a_host_without_a_job_is_idle_since_it_was_first_seen_so() -> None:
    known = supply(instance("m1", "joined", host="n1"))
    memory = SchedulerMemory()
    busy = view(host("n1"), running=[job("1", "n1")])
    for seen, minute in ((busy, 0), (view(host("n1")), 1), (view(host("n1")), 2)):
        memory.see(seen, known, AT + timedelta(minutes=minute))

    (now,) = merged(view(host("n1")), known, memory).hosts
    (then,) = merged(busy, known, memory).hosts

    assert now.idle_since == AT + timedelta(minutes=1)
    assert then.idle_since is None


# ----------------------------------------------------------------------- drains
def test_what_is_drained_takes_no_work_and_is_closed_and_not_looked_at_before() -> None:
    seen = view(host("own"), host("n1"))
    known = supply(instance("m1", "draining", host="n1"), drains=[drain("own", "asked")])

    made = snapshot_of(seen, known)

    assert [one.state for one in made.hosts] == [HostState.DRAINING, HostState.DRAINING]
    assert reports(seen, known).looks == ()
    assert orders(seen, known, SessionResult(position=7), []).close == ("own", "n1")


def test_a_closed_host_is_looked_at_and_told_of_once() -> None:
    seen = view(
        host("own", state="draining"), host("n1", state="closed"), running=[job("1", "own")]
    )
    draining = instance("m1", "draining", host="n1")

    first = reports(seen, supply(draining, drains=[drain("own", "asked")])).looks
    again = supply(draining, drains=[drain("own", "closed"), drain("n1", "empty")])

    assert first == (Look("own", ("1",)), Look("n1", ()))
    assert reports(seen, again).looks == ()
    emptied = view(host("own", state="draining"), host("n1", state="closed"))
    assert reports(emptied, again).looks == (Look("own", ()),)
    refilled = supply(drains=[drain("own", "empty")])
    assert reports(seen, refilled).looks == (Look("own", ("1",)),)


def test_the_deadline_is_told_of_once_and_jobs_are_requeued_where_it_is_wanted() -> None:
    seen = view(host("own", state="draining"), running=[job("1", "own"), job("2", "own")])
    late = {"deadline": AT, "at_deadline": "requeue"}

    due = supply(drains=[drain("own", "closed", **late)])
    over = supply(drains=[drain("own", "overdue", **late)])
    left = supply(drains=[drain("own", "overdue", deadline=AT, at_deadline="leave")])

    assert reports(seen, due).looks == (Look("own", ("1", "2")),)
    assert reports(seen, over).looks == ()
    result = SessionResult(position=7)
    assert orders(seen, over, result, []).requeue == ("1", "2")
    assert orders(seen, left, result, []).requeue == ()


def test_what_is_not_drained_any_more_opens_again_and_what_others_closed_stays() -> None:
    seen = view(host("h1", state="draining"), host("h2", state="closed"), host("h3", state="down"))

    assert orders(seen, supply(), SessionResult(position=7), []).open == ("h1",)


# ----------------------------------------------------------------------- shared
def test_unknown_use_elsewhere_makes_what_is_occupied_unknown() -> None:
    shared = [{"name": "a", "total": 1, "used_elsewhere": None}, {"name": "b", "total": 9, "used_elsewhere": 2}]  # fmt: skip
    seen = view(host("h"), shared=shared, running=[job("1", "h", shared={"b": 3})])

    memory = SchedulerMemory()
    memory.see(seen, supply(shared=[entry("a"), entry("b")]), AT)
    assert memory.occupied(seen, SessionResult(position=7)) == {"a": None, "b": 5}


def test_hosts_on_their_way_are_announced_with_what_their_template_promises() -> None:
    known = supply(instance("m1", "starting"), names={"m1": "n1"})

    (one,) = orders(view(), known, SessionResult(position=7), []).expected

    assert (one.instance, one.name, one.provides, one.since) == ("cloud/m1", "n1", {"slots": 4}, AT)


def test_hosts_of_a_template_that_two_providers_offer_at_two_prices_are_announced_too() -> None:
    lines = {
        "templates": [
            {"id": "c4@0.17", "provides": {"slots": 4}},
            {"id": "c4@0.5", "provides": {"slots": 8}},
        ],
        "in_flight": {"hosts": [{"id": "cloud/m1", "template": "c4@0.5", "expected_name": "n1"}]},
    }
    known = supply(instance("m1", "starting", price_per_hour="0.5"), catalog=lines)

    (one,) = orders(view(), known, SessionResult(position=7), []).expected

    assert (one.instance, one.name, one.template) == ("cloud/m1", "n1", "c4")
    assert one.provides == {"slots": 8}

"""The inventory: given events, then what is asked, owned or owed and not ended."""

from decimal import Decimal

from tests.unit.projections.run import (
    Run,
    accept,
    at,
    came,
    cloud,
    declare,
    hosts,
    join,
    lent,
    occupied,
    pool,
    template,
    units,
)
from xce.domain.engine.commands import (
    ConfirmGrantReturn,
    ConfirmReturn,
    GiveUpRequest,
    LoseTrack,
    MissJoin,
    RecordStatus,
    RefuseGrantReturn,
    RefuseRequest,
    RefuseReturn,
    Reopen,
    SettleRequest,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.formats.inventory import Inventory
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.ports import RequestStatus, StatusAnswer
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState


def given() -> Run:
    return Run(cloud("aws", template()), pool())


def view(run: Run) -> Inventory:
    return run.projections.inventory.view()


def granted(*machines: str) -> Run:
    run = given()
    run.do(hosts("R1", len(machines)), at=at(1))
    run.do(accept("R1"), came("R1", *machines, ended=True), at=at(2))
    return run


def test_an_intent_is_there_with_the_position_it_was_asked_at() -> None:
    run = given()

    (recorded,) = run.do(hosts("R1", 3), at=at(1))

    (entry,) = view(run).requests
    assert entry.asked_position == recorded.position
    assert (entry.id, entry.provider, entry.kind, entry.template) == ("R1", "aws", Kind.HOST, "c4")
    assert (entry.amount, entry.state, entry.asked_at) == (3, RequestState.INTENDED, at(1))
    assert entry.price_per_hour == Decimal("0.17")
    assert run.projections.inventory.hosts_of == {("aws", "c4"): 3}


def test_a_request_shows_its_acceptance_and_that_its_outcome_is_unknown() -> None:
    run = given()

    run.do(hosts("R1", 1), LoseTrack("R1", "timeout"))
    assert view(run).requests[0].state is RequestState.UNKNOWN

    run.do(accept("R1"))
    assert view(run).requests[0].state is RequestState.ACCEPTED
    assert view(run).requests[0].provider_request_id == "theirs-R1"


def test_f08_partial_repeated_and_surplus_answers_are_counted_one_by_one() -> None:
    run = given()
    run.do(hosts("R1", 10), accept("R1"))
    machines = [f"m{n}" for n in range(1, 8)]

    run.do(came("R1", *machines, ended=True))
    run.do(came("R1", *machines, ended=True))

    (entry,) = view(run).requests
    assert (entry.granted, entry.failed, entry.state) == (7, 3, RequestState.PARTIAL)
    assert len(view(run).instances) == 7
    assert run.projections.inventory.hosts_of == {("aws", "c4"): 7}

    run.do(hosts("R2", 10), accept("R2"))
    run.do(came("R2", *(f"n{n}" for n in range(11)), ended=True))
    assert view(run).requests[1].granted == 11
    assert run.projections.inventory.hosts_of == {("aws", "c4"): 18}


def test_a_request_that_brought_nothing_is_dropped_when_it_ends_and_counted() -> None:
    run = given()

    run.do(hosts("R1", 2), RefuseRequest("R1", "no capacity"))

    assert view(run) == Inventory()
    assert run.projections.inventory.ended() == {"request failed": 1}
    assert run.projections.inventory.hosts_of == {}


def test_a_closed_request_stays_while_something_it_brought_lives() -> None:
    run = granted("m1", "m2")
    assert [entry.state for entry in view(run).requests] == [RequestState.COMPLETE]

    for name in ("aws/m1", "aws/m2"):
        assert view(run).requests
        run.do(MissJoin(name, "never came"), StartReturn(f"B{name}", (name,), "never came"))
        run.do(ConfirmReturn(f"B{name}", name))

    assert view(run) == Inventory()
    assert run.projections.inventory.ended() == {"request complete": 1, "instance returned": 2}


def test_an_instance_is_followed_through_its_life() -> None:
    run = granted("m1")

    def now() -> tuple[InstanceState, str | None, str | None]:
        (entry,) = view(run).instances
        return entry.state, entry.host, entry.return_id

    assert now() == (InstanceState.STARTING, None, None)
    run.do(join("aws/m1"), at=at(5))
    assert now() == (InstanceState.JOINED, "aws-m1", None)
    assert view(run).instances[0].joined_at == at(5)
    assert view(run).instances[0].granted_at == at(2)
    run.do(StartDrain("aws/m1", "idle"))
    assert now() == (InstanceState.DRAINING, "aws-m1", None)
    assert run.projections.inventory.joined_hosts() == {"aws-m1": "aws/m1"}
    run.do(Reopen("aws/m1", "a job slipped in"))
    assert now() == (InstanceState.JOINED, "aws-m1", None)
    run.do(StartDrain("aws/m1", "idle"), StartReturn("B1", ("aws/m1",), "idle"))
    assert now() == (InstanceState.RETURNING, "aws-m1", "B1")
    assert run.projections.inventory.joined_hosts() == {}
    run.do(RefuseReturn("B1", "aws/m1", "busy"))
    assert now() == (InstanceState.DRAINING, "aws-m1", None)
    run.do(StartReturn("B2", ("aws/m1",), "idle"))
    run.do(ConfirmReturn("B2", "aws/m1"))
    assert view(run).instances == ()
    assert run.projections.inventory.hosts_of == {}


def test_a_host_that_never_joined_is_no_supply_but_exists_until_its_return_is_confirmed() -> None:
    run = granted("m1")

    run.do(MissJoin("aws/m1", "did not join"))
    assert view(run).instances[0].state is InstanceState.NEVER_JOINED
    assert run.projections.inventory.in_flight() == ([], [])
    assert run.projections.inventory.hosts_of == {("aws", "c4"): 1}

    run.do(StartReturn("B1", ("aws/m1",), "never joined"))
    run.do(RefuseReturn("B1", "aws/m1", "busy"))
    assert view(run).instances[0].state is InstanceState.NEVER_JOINED


def test_a_machine_that_failed_exists_and_counts_as_failed_of_its_request() -> None:
    run = given()

    run.do(hosts("R1", 3), accept("R1"), came("R1", "m1", failed=["m2"]))

    (entry,) = view(run).requests
    assert (entry.granted, entry.failed) == (1, 1)
    assert [instance.state for instance in view(run).instances] == [
        InstanceState.STARTING,
        InstanceState.NEVER_JOINED,
    ]
    assert run.projections.inventory.hosts_of == {("aws", "c4"): 3}


def test_a_late_machine_of_a_request_that_is_over_is_owned_all_the_same() -> None:
    run = given()
    run.do(hosts("R1", 1), accept("R1"))
    run.do(GiveUpRequest("R1", "too late"))
    (given_up,) = view(run).requests  # its provider may still bring something, and is asked on
    assert (given_up.state, run.projections.inventory.hosts_of) == (RequestState.TIMED_OUT, {})

    run.do(came("R1", "m1"))
    run.do(SettleRequest("R1", "asked for a day"))

    assert [entry.id for entry in view(run).requests] == ["R1"]
    assert [entry.request for entry in view(run).instances] == ["R1"]


def test_a_request_that_was_given_up_is_over_when_its_provider_ends_it() -> None:
    run = given()
    run.do(hosts("R1", 1), accept("R1"))
    run.do(GiveUpRequest("R1", "too late"))

    run.do(RecordStatus("R1", StatusAnswer(RequestStatus.COMPLETE_WITH_ERROR)))

    assert view(run) == Inventory()


def test_a_lost_instance_is_dropped() -> None:
    run = granted("m1")

    instance = run.instance("aws/m1")
    instance.lose(why="gone", at=at(9), by="test", epoch=1)
    run.save(instance)

    assert view(run) == Inventory()
    assert run.projections.inventory.ended() == {"request complete": 1, "instance lost": 1}


def lent_five() -> Run:
    run = given()
    run.do(declare())
    run.do(units("R1", 5), at=at(1))
    run.do(accept("R1"), lent("R1", ("g1", 5)), at=at(2))
    return run


def test_a_grant_is_followed_part_by_part() -> None:
    run = lent_five()

    def now() -> tuple[GrantState, int, int, str | None]:
        (entry,) = view(run).grants
        return entry.state, entry.returning, entry.returned, entry.return_id

    assert now() == (GrantState.ACTIVE, 0, 0, None)
    run.do(occupied(0), StartGrantReturn("B1", "pool/g1", 2), StartGrantReturn("B2", "pool/g1", 1))
    assert now() == (GrantState.RETURNING, 3, 0, "B1")
    assert run.projections.inventory.units_of == {("pool", "lic"): 5}
    run.do(ConfirmGrantReturn("B1", "pool/g1"))
    assert now() == (GrantState.RETURNING, 1, 2, "B2")
    assert run.projections.inventory.units_of == {("pool", "lic"): 3}
    run.do(RefuseGrantReturn("B2", "pool/g1", "too early"))
    assert now() == (GrantState.ACTIVE, 0, 2, None)
    run.do(StartGrantReturn("B3", "pool/g1", 3))
    run.do(ConfirmGrantReturn("B3", "pool/g1"))
    assert view(run) == Inventory()
    assert run.projections.inventory.units_of == {}
    assert run.projections.inventory.ended() == {"request complete": 1, "grant closed": 1}


def test_a_lost_grant_is_dropped_with_what_was_returning() -> None:
    run = lent_five()
    run.do(occupied(0), StartGrantReturn("B1", "pool/g1", 2))
    run.do(ConfirmGrantReturn("B1", "pool/g1"))

    grant, resource = run.grant("pool/g1"), run.resource()
    grant.lose(why="term over", at=at(9), by="test", epoch=1)
    resource.lose_grant(grant_id="pool/g1", at=at(9), by="test")
    run.save(grant, resource)

    assert view(run) == Inventory()
    assert run.projections.inventory.units_of == {}


def test_the_view_is_the_policys_format_and_is_made_anew_only_after_a_change() -> None:
    run = lent_five()
    run.do(hosts("R2", 1), accept("R2"), came("R2", "m1"))
    before = view(run)
    assert view(run) is before

    inputs = PolicyInput(now=at(3), inventory=before)
    assert PolicyInput.from_json(inputs.to_json()).inventory == before

    run.do(join("aws/m1"))
    assert view(run) is not before
    assert view(run).grants[0] is before.grants[0], "entries that did not change are kept"
    assert before.instances[0].state is InstanceState.STARTING

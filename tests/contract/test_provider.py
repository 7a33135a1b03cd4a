"""What every provider behind the port promises."""

from datetime import datetime

import pytest

from tests.contract.provider_cases import CASES, LONG, RESOURCE, START, TEMPLATE, Case
from xce.domain.formats.provider import Kind
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    MachineResult,
    Provider,
    Refused,
    RequestStatus,
    StatusAnswer,
)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    value = request.param
    assert isinstance(value, Case)
    return value


@pytest.fixture
def provider(case: Case) -> Provider:
    return case.make()


def hosts(amount: int, tag: str = "R1") -> Ask:
    return Ask(tag, Kind.HOST, TEMPLATE, amount)


def tokens(amount: int, tag: str = "R1", least_useful: int = 0) -> Ask:
    return Ask(tag, Kind.COUNTABLE, RESOURCE, amount, least_useful)


def accepted(provider: Provider, ask: Ask, now: datetime = START) -> str:
    answer = provider.ask(ask, now)
    assert isinstance(answer, Accepted)
    return answer.provider_request_id


def finished(provider: Provider, case: Case, ask: Ask) -> tuple[StatusAnswer, datetime]:
    request = accepted(provider, ask)
    now = case.wait(START, LONG)
    return provider.status(request, now), now


def test_an_accepted_ask_has_an_id_of_its_own(provider: Provider) -> None:
    assert accepted(provider, hosts(1, "R1")) != accepted(provider, hosts(1, "R2"))


def test_the_same_tag_is_the_same_request_and_makes_no_further_hosts(
    provider: Provider, case: Case
) -> None:
    first = accepted(provider, hosts(2))
    again = accepted(provider, hosts(2), case.wait(START, LONG))

    answer = provider.status(first, case.wait(START, 2 * LONG))

    assert again == first
    assert len(answer.machines) == 2


def test_a_request_runs_at_first_and_is_complete_in_the_end(provider: Provider, case: Case) -> None:
    request = accepted(provider, hosts(2))
    early = provider.status(request, START)
    late = provider.status(request, case.wait(START, LONG))

    assert early.status is RequestStatus.RUNNING
    assert late.status is RequestStatus.COMPLETE
    assert [machine.result for machine in late.machines] == [MachineResult.SUCCEED] * 2


def test_machines_have_ids_that_differ_and_stay(provider: Provider, case: Case) -> None:
    request = accepted(provider, hosts(3))
    other = accepted(provider, hosts(2, "R2"))
    later = case.wait(START, LONG)

    once = {machine.machine for machine in provider.status(request, later).machines}
    twice = {
        machine.machine for machine in provider.status(request, case.wait(later, LONG)).machines
    }
    others = {machine.machine for machine in provider.status(other, later).machines}

    assert len(once) == 3
    assert once == twice
    assert not once & others


def test_a_terminal_answer_says_when_each_machine_was_launched(
    provider: Provider, case: Case
) -> None:
    answer, now = finished(provider, case, hosts(1))

    (machine,) = answer.machines
    assert machine.launched_at is not None
    assert START <= machine.launched_at <= now
    assert machine.name


def test_an_unknown_template_or_resource_is_refused_with_a_code(provider: Provider) -> None:
    for ask in (Ask("R1", Kind.HOST, "none", 1), Ask("R2", Kind.COUNTABLE, "none", 1)):
        answer = provider.ask(ask, START)
        assert isinstance(answer, Refused)
        assert answer.code
        assert answer.why


def test_a_request_that_was_never_made_is_terminal_and_brings_nothing(provider: Provider) -> None:
    answer = provider.status("never-made", START)

    assert answer.status is RequestStatus.COMPLETE_WITH_ERROR
    assert (answer.machines, answer.grants) == ((), ())


def test_a_lent_amount_is_reported_once_with_its_id(provider: Provider, case: Case) -> None:
    answer, _ = finished(provider, case, tokens(10))

    (grant,) = answer.grants
    assert (grant.resource, grant.amount) == (RESOURCE, 10)
    assert answer.status is RequestStatus.COMPLETE


def test_a_pool_never_lends_more_than_it_has(provider: Provider, case: Case) -> None:
    answers = [provider.ask(tokens(20, f"R{n}"), START) for n in range(30)]
    now = case.wait(START, LONG)

    reports = [
        provider.status(answer.provider_request_id, now)
        for answer in answers
        if isinstance(answer, Accepted)
    ]

    assert isinstance(answers[-1], Refused)
    assert sum(grant.amount for report in reports for grant in report.grants) >= 20


def test_less_than_the_least_useful_amount_is_a_refusal(provider: Provider) -> None:
    assert isinstance(provider.ask(tokens(10_000, least_useful=10_000), START), Refused)


def test_a_returned_machine_is_gone_in_the_end_and_not_at_once(
    provider: Provider, case: Case
) -> None:
    answer, now = finished(provider, case, hosts(2))
    first, second = (machine.machine for machine in answer.machines)

    back = provider.give_back("B1", (first,), (), now)
    early = provider.return_status("B1", now)
    late = provider.return_status("B1", case.wait(now, LONG))

    assert isinstance(back, Accepted)
    assert early.status is RequestStatus.RUNNING
    assert first not in early.gone
    assert late.status is RequestStatus.COMPLETE
    assert late.gone == {first}
    assert second not in late.gone


def test_the_same_return_id_is_the_same_return(provider: Provider, case: Case) -> None:
    answer, now = finished(provider, case, hosts(1))
    machines = tuple(machine.machine for machine in answer.machines)

    first = provider.give_back("B1", machines, (), now)
    again = provider.give_back("B1", machines, (), case.wait(now, LONG))

    assert first == again
    assert provider.return_status("B1", case.wait(now, 2 * LONG)).gone == set(machines)


def test_a_second_return_of_a_machine_counts_as_success(provider: Provider, case: Case) -> None:
    answer, now = finished(provider, case, hosts(1))
    machines = tuple(machine.machine for machine in answer.machines)
    provider.give_back("B1", machines, (), now)

    provider.give_back("B2", machines, (), now)

    late = provider.return_status("B2", case.wait(now, LONG))
    assert late.gone == frozenset(machines)
    assert late.refused == ()


def test_a_lent_amount_can_be_given_back_and_lent_again(provider: Provider, case: Case) -> None:
    answer, now = finished(provider, case, tokens(20))
    (grant,) = answer.grants

    provider.give_back("B1", (), (GrantBack(grant.grant, 20),), now)
    later = case.wait(now, LONG)

    assert provider.return_status("B1", later).gone == {grant.grant}
    assert isinstance(provider.ask(tokens(20, "R2", least_useful=20), later), Accepted)


def test_more_than_a_grant_holds_is_refused_and_nothing_of_it_goes_back(
    provider: Provider, case: Case
) -> None:
    answer, now = finished(provider, case, tokens(10))
    (grant,) = answer.grants

    provider.give_back("B1", (), (GrantBack(grant.grant, 11),), now)
    late = provider.return_status("B1", case.wait(now, LONG))

    assert [item for item, _ in late.refused] == [grant.grant]
    assert late.gone == frozenset()
    assert late.status is RequestStatus.COMPLETE_WITH_ERROR


def test_a_return_that_was_never_made_is_terminal(provider: Provider) -> None:
    assert provider.return_status("never-made", START).status is RequestStatus.COMPLETE_WITH_ERROR

"""Which instance a host is that reports: given what is expected, when a report comes, then one instance or a reason."""

from datetime import UTC, datetime, timedelta

import pytest

from xce.domain.engine.joins import Expected, instance_of
from xce.domain.errors import NotFoundError, RejectedError

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)
OLD = Expected("aws/i-1", "i-1", host="node-17")
NEW = Expected("aws/i-2", "i-2", name="node-17", not_before=NINE + FIVE_MINUTES)


def test_f21_a_name_that_was_used_before_goes_by_the_boot_time() -> None:
    late = NINE + 2 * FIVE_MINUTES

    assert instance_of("node-17", late, None, None, [OLD, NEW]) == "aws/i-2"
    assert instance_of("node-17", NINE, None, None, [OLD, NEW]) == "aws/i-1"


def test_f21_a_report_from_before_the_new_machine_was_asked_for_is_not_of_it() -> None:
    with pytest.raises(NotFoundError, match="host node-17 booted at"):
        instance_of("node-17", NINE, None, None, [NEW])


def test_an_id_wins_over_any_name() -> None:
    assert instance_of("other", NINE, "aws/i-2", None, [OLD, NEW]) == "aws/i-2"
    assert instance_of("other", NINE, None, "i-1", [OLD, NEW]) == "aws/i-1"


def test_an_id_and_a_machine_that_do_not_belong_together_are_nobody() -> None:
    with pytest.raises(NotFoundError, match="instance aws/i-2 and machine i-1"):
        instance_of("node-17", NINE, "aws/i-2", "i-1", [OLD, NEW])


def test_a_machine_id_that_two_providers_use_is_not_guessed() -> None:
    other = Expected("gcp/i-1", "i-1")

    with pytest.raises(RejectedError, match="aws/i-1 or gcp/i-1"):
        instance_of("x", NINE, None, "i-1", [OLD, other])


AGAIN = Expected("aws/i-1~R7", "i-1", name="node-17", not_before=NINE + FIVE_MINUTES)


def test_a_machine_that_is_lent_again_under_its_id_is_found_by_all_that_it_knows_of_itself() -> (
    None
):
    late = NINE + 2 * FIVE_MINUTES

    assert instance_of("node-17", late, "aws/i-1", None, [AGAIN]) == "aws/i-1~R7"
    assert instance_of("node-17", late, None, "i-1", [AGAIN]) == "aws/i-1~R7"
    assert instance_of("node-17", late, "aws/i-1~R7", "i-1", [AGAIN]) == "aws/i-1~R7"


def test_while_its_earlier_return_is_not_confirmed_the_boot_time_tells_which_one_it_is() -> None:
    late = NINE + 2 * FIVE_MINUTES

    for instance, machine in (("aws/i-1", None), (None, "i-1"), ("aws/i-1", "i-1")):
        assert instance_of("node-17", late, instance, machine, [OLD, AGAIN]) == "aws/i-1~R7"


def test_another_provider_with_such_a_machine_is_still_not_guessed() -> None:
    waited_for = Expected("gcp/i-1", "i-1")

    with pytest.raises(RejectedError, match="aws/i-1 or gcp/i-1"):
        instance_of("x", NINE, None, "i-1", [OLD, waited_for])

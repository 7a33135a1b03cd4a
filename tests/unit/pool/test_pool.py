"""The pool's policy in small stories, its scripts, and two processes at the same moment."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from xce.adapters.providers.pool import scripts
from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.providers.pool.provider import PoolProvider
from xce.adapters.providers.pool.rules import Loan
from xce.domain.errors import InputError
from xce.domain.formats.licence_pool import LicencePool, PooledResource, PoolPolicy, PoolSite
from xce.domain.formats.provider import Kind
from xce.domain.ports import Accepted, Ask, GrantBack, Refused, RequestStatus

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def book(file: str | Path = ":memory:", **terms: object) -> PoolBook:
    made = PoolBook(file)
    values: dict[str, object] = {
        "name": "lic",
        "size": 20,
        "sites": ({"name": "a", "guaranteed": 5}, {"name": "b", "guaranteed": 5}),
        **terms,
    }
    made.apply(LicencePool(resources=(PooledResource.model_validate(values),)))
    return made


def lend(pool: PoolBook, site: str, tag: str, amount: int, minute: int = 0) -> int:
    answer = pool.lend(site, tag, "lic", amount, 0, at(minute))
    return answer.amount if isinstance(answer, Loan) else 0


def test_a_guaranteed_part_is_kept_whoever_asks_first() -> None:
    with book() as pool:
        assert lend(pool, "a", "1", 20) == 15
        assert lend(pool, "b", "1", 20) == 5


def test_who_was_denied_gets_an_equal_share_once_it_comes_back() -> None:
    with book() as pool:
        lend(pool, "a", "1", 15)
        assert lend(pool, "b", "1", 10) == 5
        assert pool.standing("lic", at(1)).recalled("a") == 5
        pool.give_back("a", "r", {"a-1": 5}, at(2))
        assert lend(pool, "a", "2", 5, minute=3) == 0
        assert lend(pool, "b", "2", 5, minute=4) == 5


def test_first_come_first_served_asks_nobody_for_what_is_not_guaranteed() -> None:
    with book(policy=PoolPolicy.FIRST) as pool:
        lend(pool, "a", "1", 15)
        lend(pool, "b", "1", 10)
        assert pool.standing("lic", at(1)).recalled("a") == 0


def test_a_lease_ends_by_itself_unless_renewed() -> None:
    with book(lease="30min") as pool:
        lend(pool, "a", "1", 5)
        assert pool.renew("a-1", at(20)) == at(50)
        assert pool.standing("lic", at(49)).has("a") == 5
        assert pool.standing("lic", at(50)).has("a") == 0
        with pytest.raises(InputError):
            pool.renew("a-1", at(51))


def test_a_return_of_another_site_is_refused() -> None:
    with book() as pool:
        lend(pool, "a", "1", 5)
        (made,) = pool.give_back("b", "r", {"a-1": 5}, at(1))
        assert made.refused is not None
        assert pool.standing("lic", at(1)).has("a") == 5


def test_the_port_gives_the_same_answers_to_the_same_ids() -> None:
    with book(minimum_hold="10min") as pool:
        provider = PoolProvider(pool, "a")
        ask = Ask("R1", Kind.COUNTABLE, "lic", 8)
        accepted = provider.ask(ask, at(0))
        assert accepted == provider.ask(ask, at(1)) == Accepted("a-R1")
        (grant,) = provider.status("a-R1", at(1)).grants
        assert (grant.amount, grant.hold_until) == (8, at(10))
        early = provider.give_back("B1", (), (GrantBack("a-R1", 3),), at(5))
        assert isinstance(early, Accepted)
        refused = provider.return_status("B1", at(5))
        assert (refused.status, refused.gone) == (
            RequestStatus.COMPLETE_WITH_ERROR,
            frozenset(),
        )
        provider.give_back("B2", (), (GrantBack("a-R1", 3),), at(10))
        provider.give_back("B2", (), (GrantBack("a-R1", 3),), at(11))
        assert provider.return_status("B2", at(11)).gone == {"a-R1"}
        holdings = provider.holdings(at(11))
        assert holdings is not None
        assert [(one.theirs, one.amount, one.tag) for one in holdings] == [("a-R1", 5, "R1")]
        assert isinstance(provider.ask(Ask("R2", Kind.HOST, "std", 1), at(11)), Refused)


def test_a_configuration_that_promises_more_than_there_is_is_refused() -> None:
    with pytest.raises(ValueError, match="10 are guaranteed, and there are 8"):
        LicencePool(
            resources=(
                PooledResource(
                    name="lic",
                    size=8,
                    sites=(PoolSite(name="a", guaranteed=5), PoolSite(name="b", guaranteed=5)),
                ),
            )
        )


def test_scripts_borrow_and_give_back_and_a_repeat_changes_nothing(tmp_path: Path) -> None:
    book(tmp_path / "pool.db").close()
    scripts.install(tmp_path / "pool.db", "a", tmp_path / "a")

    def run(name: str, given: object) -> dict[str, Any]:
        place = tmp_path / "input.json"
        place.write_text(json.dumps(given))
        done = subprocess.run(
            [tmp_path / "a" / "scripts" / f"{name}.sh", "-f", place],
            stdout=subprocess.PIPE,
            check=False,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    wish = {"resource": "lic", "amount": 8, "requestTag": "R1"}
    first = run("requestResources", wish)
    assert first == run("requestResources", wish)
    back = {"grants": [{"grantId": "a-R1", "amount": 3}], "requestTag": "B1"}
    returned = run("requestReturnResources", back)
    assert returned == run("requestReturnResources", back)
    (grant,) = run("listGrants", {})["grants"]
    assert grant == {
        "grantId": "a-R1", "resource": "lic", "amount": 5, "result": "succeed", "requestTag": "R1",
    }  # fmt: skip
    refused = run("requestResources", {**wish, "requestTag": "R2", "amount": 0})
    assert refused["message"] == "Error Code: InsufficientCapacity: 0 of 0 can be lent"
    assert refused["retryAfter"] >= 1


_RACE = """
import sys
from datetime import UTC, datetime
from xce.adapters.providers.pool.book import PoolBook
with PoolBook(sys.argv[1]) as book:
    for number in range(30):
        book.lend(sys.argv[2], str(number), "lic", 1, 0, datetime(2026, 3, 1, 10, tzinfo=UTC))
"""


def test_two_processes_at_once_lend_no_token_twice(tmp_path: Path) -> None:
    file = tmp_path / "pool.db"
    book(file, policy=PoolPolicy.FIRST).close()
    racing = [
        subprocess.Popen([sys.executable, "-c", _RACE, str(file), site]) for site in ("a", "b")
    ]
    assert [process.wait(120) for process in racing] == [0, 0]
    with PoolBook(file) as pool:
        held = pool.standing("lic", at(0)).held
        assert sum(held.values()) == 20
        assert sum(move.amount for move in pool.moves() if move.kind == "lent") == 20
        assert min(held.values()) >= 5

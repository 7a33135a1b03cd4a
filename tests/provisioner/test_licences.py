"""What a site sets for an elastic resource holds for the real daemons as it does in a simulation."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.provisioner.licences import (
    LENDER,
    Job,
    Lender,
    LicenceSite,
    book_of,
    pool_of,
    pool_settings,
)
from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.store.verify import verify
from xce.domain.formats.observation import Quality
from xce.domain.formats.provider import Kind
from xce.domain.ports import Ask
from xce.domain.provisioning.decision import Decision as DecisionAggregate
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.request import Request

Make = Callable[..., LicenceSite]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def made(book: PoolBook | None = None, **values: Any) -> LicenceSite:
            book = stack.enter_context(book_of()) if book is None else book
            site = LicenceSite(pool_of(**values), Lender(book, "a", LENDER))
            stack.callback(site.close)
            return site

        yield made


def test_tokens_come_when_jobs_wait_and_go_back_when_none_was_needed_for_the_idle_time(
    make: Make,
) -> None:
    site = make(step=2)
    site.submit(Job("1", 5, run=20))
    site.run(3)
    assert (site.entry.borrowed, len(site.batch.running)) == (4, 1)
    site.run(20)
    assert site.entry.borrowed == 4, "the idle time is not over"
    site.run(12)
    assert (site.entry.borrowed, site.entry.returning) == (0, 0)


def test_demand_has_to_last_before_the_provisioner_borrows(make: Make) -> None:
    site = make(borrow_after="5min")
    site.submit(Job("1", 4, run=10))
    site.run(5)
    assert site.inventory.requests == ()
    site.run(3)
    assert site.entry.borrowed == 2


def test_demand_that_ends_before_it_has_lasted_borrows_nothing(make: Make) -> None:
    site = make(borrow_after="5min")
    for number in range(6):
        site.submit(Job(str(number), 4, run=10))
        site.run(4)
        site.batch.waiting.clear()
        site.run(1)
    assert (site.entry.borrowed, site.entry.in_flight) == (0, 0)


def test_the_headroom_is_kept_free_beyond_what_is_in_use(make: Make) -> None:
    site = make(headroom=3)
    site.run(3)
    assert site.entry.borrowed == 1, "2 are owned and free"
    site.submit(Job("1", 2, run=15))
    site.run(3)
    assert (site.entry.borrowed, site.entry.occupied) == (3, 2)
    site.run(40)
    assert site.entry.borrowed == 1


def test_a_restart_forgets_since_when_there_is_demand_and_asks_later_never_twice(
    make: Make,
) -> None:
    site = make(borrow_after="5min")
    site.submit(Job("1", 4, run=10))
    site.run(4)
    site.restart()
    site.run(5)
    assert site.inventory.requests == ()
    site.run(3)
    assert site.entry.borrowed == 2


# --------------------------------------------------------------------- recalls
def wish(book: PoolBook, site: LicenceSite, amount: int) -> None:
    """Let the other site ask for something."""
    now = site.clock.now()
    ask = Ask(f"W{now.timestamp()}", Kind.COUNTABLE, "lic", amount)
    Lender(book, "b", LENDER).ask(ask, now)


def lent_out(make: Make, book: PoolBook, run: float, **values: Any) -> LicenceSite:
    """Return a site that borrowed all 4 of a pool, of which a job still has half."""
    site = make(book, owned=0, **values)
    site.submit(Job("short", 2, run=3), Job("long", 2, run=run))
    site.run(8)
    assert (site.entry.borrowed, list(site.batch.running)) == (4, ["long"])
    return site


@pytest.fixture
def small() -> Iterator[PoolBook]:
    with book_of(4, wish="1h") as book:
        yield book


@pytest.mark.parametrize("watched", [False, True])
def test_a_recall_takes_the_free_half_at_once_however_lately_it_was_needed(
    make: Make, small: PoolBook, watched: bool
) -> None:
    site = lent_out(
        make, small, run=60, idle_return_after="3h", observer="server" if watched else None
    )
    wish(small, site, 2)
    site.run(3)
    assert (site.entry.borrowed, list(site.batch.running)) == (2, ["long"])
    held = small.standing("lic", site.clock.now()).held
    assert held == {"a": 2}, "the pool has it back, and it leaves the total only once"
    reasons = [e.reason for e in site.events() if isinstance(e, DecisionAggregate.Made)]
    assert any("cloud wants 2 of lic back: 2 of it are free" in reason for reason in reasons)


def test_26_what_is_recalled_and_in_use_is_not_booked_again_and_goes_as_jobs_end(
    make: Make, small: PoolBook
) -> None:
    site = make(small, owned=0, idle_return_after="3h")
    site.submit(Job("one", 2, run=20), Job("two", 2, run=40))
    site.run(4)
    assert len(site.batch.running) == 2
    wish(small, site, 2)
    site.run(5)
    assert site.entry.borrowed == 4, "all of it is in use"
    site.submit(Job("new", 1, run=5))
    site.run(20)
    assert (site.entry.borrowed, list(site.batch.running)) == (2, ["two"])
    assert [job.name for job in site.batch.waiting] == ["new"]
    wish(small, site, 2)
    assert small.standing("lic", site.clock.now()).held == {"a": 2, "b": 2}
    site.run(20)
    assert site.batch.waiting == [], "what is left is ours, and is used"


def test_nothing_is_asked_of_a_lender_that_wants_something_back(
    make: Make, small: PoolBook
) -> None:
    site = lent_out(make, small, run=60)
    wish(small, site, 2)
    site.run(2)
    asked = len([e for e in site.events() if isinstance(e, Request.Intended)])
    site.submit(Job("more", 3, run=5))
    site.run(10)
    assert len([e for e in site.events() if isinstance(e, Request.Intended)]) == asked


def test_a_recall_that_is_over_lets_jobs_book_again(make: Make, small: PoolBook) -> None:
    site = make(small, owned=0, idle_return_after="3h")
    site.submit(Job("one", 2, run=9), Job("two", 2, run=90))
    site.run(4)
    small.apply(pool_settings(4, wish="4min"))
    wish(small, site, 2)
    site.run(2)
    assert site.memory.meters["lic"].read(site.memory.totals["lic"], site.clock.now()).limit == 2
    site.run(4)  # the wish is forgotten: nobody said it again
    site.submit(Job("new", 2, run=30))
    site.run(6)
    assert (site.entry.borrowed, "new" in site.batch.running) == (4, True)


def test_a_hold_outlasts_a_recall(make: Make) -> None:
    with book_of(4, wish="2h", minimum_hold="30min") as book:
        site = lent_out(make, book, run=60, idle_return_after="3h")
        wish(book, site, 2)
        site.run(20)
        assert site.entry.borrowed == 4
        site.run(10)
        assert site.entry.borrowed == 2


def test_blind_or_of_unknown_use_nothing_recalled_goes_back(make: Make, small: PoolBook) -> None:
    site = lent_out(make, small, run=60, idle_return_after="3h", observer="server")
    site.look = Quality.UNREACHABLE
    site.run(4)
    wish(small, site, 2)
    site.run(5)
    assert site.entry.borrowed == 4
    site.look = Quality.OK
    site.run(3)
    assert site.entry.borrowed == 2


def test_while_a_licence_lingers_it_is_not_given_to_who_recalls_it(
    make: Make, small: PoolBook
) -> None:
    site = make(small, owned=0, idle_return_after="3h", observer="server", settle_time="1min")
    site.submit(Job("short", 2, run=3, linger=20), Job("long", 2, run=90))
    site.run(8)
    wish(small, site, 2)
    site.run(8)
    assert site.entry.borrowed == 4
    site.run(12)
    assert site.entry.borrowed == 2


# ------------------------------------------------------------------------ terms
def leased(make: Make, book: PoolBook, run: float, **values: Any) -> LicenceSite:
    site = make(book, owned=1, **values)
    site.submit(Job("1", 3, run=run))
    site.run(4)
    assert site.entry.borrowed == 2
    return site


@pytest.fixture
def terms() -> Iterator[PoolBook]:
    with book_of(4, wish="1h", lease="10min") as book:
        yield book


def test_25_a_term_that_ends_while_it_is_in_use_is_put_off_again_and_again(
    make: Make, terms: PoolBook
) -> None:
    site = leased(make, terms, run=60)
    site.run(50)
    assert site.entry.borrowed == 2
    extended = [e for e in site.events() if isinstance(e, Grant.Extended)]
    assert 5 <= len(extended) <= 12, "once in half a term"
    site.run(30)
    assert site.entry.borrowed == 0


def test_a_term_of_something_idle_is_not_put_off(make: Make, terms: PoolBook) -> None:
    site = leased(make, terms, run=4, idle_return_after="2min", min_hold="1h")
    site.run(20)
    assert site.entry.borrowed == 0, "it was held, and ended with its term"
    (lost,) = [e for e in site.events() if isinstance(e, Grant.Lost)]
    assert "term has ended" in lost.why
    assert site.inventory.grants == ()


def test_25_a_term_that_its_lender_ends_by_force_leaves_jobs_running_and_shows_as_over(
    make: Make, terms: PoolBook
) -> None:
    site = leased(make, terms, run=90)
    book_settings = pool_settings(4, wish="2h", lease="10min", sites=({"name": "a"}, {"name": "b", "guaranteed": 4}))  # fmt: skip
    terms.apply(book_settings)
    wish(terms, site, 4)
    site.over_is_right = True
    site.run(15)
    assert (site.entry.borrowed, site.entry.total, list(site.batch.running)) == (0, 1, ["1"])
    assert site.entry.occupied == 3
    assert site.inventory.grants == ()
    wish(terms, site, 4)
    assert terms.standing("lic", site.clock.now()).held == {"b": 4}


def test_a_term_that_was_put_off_without_our_hearing_of_it_is_found_by_a_listing(
    make: Make, terms: PoolBook
) -> None:
    site = leased(make, terms, run=90)
    site.lender.deaf = True
    site.run(20)
    assert site.entry.borrowed == 2
    assert [e for e in site.events() if isinstance(e, Grant.Extended)]


def test_where_the_lender_cannot_list_a_term_ends_by_the_clock(make: Make, terms: PoolBook) -> None:
    site = leased(make, terms, run=90)
    site.lender.can_list = site.lender.renews = False
    site.process.driver.describe()
    site.over_is_right = True
    site.run(12)
    assert site.entry.borrowed == 0


# ---------------------------------------------------------------------- amounts
def test_where_the_lender_has_less_than_was_counted_the_lower_amount_is_booked(
    make: Make,
) -> None:
    site = make(owned=0)
    site.submit(Job("1", 4, run=200))
    site.run(5)
    assert site.entry.borrowed == 4
    site.lender.miscounts = -1
    site.run(3)
    assert site.entry.borrowed == 4, "one listing may be wrong"
    site.over_is_right = True
    site.run(3)
    assert (site.entry.borrowed, site.entry.total, site.entry.occupied) == (3, 3, 4)
    (lost,) = [e for e in site.events() if isinstance(e, Grant.PartLost)]
    assert lost.amount == 1
    site.submit(Job("2", 1, run=5))
    site.run(1)
    assert [job.name for job in site.batch.waiting] == ["2"]
    assert verify(site.log).passed


def test_one_listing_that_says_less_changes_nothing(make: Make) -> None:
    site = make(owned=0)
    site.submit(Job("1", 4, run=200))
    site.run(5)
    for miscounts in (-1, 0, -1, 0):
        site.lender.miscounts = miscounts
        site.run(3)
    assert site.entry.borrowed == 4


def test_where_the_lender_has_more_ours_is_booked_and_it_is_said(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make(owned=0)
    site.submit(Job("1", 4, run=20))
    site.run(5)
    site.lender.miscounts = 1
    site.run(4)
    assert site.entry.borrowed == 4
    assert "5 of grant a-R1 are listed, and 4 are known" in capsys.readouterr().out
    site.lender.miscounts = 0
    site.run(40)
    assert site.entry.borrowed == 0


def test_two_sessions_after_demand_jobs_run_and_after_idle_time_and_a_cycle_all_is_back(
    make: Make,
) -> None:
    site = make(observer="server", settle_time="1min")
    site.submit(Job("1", 6, run=10))
    site.run(2)
    assert list(site.batch.running) == ["1"], "demand in the first session, a start in the second"
    site.run(10)
    assert site.batch.running == {}
    site.run(11)
    assert (site.entry.borrowed, site.entry.returning) == (0, 0)

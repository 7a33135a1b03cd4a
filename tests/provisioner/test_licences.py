"""What a site sets for an elastic resource holds for the real daemons as it does in a simulation."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.provisioner.licences import Job, Lender, LicenceSite, book_of, pool_of
from xce.adapters.providers.pool.book import PoolBook

Make = Callable[..., LicenceSite]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def made(book: PoolBook | None = None, **values: Any) -> LicenceSite:
            book = stack.enter_context(book_of()) if book is None else book
            site = LicenceSite(pool_of(**values), Lender(book, "a", "cloud"))
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

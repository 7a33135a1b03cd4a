"""Random histories of two clusters on one pool: jobs, late checkouts, lingering, outside users, faults of observers, crashes, recalls.

XCE_HISTORIES sets how many; 10,000 take some minutes (``make soak``).
"""

import os
from contextlib import suppress
from datetime import timedelta

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.sharing.site import Job, KilledError, Site, lender, settings
from xce.domain.formats.observation import Observation, Quality
from xce.domain.sharing.meter import Meter

SITES = st.sampled_from(["a", "b"])
POINTS = st.sampled_from(["before ask", "after ask", "before return", "after return"])
LENGTH = timedelta(minutes=20)


class TwoSites(RuleBasedStateMachine):
    """The ten invariants of the rules, at every step."""

    @initialize(
        size=st.integers(5, 25),
        step=st.sampled_from([1, 1, 3, 5]),
        hold=st.sampled_from([0, 10, 40]),
        parts=st.booleans(),
        watched=st.booleans(),
        when_blind=st.booleans(),
        headroom=st.integers(0, 2),
    )
    def begin(
        self,
        size: int,
        step: int,
        hold: int,
        parts: bool,
        watched: bool,
        when_blind: bool,
        headroom: int,
    ) -> None:
        self.book = lender(
            size,
            step=step,
            minimum_hold=f"{hold}min",
            partial_returns=parts,
            sites=({"name": "a", "guaranteed": 5}, {"name": "b"}),
        )
        self.step, self.hold, self.watched = step, hold, watched
        pool = settings(
            step=step,
            max_borrow=12,
            headroom=headroom,
            idle_return_after=LENGTH,
            observer="server" if watched else None,
            return_when_blind=when_blind and watched,
            linger_guard=timedelta(minutes=0 if watched else 5),
        )
        self.sites = {name: Site(pool, self.book, name) for name in ("a", "b")}
        self.jobs = 0

    def teardown(self) -> None:
        if hasattr(self, "book"):
            self.book.close()

    @rule(name=SITES, amount=st.integers(0, 24), run=st.integers(1, 90), late=st.integers(0, 4),
          linger=st.integers(0, 12))  # fmt: skip
    def submit(self, name: str, amount: int, run: int, late: int, linger: int) -> None:
        self.jobs += 1
        job = Job(f"j{self.jobs}", amount, run=run, late=min(late, run), linger=linger)
        self.sites[name].submit(job)

    @rule(minutes=st.sampled_from([1, 2, 7, 30]), looks=st.booleans())
    def time_passes(self, minutes: int, looks: bool) -> None:
        for site in self.sites.values():
            look = Quality.OK if looks and self.watched else None
            site.wait(minutes, each=min(minutes, 3), look=look)

    @rule(name=SITES, outside=st.integers(0, 6))
    def outside_users(self, name: str, outside: int) -> None:
        self.sites[name].outside = outside

    @rule(
        name=SITES,
        quality=st.sampled_from(Quality),
        wrong=st.integers(-8, 8),
        old=st.integers(0, 30),
    )
    def odd_observation(self, name: str, quality: Quality, wrong: int, old: int) -> None:
        site = self.sites[name]
        before = (
            site.resource.owned,
            site.resource.borrowed,
            site.meter.read(site.totals, site.now).booked,
        )
        seen = max(0, site.truly_used() + wrong)
        site.observe(
            quality,
            in_use=None if quality is Quality.UNREACHABLE else seen,
            observed_at=site.now - timedelta(minutes=old),
        )
        after = (
            site.resource.owned,
            site.resource.borrowed,
            site.meter.read(site.totals, site.now).booked,
        )
        assert before == after  # invariant 6

    @rule(name=SITES, point=POINTS)
    def crash(self, name: str, point: str) -> None:
        site = self.sites[name]

        def effect(here: str) -> None:
            if here == point:
                raise KilledError

        site.effects = effect
        site.now += timedelta(minutes=1)
        with suppress(KilledError):
            site.wait(1)
        site.crash()
        site.wait(1)

    @rule(name=SITES)
    def the_pool_recalls(self, name: str) -> None:
        site = self.sites[name]
        site.recall = min(site.provider.recalled("lic", site.now), site.resource.borrowed)
        site.meter.recall(site.recall)

    @rule(name=SITES, owned=st.integers(0, 14))
    def owned_changes(self, name: str, owned: int) -> None:
        site = self.sites[name]
        site.resource.set_owned(owned=owned, at=site.now, by="admin")

    @rule(name=SITES)
    def after_the_load_everything_goes_back(self, name: str) -> None:
        """Invariant 10: after the larger of hold and idle time, and a cycle, nothing is borrowed."""
        site = self.sites[name]
        site.waiting.clear()
        for job in list(site.running):
            site.end(job)
        site.lingering.clear()
        site.outside = site.recall = 0
        site.meter.recall(0)
        if site.pool.headroom > site.resource.owned:
            return
        look = Quality.OK if self.watched else None
        guard = site.pool.linger_guard / timedelta(minutes=1)
        site.now += timedelta(minutes=31)  # what was observed wrongly ahead of time is over
        site.wait(max(self.hold, 20) + 5 + guard + 10, look=look)
        # A whole grant may be kept while another one of the same step covers what is needed; here nothing is needed.
        assert site.resource.borrowed == 0
        holdings = site.provider.holdings(site.now)
        assert holdings == ()

    @invariant()
    def what_the_pool_lent_is_what_the_sites_have(self) -> None:
        """Invariants 5 and 9."""
        if not hasattr(self, "sites"):
            return
        for site in self.sites.values():
            standing = self.book.standing("lic", site.now)
            known = site.owed + sum(site.asks.values())
            confirmed = sum(amount for _, amount in site.backs.values())
            assert standing.has(site.name) <= known
            assert standing.has(site.name) >= site.owed - confirmed
            assert sum(standing.held.values()) <= standing.resource.size

    @invariant()
    def bookings_are_over_only_where_the_total_fell(self) -> None:
        """Invariant 7: shown as over."""
        if not hasattr(self, "sites"):
            return
        for site in self.sites.values():
            reading = site.reading
            site.check()
            if reading.booked > reading.total:
                assert reading.over >= reading.booked - reading.total


TestTwoSites = TwoSites.TestCase
TestTwoSites.settings = hypothesis_settings(
    max_examples=int(os.environ.get("XCE_HISTORIES", "60")), stateful_step_count=25
)


def test_a_meter_fed_again_with_the_same_says_the_same() -> None:
    """Invariant 8, with case 34: numbers, windows and timers depend on what happened and when, and on nothing else."""

    def fed() -> list[object]:
        site = Site(settings(observer="server"), lender())
        readings: list[object] = []
        for minute in range(0, 120, 3):
            if minute % 30 == 0:
                site.submit(Job(f"j{minute}", 13, run=20, late=2, linger=4))
            site.wait(3, each=3, look=Quality.OK)
            readings += [site.reading, site.meter.peak(site.now), site.meter.wanted_since]
        return readings

    assert fed() == fed()


def test_under_constant_load_nothing_is_asked_and_nothing_goes_back() -> None:
    site = Site(settings(), lender())
    site.submit(Job("big", 16, run=10_000))
    site.cycle()
    site.wait(600, each=5)
    assert (len(site.asked), site.gave) == (1, [])


def test_case_35_two_sites_on_one_pool_never_starve_below_the_guaranteed_part() -> None:
    book = lender(size=10, sites=({"name": "a", "guaranteed": 5}, {"name": "b", "guaranteed": 5}))
    sites = [Site(settings(), book, name) for name in ("a", "b")]
    for number in range(200):
        for site in sites:
            site.submit(Job(f"{site.name}{number}", 13, run=17))
            site.wait(6, each=3)
    for site in sites:
        started = 200 - len(site.waiting)
        assert started > 60
        assert site.resource.borrowed <= 5
        assert isinstance(site.meter, Meter)


def test_case_36_the_change_of_the_year_and_of_summer_time_change_nothing() -> None:
    """Times are UTC and bare differences; the text of a server's local time only says when it was printed."""
    meter = Meter(settings(observer="server"))
    site = Site(settings(observer="server"), lender())
    for hours in (0, 24 * 28, 24 * 306):
        site.now = site.now.replace(month=3, day=1) + timedelta(hours=hours)
        meter.observe(
            Observation(
                resource="lic", source="o", quality=Quality.OK, in_use=3,
                observed_at=site.now, received_at=site.now,
            )
        )  # fmt: skip
        reading = meter.read(site.totals, site.now + timedelta(minutes=3))
        assert reading.age == timedelta(minutes=3)

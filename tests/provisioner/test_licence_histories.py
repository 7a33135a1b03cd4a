"""Random histories of two clusters on one pool, with the real controllers, schedulers and provisioners in virtual time.

Jobs whose tools check out late and linger, outside users, observers that see nothing, lost and failed answers, deaths at any boundary,
recalls that come of what the other cluster wants, terms. XCE_HISTORIES sets how many: a twentieth of it.
"""

import os

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.provisioner.licences import Job, Lender, LicenceSite, book_of, pool_of
from xce.adapters.store.verify import verify
from xce.domain.engine.commands import SetOwned
from xce.domain.engine.messages import Role
from xce.domain.formats.observation import Quality
from xce.domain.provisioning.grant import Grant
from xce.domain.sharing.elastic_resource import ElasticResource

SITES = st.sampled_from(["a", "b"])
CALLS = st.sampled_from(["ask", "status", "return", "return status", "renew", "list"])
IDLE = 6
HISTORIES = int(os.environ.get("XCE_HISTORIES", "400")) // 20


class Histories(RuleBasedStateMachine):
    """What must hold at every minute is checked by ``LicenceSite.check`` and ``_check``; all the rest at the end, by the log."""

    @initialize(
        size=st.integers(4, 16),
        step=st.sampled_from([1, 1, 2]),
        hold=st.sampled_from([0, 0, 9]),
        lease=st.sampled_from([None, "8min", "20min"]),
        guaranteed=st.sampled_from([0, 2]),
        headroom=st.sampled_from([0, 0, 1]),
        borrow_after=st.sampled_from(["0s", "2min"]),
        watched=st.booleans(),
        parts=st.booleans(),
    )
    def begin(
        self,
        size: int,
        step: int,
        hold: int,
        lease: str | None,
        guaranteed: int,
        headroom: int,
        borrow_after: str,
        watched: bool,
        parts: bool,
    ) -> None:
        self.book = book_of(
            size,
            step=step,
            minimum_hold=f"{hold}min",
            lease=lease,
            wish="3min",
            partial_returns=parts,
            sites=({"name": "a"}, {"name": "b", "guaranteed": guaranteed}),
        )
        self.watched, self.hold, self.jobs, self.step = watched, hold, 0, step
        self.wrong: set[str] = set()
        pool = pool_of(
            owned=2,
            max_borrow=8,
            step=step,
            headroom=headroom,
            borrow_after=borrow_after,
            idle_return_after=f"{IDLE}min",
            settle_time="2min",
            observer="server" if watched else None,
        )
        self.sites = {name: LicenceSite(pool, Lender(self.book, name)) for name in ("a", "b")}
        for site in self.sites.values():
            # What was lent can end by force, and an ask may be answered after it was given up.
            site.over_is_right = lease is not None

    def teardown(self) -> None:
        if not hasattr(self, "sites"):
            return
        try:
            self._all_goes_back()
            for site in self.sites.values():
                report = verify(site.log)
                assert report.passed, report
        finally:
            for site in self.sites.values():
                site.close()
            self.book.close()

    @rule(name=SITES, amount=st.integers(0, 9), run=st.integers(1, 30), late=st.integers(0, 2),
          linger=st.integers(0, 5))  # fmt: skip
    def submit(self, name: str, amount: int, run: int, late: int, linger: int) -> None:
        self.jobs += 1
        job = Job(f"j{self.jobs}", amount, run=run, late=min(late, run), linger=linger)
        self.sites[name].submit(job)

    @rule(minutes=st.integers(1, 8))
    def time_passes(self, minutes: int) -> None:
        self._pass(minutes)

    @rule(name=SITES, outside=st.integers(0, 3))
    def others_use_some(self, name: str, outside: int) -> None:
        self.sites[name].batch.outside = outside

    @rule(name=SITES, quality=st.sampled_from(Quality))
    def the_observer_sees_otherwise(self, name: str, quality: Quality) -> None:
        if self.watched:
            self.sites[name].look = quality

    @rule(name=SITES, call=CALLS, lost=st.booleans())
    def an_answer_is_lost(self, name: str, call: str, lost: bool) -> None:
        lender = self.sites[name].lender
        (lender.loses if lost else lender.fails).add(call)

    @rule(name=SITES, boundary=st.integers(1, 12))
    def the_provisioner_dies(self, name: str, boundary: int) -> None:
        self.sites[name].die(boundary)

    @rule(name=SITES, miscounts=st.sampled_from([-1, 1]))
    def a_listing_is_wrong_once(self, name: str, miscounts: int) -> None:
        """Once in a history: two that say the same are believed."""
        if name not in self.wrong:
            self.wrong.add(name)
            self.sites[name].lender.miscounts_once = miscounts

    @rule(name=SITES)
    def the_daemons_start_again(self, name: str) -> None:
        self.sites[name].restart()

    @rule(name=SITES, owned=st.integers(0, 4))
    def owned_changes(self, name: str, owned: int) -> None:
        site = self.sites[name]
        site.over_is_right = True
        site.do(Role.ADMIN, SetOwned("lic", owned))

    # ------------------------------------------------------------------- checks
    def _pass(self, minutes: int) -> None:
        for _ in range(minutes):
            for site in self.sites.values():
                before = site.live.feed.position
                site.tick()
                self._check(site, before)
            self._check_pool()

    def _check(self, site: LicenceSite, before: int) -> None:
        """No return began that left less than was in use, booked or seen."""
        for recorded in site.log.read(before):
            event = recorded.event
            if isinstance(event, ElasticResource.GivenBack):
                booked = sum(job.amount for job in site.batch.running.values())
                seen = 0
                if site.look is Quality.OK:
                    seen = site.batch.in_use(site.clock.now())
                assert event.occupied >= max(booked, seen)
                assert site.entry.total >= event.occupied or site.over_is_right

    def _check_pool(self) -> None:
        """Nothing is lent that there is not, and nothing that nobody knows of."""
        held = self.book.standing("lic", self.sites["a"].clock.now())
        assert sum(held.held.values()) <= held.resource.size
        for name, site in self.sites.items():
            entry = site.entry
            known = entry.borrowed + entry.returning + entry.in_flight
            open_asks = [one for one in site.inventory.requests if not one.settled]
            assert held.has(name) <= known or open_asks

    def _all_goes_back(self) -> None:
        """After the load nothing is borrowed within the larger of hold and idle time, and what a lost answer costs."""
        for site in self.sites.values():
            site.batch.waiting.clear()
            site.batch.running.clear()
            site.batch.lingering.clear()
            site.batch.outside = 0
            site.look = Quality.OK if self.watched else None
            site.lender.loses.clear()
            site.lender.fails.clear()
            site.do(Role.ADMIN, SetOwned("lic", 2))
        self._pass(max(self.hold, IDLE) + 12)
        for name, site in self.sites.items():
            assert (site.entry.borrowed, site.entry.returning) == (0, 0)
            assert self.book.standing("lic", site.clock.now()).has(name) == 0
            assert [grant for grant in site.inventory.grants if grant.state != "lost"] == []
            lost = [e for e in site.events() if isinstance(e, Grant.Lost)]
            assert all("term has ended" in one.why for one in lost)


TestHistories = Histories.TestCase
TestHistories.settings = hypothesis_settings(
    max_examples=HISTORIES,
    stateful_step_count=15,
    suppress_health_check=[HealthCheck.too_slow],
)

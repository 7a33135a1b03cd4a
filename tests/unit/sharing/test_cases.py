"""The cases of the rules of sharing, by number; those about texts and mapping are in ``tests/unit/observers``."""

from datetime import timedelta

import pytest

from tests.unit.sharing.site import Job, KilledError, Site, at, lender, settings
from xce.domain.errors import RejectedError
from xce.domain.formats.observation import Observation, Quality, Scope
from xce.domain.sharing.lending import Lent, amount_to_ask, choose, unused
from xce.domain.sharing.meter import Meter, Totals
from xce.domain.sharing.observed import Sight

OK = Quality.OK
WATCHED = {"observer": "server", "settle_time": timedelta(minutes=5)}


def watched(**values: object) -> Site:
    return Site(settings(**{**WATCHED, **values}), lender())


def borrowed(site: Site) -> int:
    return site.resource.borrowed


def busy(amount: int = 20, run: float = 30, **values: object) -> Site:
    """A site that has borrowed for one large job."""
    site = Site(settings(**values), lender())
    site.submit(Job("big", amount, run=run))
    site.cycle()
    site.wait(1)
    assert borrowed(site) == amount - 10
    return site


def test_01_a_late_checkout_is_counted_once_before_and_after() -> None:
    site = watched(max_borrow=0, provider=None)
    site.observe()
    site.submit(Job("j", 6, late=200 / 60), Job("k", 6))
    site.cycle()
    assert set(site.running) == {"j"}
    site.wait(4, look=OK)
    assert site.reading.booked == 6
    assert site.reading.occupied >= 6
    site.wait(3, look=OK)
    assert (site.reading.occupied, site.reading.free, site.reading.drift) == (6, 4, 0)


def test_02_a_denied_job_leaves_nothing_free_until_the_next_observation() -> None:
    site = watched()
    site.observe()
    site.submit(Job("j", 4, late=5))
    site.cycle()
    site.outside = 10
    site.meter.deny(site.now)
    site.end("j")
    assert site.reading.free == 0
    site.now += timedelta(minutes=1)
    site.outside = 3
    site.observe()
    assert site.reading.free == 7


def test_03_what_lingers_at_the_server_keeps_licences() -> None:
    site = watched(idle_return_after=timedelta(minutes=1))
    site.observe()
    site.submit(Job("j", 20, run=30, linger=10))
    site.cycle()
    site.wait(39, look=OK)
    assert borrowed(site) == 10
    assert not site.running
    site.wait(5, look=OK)
    assert borrowed(site) == 0


def test_04_nothing_goes_back_on_an_old_observation() -> None:
    site = watched()
    site.observe()
    site.submit(Job("j", 20, run=10))
    site.cycle()
    site.wait(11, look=OK)
    site.wait(90)
    assert (borrowed(site), site.reading.sight) == (10, Sight.STALE)
    site.wait(1, look=OK)
    assert borrowed(site) == 0


@pytest.mark.parametrize(("when_blind", "left"), [(False, 10), (True, 0)])
def test_05_what_was_never_observed_goes_back_only_if_the_site_wants_it(
    when_blind: bool, left: int
) -> None:
    site = watched(return_when_blind=when_blind)
    site.submit(Job("j", 20, run=10))
    site.cycle()
    site.wait(90, look=Quality.UNREACHABLE)
    assert (borrowed(site), site.reading.sight) == (left, Sight.NEVER)


def test_06_a_dead_daemon_leaves_total_and_last_numbers_as_they_were() -> None:
    site = watched()
    site.observe(issued=10)
    site.observe(Quality.UNREACHABLE, observed_at=at(1), received_at=at(1))
    site.now = at(2)
    assert (site.reading.total, site.reading.limit, site.reading.observed) == (10, 10, 0)
    sights = [site.reading.sight]
    site.now = at(10)
    assert [*sights, site.reading.sight] == [Sight.FRESH, Sight.STALE]


def test_07_one_sample_of_0_after_a_server_restart_returns_nothing() -> None:
    site = watched()
    site.observe()
    site.submit(Job("j", 20, run=300))
    site.cycle()
    site.wait(60, look=OK)
    site.now += timedelta(minutes=1)
    site.observe(in_use=0)
    site.cycle()
    assert borrowed(site) == 10
    assert site.reading.occupied == 20


def test_08_an_older_observation_or_the_same_again_changes_nothing() -> None:
    def seen(number: int, minute: int, sequence: int = 0) -> Observation:
        return Observation(
            resource="lic", source="o", sequence=sequence, quality=OK, in_use=number,
            observed_at=at(minute), received_at=at(minute),
        )  # fmt: skip

    meter = Meter(settings(**WATCHED))
    assert meter.observe(seen(7, 5, 3))
    before = meter.read(Totals(10), at(6))
    assert not meter.observe(seen(1, 4, 2))
    assert not meter.observe(seen(7, 5, 3))
    assert not meter.observe(seen(1, 6, 2))
    assert meter.read(Totals(10), at(6)) == before
    assert meter.observe(seen(2, 6, 4))


def test_09_more_seen_than_there_is_shows_as_over_and_nothing_is_negative() -> None:
    site = watched()
    site.outside = 15
    site.observe()
    reading = site.reading
    assert (reading.over, reading.free, reading.unbooked) == (5, 0, 15)
    assert "over 5" in reading.notes


def test_10_a_booking_that_is_not_checked_out_stays_and_is_shown() -> None:
    site = watched()
    site.observe()
    site.submit(Job("j", 8, run=600, late=599))
    site.cycle()
    site.wait(120, look=OK)
    assert (site.reading.booked, site.reading.occupied) == (8, 8)
    assert "8 booked and not checked out" in site.reading.notes


def test_11_owned_below_what_is_booked_is_over_kills_nothing_and_may_be_borrowed() -> None:
    site = Site(settings(), lender())
    site.submit(Job("j", 8, run=600))
    site.cycle()
    site.resource.set_owned(owned=5, at=site.now, by="admin")
    assert (site.reading.over, site.reading.free) == (3, 0)
    assert "j" in site.running
    site.submit(Job("k", 1, run=600))
    site.wait(2)
    assert (borrowed(site), site.reading.over) == (4, 0)


def test_12_a_grant_too_small_for_any_job_stays_for_its_hold_and_causes_no_storm() -> None:
    book = lender(size=4, minimum_hold="20min", wish="20min")
    site = Site(settings(idle_return_after=timedelta(minutes=5)), book)
    site.submit(Job("j", 18, run=10))
    site.cycle()
    assert (borrowed(site), site.asked) == (4, [(0, 8)])
    site.submit(Job("small", 3))
    site.wait(5)
    assert "small" not in site.running  # the first job keeps its claim on what came
    site.wait(25)
    assert len(site.asked) <= 4
    site.waiting.clear()
    site.wait(10)
    assert borrowed(site) == 0


def test_13_a_denial_with_a_retry_time_is_honoured_across_a_restart() -> None:
    site = Site(settings(), lender(size=0, wish="20min"))
    site.submit(Job("j", 15))
    site.cycle()
    assert site.asked == [(0, 5)]
    site.crash()
    site.wait(9)
    assert len(site.asked) == 1
    site.wait(2)
    assert len(site.asked) == 2


def die(where: str, site: Site) -> None:
    def effect(here: str) -> None:
        if here == where:
            raise KilledError

    site.effects = effect


def test_14_an_ask_whose_answer_is_lost_is_not_asked_twice() -> None:
    site = Site(settings(), lender())
    site.submit(Job("j", 15))
    die("after ask", site)
    with pytest.raises(KilledError):
        site.cycle()
    site.crash()
    site.wait(1)
    assert (borrowed(site), len(site.asked)) == (5, 1)
    holdings = site.provider.holdings(site.now)
    assert holdings is not None
    assert [one.amount for one in holdings] == [5]


def test_15_a_grant_that_comes_after_all_is_taken_and_goes_back() -> None:
    site = Site(settings(), lender())
    site.cycle()
    site.granted("late", 5)
    assert site.reading.total == 15
    site.wait(29)
    assert borrowed(site) == 5
    site.wait(2)
    assert borrowed(site) == 0


def test_16_a_grant_and_a_confirmation_heard_twice_count_once() -> None:
    site = busy(run=10)
    (name,) = site.grants
    site.take(name, 10)
    assert site.reading.total == 20
    site.wait(45)
    assert borrowed(site) == 0
    (return_id,) = site.grants[name].returns
    site.grants[name].confirm_return(return_id=return_id, at=site.now, by="t", epoch=1)
    assert (site.grants[name].returned, site.reading.total) == (10, 10)


@pytest.mark.parametrize("where", ["before return", "after return"])
def test_17_a_return_goes_on_under_its_id_after_a_crash(where: str) -> None:
    site = busy(run=10)
    die(where, site)
    with pytest.raises(KilledError):
        site.wait(60)
    assert (borrowed(site), site.totals.returning) == (0, 10)
    site.crash()
    site.wait(1)
    assert site.totals.returning == 0
    assert site.provider.holdings(site.now) == ()
    assert len(site.gave) == 1


@pytest.mark.parametrize("skew", [timedelta(minutes=-1), timedelta(minutes=1)])
def test_18_a_refused_return_is_put_back_and_tried_later(skew: timedelta) -> None:
    site = Site(settings(idle_return_after=timedelta(minutes=1)), lender(minimum_hold="30min"))
    site.submit(Job("j", 20, run=10))
    site.cycle()
    grant = next(iter(site.grants.values()))
    assert grant.hold_until is not None
    grant.hold_until += skew - timedelta(seconds=90)  # by its lender's clock it is not over
    site.wait(28)
    if site.gave:
        assert site.reading.total == 20
    site.wait(5)
    assert borrowed(site) == 0


def test_19_a_booking_and_a_return_at_once_have_one_winner() -> None:
    site = busy(run=10)
    site.wait(15)
    (name,) = site.grants
    site.meter.book("late", 15, site.now)
    assert not site.start_return("B", name, 10)
    assert site.reading.total == 20
    site.meter.release("late", site.now)
    assert site.start_return("B", name, 10)
    assert not site.meter.fits(15, site.totals, site.now)


def test_19b_outside_use_and_a_fresh_booking_are_both_kept() -> None:
    site = watched(max_borrow=10)
    name = site.granted("g", 10)
    site.outside = 6
    site.observe()
    site.meter.book("j", 10, site.now)
    site.now += timedelta(minutes=1)
    site.observe(in_use=6)
    assert site.reading.occupied == 16
    assert not site.start_return("B1", name, 5)
    assert site.start_return("B2", name, 4)
    assert site.reading.total == 16


def test_20_amounts_are_in_steps() -> None:
    def ask(missing: int) -> int:
        return amount_to_ask(
            occupied=0, wanted=missing, headroom=0, total=0, open_asks=0, owed=0, max_borrow=12, step=5
        )  # fmt: skip

    assert [ask(number) for number in (0, 1, 5, 6, 11, 99)] == [0, 5, 5, 10, 10, 10]
    lent = Lent("g", "pool", 10, at(0), None, None, step=5, parts=True)
    assert choose([lent], 4, now=at(60))[0] == []
    assert choose([lent], 7, now=at(60))[0] == [(lent, 5)]


def test_21_the_dearest_then_the_oldest_and_whole_grants_only_if_they_fit() -> None:
    grants = [Lent(f"g{size}", "pool", size, at(0), None, None) for size in (10, 7)]
    assert [(lent.grant, part) for lent, part in choose(grants, 9, now=at(60))[0]] == [("g7", 7)]
    held = Lent("held", "pool", 5, at(0), at(90), None, parts=True)
    old = Lent("old", "pool", 5, at(0), None, None, parts=True)
    young = Lent("young", "pool", 5, at(50), None, None, parts=True)
    chosen, kept = choose(
        [held, young, old], 15, now=at(60), idle_return_after=timedelta(minutes=30)
    )
    assert [lent.grant for lent, _ in chosen] == ["old"]
    assert {each.grant for each in kept} == {"held", "young"}


@pytest.mark.parametrize(("period", "returns"), [(20, 0), (90, 4)])
def test_22_demand_that_flaps_faster_than_the_window_returns_nothing(
    period: int, returns: int
) -> None:
    site = Site(settings(), lender())
    for round_ in range(360 // period):
        site.submit(Job(f"j{round_}", 20, run=period / 2))
        site.cycle()
        site.wait(period)
    assert len(site.gave) == returns


def test_23_what_can_never_be_and_what_does_not_start_ask_for_nothing() -> None:
    site = Site(settings(), lender())
    site.submit(Job("huge", 21), Job("held", 15, startable=False))
    site.wait(5)
    assert (site.asked, site.impossible) == ([], {"huge"})


def test_24_of_two_resources_one_that_was_denied_leaves_no_partial_hold() -> None:
    granted = Site(settings(), lender())
    denied = Site(settings(), lender(size=0))
    wish = Job("j", 15, startable=False)  # it needs both, and only one is coming
    for site in (granted, denied):
        site.meter.note(15, site.totals, site.now)
        site.borrow(15)
    assert (borrowed(granted), borrowed(denied)) == (5, 0)
    granted.submit(wish)
    granted.wait(45)
    assert (borrowed(granted), granted.reading.booked) == (0, 0)


def test_25_a_grant_that_is_taken_by_force_is_over_and_drains() -> None:
    site = busy(run=30)
    (name,) = site.grants
    site.grants[name].lose(why="its lease ended", at=site.now, by="t", epoch=1)
    site.resource.lose_grant(grant_id=name, at=site.now, by="t")
    site.submit(Job("next", 1))
    site.now += timedelta(minutes=1)
    assert (site.reading.over, site.reading.free) == (10, 0)
    assert set(site.running) == {"big"}
    site.end("big")
    assert site.reading.over == 0


def test_26_of_a_recall_the_free_part_goes_and_the_rest_drains() -> None:
    site = busy(run=600)
    site.end("big")
    site.submit(Job("half", 15, run=30), Job("next", 4, run=600))
    site.cycle()
    site.recall = 10
    site.meter.recall(10)
    site.cycle()
    assert (borrowed(site), site.recall, set(site.running)) == (9, 9, {"half", "next"})
    site.submit(Job("more", 3, run=600))
    site.wait(28)
    assert "more" not in site.running
    site.wait(5)
    assert (borrowed(site), site.recall) == (0, 0)
    assert {"next", "more"} <= set(site.running)


def test_27_a_suspended_job_that_frees_its_booking_may_still_hold_its_licence() -> None:
    site = watched()
    site.observe()
    site.submit(Job("j", 6))
    site.cycle()
    site.wait(10, look=OK)
    site.meter.release("j", site.now)  # suspended, and its booking is freed
    assert (site.reading.booked, site.reading.occupied) == (0, 6)
    site.meter.book("j", 6, site.now)


def test_28_no_tokens_are_fine_and_a_release_of_nothing_is_an_error() -> None:
    meter = Meter(settings())
    for element in range(3):
        meter.book(f"array[{element}]", element, at(0))
    meter.release("array[0]", at(1))
    with pytest.raises(RejectedError):
        meter.release("array[0]", at(1))
    with pytest.raises(RejectedError):
        meter.book("array[1]", 1, at(1))
    assert meter.read(Totals(10), at(1)).booked == 3


def test_30_a_lower_bound_raises_what_is_occupied_and_frees_nothing() -> None:
    site = watched()
    site.outside = 6
    site.observe()
    site.now += timedelta(minutes=1)
    site.observe(Quality.PARTIAL, in_use=2)
    assert (site.reading.occupied, site.reading.sight) == (6, Sight.PARTIAL)
    site.now += timedelta(minutes=1)
    site.observe(Quality.PARTIAL, in_use=9)
    assert (site.reading.occupied, site.blocked(0)) == (9, "blind")


def test_32_without_a_provider_nothing_is_asked_and_what_is_lent_goes_back() -> None:
    site = busy(run=30)
    site.pool = settings(max_borrow=0)
    site.submit(Job("more", 12, run=5))
    site.wait(25)
    asked = len(site.asked)
    site.waiting.clear()
    site.wait(60)
    assert (len(site.asked), borrowed(site)) == (asked, 0)


def test_33_a_lower_max_borrow_asks_nothing_and_takes_nothing_early() -> None:
    site = busy(run=60)
    site.pool = settings(max_borrow=4)
    site.submit(Job("more", 3, run=60))
    site.wait(50)
    assert (borrowed(site), len(site.asked)) == (10, 1)
    site.wait(150)
    assert borrowed(site) == 0


def test_36_freshness_goes_by_our_clock_when_the_server_is_off_by_hours() -> None:
    meter = Meter(settings(**WATCHED))
    for hours in (-5, 5):
        meter = Meter(settings(**WATCHED))
        meter.observe(
            Observation(
                resource="lic", source="o", quality=OK, in_use=3,
                observed_at=at(60 * hours), received_at=at(0),
            )
        )  # fmt: skip
        reading = meter.read(Totals(10), at(1))
        assert (reading.sight, reading.age) == (Sight.FRESH, timedelta(minutes=1))
        assert "the observer's clock is off" in reading.notes


def test_f25_the_larger_use_counts_and_what_was_promised_is_taken_off() -> None:
    for seen, free in ((2, 1), (3, 0), (6, 0)):
        meter = Meter(settings(owned=4, max_borrow=0, provider=None, **WATCHED))
        meter.book("promised", 1, at(0))
        meter.observe(
            Observation(
                resource="lic", source="o", quality=OK, in_use=seen, issued=4,
                observed_at=at(0.1), received_at=at(0.1),
            )
        )  # fmt: skip
        reading = meter.read(Totals(4), at(0.1))
        assert reading.free == free
        assert reading.booked == 1


def test_the_part_of_a_pool_that_others_cannot_have_is_ours() -> None:
    pool = settings(observation_scope=Scope.POOL, pool_size=100, **WATCHED)
    meter = Meter(pool)
    meter.observe(
        Observation(
            resource="lic", source="o", quality=OK, in_use=85, observed_at=at(0), received_at=at(0)
        )
    )
    assert meter.read(Totals(10, 10), at(1)).observed == 5
    assert meter.read(Totals(10, 5, 5), at(1)).observed == 5


def test_headroom_is_kept_free_and_borrowed_for() -> None:
    ask = amount_to_ask(
        occupied=8, wanted=0, headroom=4, total=10, open_asks=0, owed=0, max_borrow=10, step=1
    )
    assert ask == 2
    assert unused(owned=10, borrowed=6, peak=12) == 4


def test_demand_has_to_last_before_anything_is_borrowed() -> None:
    site = Site(settings(borrow_after=timedelta(minutes=5)), lender())
    site.submit(Job("j", 15))
    site.wait(4)
    assert site.asked == []
    site.wait(3)
    assert site.asked == [(6, 5)]


def test_a_server_that_issues_less_bounds_what_is_booked_and_owns_nothing() -> None:
    site = watched()
    site.observe(issued=8)
    assert (site.reading.limit, site.reading.total, site.reading.free) == (8, 10, 8)
    assert site.reading.used_elsewhere == 2


def test_drift_is_reported_once_it_has_lasted() -> None:
    site = watched(drift_alert=3, drift_alert_after=timedelta(minutes=10))
    site.outside = 4
    alerts: list[int | None] = []
    for _ in range(13):
        site.now += timedelta(minutes=1)
        site.observe()
        alerts.append(site.meter.drift_alert(site.totals, site.now))
    assert alerts == [None] * 10 + [4] * 3

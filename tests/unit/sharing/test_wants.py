"""What a policy round is told of a resource is the same from a meter and over the controller's interface."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sharing.site import at, settings
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.rest import SharedEntry
from xce.domain.formats.shared_report import SharedReport
from xce.domain.sharing.meter import Meter, Totals
from xce.domain.sharing.wants import pool_of, report_of, terms_of, terms_of_entry


@given(
    borrowed=st.integers(0, 8),
    booked=st.integers(0, 20),
    seen=st.none() | st.integers(0, 20),
    wanted=st.integers(0, 12),
    in_flight=st.integers(0, 4),
    headroom=st.integers(0, 3),
)
def test_a_provisioner_is_told_what_a_simulation_is_told(
    borrowed: int, booked: int, seen: int | None, wanted: int, in_flight: int, headroom: int
) -> None:
    pool = settings(observer="server", headroom=headroom, borrow_after=timedelta(minutes=2))
    meter, totals = Meter(pool), Totals(pool.owned, borrowed)
    meter.book("j", booked, at(0))
    if seen is not None:
        meter.observe(
            Observation(
                resource="lic", source="server", quality=Quality.OK, in_use=seen,
                observed_at=at(6), received_at=at(6),
            )
        )  # fmt: skip
    meter.note(wanted, totals, at(7))
    reading, report = meter.read(totals, at(7)), report_of(meter, totals, at(7), wanted)
    entry = SharedEntry(
        name="lic", total=totals.total, owned=pool.owned, borrowed=borrowed, in_flight=in_flight, returning=0,
        occupied=reading.occupied, report=SharedReport.from_json(report.to_json()), headroom=0, provider=pool.provider,
        max_borrow=pool.max_borrow, step=pool.step, idle_return_after=pool.idle_return_after, min_hold=pool.min_hold,
    )  # fmt: skip
    simulated = terms_of(
        pool, total=totals.total, in_flight=in_flight, occupied=reading.occupied, report=report
    )
    assert terms_of_entry(entry, pool) == simulated
    assert simulated.spare == totals.total + in_flight - reading.occupied - wanted
    assert (simulated.wanted_since is None) is (wanted == 0)
    assert simulated.blind is (seen is None)


def test_where_the_configuration_names_no_such_resource_the_log_alone_counts() -> None:
    entry = SharedEntry(
        name="lic", total=3, owned=1, borrowed=2, in_flight=0, returning=0, occupied=None, headroom=0, provider="p",
        max_borrow=4, step=2, idle_return_after=timedelta(minutes=3), min_hold=timedelta(0),
    )  # fmt: skip
    terms = terms_of_entry(entry, None)
    assert (terms.spare, terms.over, terms.wanted_since, terms.headroom) == (None, 0, None, 0)
    assert (terms.step, terms.max_borrow) == (2, 4)
    configured = pool_of(entry, settings(step=5, headroom=1))
    assert (configured.step, configured.headroom) == (2, 1), "what the log has is what is checked"

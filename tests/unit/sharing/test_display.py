"""The lines that people see of elastic resources, as the rules show them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from xce.domain.formats.config import SharedPool
from xce.domain.formats.inventory import GrantEntry, RequestEntry
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import Observations, SharedEntry
from xce.domain.formats.shared_report import SharedReport
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.request import RequestState
from xce.domain.sharing.display import SharedRow, shared_rows, why_it_stays
from xce.domain.sharing.drift import drift_alert

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def entry(**values: Any) -> SharedEntry:
    return SharedEntry.model_validate(
        {
            "name": "wavesim", "total": 30, "owned": 20, "borrowed": 10, "in_flight": 0, "returning": 0,
            "occupied": 24, "headroom": 10, "provider": "pool", "max_borrow": 20, "step": 5,
            "idle_return_after": timedelta(minutes=30), "min_hold": timedelta(0), **values,
        }
    )  # fmt: skip


def row(shared: SharedEntry, observed: int | None, age_s: float, booked: int | None) -> SharedRow:
    pool = SharedPool(name=shared.name, owned=20, provider="pool", observer="server")
    at = NOW - timedelta(seconds=age_s)
    looks = (
        ()
        if observed is None
        else (
            Observation(
                resource=shared.name, source="server", quality=Quality.OK, in_use=observed,
                observed_at=at, received_at=at,
            ),
        )
    )  # fmt: skip
    known = None if booked is None else {shared.name: booked}
    (made,) = shared_rows(
        [shared], Observations(observations=looks, pools=(pool,)), NOW, booked=known
    )
    return made


def test_a_resource_in_use_shows_what_is_booked_and_seen_once() -> None:
    made = row(entry(in_flight=5), 24, 18, 22)
    assert made.cells() == (
        "wavesim", "30", "20", "10 (+5 asked)", "24", "22", "24 (18 s)", "2", "6", "",
    )  # fmt: skip


def test_an_old_observation_says_so() -> None:
    made = row(entry(name="drc", total=40, owned=40, borrowed=0, occupied=31), 29, 540, 31)
    assert made.cells() == (
        "drc", "40", "40", "0", "31", "31", "29 (9 min, stale)", "-", "9",
        "observation stale; 2 booked and not checked out",
    )  # fmt: skip


def test_without_an_observer_there_are_dashes_and_not_zeros() -> None:
    (made,) = shared_rows([entry(occupied=None)], Observations(observations=(), pools=()), NOW)
    assert made.cells()[4:] == ("-", "-", "-", "-", "-", "use unknown")
    assert (made.in_use, made.observed, made.free) == (None, None, None)


def test_more_than_there_is_shows_as_over_with_nothing_free() -> None:
    made = row(entry(occupied=22), 33, 5, 22)
    assert (made.free, made.over) == (0, 3)
    assert made.notes == ("over 3",)


def grant(**values: Any) -> GrantEntry:
    return GrantEntry.model_validate(
        {
            "id": "g", "provider": "pool", "resource": "wavesim", "amount": 10,
            "state": GrantState.ACTIVE, "granted_at": NOW - timedelta(hours=1), **values,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lent", "shared", "seen", "why"),
    [
        (grant(), entry(), 24, None),
        (grant(state=GrantState.RETURNING), entry(), 24, "it is returning"),
        (grant(hold_until=NOW + timedelta(minutes=5)), entry(), 24, "held until 2026-03-01 10:05:00 UTC"),
        (grant(), entry(min_hold=timedelta(hours=2)), 24, "held until 2026-03-01 11:00:00 UTC"),
        (grant(), entry(), None, "what is really in use is not seen now"),
        (grant(), entry(), 30, "all of it is in use"),
        (grant(), entry(), 31, "1 more are occupied than there are"),
        (
            grant(granted_at=NOW - timedelta(minutes=10)),
            entry(),
            24,
            "not old enough to be idle before 2026-03-01 10:20:00 UTC",
        ),
    ],
)  # fmt: skip
def test_why_a_grant_stays(
    lent: GrantEntry, shared: SharedEntry, seen: int | None, why: str | None
) -> None:
    assert why_it_stays(lent, row(shared, seen, 5, 22), shared, (), NOW) == why


def test_an_open_request_keeps_every_grant() -> None:
    ask = RequestEntry(
        id="R1", provider="pool", kind=Kind.COUNTABLE, resource="wavesim", amount=5,
        state=RequestState.ACCEPTED, asked_at=NOW,
    )  # fmt: skip
    why = why_it_stays(grant(), row(entry(), 24, 5, 22), entry(), (ask,), NOW)
    assert why == "request R1 for it is open"


@pytest.mark.parametrize(
    ("drift", "minutes", "note"),
    [
        (3, 20, "ALERT: 3 in use and not booked since 2026-03-01 09:40:00 UTC"),
        (-4, 15, "ALERT: 4 booked and not checked out since 2026-03-01 09:45:00 UTC"),
        (3, 14, None),
        (None, 20, None),
    ],
)
def test_a_drift_that_has_lasted_is_an_alert(
    drift: int | None, minutes: int, note: str | None
) -> None:
    pool = SharedPool(name="wavesim", owned=20, observer="server", drift_alert=3)
    since = NOW - timedelta(minutes=minutes)
    report = SharedReport(drift=drift, drift_since=since)
    shown = entry(report=report)
    (made,) = shared_rows([shown], Observations(observations=(), pools=(pool,)), NOW)
    assert [one for one in made.notes if "ALERT" in one] == ([] if note is None else [note])
    assert drift_alert(report, pool, NOW) == (None if note is None else drift)


def test_without_a_report_or_settings_there_is_no_drift_alert() -> None:
    pool = SharedPool(name="wavesim", owned=20)
    assert drift_alert(None, pool, NOW) is None
    assert drift_alert(SharedReport(drift=9, drift_since=NOW), None, NOW) is None
    assert drift_alert(SharedReport(drift=9), pool, NOW) is None


def test_a_recall_is_named_and_free_grants_are_said_to_go() -> None:
    observed = Observations(observations=(), pools=())
    (made,) = shared_rows([entry()], observed, NOW, booked={"wavesim": 22}, recalled={"wavesim": 5})
    assert "5 recalled" in made.notes
    young = grant(granted_at=NOW - timedelta(minutes=1))
    assert why_it_stays(young, made, entry(), (), NOW) is None

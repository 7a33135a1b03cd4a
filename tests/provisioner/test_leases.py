"""Leases as one process sees them: given what the desk says, then what may be acted on, and until when."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from xce.adapters.provisioner.leases import LeaseKeeper, Leases
from xce.domain.errors import LeaseHeldError, RejectedError, TransientError
from xce.domain.formats.rest import LeaseEntry
from xce.domain.provisioning.lease import LeaseState

TERM = timedelta(seconds=30)


class Desk:
    """Fulfils ``LeaseDesk`` from a script."""

    def __init__(self) -> None:
        self.now = 0.0
        self.takes_s = 0.0
        self.taken: list[str] = []
        self.renewed: list[Mapping[str, int]] = []
        self.released: list[str] = []
        self.refused: set[str] = set()
        self.away = False
        self.known: dict[str, LeaseEntry] = {}

    def elapsed_s(self) -> float:
        return self.now

    def leases(self) -> Mapping[str, LeaseEntry]:
        self._reach()
        return self.known

    def take(self, provider: str, holder: str, term: timedelta) -> int:
        self._reach()
        if provider in self.refused:
            raise LeaseHeldError("somebody else holds it")
        self.taken.append(provider)
        return self.taken.count(provider)

    def renew(self, epochs: Mapping[str, int], holder: str) -> None:
        self._reach()
        self.now += self.takes_s
        if self.refused & epochs.keys():
            raise RejectedError("held by another")
        self.renewed.append(epochs)

    def release(self, provider: str, holder: str) -> None:
        self._reach()
        self.released.append(provider)

    def _reach(self) -> None:
        if self.away:
            raise TransientError("away")


def keeper(desk: Desk, *providers: str) -> tuple[LeaseKeeper, Leases]:
    leases = Leases(desk.elapsed_s)
    made = LeaseKeeper(desk, leases, providers, holder="p1", term=TERM, elapsed_s=desk.elapsed_s)
    return made, leases


def entry(provider: str, holder: str, left_s: float | None) -> LeaseEntry:
    return LeaseEntry(
        provider=provider,
        holder=holder,
        epoch=7,
        state=LeaseState.HELD,
        term=TERM,
        since=datetime(2026, 3, 1, tzinfo=UTC),
        left_s=left_s,
    )


def test_a_lease_ends_one_term_after_its_last_good_renewal_was_sent() -> None:
    desk = Desk()
    made, leases = keeper(desk, "a")
    made.step()
    desk.now, desk.takes_s = 10.0, 8.0
    made.step()
    assert desk.now == 18.0

    desk.now = 39.9
    assert leases.epoch("a") == 1
    desk.now = 40.0
    assert leases.epoch("a") is None


def test_while_the_controller_is_away_a_lease_lasts_until_its_term_ends_and_is_then_taken_anew() -> (
    None
):
    desk = Desk()
    made, leases = keeper(desk, "a")
    made.step()
    desk.away, desk.now = True, 20.0
    made.step()
    assert leases.epoch("a") == 1
    desk.now = 31.0
    made.step()
    assert leases.epoch("a") is None

    desk.away = False
    made.step()

    assert leases.epoch("a") == 2


def test_one_lease_that_is_lost_costs_no_other_one() -> None:
    desk = Desk()
    made, leases = keeper(desk, "a", "b", "c")
    made.step()
    desk.refused, desk.now = {"b"}, 10.0

    made.step()

    assert leases.mine() == {"a": 1, "c": 1}
    desk.now = 39.0
    assert leases.mine() == {"a": 1, "c": 1}, "they were renewed at 10 s"


def test_what_another_one_holds_is_not_asked_for_until_its_term_is_over() -> None:
    desk = Desk()
    desk.known = {
        "a": entry("a", "p2", 12.0),
        "b": entry("b", "p1", 12.0),
        "c": entry("c", "p2", 0.0),
    }
    made, leases = keeper(desk, "a", "b", "c")

    made.step()

    assert desk.taken == ["b", "c"], "one's own from an earlier life, and one that is over"
    assert leases.epoch("a") is None


def test_many_leases_are_renewed_in_few_orders() -> None:
    desk = Desk()
    made, _ = keeper(desk, *(f"p{n}" for n in range(120)))
    made.step()

    made.step()

    assert [len(one) for one in desk.renewed] == [50, 50, 20]


def test_at_the_end_all_that_is_held_is_given_up_even_if_one_cannot_be() -> None:
    desk = Desk()
    made, leases = keeper(desk, "a", "b")
    made.step()
    desk.away = True
    made.release()

    assert leases.mine() == {}
    assert desk.released == []


# -------------------------------------------------------------- orders in doubt
def test_after_an_order_without_an_answer_the_lease_is_taken_anew_not_renewed() -> None:
    desk = Desk()
    made, leases = keeper(desk, "a", "b")
    made.step()

    leases.doubt("a", 1)
    assert leases.in_doubt() == {"a"}
    made.step()

    assert leases.mine() == {"a": 2, "b": 1}
    assert not leases.in_doubt()
    assert desk.renewed == [{"b": 1}]


def test_a_lease_in_doubt_is_looked_after_soon_and_the_one_who_does_is_told() -> None:
    desk = Desk()
    told: list[bool] = []
    leases = Leases(desk.elapsed_s, lambda: told.append(True))
    made = LeaseKeeper(desk, leases, ["a"], holder="p1", term=TERM, elapsed_s=desk.elapsed_s)
    made.step()
    assert made.period_s == 10.0

    leases.doubt("a", 1)

    assert told == [True]
    assert made.period_s == 5.0


def test_a_lease_is_in_doubt_until_it_is_known_who_has_it() -> None:
    desk = Desk()
    made, leases = keeper(desk, "a")
    made.step()
    leases.doubt("a", 1)
    desk.away, desk.now = True, 40.0
    made.step()
    assert leases.epoch("a") is None, "its term is over"
    assert leases.in_doubt() == {"a"}, "and what was sent may still arrive"

    desk.away = False
    desk.refused = {"a"}
    made.step()

    assert not leases.in_doubt(), "somebody else has it: under another epoch"


def test_an_order_of_an_earlier_epoch_puts_nothing_in_doubt() -> None:
    desk = Desk()
    made, leases = keeper(desk, "a")
    made.step()
    leases.holds("a", 2, 30.0)

    leases.doubt("a", 1)

    assert not leases.in_doubt()

"""Two sites on one pool, in any order of calls: nothing is lent twice, nothing below what is guaranteed, every id once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.providers.pool.rules import Loan
from xce.domain.formats.licence_pool import LicencePool, PooledResource, PoolPolicy, PoolSite
from xce.domain.ports import Refused

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
SITES = st.sampled_from(["a", "b", "c"])
TAGS = st.integers(1, 12)


class AnyOrderOfCalls(RuleBasedStateMachine):
    """A model knows only the sums; the book has to agree with them."""

    @initialize(
        size=st.integers(6, 40),
        step=st.sampled_from([1, 1, 2, 5]),
        hold=st.sampled_from([0, 10]),
        lease=st.sampled_from([None, 60]),
        parts=st.booleans(),
        policy=st.sampled_from(PoolPolicy),
        guaranteed=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    )
    def open(
        self,
        size: int,
        step: int,
        hold: int,
        lease: int | None,
        parts: bool,
        policy: PoolPolicy,
        guaranteed: tuple[int, int],
    ) -> None:
        self.now = START
        self.book = PoolBook(":memory:")
        self.terms = PooledResource(
            name="lic",
            size=size,
            step=step,
            minimum_hold=timedelta(minutes=hold),
            lease=None if lease is None else timedelta(minutes=lease),
            partial_returns=parts,
            policy=policy,
            sites=(
                PoolSite(name="a", guaranteed=guaranteed[0], cap=max(guaranteed[0], size - 2)),
                PoolSite(name="b", guaranteed=guaranteed[1]),
                PoolSite(name="c"),
            ),
        )
        self.book.apply(LicencePool(resources=(self.terms,)))
        self.answers: dict[tuple[str, int], Loan | Refused] = {}
        self.backs: dict[tuple[str, int], object] = {}

    def teardown(self) -> None:
        self.book.close()

    @rule(minutes=st.integers(1, 30))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(site=SITES, tag=TAGS, amount=st.integers(1, 30), least=st.integers(0, 6))
    def ask(self, site: str, tag: int, amount: int, least: int) -> None:
        before = self.book.standing("lic", self.now)
        held = before.has(site)
        answer = self.book.lend(site, str(tag), "lic", amount, least, self.now)
        known = self.answers.setdefault((site, tag), answer)
        if known is not answer:
            assert _same(known, answer)
            assert self.book.standing("lic", self.now).has(site) == held
        elif isinstance(answer, Loan):
            assert max(1, least) <= answer.amount <= min(amount, before.free)
            assert answer.amount % self.terms.step == 0
            kept = sum(
                max(0, each.guaranteed - before.has(each.name))
                for each in self.terms.sites
                if each.name != site
            )
            assert answer.amount + kept <= before.free

    @precondition(lambda self: any(isinstance(a, Loan) for a in self.answers.values()))
    @rule(data=st.data(), return_id=st.integers(1, 20), amount=st.integers(1, 10))
    def give_back(self, data: st.DataObject, return_id: int, amount: int) -> None:
        loans = sorted(key for key, answer in self.answers.items() if isinstance(answer, Loan))
        site, tag = data.draw(st.sampled_from(loans))
        loan = self.answers[site, tag]
        assert isinstance(loan, Loan)
        before = self.book.standing("lic", self.now)
        (made,) = self.book.give_back(site, str(return_id), {loan.grant: amount}, self.now)[:1]
        after = self.book.standing("lic", self.now)
        known = self.backs.get((site, return_id))
        if known is not None:
            assert made == known
            assert after.held == before.held
            return
        self.backs[site, return_id] = made
        if made.refused is None:
            assert after.has(site) == before.has(site) - amount
            assert loan.hold_until is None or self.now >= loan.hold_until
        else:
            assert after.held == before.held

    @rule(outside=st.integers(0, 8), size=st.integers(6, 40))
    def change_the_world(self, outside: int, size: int) -> None:
        self.terms = self.terms.model_copy(update={"outside": outside, "size": size})
        self.book.apply(LicencePool(resources=(self.terms,)))

    @rule(site=SITES)
    def a_recall_never_asks_for_more_than_is_held_beyond_the_guaranteed_part(
        self, site: str
    ) -> None:
        standing = self.book.standing("lic", self.now)
        terms = self.terms.site(site)
        assert terms is not None
        assert 0 <= standing.recalled(site) <= max(0, standing.has(site) - terms.guaranteed)

    @invariant()
    def what_is_lent_is_what_the_moves_add_up_to(self) -> None:
        if not hasattr(self, "book"):
            return
        sums: dict[str, int] = {}
        last = 0
        standing = self.book.standing("lic", self.now)
        for move in self.book.moves():
            assert move.position == last + 1
            last = move.position
            sign = {"lent": 1, "back": -1, "ended": -1}.get(move.kind, 0)
            sums[move.site] = sums.get(move.site, 0) + sign * move.amount
            assert sums[move.site] >= 0
        assert {site: held for site, held in sums.items() if held} == dict(standing.held)
        for site in ("a", "b", "c"):
            assert standing.has(site) == sum(
                loan.left for loan in self.book.holdings(site, self.now)
            )


def _same(known: Loan | Refused, answer: Loan | Refused) -> bool:
    if isinstance(known, Loan) and isinstance(answer, Loan):
        return replace(known, returned=0) == replace(answer, returned=0)
    return known == answer


TestAnyOrderOfCalls = AnyOrderOfCalls.TestCase

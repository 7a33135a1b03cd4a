"""A resource and its grants under any sequence of commands, saved together: the numbers of both always agree."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.aggregates import AT, STAMP, Replay, attempt, fact
from xce.domain.errors import RejectedError
from xce.domain.events.base import Aggregate
from xce.domain.provisioning.grant import Grant, GrantState, ReturnState
from xce.domain.sharing.elastic_resource import ElasticResource

RETURNS = st.sampled_from(["X1", "X2", "X3"])
GRANTS = st.sampled_from(["G1", "G2"])
AMOUNTS = st.integers(0, 6)
HOLD = timedelta(minutes=30)


class AnyOrderOfCommands(RuleBasedStateMachine):
    """Duplicates, reorder, refusals and losses, on both sides at once as the engine does it."""

    @initialize(owned=st.integers(0, 3))
    def declare(self, owned: int) -> None:
        self.now = AT
        self.resource = ElasticResource.declare(
            resource="lic", owned=owned, provider="pool", max_borrow=8, step=1, **STAMP
        )
        self.grants: dict[str, Grant] = {}
        self.replays = {"lic": Replay()}

    @rule(minutes=st.integers(1, 40))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(name=GRANTS, amount=AMOUNTS)
    def borrow(self, name: str, amount: int) -> None:
        def command() -> None:
            self.resource.borrow(grant_id=name, amount=amount, **STAMP)
            if name not in self.grants:
                self.grants[name] = Grant.grant(
                    grant=name, request_id="R1", provider="pool", resource="lic", amount=amount,
                    hold_until=AT + HOLD, expires_at=None, price_per_hour=None, **fact(self.now),
                )  # fmt: skip
                self.replays[name] = Replay()

        attempt(self.resource, command, RejectedError)

    @rule(name=GRANTS, return_id=RETURNS, amount=AMOUNTS, occupied=st.integers(0, 8))
    def give_back(self, name: str, return_id: str, amount: int, occupied: int) -> None:
        grant = self.grants.get(name)
        if grant is None or self._is_taken(return_id, name):
            return
        before = self.resource.total

        def both() -> None:
            grant.start_return(return_id=return_id, amount=amount, **fact(self.now))
            self.resource.give_back(
                return_id=return_id, grant_id=name, amount=amount, occupied=occupied, **STAMP
            )

        if self._together(grant, both) and self.resource.total < before:
            assert self.resource.total >= occupied
            assert self.now >= AT + HOLD

    @rule(name=GRANTS, return_id=RETURNS)
    def confirm(self, name: str, return_id: str) -> None:
        grant = self.grants.get(name)
        if grant is not None:
            attempt(
                grant,
                lambda: grant.confirm_return(return_id=return_id, **fact(self.now)),
                RejectedError,
            )

    @rule(name=GRANTS, return_id=RETURNS)
    def refuse(self, name: str, return_id: str) -> None:
        grant = self.grants.get(name)
        if grant is not None:

            def both() -> None:
                grant.refuse_return(return_id=return_id, why="", **fact(self.now))
                self.resource.put_back(return_id=return_id, why="", **STAMP)

            self._together(grant, both)

    @rule(name=GRANTS)
    def lose(self, name: str) -> None:
        grant = self.grants.get(name)
        if grant is not None and grant.state in (GrantState.ACTIVE, GrantState.RETURNING):
            grant.lose(why="", **fact(self.now))
            self.resource.lose_grant(grant_id=name, **STAMP)

    @rule(owned=st.integers(0, 5))
    def set_owned(self, owned: int) -> None:
        self.resource.set_owned(owned=owned, **STAMP)

    @invariant()
    def replaying_gives_the_same_state(self) -> None:
        everything: dict[str, Aggregate[Any]] = {"lic": self.resource, **self.grants}
        for name, aggregate in everything.items():
            self.replays[name].take(aggregate)
            assert self.replays[name].rebuilt() == aggregate

    @invariant()
    def the_total_is_what_is_owned_and_what_the_grants_lend(self) -> None:
        assert self.resource.borrowed == sum(grant.active for grant in self.grants.values())
        assert self.resource.total == self.resource.owned + self.resource.borrowed
        assert self.resource.owned >= 0
        for name, grant in self.grants.items():
            assert self.resource.shares[name].amount == grant.active >= 0

    @invariant()
    def the_parts_of_a_grant_are_the_grant(self) -> None:
        for grant in self.grants.values():
            by_state = dict.fromkeys(ReturnState, 0)
            for part in grant.returns.values():
                by_state[part.state] += part.amount
            assert grant.returned == by_state[ReturnState.CONFIRMED]
            assert grant.returning == by_state[ReturnState.OPEN]
            assert grant.returned + grant.returning <= grant.amount

    def _is_taken(self, return_id: str, name: str) -> bool:
        """Whether the id stands for a return of another grant; ids come from one source, so that does not happen."""
        known = self.resource.returns.get(return_id)
        return known is not None and known.grant_id != name

    def _together(self, grant: Grant, command: Callable[[], None]) -> bool:
        """As one save: if either side refuses, neither has recorded anything."""
        replay = self.replays[grant.name]
        replay.take(grant)
        try:
            command()
        except RejectedError:
            rebuilt = replay.rebuilt()
            assert isinstance(rebuilt, Grant)
            self.grants[grant.name] = rebuilt
            return False
        return True


TestAnyOrderOfCommands = AnyOrderOfCommands.TestCase

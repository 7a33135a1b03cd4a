"""Request under any sequence of commands: it replays, counts add up, and nothing is counted twice."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.aggregates import AT, FACT, HOUR, Replay, attempt
from xce.domain.errors import RejectedError
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.request import CLOSED, OPEN, Request, RequestState


class AnyOrderOfCommands(RuleBasedStateMachine):
    """Throws commands at one request; refusals are fine, broken promises are not."""

    @initialize(amount=st.integers(1, 4), kind=st.sampled_from(Kind))
    def intend(self, amount: int, kind: Kind) -> None:
        self.request = Request.intend(
            request="R1", provider="aws", kind=kind, item="c4", amount=amount, price_per_hour=None,
            deadline=AT + HOUR, reason="", jobs=[], demand_position=0, hold=HOUR, **FACT,
        )  # fmt: skip
        self.replay = Replay()
        self.closed_as: RequestState | None = None

    @rule(name=st.sampled_from(["a", "b"]))
    def accept(self, name: str) -> None:
        attempt(
            self.request,
            lambda: self.request.accept(provider_request_id=name, **FACT),
            RejectedError,
        )

    @rule()
    def lose_track(self) -> None:
        attempt(self.request, lambda: self.request.lose_track(why="", **FACT), RejectedError)

    @rule(number=st.integers(0, 5), machine=st.integers(0, 5), failed=st.booleans())
    def one_host(self, number: int, machine: int, failed: bool) -> None:
        names = {"instance_id": f"I{number}", "machine": f"m{machine}"}

        def command() -> None:
            if failed:
                self.request.fail_machine(**names, why="", **FACT)
            else:
                self.request.grant_instance(**names, **FACT)

        attempt(self.request, command, RejectedError)

    @rule(number=st.integers(0, 5), amount=st.integers(0, 3))
    def some_units(self, number: int, amount: int) -> None:
        attempt(
            self.request,
            lambda: self.request.grant_amount(grant_id=f"G{number}", amount=amount, **FACT),
            RejectedError,
        )

    @rule(failed=st.integers(0, 5))
    def fall_short(self, failed: int) -> None:
        attempt(
            self.request,
            lambda: self.request.fall_short(failed=failed, why="", **FACT),
            RejectedError,
        )

    @rule(outcome=st.sampled_from(RequestState))
    def close(self, outcome: RequestState) -> None:
        if attempt(
            self.request,
            lambda: self.request.close(outcome=outcome, why="", **FACT),
            RejectedError,
        ):
            self.closed_as = outcome

    @invariant()
    def replaying_gives_the_same_request(self) -> None:
        self.replay.take(self.request)
        assert self.replay.rebuilt() == self.request

    @invariant()
    def what_is_closed_stays_closed(self) -> None:
        if self.closed_as is not None:
            assert self.request.state is self.closed_as
            assert self.request.state in CLOSED
        else:
            assert self.request.state in OPEN

    @invariant()
    def counts_add_up(self) -> None:
        request = self.request
        self.replay.take(request)
        hosts = [e for e in self.replay.events if isinstance(e, Request.InstanceGranted)]
        units = [e for e in self.replay.events if isinstance(e, Request.AmountGranted)]
        assert request.granted == len({e.machine for e in hosts}) + sum(e.amount for e in units)
        assert len({e.grant_id for e in units}) == len(units)
        assert not (hosts and units)
        open_amount = max(0, request.amount - request.granted - request.failed)
        assert request.open_amount == (open_amount if request.state in OPEN else 0)


TestAnyOrderOfCommands = AnyOrderOfCommands.TestCase

"""Instance under any sequence of commands: it replays, the gone stay gone, nothing goes back early or undrained."""

from collections.abc import Callable
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.aggregates import AT, HOUR, Replay, attempt, fact
from xce.domain.errors import RejectedError
from xce.domain.formats.provider import Billing
from xce.domain.provisioning.instance import GONE, Instance


class AnyOrderOfCommands(RuleBasedStateMachine):
    """Throws commands at one instance while time goes on."""

    @initialize(hold=st.sampled_from([None, HOUR / 2]))
    def grant(self, hold: timedelta | None) -> None:
        self.now = AT
        self.instance = Instance.grant(
            instance="I1", request_id="R1", provider="aws", template="c4", machine="i-1", name=None,
            price_per_hour=None, billing=Billing(), hold_until=None if hold is None else AT + hold, **fact(AT),
        )  # fmt: skip
        self.replay = Replay()

    @rule(minutes=st.integers(1, 40))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(host=st.sampled_from(["h1", "h2"]))
    def join(self, host: str) -> None:
        self._try(
            lambda: self.instance.join(
                host=host, booted_at=AT, attributes={}, total={"slots": 4}, **fact(self.now)
            )
        )

    @rule()
    def miss_join(self) -> None:
        self._try(lambda: self.instance.miss_join(why="", **fact(self.now)))

    @rule()
    def start_drain(self) -> None:
        self._try(lambda: self.instance.start_drain(why="", **fact(self.now)))

    @rule()
    def reopen(self) -> None:
        self._try(lambda: self.instance.reopen(why="", **fact(self.now)))

    @rule(number=st.integers(1, 3))
    def intend_return(self, number: int) -> None:
        self._try(
            lambda: self.instance.intend_return(return_id=f"X{number}", why="", **fact(self.now))
        )

    @rule(number=st.integers(1, 3), theirs=st.integers(1, 2))
    def accept_return(self, number: int, theirs: int) -> None:
        self._try(
            lambda: self.instance.accept_return(
                return_id=f"X{number}", provider_return_id=f"ret-{theirs}", **fact(self.now)
            )
        )

    @rule(number=st.integers(1, 3))
    def refuse_return(self, number: int) -> None:
        self._try(
            lambda: self.instance.refuse_return(return_id=f"X{number}", why="", **fact(self.now))
        )

    @rule()
    def confirm_return(self) -> None:
        self._try(lambda: self.instance.confirm_return(**fact(self.now)))

    @rule()
    def lose(self) -> None:
        self._try(lambda: self.instance.lose(why="", **fact(self.now)))

    @invariant()
    def replaying_gives_the_same_instance(self) -> None:
        self.replay.take(self.instance)
        assert self.replay.rebuilt() == self.instance

    @invariant()
    def what_is_gone_is_the_last_word(self) -> None:
        self.replay.take(self.instance)
        ends = [
            number
            for number, event in enumerate(self.replay.events)
            if isinstance(event, Instance.Returned | Instance.Lost)
        ]
        assert ends in ([], [len(self.replay.events) - 1])
        assert bool(ends) == (self.instance.state in GONE)

    @invariant()
    def a_return_starts_after_the_hold_and_never_from_a_host_that_takes_work(self) -> None:
        self.replay.take(self.instance)
        taking_work = False
        for event in self.replay.events:
            match event:
                case Instance.Joined() | Instance.Reopened():
                    taking_work = True
                case Instance.DrainStarted():
                    taking_work = False
                case Instance.ReturnIntended():
                    assert not taking_work
                    hold = self.instance.hold_until
                    assert hold is None or event.timestamp >= hold
                case _:
                    pass

    @invariant()
    def each_return_id_takes_effect_once(self) -> None:
        self.replay.take(self.instance)
        ids = [e.return_id for e in self.replay.events if isinstance(e, Instance.ReturnIntended)]
        assert len(set(ids)) == len(ids)

    def _try(self, command: Callable[[], None]) -> None:
        attempt(self.instance, command, RejectedError)


TestAnyOrderOfCommands = AnyOrderOfCommands.TestCase

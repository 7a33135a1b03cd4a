"""ProviderLease under any sequence of commands: epochs grow by one, and nobody acts under an old one."""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.aggregates import STAMP, Replay, attempt
from xce.domain.errors import RejectedError
from xce.domain.provisioning.lease import LeaseState, ProviderLease

TERM = timedelta(seconds=30)
EPOCHS = st.integers(1, 8)


class AnyOrderOfCommands(RuleBasedStateMachine):
    """Two provisioners fight for one lease."""

    @initialize()
    def grant(self) -> None:
        self.lease = ProviderLease.grant(provider="aws", holder="A", term=TERM, **STAMP)
        self.replay = Replay()

    @rule(holder=st.sampled_from("AB"), epoch=EPOCHS)
    def take_over(self, holder: str, epoch: int) -> None:
        before = self.lease.epoch
        if attempt(
            self.lease,
            lambda: self.lease.take_over(holder=holder, epoch=epoch, term=TERM, **STAMP),
            RejectedError,
        ):
            assert epoch in (before, before + 1)
            assert (self.lease.holder, self.lease.epoch) == (holder, epoch)

    @rule(holder=st.sampled_from("AB"), epoch=EPOCHS)
    def regrant(self, holder: str, epoch: int) -> None:
        attempt(
            self.lease,
            lambda: self.lease.regrant(holder=holder, epoch=epoch, term=TERM, **STAMP),
            RejectedError,
        )

    @rule(epoch=EPOCHS)
    def release(self, epoch: int) -> None:
        if attempt(self.lease, lambda: self.lease.release(epoch=epoch, **STAMP), RejectedError):
            assert epoch == self.lease.epoch

    @rule(epoch=EPOCHS)
    def lapse(self, epoch: int) -> None:
        if attempt(self.lease, lambda: self.lease.lapse(epoch=epoch, **STAMP), RejectedError):
            assert epoch == self.lease.epoch

    @rule()
    def the_holder_goes_on(self) -> None:
        """What the present holder may do is possible, so that the machine gets far."""
        if self.lease.state is LeaseState.HELD:
            self.lease.release(epoch=self.lease.epoch, **STAMP)
        else:
            self.lease.regrant(holder="B", epoch=self.lease.epoch + 1, term=TERM, **STAMP)

    @invariant()
    def replaying_gives_the_same_lease(self) -> None:
        self.replay.take(self.lease)
        assert self.replay.rebuilt() == self.lease

    @invariant()
    def epochs_grow_by_one(self) -> None:
        self.replay.take(self.lease)
        epochs = [
            event.epoch
            for event in self.replay.events
            if isinstance(
                event, ProviderLease.Granted | ProviderLease.TakenOver | ProviderLease.Regranted
            )
        ]
        assert epochs == list(range(1, len(epochs) + 1))
        assert self.lease.epoch == len(epochs)


TestAnyOrderOfCommands = AnyOrderOfCommands.TestCase

"""Orders of one provider: what is decided is made durable under the lease epoch, and its calls wait in a queue with that epoch."""

from collections.abc import Iterable

import structlog

from xce.adapters.provisioner.books import is_about_the_lease
from xce.adapters.provisioner.surroundings import Surroundings
from xce.adapters.provisioner.waiting import Waiting
from xce.domain.engine.calls import Step
from xce.domain.engine.commands import Command, RefuseRequest
from xce.domain.errors import RejectedError, TransientError

_LOG = structlog.get_logger("xce.provisioner")


class Orders:
    """Makes steps durable. Any thread may ``submit``."""

    def __init__(self, name: str, around: Surroundings) -> None:
        """Begin with an empty queue."""
        self.name = name
        self.calls = Waiting()
        #: When something was last written, or may have been, on the monotonic clock: a supply that is older does not show it.
        self.wrote_s = float("-inf")
        self._around = around

    @property
    def epoch(self) -> int | None:
        """The lease epoch under which we may act on the provider now; None: we may not."""
        return self._around.leases.epoch(self.name)

    def submit(self, steps: Iterable[Step], *, insist: bool = False) -> None:
        """Make steps durable, one by one, and put their calls into the queue, until one is not taken because we may not act any more.

        ``insist``: they are an answer that nobody else knows, and are tried again as long as we may act.
        """
        for step in steps:
            if not self._submit(step, insist=insist):
                return

    def _submit(self, step: Step, *, insist: bool) -> bool:
        """Do one step; return whether to go on with the next."""
        epoch = self.epoch
        if epoch is None:
            return False
        self.calls.announce(step.calls)
        try:
            done = not step.commands or self._recorded(step, epoch, insist=insist)
        except BaseException:
            self.calls.forget(step.calls)
            raise
        if not done:
            self.calls.forget(step.calls)
        else:
            self.calls.put(epoch, step.calls)
        return self.epoch is not None

    def _recorded(self, step: Step, epoch: int, *, insist: bool) -> bool:
        """Make the commands durable; return whether the calls may follow."""
        try:
            self._record(step.commands, epoch, insist=insist)
        except RejectedError as error:
            if is_about_the_lease(error):
                self._lose_lease(error)
                return False
            _LOG.info(
                "step refused",
                provider=self.name,
                command=type(step.commands[0]).__name__,
                why=str(error),
            )
            if step.otherwise:
                self._recorded(Step(step.otherwise), epoch, insist=insist)
            return False
        except TransientError as error:
            # Perhaps it is recorded all the same: a poll will find it, and look up what became of it.
            _LOG.warning("step not recorded", provider=self.name, error=str(error))
            return False
        return True

    def _record(self, commands: tuple[Command, ...], epoch: int, *, insist: bool) -> None:
        """Record; an answer is insisted on as long as we may act, since nobody else knows it."""
        while True:
            try:
                self._around.books.record(commands, {self.name: epoch})
                return
            except TransientError:
                if not insist or not self._around.pause(1.0):
                    raise
                if self.epoch != epoch:
                    raise
            finally:
                self.wrote_s = self._around.elapsed_s()

    def _lose_lease(self, error: RejectedError) -> None:
        _LOG.warning("lease lost", provider=self.name, error=str(error))
        self._around.leases.lost(self.name)

    def begin(self, before: int | None, epoch: int) -> None:
        """A lease epoch begins for us; what waits under an earlier one is not carried out.

        Where no one else can have held the lease in between, asks that waited were surely never made, and are ended.
        """
        waiting = self.calls.take_all()
        if before is not None and epoch == before + 1:
            self._end_unmade(tag for old, tag in waiting if old == before)

    def withdraw(self) -> None:
        """End the requests whose asks still wait: we stop, and know that they were never made."""
        now = self.epoch
        self._end_unmade(tag for epoch, tag in self.calls.take_all() if epoch == now)

    def _end_unmade(self, tags: Iterable[str]) -> None:
        why = "the provisioner stopped, or lost its lease, before it asked"
        for tag in tags:
            self.submit((Step((RefuseRequest(tag, why),)),))

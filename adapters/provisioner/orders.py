"""Orders of one provider: what is decided is made durable under the lease epoch, and its calls wait in a queue with that epoch."""

from collections.abc import Iterable

import structlog

from xce.adapters.provisioner.books import is_about_the_lease
from xce.adapters.provisioner.surroundings import Surroundings
from xce.adapters.provisioner.waiting import Waiting
from xce.domain.engine.calls import Step
from xce.domain.engine.commands import Command, RecordStatus, RefuseRequest, ReportOrphan
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
        self._came = 0
        self._recording = False
        self._deciding = False

    @property
    def epoch(self) -> int | None:
        """The lease epoch under which we may act on the provider now; None: we may not."""
        return self._around.leases.epoch(self.name)

    @property
    def in_doubt(self) -> bool:
        """Whether an order that was not answered may still be on its way."""
        return self.name in self._around.leases.in_doubt()

    @property
    def decides_under(self) -> int | None:
        """The epoch under which something may be decided on what is read from now on; None: nothing may.

        Nothing is while an order may still be on its way: it would come on top of what is decided without it.
        """
        return None if self.in_doubt else self.epoch

    @property
    def came(self) -> int | None:
        """How often it was recorded what came of requests, or that something is nobody's; None: it is being recorded, and what is read now
        may show it or not.

        More can come than was asked, or later than it was counted on; and what nobody owns takes room.
        """
        return None if self._recording else self._came

    def submit(self, steps: Iterable[Step], *, under: int | None, came: int | None = None) -> bool:
        """Make decisions durable, one by one, and put their calls into the queue, until one is not taken; return whether none was left.

        ``under``: ``decides_under`` as it was before that was read on which they were decided. Once another epoch has begun, somebody
        else may have acted in between, and what was decided without knowing that is dropped. ``came``: the same of ``came``; None: it
        does not matter.
        """
        if came is None:
            return self._submit_all(steps, under, came)
        # Raised before ``came`` is looked at, as ``_recording`` is before this: of two threads that meet at least one gives way.
        self._deciding = True
        try:
            return self._submit_all(steps, under, came)
        finally:
            self._deciding = False

    def _submit_all(self, steps: Iterable[Step], under: int | None, came: int | None) -> bool:
        for step in steps:
            if under is None or self.decides_under != under:
                return False
            if came is not None and self.came != came:
                return False
            self._submit(step, under, insist=False)
        return True

    def tell(self, steps: Iterable[Step], *, insist: bool = True) -> None:
        """Make an answer durable: it stays true under any epoch of ours.

        ``insist``: nobody else knows it, and it is tried again as long as we may act.
        """
        for step in steps:
            epoch = self.epoch
            if epoch is None:
                return
            self._submit(step, epoch, insist=insist)

    def _submit(self, step: Step, epoch: int, *, insist: bool) -> None:
        brings = any(map(_tells_of_more, step.commands))
        self._recording |= brings
        if brings and (self._deciding or self.in_doubt):
            # What was decided without it is on its way, or may be; the provider says it again when it is asked next.
            self._recording = False
            return
        self.calls.announce(step.calls)
        done: int | None = None
        try:
            done = self._recorded(step, epoch, insist=insist) if step.commands else epoch
        finally:
            if brings:  # only the provider's thread gets here
                self._came, self._recording = self._came + 1, False
            if done is None:
                self.calls.forget(step.calls)
            else:
                self.calls.put(done, step.calls)

    def _recorded(self, step: Step, epoch: int, *, insist: bool) -> int | None:
        """Make the commands durable; return the epoch under which the calls may follow; None: they may not."""
        try:
            return self._record(step.commands, epoch, insist=insist)
        except RejectedError as error:
            if is_about_the_lease(error):
                self._lose_lease(epoch, error)
                return None
            _LOG.info(
                "step refused",
                provider=self.name,
                command=type(step.commands[0]).__name__,
                why=str(error),
            )
            if step.otherwise:
                self._recorded(Step(step.otherwise), epoch, insist=insist)
        except TransientError as error:
            # Perhaps it is recorded all the same, or will be when it arrives. The next epoch keeps it out, or a poll finds it then, and
            # looks up what became of it.
            _LOG.warning("step not recorded", provider=self.name, error=str(error))
            self._around.leases.doubt(self.name, epoch)
        return None

    def _record(self, commands: tuple[Command, ...], epoch: int, *, insist: bool) -> int:
        """Record; return the epoch under which it was done. An answer is insisted on, under a new epoch of ours too."""
        while True:
            try:
                self._around.books.record(commands, {self.name: epoch})
                return epoch
            except (RejectedError, TransientError) as error:
                if isinstance(error, RejectedError) and not is_about_the_lease(error):
                    raise
                if not insist or not self._around.pause(1.0):
                    raise
                now = self.epoch
                was_refused = isinstance(error, RejectedError)
                if now is None or (was_refused and now == epoch and not self.in_doubt):
                    raise
                epoch = now
            finally:
                self.wrote_s = self._around.elapsed_s()

    def _lose_lease(self, epoch: int, error: RejectedError) -> None:
        if self.epoch != epoch or self.in_doubt:
            return  # it is ours again, or being taken anew
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
        """End the requests whose first asks still wait: we stop, and know that they were never made."""
        now = self.epoch
        self._end_unmade(tag for epoch, tag in self.calls.take_all() if epoch == now)

    def _end_unmade(self, tags: Iterable[str]) -> None:
        why = "the provisioner stopped, or lost its lease, before it asked"
        self.tell((Step((RefuseRequest(tag, why),)) for tag in tags), insist=False)


def _tells_of_more(command: Command) -> bool:
    """Return whether a command may say that more exists than was counted on; an ask that is reported was counted while it was open."""
    match command:
        case RecordStatus():
            return True
        case ReportOrphan():
            return command.theirs != command.tag
        case _:
            return False

"""The controller as a state machine: orders in; what to append, what to answer, out. No I/O, no clock, no ids, no threads.

Three phases for every change: ``perform`` validates an order against the current aggregates and says what its answer will be; the
driver appends what ``take`` returns, all or nothing; after that, and only then, ``appended`` lets it go, and the answers are given
and the events published. Orders of one batch see each other. When an append failed, ``forget`` throws the batch away: load again,
decide again.

A repeated order does nothing and gets the same answer. Most commands carry an id of their own (a request, an instance and a return
id, a provider's request id), and the aggregates recognise a repeat. Those that do not (``UNIDENTIFIED``: take a lease, drain,
pause...) are recognised by the caller's key: a receipt is saved in the same append, so that it survives a restart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from xce.domain.engine import alerting, drains, handling, orphans, site
from xce.domain.engine import commands as c
from xce.domain.engine import site_commands as s
from xce.domain.engine.authorisation import require_command
from xce.domain.engine.commands import Command, command_name
from xce.domain.engine.handling import Stamp
from xce.domain.engine.lease_terms import LeaseTerms
from xce.domain.engine.messages import CONTROLLER, Answer, Order, Role
from xce.domain.engine.refusal_notes import Attempt, RefusalNotes
from xce.domain.engine.wire import content_of
from xce.domain.engine.workspace import Change, Workspace
from xce.domain.errors import (
    ForbiddenError,
    KeyReusedError,
    LeaseHeldError,
    NotFoundError,
    RejectedError,
    StaleEpochError,
)
from xce.domain.events import ids
from xce.domain.formats.base import problems_of
from xce.domain.formats.shared_report import SharedReport
from xce.domain.ports import AggregateSource
from xce.domain.provisioning.lease import LeaseState, ProviderLease
from xce.domain.provisioning.receipt import Receipt
from xce.domain.provisioning.refusals import Refusals

__all__ = ["UNIDENTIFIED", "Change", "Controller"]

#: Commands that no id of their own protects from a repeat: under a key they get a receipt.
UNIDENTIFIED: Final[frozenset[type[Command]]] = frozenset(
    {
        c.DescribeProvider, c.PauseProvider, c.ResumeProvider, c.DeclareShared, c.SetOwned,
        c.TakeLease, c.ReleaseLease, c.LoseTrack, c.StartDrain, c.Reopen, c.ReportOrphan,
        s.DrainHost, s.OpenHost, s.Freeze, s.Unfreeze,
    }
)  # fmt: skip

#: Keyed answers without a receipt (nothing was recorded) that are remembered until the controller ends.
REMEMBERED_MAX: Final = 10_000

_Remembered = tuple[str, Answer | RejectedError]


@dataclass(slots=True)
class _Pending:
    """What the present batch changes in memory, and the batch's append makes true."""

    answers: dict[str, _Remembered] = field(default_factory=dict[str, _Remembered])
    occupied: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    reports: dict[str, SharedReport] = field(default_factory=dict[str, SharedReport])
    #: Of what time the newest report of bookings is, by the supply that it was made with; None: of none that said it.
    booked_as_of: datetime | None = None


class LateReportError(RejectedError):
    """What is reported is not so any more: a newer report has come, or another controller has become the primary."""

    code = "late-report"


class Controller:
    """Validates orders; keeps the aggregates that are not ended, the terms of leases and the bookings in memory."""

    def __init__(self, source: AggregateSource) -> None:
        self._space = Workspace(source)
        self._terms = LeaseTerms()
        self._notes = RefusalNotes()
        self._answers: dict[str, _Remembered] = {}
        self._pending = _Pending()
        self._occupied: dict[str, int | None] = {}
        self._reports: dict[str, SharedReport] = {}
        self._booked_as_of: datetime | None = None
        self._primary: int | None = None

    def start(
        self, held: Iterable[ProviderLease], *, elapsed_s: float, primary: int | None = None
    ) -> None:
        """Begin to keep the leases that are held by the log: each gets one full term of grace.

        Args:
            held: the leases.
            elapsed_s: the monotonic clock.
            primary: epoch under which this controller is the primary; None: there is no other.
        """
        self._primary = primary
        self._terms.start(((lease.name, lease.term) for lease in held), elapsed_s)

    def found(self, lease: ProviderLease, *, elapsed_s: float) -> None:
        """Keep a lease as the log has it after an append whose outcome was unknown: it gets one full term from now on."""
        if lease.state is LeaseState.HELD:
            self._terms.start([(lease.name, lease.term)], elapsed_s)
        else:
            self._terms.drop(lease.name)

    # ------------------------------------------------------------------ orders
    def perform(self, order: Order) -> Answer:
        """Validate an order and keep what it changes for the next append; return its answer, to be given after that.

        Raises:
            ForbiddenError: the caller may not; the attempt is noted for the audit trail.
            RejectedError: the current state does not allow it; nothing of the order is kept.
        """
        assert order.commands, "an order has a command"
        for command in order.commands:
            try:
                require_command(order.caller, command)
            except ForbiddenError as error:
                name = command_name(type(command))
                self.refused(
                    Attempt(order.caller.by, name, str(error)),
                    at=order.at,
                    elapsed_s=order.elapsed_s,
                )
                raise
        if order.key is None:
            return self._carry_out(order, None)
        name = f"{order.caller.by}/{order.key}"
        content = content_of(order.commands)
        known = self._pending.answers.get(name) or self._answers.get(name)
        if known is not None:
            return _again(known, content, order.key)
        try:
            answer = self._carry_out(order, content)
        except RejectedError as error:
            if not isinstance(error, KeyReusedError):
                self._pending.answers[name] = (content, error)
            raise
        self._pending.answers[name] = (content, answer)
        return answer

    def handle(self, command: Command, *, at: datetime, by: str) -> None:
        """Carry out one command for a driver that may do everything, under a clock that is also the monotonic one.

        Raises:
            RejectedError: the current state does not allow it; nothing of the command is kept.
            NotFoundError: it names something that does not exist.
        """
        self._space.begin()
        self._attempt((command,), Stamp(at, by), at.timestamp())

    def refused(self, attempt: Attempt, *, at: datetime, elapsed_s: float) -> None:
        """Note an attempt that was refused, here or before it came here; equal ones are counted for a while."""
        now = self._notes.count(attempt, elapsed_s)
        if now is not None:
            self._note(*now, at)

    def tick(self, *, at: datetime, elapsed_s: float) -> None:
        """Do what is due by itself: leases lapse, counted refusals are noted."""
        for provider in self._terms.over(elapsed_s):
            self._space.begin()
            lease = self._space.find(ProviderLease, ids.lease_id(provider))
            if lease is not None and lease.state is LeaseState.HELD:
                lease.lapse(epoch=lease.epoch, at=at, by=CONTROLLER)
            self._terms.end(provider)
        for attempt, count in self._notes.due(elapsed_s):
            self._note(attempt, count, at)

    # ----------------------------------------------------------------- batches
    def take(self) -> Change:
        """Return what must be appended now."""
        return self._space.take()

    def appended(self) -> None:
        """Go on after a successful append, or when there was nothing to append."""
        self._space.appended()
        self._terms.appended()
        self._occupied.update(self._pending.occupied)
        self._reports.update(self._pending.reports)
        self._booked_as_of = self._pending.booked_as_of or self._booked_as_of
        self._answers.update(self._pending.answers)
        while len(self._answers) > REMEMBERED_MAX:
            del self._answers[next(iter(self._answers))]
        self._pending = _Pending()

    def forget(self) -> None:
        """Throw the batch away after a failed append."""
        self._space.forget()
        self._terms.forget()
        self._pending = _Pending()

    # ------------------------------------------------------------------- views
    def lease_ends_s(self) -> Mapping[str, float]:
        """Return when the term of each held lease ends, on the monotonic clock."""
        return self._terms.ends()

    def occupied(self) -> Mapping[str, int | None]:
        """Return what is in use of each shared resource, as reported; a resource that is not there: unknown."""
        return dict(self._occupied)

    def shared_reports(self) -> Mapping[str, SharedReport]:
        """Return what else the scheduler said of each shared resource."""
        return dict(self._reports)

    # --------------------------------------------------------------- dispatch
    def _carry_out(self, order: Order, content: str | None) -> Answer:
        """Do the commands, with a receipt where nothing else would recognise a repeat."""
        space, stamp = self._space, Stamp(order.at, order.caller.by)
        space.begin(
            order.epochs,
            order.expected,
            must_name_epoch=order.caller.role is Role.PROVISIONER,
        )
        receipt = self._receipt(order, content)
        if receipt is not None:
            return receipt
        before = self._attempt(order.commands, stamp, order.elapsed_s)
        versions = space.versions()
        epochs = {lease.name: lease.epoch for lease in before}
        answer = Answer(versions, epochs, space.has_changed())
        if answer.changed and content is not None and _needs_receipt(order.commands):
            assert order.key is not None, "content is that of a key"
            space.add(
                Receipt.give(
                    caller=stamp.by,
                    key=order.key,
                    content=content,
                    versions=versions,
                    epochs=epochs,
                    at=stamp.at,
                )
            )
        return answer

    def _receipt(self, order: Order, content: str | None) -> Answer | None:
        if content is None or not _needs_receipt(order.commands):
            return None
        assert order.key is not None, "content is that of a key"
        known = self._space.find(Receipt, ids.receipt_id(order.caller.by, order.key))
        if known is None:
            return None
        answer = Answer(dict(known.versions), dict(known.epochs), changed=False)
        return _again((known.content, answer), content, order.key)

    def _attempt(
        self, commands: tuple[Command, ...], stamp: Stamp, elapsed_s: float
    ) -> list[ProviderLease]:
        """Do all commands, or take back what was done of them; return the leases that changed or were renewed."""
        before = replace(
            self._pending,
            occupied=dict(self._pending.occupied),
            reports=dict(self._pending.reports),
        )
        renewed: list[ProviderLease] = []
        try:
            for command in commands:
                lease = self._dispatch(command, stamp, elapsed_s)
                if lease is not None:
                    renewed.append(lease)
        except RejectedError:
            self._take_back(before)
            raise
        except (
            ValidationError
        ) as error:  # a fact that no event can hold, such as an id that is too long
            self._take_back(before)
            problems = "; ".join(str(problem) for problem in problems_of(error))
            raise RejectedError(f"cannot be recorded: {problems}") from None
        changed = self._space.leases()
        for lease in {lease.id: lease for lease in (*renewed, *changed)}.values():
            if lease.state is LeaseState.HELD:
                self._terms.begin(lease.name, lease.term, elapsed_s)
            else:
                self._terms.end(lease.name)
        return [*renewed, *(lease for lease in changed if lease not in renewed)]

    def _take_back(self, before: _Pending) -> None:
        self._space.undo()
        self._pending = before

    def _book(self, command: c.ReportBookings) -> None:
        """Keep what is occupied, unless it is what it was before a failover, or before a newer report."""
        if None not in (command.primary, self._primary) and command.primary != self._primary:
            raise LateReportError(
                f"the report is of a session with the controller of epoch {command.primary}; this one has {self._primary}"
            )
        newest = self._pending.booked_as_of or self._booked_as_of
        if command.as_of is not None:
            if newest is not None and command.as_of < newest:
                raise LateReportError(
                    f"the report is as of {command.as_of.isoformat()}; there is one as of {newest.isoformat()}"
                )
            self._pending.booked_as_of = command.as_of
        self._pending.occupied.update(command.occupied)
        self._pending.reports.update(command.reports)

    def _dispatch(self, command: Command, stamp: Stamp, elapsed_s: float) -> ProviderLease | None:
        """Do one command; return the lease that it renews."""
        space = self._space
        site.require_running(space, command)
        match command:
            case c.DescribeProvider() | c.PauseProvider() | c.ResumeProvider():
                handling.provider(space, command, stamp)
            case c.DeclareShared() | c.SetOwned():
                handling.shared(space, command, stamp)
            case c.RenewLease():
                return self._renew(command)
            case c.TakeLease():
                self._take_lease(command, stamp, elapsed_s)
            case c.ReleaseLease():
                self._release(command, stamp)
            case c.ReportBookings():
                self._book(command)
            case (
                c.OpenRequest() | c.AcceptRequest() | c.RefuseRequest() | c.LoseTrack()
                | c.RecordStatus() | c.GiveUpRequest() | c.SettleRequest()
            ):  # fmt: skip
                handling.request(space, command, stamp)
            case (
                c.RecordJoin() | c.PassCheck() | c.MissJoin() | c.StartDrain() | c.Reopen() | c.StartReturn()
                | c.AcceptReturn() | c.RefuseReturn() | c.ConfirmReturn() | c.LoseInstance()
            ):  # fmt: skip
                if isinstance(command, c.Reopen):
                    drains.may_reopen(space, command, stamp)
                handling.instance(space, command, stamp)
                if isinstance(command, (c.ConfirmReturn, c.LoseInstance)):
                    drains.end(space, command.instance, "its instance is gone", stamp)
            case s.DrainHost() | s.OpenHost() | s.ReportDrain():
                drains.drain(space, command, stamp)
            case s.Freeze() | s.Unfreeze() | s.RecordConfiguration():
                site.site(space, command, stamp)
            case (
                c.StartGrantReturn() | c.AcceptGrantReturn() | c.ConfirmGrantReturn()
                | c.RefuseGrantReturn() | c.ExtendGrant() | c.LosePart() | c.LoseGrant()
            ):  # fmt: skip
                resource = handling.resource_of(space, command)
                occupied = {**self._occupied, **self._pending.occupied}.get(resource)
                handling.grant(space, command, stamp, occupied)
            case s.RaiseAlert() | s.ClearAlert() | s.RecordTold():
                alerting.alert(space, command, stamp)
            case c.RecordDecision():
                handling.decision(space, command, stamp)
            case c.RecordEvidence():
                handling.evidence(space, command, stamp)
            case (
                c.ReportOrphan() | c.AdoptOrphan() | c.DismissOrphan() | c.ReturnOrphan()
                | c.RefuseOrphanReturn() | c.CloseOrphan()
            ):  # fmt: skip
                orphans.handle(space, command, at=stamp.at, by=stamp.by)
        return None

    # ------------------------------------------------------------------ leases
    def _take_lease(self, command: c.TakeLease, stamp: Stamp, elapsed_s: float) -> None:
        lease = self._space.find(ProviderLease, ids.lease_id(command.provider))
        if lease is None:
            self._space.add(
                ProviderLease.grant(
                    provider=command.provider,
                    holder=command.holder,
                    term=command.term,
                    at=stamp.at,
                    by=stamp.by,
                )
            )
            return
        held = lease.state is LeaseState.HELD
        if held and lease.holder != command.holder and not command.force:
            left = self._terms.left_s(lease.name, lease.term, elapsed_s)
            if left > 0:
                raise LeaseHeldError(
                    f"{lease.holder} holds the lease of {lease.name} for {left:.0f} s more"
                )
        hand_over = lease.take_over if held else lease.regrant
        hand_over(
            holder=command.holder,
            epoch=lease.epoch + 1,
            term=command.term,
            at=stamp.at,
            by=stamp.by,
        )

    def _renew(self, command: c.RenewLease) -> ProviderLease:
        lease = self._space.get(ProviderLease, ids.lease_id(command.provider))
        if command.epoch != lease.epoch:
            raise StaleEpochError(lease.id, command.epoch, lease.epoch)
        if lease.state is not LeaseState.HELD or lease.holder != command.holder:
            raise RejectedError(
                f"{command.holder} does not hold the lease of {lease.name} any more: it is {lease.state}"
            )
        return lease

    def _release(self, command: c.ReleaseLease, stamp: Stamp) -> None:
        lease = self._space.find(ProviderLease, ids.lease_id(command.provider))
        if lease is None:
            raise NotFoundError(f"nobody holds provider {command.provider}")
        if lease.holder != command.holder:
            raise LeaseHeldError(f"{lease.holder}, not {command.holder}, has {lease.name}")
        lease.release(epoch=lease.epoch, at=stamp.at, by=stamp.by)

    # ---------------------------------------------------------------- refusals
    def _note(self, attempt: Attempt, count: int, at: datetime) -> None:
        self._space.begin()
        day = at.date().isoformat()
        known = self._space.find(Refusals, ids.refusals_id(attempt.caller, day))
        if known is None:
            self._space.add(
                Refusals.note_first(
                    caller=attempt.caller,
                    day=day,
                    action=attempt.action,
                    count=count,
                    why=attempt.why,
                    at=at,
                )
            )
        else:
            known.note(
                caller=attempt.caller, action=attempt.action, count=count, why=attempt.why, at=at
            )


def _needs_receipt(commands: tuple[Command, ...]) -> bool:
    return any(type(command) in UNIDENTIFIED for command in commands)


def _again(known: _Remembered, content: str, key: str) -> Answer:
    """Return the answer that was given before under a key.

    Raises:
        KeyReusedError: the key was used for other commands.
        RejectedError: what was refused before.
    """
    before, answer = known
    if before != content:
        raise KeyReusedError(f"the key {key!r} was used for another command before")
    if isinstance(answer, RejectedError):
        raise answer
    return Answer(answer.versions, answer.epochs, changed=False)

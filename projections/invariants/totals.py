"""Invariant 3: total = owned + borrowed; what goes back was held, was free, and its hold was over."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.report import Check, Invariant


@dataclass(slots=True)
class _Lent:
    """One grant, counted twice: from its own events, and from those of the resource whose total it is in."""

    hold_until: datetime | None = None
    active: int = 0
    in_total: int = 0
    returns: dict[str, int] = field(default_factory=dict[str, int])
    #: While both differ: by how much, and the first event that made them differ so.
    differs: dict[int, Recorded] = field(default_factory=dict[int, Recorded])


@dataclass(slots=True)
class _Total:
    owned: int = 0
    borrowed: int = 0
    returns: set[str] = field(default_factory=set[str])


class Totals(Invariant):
    """The total of a resource is what it owns and what its grants, counted by themselves, lend."""

    NAME: ClassVar[str] = "invariant-3"
    TITLE: ClassVar[str] = (
        "total = owned + borrowed; nothing goes back that is not held, is occupied, or before its hold"
    )

    def __init__(self) -> None:
        super().__init__()
        self._totals: dict[str, _Total] = {}
        self._lent: dict[str, _Lent] = {}
        self._holds: dict[str, datetime] = {}

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case ElasticResource.Event():
                self._see_resource(event, recorded)
            case Grant.Event():
                self._see_grant(event, recorded)
            case Instance.Granted():
                if event.hold_until is not None:
                    self._holds[event.originator_id] = event.hold_until
            case Instance.ReturnIntended():
                self._require_hold(self._holds.get(event.originator_id), event.timestamp)
            case Instance.Returned() | Instance.Lost():
                self._holds.pop(event.originator_id, None)
            case _:
                pass

    def _see_resource(self, event: ElasticResource.Event, recorded: Recorded) -> None:
        total = self._totals.setdefault(event.originator_id, _Total())
        match event:
            case ElasticResource.Declared() | ElasticResource.OwnedSet():
                total.owned = event.owned
            case ElasticResource.Borrowed():
                self._move(total, event.grant_id, event.amount, recorded)
            case ElasticResource.GivenBack():
                self._require(
                    event.return_id not in total.returns,
                    f"return {event.return_id} takes effect a second time",
                )
                total.returns.add(event.return_id)
                self._move(total, event.grant_id, -event.amount, recorded)
                left = total.owned + total.borrowed
                self._require(
                    left >= event.occupied,
                    f"the total falls to {left}, below the {event.occupied} that are occupied",
                )
            case ElasticResource.PutBack():
                self._require(
                    event.return_id in total.returns,
                    f"return {event.return_id} is put back and was not given back",
                )
                self._move(total, event.grant_id, event.amount, recorded)
            case ElasticResource.PartLost() | ElasticResource.GrantLost():
                self._move(total, event.grant_id, -event.amount, recorded)
            case _:
                pass
        self._require(
            total.borrowed >= 0 and total.owned >= 0,
            f"owned {total.owned} and borrowed {total.borrowed} must not be below 0",
        )

    def _move(self, total: _Total, grant: str, amount: int, recorded: Recorded) -> None:
        lent = self._lent.setdefault(ids.grant_id(grant), _Lent())
        lent.in_total += amount
        total.borrowed += amount
        self._require(
            lent.in_total >= 0,
            f"{-amount} of grant {grant} leave the total, which has {lent.in_total - amount} of it",
        )
        self._compare(lent, recorded)

    def _see_grant(self, event: Grant.Event, recorded: Recorded) -> None:
        lent = self._lent.setdefault(event.originator_id, _Lent())
        match event:
            case Grant.Granted():
                lent.active += event.amount
                lent.hold_until = event.hold_until
            case Grant.ReturnStarted():
                self._require(
                    event.amount <= lent.active,
                    f"{event.amount} go back, of {lent.active} that it holds",
                )
                self._require(
                    event.return_id not in lent.returns,
                    f"return {event.return_id} takes effect a second time",
                )
                self._require_hold(lent.hold_until, event.timestamp)
                lent.active -= event.amount
                lent.returns[event.return_id] = event.amount
            case Grant.ReturnRefused():
                lent.active += lent.returns.get(event.return_id, 0)
            case Grant.PartLost():
                lent.active -= event.amount
            case Grant.Lost():
                lent.active = 0
            case _:
                pass
        self._compare(lent, recorded)

    def _require_hold(self, hold_until: datetime | None, at: datetime) -> None:
        self._require(
            hold_until is None or at >= hold_until,
            f"it goes back at {at.isoformat()}, before its hold until"
            f" {hold_until and hold_until.isoformat()}",
        )

    def _compare(self, lent: _Lent, recorded: Recorded) -> None:
        """Both sides are saved together, so that they differ only between two events of one save."""
        if lent.active == lent.in_total:
            lent.differs.clear()
        else:
            lent.differs.setdefault(lent.active - lent.in_total, recorded)

    def end(self) -> Check:
        """Name what is left open, and return the outcome."""
        for grant, lent in self._lent.items():
            self._count()
            if lent.active != lent.in_total:
                self._find(
                    f"{grant} lends {lent.active} by its own events and {lent.in_total} by those of the total",
                    lent.differs[lent.active - lent.in_total],
                )
        return super().end()

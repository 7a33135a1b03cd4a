"""What is free at one moment of a session: hosts as columns of integers, meters as one list.

Only amounts change; which hosts a request matches never does. Amounts go down and hosts are added at the
end, so a place in a list of hosts before which nothing fits stays such a place: that is what makes trying
many equal jobs cheap without changing what is found.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

from xce.domain.cluster.hosts import HostList
from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.limits import Guarantee, Meters, PlacedUse, Share
from xce.domain.cluster.requests import Amounts, Request, Selector
from xce.domain.cluster.stretches import Stretches, first_of
from xce.domain.cluster.view import View

#: Of fewer hosts than these each is looked at.
_FEW: Final = 48
#: After more returns of amounts than these everything is looked at anew.
_MANY: Final = 200
#: So many are listed.
_LISTED: Final = 10_000

#: User and run limit, each None where no host asks for it.
Admission = tuple[str | None, timedelta | None]


class Scope:
    """Which hosts requests with one selector may use for one kind of user; compared by identity.

    Attributes:
        number: place in the lists of views.
    """

    __slots__ = ("_base", "admission", "number", "selector")

    def __init__(self, number: int, selector: Selector, admission: Admission) -> None:
        self.number = number
        self.selector = selector
        self.admission = admission
        self._base: list[int] | None = None

    def base(self, ground: "Ground") -> list[int]:
        """Return the real hosts that match, in host order."""
        if self._base is None:
            candidates = ground.admitted(self.admission)
            if self.selector.select is None:
                self._base = candidates
            else:
                kinds, matches = ground.hosts.kinds, self.selector.matches
                self._base = [place for place in candidates if matches(kinds[place])]
        return self._base


class Ground:
    """What does not change during a session: the real hosts, who may use them, the meters."""

    __slots__ = ("_admitted", "_scopes", "guarantees", "hosts", "meters", "now", "scopes")

    def __init__(
        self, hosts: HostList, meters: Meters, guarantees: tuple[Guarantee, ...], now: datetime
    ) -> None:
        self.hosts = hosts
        self.meters = meters
        self.guarantees = guarantees
        self.now = now
        self.scopes: list[Scope] = []
        self._scopes: dict[tuple[Selector, Admission], Scope] = {}
        self._admitted: dict[Admission, list[int]] = {}

    def admission(self, user: str, run_limit: timedelta | None) -> Admission:
        """Return what decides which hosts admit a job."""
        return (
            user if user in self.hosts.owners else None,
            run_limit if self.hosts.available_until else None,
        )

    def admitted(self, admission: Admission) -> list[int]:
        """Return the open hosts that admit such jobs, in host order."""
        known = self._admitted.get(admission)
        if known is None:
            user, run_limit = admission
            shut = {place for place, owner in self.hosts.exclusive_to.items() if owner != user}
            for place, until in self.hosts.available_until.items():
                if run_limit is None or self.now + run_limit > until:
                    shut.add(place)
            known = self._admitted[admission] = [
                place
                for place, is_open in enumerate(self.hosts.is_open)
                if is_open and place not in shut
            ]
        return known

    def scope(self, request: Request, admission: Admission) -> Scope:
        """Return the scope of a request; one object for equal selectors and admissions."""
        selector = request.selector
        known = self._scopes.get((selector, admission))
        if known is None:
            known = self._scopes[selector, admission] = Scope(len(self.scopes), selector, admission)
            self.scopes.append(known)
        return known


class State:
    """Free amounts of hosts and meters at one moment.

    Attributes:
        count: hosts, real and added.
        names: how lists of hosts in limits name each host; None: they do not.
        free: a column of free amounts for each resource.
        left: what is left of each meter, by its number.
        looked_at: hosts that had room and were compared, a measure of the work done.
        busy: hosts that have a job; ``shut``: those that an exclusive job has.
    """

    __slots__ = (
        "_views", "_went_up", "busy", "count", "free", "granted", "ground", "kinds", "left", "looked_at", "names", "placed",
        "shut", "waiting",
    )  # fmt: skip

    def __init__(self, ground: Ground) -> None:
        hosts = ground.hosts
        self.ground = ground
        self.count = len(hosts.hosts)
        self.names: list[str | None] = [*hosts.names]
        #: Kinds of the added hosts only; those of real hosts are in ``ground``.
        self.kinds: list[HostKind] = []
        self.free: dict[str, list[int]] = {name: column[:] for name, column in hosts.totals.items()}
        self.left: list[int] = [meter.start for meter in ground.meters.all]
        self.placed: PlacedUse = ground.meters.placed_use
        self.busy: set[int] = set()
        self.shut: set[int] = set()
        #: By guarantee: what its group uses, and the classes of its jobs that wait and could start.
        self.granted: list[int] = [0] * len(ground.guarantees)
        self.waiting: list[dict[object, int]] = [{} for _ in ground.guarantees]
        self._views: list[View | None] = []
        self.looked_at = 0
        #: Places at which amounts went up again, in the order in which that happened.
        self._went_up: list[int] = []

    @classmethod
    def of(
        cls,
        ground: Ground,
        free: dict[str, list[int]],
        placed: PlacedUse,
        busy: set[int],
        shut: set[int],
        granted: list[int],
    ) -> Self:
        """Return the state at the start of a session whose running jobs were counted elsewhere; it owns what it is given."""
        made = cls.__new__(cls)
        made.ground = ground
        made.count = len(ground.hosts.names)
        made.names = [*ground.hosts.names]
        made.kinds = []
        made.free = free
        made.left = [meter.start for meter in ground.meters.all]
        made.placed = placed
        made.busy, made.shut = busy, shut
        made.granted = granted
        made.waiting = [{} for _ in ground.guarantees]
        made._views = []
        made._went_up = []
        made.looked_at = 0
        return made

    def copy(self) -> "State":
        """Return a copy that changes for itself; who waits is not copied."""
        self._catch_up_all()
        made = State.__new__(State)
        made.ground = self.ground
        made.count = self.count
        made.names = self.names[:]
        made.kinds = self.kinds[:]
        made.free = {name: column[:] for name, column in self.free.items()}
        made.left = self.left[:]
        made.placed = self.placed.copy()
        made.busy = self.busy.copy()
        made.shut = self.shut.copy()
        made.granted = self.granted[:]
        made.waiting = [{} for _ in self.waiting]
        made._views = [None if view is None else view.copy() for view in self._views]
        made._went_up = []
        made.looked_at = 0
        return made

    # hosts

    def kind(self, place: int) -> HostKind:
        """Return the kind of a host."""
        real = self.ground.hosts.hosts
        return (
            self.ground.hosts.kinds[place] if place < len(real) else self.kinds[place - len(real)]
        )

    def is_open(self, place: int) -> bool:
        """Return whether a host takes work; added hosts do."""
        is_open = self.ground.hosts.is_open
        return place >= len(is_open) or is_open[place]

    def add_host(self, kind: HostKind, name: str | None = None) -> int:
        """Add an empty host at the end of the host order and return its place."""
        totals = kind.totals
        for resource in totals:
            if resource not in self.free:
                self.free[resource] = [0] * self.count
        for resource, column in self.free.items():
            column.append(totals.get(resource, 0))
        self.names.append(name)
        self.kinds.append(kind)
        self.count += 1
        return self.count - 1

    def add_hosts(self, kind: HostKind, count: int) -> None:
        """Add so many equal hosts at the end of the host order; the same as ``add_host`` again and again."""
        if count < 1:
            return
        self.add_host(kind)
        more, totals = count - 1, kind.totals
        for resource, column in self.free.items():
            column += [totals.get(resource, 0)] * more
        self.names += [None] * more
        self.kinds += [kind] * more
        self.count += more

    def remove_last_host(self) -> None:
        """Undo the last ``add_host``; nothing may be on the host."""
        self.remove_last_hosts(1)

    def remove_last_hosts(self, count: int) -> None:
        """Undo the last additions of hosts; nothing may be on them."""
        if count < 1:
            return
        left = self.count = self.count - count
        del self.names[left:]
        del self.kinds[-count:]
        for column in self.free.values():
            del column[left:]
        for view in self._views:
            if view is None or view.seen <= left:
                continue
            view.cut(left)

    def view(self, scope: Scope) -> View:
        """Return the hosts of a scope, all that were added so far included."""
        number = scope.number
        views = self._views
        if number >= len(views):
            views.extend([None] * (len(self.ground.scopes) - len(views)))
        view = views[number]
        if view is None:
            view = views[number] = View(scope.base(self.ground)[:], len(self.ground.hosts.hosts))
            if scope.selector.order or scope.selector.same:
                view.arrange(scope.selector, self._all_kinds())
        if view.seen < self.count:
            self._extend(view, scope)
        return view

    def _extend(self, view: View, scope: Scope) -> None:
        real = len(self.ground.hosts.hosts)
        kinds, selector = self.kinds, scope.selector
        matches = selector.matches
        more = [place for place in range(view.seen, self.count) if matches(kinds[place - real])]
        view.seen = self.count
        if more:
            view.extend(more, selector, kinds, real)
            if selector.order:
                view.arrange(selector, self._all_kinds())

    def _all_kinds(self) -> list[HostKind]:
        return [*self.ground.hosts.kinds, *self.kinds]

    # amounts

    def column(self, resource: str) -> list[int]:
        """Return the free amounts of a resource; all 0 where no host lists it."""
        column = self.free.get(resource)
        if column is None:
            column = self.free[resource] = [0] * self.count
        return column

    def debit(self, place: int, amounts: Amounts) -> None:
        """Take amounts from a host."""
        free = self.free
        for resource, amount in amounts:
            free[resource][place] -= amount

    def amounts(self, place: int, amounts: Amounts) -> tuple[int, ...]:
        """Return what a host has free of the resources of amounts."""
        free = self.free
        return tuple([free[resource][place] for resource, _ in amounts])

    def restore(self, place: int, amounts: Amounts, before: Sequence[int]) -> None:
        """Give a host back what it had before a debit, however much of that was done."""
        free = self.free
        for (resource, _), amount in zip(amounts, before, strict=True):
            free[resource][place] = amount
        self._went_up.append(place)
        if len(self._went_up) > _LISTED:
            self._catch_up_all()

    def first_fit(
        self, hosts: Sequence[int], start: int, amounts: Amounts, barred: Collection[int]
    ) -> int:
        """Return the first position from ``start`` on whose host has the amounts and is not barred, or -1."""
        rows = [(self.column(name), wanted) for name, wanted in amounts]
        return first_of(hosts, start, len(hosts), rows, barred)

    def first_fit_of(
        self, stretches: Stretches, start: int, amounts: Amounts, barred: Collection[int]
    ) -> int:
        """Return the same for a list of hosts of a view, without looking at all that have no room."""
        hosts = stretches.hosts
        if len(hosts) - start < _FEW or not amounts:
            return self.first_fit(hosts, start, amounts, barred)
        self._catch_up(stretches)
        mark = 0 if barred is self.shut else 1 if barred is self.busy else None
        return stretches.first_fit(start, amounts, self._columns(amounts), barred, mark)

    def all_fits(
        self, stretches: Stretches, amounts: Amounts, enough: int = 2**60
    ) -> Sequence[int]:
        """Return the hosts of a list that have the amounts and that no exclusive job has, in its order.

        ``enough``: so many of them will do.
        """
        if not amounts:
            return [place for place in stretches.hosts if place not in self.shut]
        self._catch_up(stretches)
        found = stretches.all_fits(amounts, self._columns(amounts), self.shut, enough)
        self.looked_at += len(found)
        return found

    def _columns(self, amounts: Amounts) -> dict[str, list[int]]:
        free = self.free
        for name, _ in amounts:
            if name not in free:
                self.column(name)
        return free

    def _catch_up(self, stretches: Stretches) -> None:
        """Drop what is no longer known of a list of hosts since amounts went up."""
        went_up = self._went_up
        if stretches.seen == len(went_up):
            return
        if stretches.in_order and len(went_up) - stretches.seen < _MANY:
            stretches.went_up(went_up[stretches.seen :])
        else:
            stretches.forget()
        stretches.seen = len(went_up)

    def _catch_up_all(self) -> None:
        for view in self._views:
            if view is not None:
                for stretches in view.all_stretches():
                    self._catch_up(stretches)
                    stretches.seen = 0
        self._went_up.clear()

    def total_free(self, resource: str) -> int:
        """Return what is free of a resource: of the shared resource, or on open hosts together."""
        meter = self.ground.meters.shared.get(resource)
        if meter is not None:
            return max(0, self.left[meter.number])
        column = self.free.get(resource)
        if column is None:
            return 0
        return sum(
            amount for place, amount in enumerate(column) if amount > 0 and self.is_open(place)
        )

    # jobs

    def occupy(self, places: Iterable[int], *, exclusive: bool) -> None:
        """Record that a job is on hosts."""
        self.busy.update(places)
        if exclusive:
            self.shut.update(places)

    def use_by_group(self, user: str, shares: Sequence[Share], shared: Mapping[str, int]) -> None:
        """Count a started job for the guarantees of its user's groups."""
        for number, guarantee in enumerate(self.ground.guarantees):
            if user in guarantee.members:
                amount = shared.get(guarantee.resource, 0)
                amount += sum(uses.get(guarantee.resource, 0) for _, uses in shares)
                self.granted[number] += amount

    def no_longer_waits(self, job: object) -> None:
        """Record that one job of a class has started, for the guarantees of its groups."""
        for waiting in self.waiting:
            if job in waiting:
                waiting[job] -= 1

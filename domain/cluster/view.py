"""The hosts that requests of one scope try, in the order in which they try them."""

from collections.abc import Sequence

from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.requests import Selector
from xce.domain.cluster.stretches import Stretches


class View:
    """The hosts of one scope in one state.

    Attributes:
        matching: places of hosts, in host order.
        whole: all of them in the order in which requests try them.
        groups: with ``same``, the hosts of each value, by their first host; else ``whole`` alone.
        seen: how many hosts of the state were looked at.
        cursors: by amounts, or by the bucket of a part that limits about hosts may refuse, a position in
            ``hosts`` before which no host takes it; set by ``remember``.
    """

    __slots__ = ("_late", "_of_value", "_sure", "cursors", "groups", "matching", "seen", "whole")

    def __init__(self, matching: list[int], seen: int) -> None:
        self.matching = matching
        self.whole = Stretches(matching)
        self.groups: list[Stretches] = [self.whole]
        self.seen = seen
        self.cursors: dict[object, int] = {}
        #: With ``same``, the group of each value.
        self._of_value: dict[object, Stretches] | None = None
        #: Cursors at positions above this are listed.
        self._sure = len(matching)
        self._late: set[object] = set()

    @property
    def hosts(self) -> list[int]:
        """Return the hosts in the order in which requests try them."""
        return self.whole.hosts

    def remember(self, cursor: object, position: int) -> None:
        """Set a cursor."""
        self.cursors[cursor] = position
        if position > self._sure:
            self._late.add(cursor)

    def extend(
        self, places: Sequence[int], selector: Selector, kinds: Sequence[HostKind], real: int
    ) -> None:
        """Add matching hosts at the end of the host order.

        ``kinds`` are those of the added hosts, ``real`` how many others there are.
        """
        self.matching.extend(places)
        if selector.same and not selector.order and self._of_value is not None:
            for place in places:
                self._group(place, selector.same_value(kinds[place - real]))

    def arrange(self, selector: Selector, kinds: list[HostKind]) -> None:
        """Put the hosts into the order and the groups of a selector that has any; ``kinds`` are those of all hosts."""
        if selector.order:
            self._reorder(selector.in_order(self.matching, kinds))
        self.groups = [self.whole]
        if selector.same:
            self.groups = []
            self._of_value = {}
            for place in self.hosts:
                self._group(place, selector.same_value(kinds[place]))

    def _group(self, place: int, value: object) -> None:
        assert self._of_value is not None, "there are groups"
        if value is None:
            return
        group = self._of_value.get(value)
        if group is None:
            group = self._of_value[value] = Stretches([], in_order=self.whole.in_order)
            self.groups.append(group)
        group.hosts.append(place)

    def _reorder(self, hosts: list[int]) -> None:
        self.whole = Stretches(hosts, in_order=False)
        self.cursors.clear()
        self._late.clear()

    def cut(self, left: int) -> None:
        """Forget the hosts from this place on: they are gone."""
        self.seen = left
        matching = self.matching
        if not matching or matching[-1] < left:
            return
        while matching and matching[-1] >= left:
            matching.pop()
        if self.whole.in_order:
            self._cut_cursors(len(matching))
            for group in self.groups:
                hosts = group.hosts
                while hosts and hosts[-1] >= left:
                    hosts.pop()
                group.cut(len(hosts))
        else:
            self._reorder([place for place in self.hosts if place < left])
            if self._of_value is None:
                self.groups = [self.whole]
            else:
                for group in self.groups:
                    group.hosts[:] = [place for place in group.hosts if place < left]
                    group.cut(0)
        if self._of_value is not None:
            self.groups = [group for group in self.groups if group.hosts]
            self._of_value = {
                value: group for value, group in self._of_value.items() if group.hosts
            }
            if self.whole.in_order:
                self.whole.cut(len(matching))

    def _cut_cursors(self, size: int) -> None:
        cursors = self.cursors
        for cursor in self._late if size >= self._sure else [*cursors]:
            cursors[cursor] = min(cursors[cursor], size)
        self._late.clear()
        self._sure = size

    def copy(self) -> "View":
        """Return a copy that changes for itself."""
        made = View(self.matching[:], self.seen)
        if self.whole.in_order:
            made.whole = self.whole.copy(made.matching)
        else:
            made.whole = self.whole.copy(self.hosts[:])
        made.groups = [made.whole]
        if self._of_value is not None:
            made._of_value = {
                value: group.copy(group.hosts[:]) for value, group in self._of_value.items()
            }
            made.groups = [*made._of_value.values()]
        made.cursors = self.cursors.copy()
        made._sure = self._sure
        made._late = self._late.copy()
        return made

    def all_stretches(self) -> list[Stretches]:
        """Return the stretches of all lists of hosts."""
        return self.groups if self._of_value is None else [self.whole, *self.groups]

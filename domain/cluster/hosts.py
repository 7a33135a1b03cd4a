"""The hosts of a snapshot in host order, as columns; made once for a tuple of hosts and remembered."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

from xce.domain.cluster.kinds import HostKind, kind_of
from xce.domain.formats.snapshot import Host, HostState
from xce.domain.values import natural_key

_REMEMBERED_LISTS: Final = 8
_REMEMBERED_HOSTS: Final = 100_000

#: ``natural_key`` with a memory: the same names are ordered in every session.
key_of_name = lru_cache(maxsize=400_000)(natural_key)


class HostList:
    """The hosts of one snapshot, each known by its place in the host order.

    Attributes:
        hosts: in host order.
        index: place by name.
        totals: one column for each resource that any host lists.
        is_open, exclusive_to, available_until: who may use a host.
        owners: the users that any host is exclusive to.
    """

    __slots__ = (
        "_all_open", "_kinds", "available_until", "exclusive_to", "hosts", "index", "is_open", "names", "owners", "source",
        "totals",
    )  # fmt: skip

    def __init__(self, source: tuple[Host, ...]) -> None:
        self.source = source
        ordered = sorted(source, key=lambda host: (host.rank, key_of_name(host.name)))
        self.hosts: list[Host] = ordered
        self.names: list[str] = [host.name for host in ordered]
        self.index: dict[str, int] = {name: place for place, name in enumerate(self.names)}
        self.is_open: list[bool] = [host.state is HostState.OPEN for host in ordered]
        resources = dict.fromkeys(name for host in ordered for name in host.total)
        self.totals: dict[str, list[int]] = {
            name: [host.total.get(name, 0) for host in ordered] for name in resources
        }
        self.exclusive_to: Mapping[int, str] = {
            place: host.exclusive_to
            for place, host in enumerate(ordered)
            if host.exclusive_to is not None
        }
        self.owners = frozenset(self.exclusive_to.values())
        self.available_until: Mapping[int, datetime] = {
            place: host.available_until
            for place, host in enumerate(ordered)
            if host.available_until is not None
        }
        self._kinds: list[HostKind] | None = None
        self._all_open: HostList | None = None

    def replace(self, host: Host) -> None:
        """Put a host in the place of the one with its name, from which it differs in nothing that is a column here.

        The list does not know any more of which tuple it was made, so only its owner may do so.
        """
        self.hosts[self.index[host.name]] = host

    @property
    def kinds(self) -> list[HostKind]:
        """Return the kind of each host."""
        if self._kinds is None:
            self._kinds = [_kind(host) for host in self.hosts]
        return self._kinds

    def all_open(self) -> "HostList":
        """Return the same hosts, each of them open."""
        if self._all_open is None:
            made = self._all_open = HostList.__new__(HostList)
            made.source, made.hosts, made.names, made.index = (
                self.source,
                self.hosts,
                self.names,
                self.index,
            )
            made.totals = self.totals
            made.exclusive_to, made.owners = self.exclusive_to, self.owners
            made.available_until = self.available_until
            made.is_open = [True] * len(self.hosts)
            made._kinds = self.kinds
            made._all_open = made
        return self._all_open


_lists: dict[int, HostList] = {}
_kind_of_host: dict[int, tuple[Host, HostKind]] = {}


def host_list(hosts: tuple[Host, ...]) -> HostList:
    """Return the hosts in order; the same object while the same tuple comes again.

    The memory holds the tuple itself, so that its identity cannot pass to another one.
    """
    known = _lists.get(id(hosts))
    if known is not None and known.source is hosts:
        return known
    if len(_lists) >= _REMEMBERED_LISTS:
        del _lists[next(iter(_lists))]
    made = _lists[id(hosts)] = HostList(hosts)
    return made


def _kind(host: Host) -> HostKind:
    known = _kind_of_host.get(id(host))
    if known is not None and known[0] is host:
        return known[1]
    if len(_kind_of_host) >= _REMEMBERED_HOSTS:
        _kind_of_host.clear()
    kind = kind_of(host.attributes, host.total)
    _kind_of_host[id(host)] = (host, kind)
    return kind

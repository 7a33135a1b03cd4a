"""Deltas of every day: those that change jobs, hosts, amounts and supply, and contradict nothing.

Only what a delta holds is looked at, and what it touches. All other deltas are applied to the whole snapshot, which
also says what is wrong with one that is.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from xce.domain.errors import Problem
from xce.domain.formats.delta import Changes, Delta, Item, is_nothing, key_of, next_catalog
from xce.domain.formats.snapshot import (
    Host,
    PendingJob,
    RunningJob,
    Shared,
    Snapshot,
)
from xce.domain.formats.snapshot_check import contradictions

_SLOTS: Final = "slots"


def is_usual(
    snapshot: Snapshot,
    delta: Delta,
    hosts: Mapping[str, Host],
    running: Mapping[str, RunningJob],
    pending: Mapping[str, PendingJob],
    jobs_on: Callable[[str], int],
) -> bool:
    """Return whether a delta belongs to the snapshot, is right, and changes nothing that all else rests on.

    ``jobs_on`` says how many jobs run on a host.
    """
    if (
        delta.base_now != snapshot.now
        or delta.base_position != snapshot.position
        or delta.settings is not None
        or delta.queues.is_any
        or delta.limits.is_any
        or delta.quotas.is_any
        or delta.groups.is_any
    ):
        return False
    shared = {pool.name: pool for pool in snapshot.shared}
    return (
        _fits(delta.pending, pending)
        and all(
            job.tasks.max is None or job.tasks.max >= job.tasks.min for job in delta.pending.put
        )
        and _fits(delta.running, running)
        and _fits(delta.hosts, hosts)
        and _are_amounts(delta.shared, shared)
        and _are_hosts(delta, hosts, running, shared, jobs_on)
        and all(_is_placed(job, delta, hosts, shared) for job in delta.running.put)
        and _is_supply(snapshot, delta)
    )


def _fits(changes: Changes[Item], known: Mapping[str, Item]) -> bool:
    """Return whether names are there once, and what goes is there."""
    if changes.order is not None:
        return False
    removed, put = changes.removed, changes.put
    if removed and (any(name not in known for name in removed) or len(set(removed)) < len(removed)):
        return False
    return len(put) < 2 or len({key_of(item) for item in put}) == len(put)


def _are_amounts(changes: Changes[Shared], shared: Mapping[str, Shared]) -> bool:
    """Return whether only amounts of shared resources change, none becoming known or unknown."""
    if not changes.is_any:
        return True
    return not (changes.removed or changes.order) and all(
        pool.name in shared
        and (pool.used_elsewhere is None) is (shared[pool.name].used_elsewhere is None)
        for pool in changes.put
    )


def _are_hosts(
    delta: Delta,
    hosts: Mapping[str, Host],
    running: Mapping[str, RunningJob],
    shared: Mapping[str, Shared],
    jobs_on: Callable[[str], int],
) -> bool:
    """Return whether no job that goes on loses its host or a resource of it."""
    changes = delta.hosts
    if not changes.is_any:
        return True
    put = {host.name for host in changes.put}
    gone = [name for name in changes.removed if name not in put]
    leaving: Counter[str] = Counter()
    if gone:
        again = [job.id for job in delta.running.put if job.id in running]
        for job in {*delta.running.removed, *again}:
            leaving.update([use.name for use in running[job].hosts])
    if any(jobs_on(name) > leaving[name] for name in gone):
        return False
    for host in changes.put:
        before = hosts.get(host.name)
        if before is not None and before.total is host.total:
            continue
        if not shared.keys().isdisjoint(host.total):
            return False
        if (
            before is not None
            and jobs_on(host.name)
            and not before.total.keys() <= host.total.keys()
        ):
            return False
    return True


def _is_placed(
    job: RunningJob, delta: Delta, hosts: Mapping[str, Host], shared: Mapping[str, Shared]
) -> bool:
    """Return whether a running job uses what there is."""
    if not shared.keys() >= job.shared.keys():
        return False
    if len(job.hosts) > 1 and len({use.name for use in job.hosts}) < len(job.hosts):
        return False
    for use in job.hosts:
        host = hosts.get(use.name)
        if delta.hosts.is_any:
            host = _after(use.name, delta.hosts, host)
        if host is None or any(
            amount > 0 and name not in host.total and name != _SLOTS
            for name, amount in use.uses.items()
        ):
            return False
    return True


def _after(name: str, changes: Changes[Host], before: Host | None) -> Host | None:
    for host in changes.put:
        if host.name == name:
            return host
    return None if name in changes.removed else before


def _is_supply(snapshot: Snapshot, delta: Delta) -> bool:
    """Return whether catalog and shared resources contradict neither themselves nor one another."""
    if is_nothing(delta.catalog) and not delta.shared.put:
        return True
    problems: list[Problem] = []
    again = {pool.name: pool for pool in delta.shared.put}
    supply = snapshot.model_copy(
        update={
            "hosts": (),
            "running": (),
            "pending": (),
            "limits": (),
            "quotas": (),
            "shared": tuple(again.get(pool.name, pool) for pool in snapshot.shared),
            "catalog": next_catalog(snapshot.catalog, delta.catalog, problems),
        }
    )
    return not problems and not any(True for _ in contradictions(supply))

"""What was obtained and could go back: hosts without work, borrowed counts that nobody needs."""

from collections.abc import Iterable, Sequence
from itertools import chain

from xce.domain.cluster.hosts import key_of_name
from xce.domain.formats.building import built
from xce.domain.formats.session_result import Idle, IdleCount, IdleHost
from xce.domain.formats.snapshot import HostState, Snapshot
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.placement import Placed


def idle_supply(compiled: Compiled, started: Sequence[Placed], counted: Sequence[Placed]) -> Idle:
    """Return the idle supply after this session's starts and the placements of its counted jobs."""
    unused = _unused_hosts(compiled, chain(started, counted))
    latest = compiled.snapshot.now - compiled.snapshot.settings.idle_host_after
    return built(
        Idle,
        {
            "hosts": tuple(host for host in unused if host.idle_since <= latest),
            "counts": _idle_counts(compiled.snapshot, compiled, chain(started, counted)),
            "unused": tuple(host.instance for host in unused),
        },
    )


def _unused_hosts(compiled: Compiled, placements: Iterable[Placed]) -> list[IdleHost]:
    """Return the open hosts of providers on which no job runs, starts, or is placed, by name."""
    candidates: list[IdleHost] = []
    for host in compiled.maybe_idle:
        instance, since = host.instance, host.idle_since
        if instance is not None and since is not None and host.state is HostState.OPEN:
            candidates.append(
                IdleHost.model_construct(instance=instance, host=host.name, idle_since=since)
            )
    if not candidates:
        return []
    index = compiled.core.ground.hosts.index
    busy = {index[use.name] for job in compiled.snapshot.running for use in job.hosts}
    busy.update(claim.place for placed in placements for claim in placed.claims)
    unused = [host for host in candidates if index[host.host] not in busy]
    return sorted(unused, key=lambda host: key_of_name(host.host))


def _idle_counts(
    snapshot: Snapshot, compiled: Compiled, placements: Iterable[Placed]
) -> tuple[IdleCount, ...]:
    counts: list[IdleCount] = []
    pools = [
        pool
        for pool in snapshot.shared
        if pool.borrowed > 0 and pool.peak_need is not None and pool.used_elsewhere is not None
    ]
    if not pools:
        return ()
    placements = list(placements)
    for pool in pools:
        assert pool.peak_need is not None, "checked above"
        assert pool.used_elsewhere is not None, "checked above"
        number = compiled.core.ground.meters.shared[pool.name].number
        # What a meter has left at the start is what neither others nor running jobs use.
        need = pool.total - compiled.core.ground.meters.all[number].start
        need += sum(placed.metered.get(number, 0) for placed in placements)
        owned = pool.total - pool.borrowed if pool.owned is None else pool.owned
        amount = min(owned + pool.borrowed - max(pool.peak_need, need, owned), pool.borrowed)
        if amount > 0:
            counts.append(IdleCount.model_construct(name=pool.name, amount=amount))
    counts.sort(key=lambda count: key_of_name(count.name))
    return tuple(counts)

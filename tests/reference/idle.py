"""What could go back: section 7 of docs/reference/session.md."""

from collections.abc import Iterable

from tests.reference.world import Holding
from xce.domain.formats.session_result import Idle, IdleCount, IdleHost
from xce.domain.formats.snapshot import HostState, Snapshot
from xce.domain.values import natural_key


def reference_idle(
    snapshot: Snapshot, started: Iterable[Holding], counted: Iterable[Holding]
) -> Idle:
    """Return the idle supply after this session's starts and the placements of its counted jobs."""
    started, counted = list(started), list(counted)
    busy = {use.name for job in snapshot.running for use in job.hosts}
    busy |= {part.host for holding in (*started, *counted) for part in holding.parts}
    unused = [
        IdleHost(instance=host.instance, host=host.name, idle_since=host.idle_since)
        for host in sorted(snapshot.hosts, key=lambda host: natural_key(host.name))
        if host.instance is not None
        and host.state is HostState.OPEN
        and host.idle_since is not None
        and host.name not in busy
    ]
    hosts = [
        host
        for host in unused
        if snapshot.now - host.idle_since >= snapshot.settings.idle_host_after
    ]
    counts: list[IdleCount] = []
    for shared in sorted(snapshot.shared, key=lambda shared: natural_key(shared.name)):
        if shared.borrowed == 0 or shared.peak_need is None or shared.used_elsewhere is None:
            continue
        owned = shared.total - shared.borrowed if shared.owned is None else shared.owned
        need_now = shared.used_elsewhere
        need_now += sum(job.shared.get(shared.name, 0) for job in snapshot.running)
        need_now += sum(holding.shared.get(shared.name, 0) for holding in (*started, *counted))
        spare = owned + shared.borrowed - max(shared.peak_need, need_now, owned)
        amount = min(max(0, spare), shared.borrowed)
        if amount > 0:
            counts.append(IdleCount(name=shared.name, amount=amount))
    return Idle(
        hosts=tuple(hosts),
        counts=tuple(counts),
        unused=tuple(host.instance for host in unused),
    )

"""Whether the cluster has a host that a person names: asked of the newest snapshot that a scheduler posted."""

import asyncio
from difflib import get_close_matches

from xce.adapters.controller.calls import Call
from xce.domain.errors import NotFoundError

#: How many near names are told.
_NEAR_MAX = 3


async def confirmed(call: Call, host: str, instance: str | None) -> bool:
    """Return whether the cluster is known to have a host; False: no scheduler has told of its hosts since the controller started.

    A host that drains already is taken as it is: whoever asked for it by mistake can open it again.

    Raises:
        NotFoundError: the newest snapshot does not have it; with names that are near.
    """
    hosts = call.service.board.hosts
    if instance is not None or (hosts is not None and host in hosts):
        return True
    drains = call.live.read(lambda views: [row.host for row in views.projections.drains.rows()])
    if hosts is None or host in drains:
        return False
    near = await asyncio.to_thread(near_names, host, hosts)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise NotFoundError(f"the scheduler's newest snapshot has no host {host}{hint}")


def near_names(name: str, names: frozenset[str]) -> list[str]:
    """Return the names that are most like one, whatever their case, the nearest first."""
    folded = {one.lower(): one for one in sorted(names)}
    return [folded[one] for one in get_close_matches(name.lower(), folded, n=_NEAR_MAX)]

"""What each command about orphans does: things at a provider that nobody owns, from their discovery to their end."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from xce.domain.engine.commands import (
    AdoptOrphan,
    CloseOrphan,
    DismissOrphan,
    RefuseOrphanReturn,
    ReportOrphan,
    ReturnOrphan,
)
from xce.domain.engine.workspace import Workspace
from xce.domain.events import ids
from xce.domain.events.base import Aggregate
from xce.domain.provisioning.grant import LIVE as LENT
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import GONE, Instance, InstanceState
from xce.domain.provisioning.orphan import OPEN, Orphan, OrphanKind, OrphanState, What
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request

OrphanCommand = (
    ReportOrphan | AdoptOrphan | DismissOrphan | ReturnOrphan | RefuseOrphanReturn | CloseOrphan
)


def handle(space: Workspace, command: OrphanCommand, *, at: datetime, by: str) -> None:
    """Something that nobody owns, from its discovery to its end."""
    epoch = space.fence(command.provider)
    orphan_id = ids.orphan_id(command.provider, command.theirs)
    if isinstance(command, ReportOrphan):
        if _is_owned(space, command):
            return
        found = space.find(Orphan, orphan_id)
        kind, tag, why = command.kind, command.tag, command.why
        what = replace(_what(space, command), since=_since(space, command, found, at))
        if found is not None:
            found.find_again(kind=kind, tag=tag, why=why, what=what, at=at, by=by, epoch=epoch)
            return
        space.add(
            Orphan.find(
                provider=command.provider,
                theirs=command.theirs,
                kind=kind,
                tag=tag,
                why=why,
                what=what,
                at=at,
                by=by,
                epoch=epoch,
            )
        )
        return
    known = space.get(Orphan, orphan_id)
    match command:
        case AdoptOrphan():
            known.adopt(owner=command.owner, at=at, by=by, epoch=epoch)
        case DismissOrphan():
            known.dismiss(why=command.why, at=at, by=by, epoch=epoch)
        case ReturnOrphan():
            known.intend_return(
                return_id=command.return_id, why=command.why, at=at, by=by, epoch=epoch
            )
        case RefuseOrphanReturn():
            known.refuse_return(
                return_id=command.return_id, why=command.why, at=at, by=by, epoch=epoch
            )
        case CloseOrphan():
            known.vanish(why=command.why, at=at, by=by, epoch=epoch)


def _what(space: Workspace, command: ReportOrphan) -> What:
    """Return what a thing counts as: its request knows better than its provider; an ask is what is not known of it."""
    ask = None if command.tag is None else space.find(Request, ids.request_id(command.tag))
    if ask is None or ask.provider != command.provider:
        return What(command.of, command.item, command.amount)
    amount = command.amount
    if command.theirs == command.tag:
        amount = max(0, ask.amount - ask.granted - ask.failed)
    return What(ask.kind, ask.item, amount, ask.price_per_hour, ask.project)


def _since(
    space: Workspace, command: ReportOrphan, before: Orphan | None, at: datetime
) -> datetime | None:
    """Return since when a thing is nobody's, as far as is known: not while a record had it or it was reported before, nor before
    its provider was known here. Each time of it costs once, whatever its provider says.
    """
    if command.since is None or (before is not None and before.state in OPEN):
        return None
    known = space.find(Provider, ids.provider_id(command.provider))
    bounds = [] if known is None else [known.created_on]
    if before is not None and before.state in (OrphanState.GONE, OrphanState.ADOPTED):
        bounds.append(before.modified_on)
    for record in _records(space, command):
        bounds.append(record.modified_on if _is_over(record) else at)
    return min(at, max([command.since, *bounds]))


def _records(space: Workspace, command: ReportOrphan) -> Iterator[Instance | Grant]:
    """Yield the records of ours that are, or were, of what is reported."""
    name = f"{command.provider}/{command.theirs}"
    hosts = [name] if command.tag is None else [name, f"{name}~{command.tag}"]
    for host in hosts:
        instance = space.find(Instance, ids.instance_id(host))
        if instance is not None:
            yield instance
    grant = space.find(Grant, ids.grant_id(name))
    if grant is not None:
        yield grant


def _is_over(record: Instance | Grant) -> bool:
    return record.state in GONE if isinstance(record, Instance) else record.state not in LENT


def _is_owned(space: Workspace, command: ReportOrphan) -> bool:
    """Return whether a record of ours has it by now: who looked may have read the books before an answer brought it.

    What goes back while its machine serves another request is not what is reported.
    """
    if command.kind is not OrphanKind.UNKNOWN_TO_US:
        return False
    return any(
        not _is_over(record)
        and (
            record.state is not InstanceState.RETURNING or command.tag in (None, record.request_id)
        )
        for record in _records(space, command)
    )


def own(space: Workspace, new: Aggregate[Any], *, at: datetime, by: str, epoch: int) -> None:
    """End the orphan that a new record has turned out to own: it must not count beside it."""
    match new:
        case Instance():
            theirs = new.machine
        case Grant():
            theirs = new.name.removeprefix(f"{new.provider}/")
        case _:
            return
    found = space.find(Orphan, ids.orphan_id(new.provider, theirs))
    if found is not None and found.state is OrphanState.REPORTED:
        found.adopt(owner=new.id, at=at, by=by, epoch=epoch)

"""What holds for the whole site: the freeze switch, and configurations."""

from typing import Final

from xce.domain.engine.commands import (
    Command,
    OpenRequest,
    ReturnOrphan,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.engine.handling import Stamp
from xce.domain.engine.site_commands import Freeze, RecordConfiguration, Unfreeze
from xce.domain.engine.workspace import Workspace
from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.provisioning.configuration import Configuration
from xce.domain.provisioning.request import Request
from xce.domain.provisioning.site import Site, SiteState

SiteCommand = Freeze | Unfreeze | RecordConfiguration

#: What begins something new, and is refused while the site is frozen.
_NEW: Final = (OpenRequest, StartDrain, StartReturn, StartGrantReturn, ReturnOrphan)


class FrozenError(RejectedError):
    """The site is frozen: nothing new is asked, drained or given back."""

    code = "frozen"


def require_running(space: Workspace, command: Command) -> None:
    """Refuse what begins something new while the site is frozen.

    Raises:
        FrozenError: it is; says why.
    """
    if not isinstance(command, _NEW):
        return
    known = space.find(Site, ids.site_id())
    if known is None or known.state is SiteState.RUNNING:
        return
    if isinstance(command, OpenRequest) and space.find(Request, ids.request_id(command.request)):
        return  # a repeat of what began before
    raise FrozenError(f"the site is frozen: {known.why}")


def site(space: Workspace, command: SiteCommand, stamp: Stamp) -> None:
    """An administrator turns the switch, or a daemon says how it is configured."""
    known = space.find(Site, ids.site_id())
    at, by = stamp.at, stamp.by
    match command:
        case Freeze():
            if known is None:
                space.add(Site.freeze_first(why=command.why, at=at, by=by))
            else:
                known.freeze(why=command.why, at=at, by=by)
        case Unfreeze():
            if known is not None:
                known.unfreeze(why=command.why, at=at, by=by)
        case RecordConfiguration():
            _configure(space, command, stamp)


def _configure(space: Workspace, command: RecordConfiguration, stamp: Stamp) -> None:
    digest, changes, at, by = command.digest, command.changes, stamp.at, stamp.by
    known = space.find(Configuration, ids.configuration_id(command.daemon))
    if known is None:
        space.add(
            Configuration.change_first(
                daemon=command.daemon, digest=digest, changes=changes, at=at, by=by
            )
        )
    else:
        known.change(digest=digest, changes=changes, at=at, by=by)

"""What commands about hosts of the cluster do: drains, and what they mean for the instance behind a host."""

from xce.domain.engine.commands import Reopen
from xce.domain.engine.handling import Stamp
from xce.domain.engine.site_commands import DrainHost, OpenHost, ReportDrain
from xce.domain.engine.workspace import Workspace
from xce.domain.errors import NotFoundError, RejectedError
from xce.domain.events import ids
from xce.domain.provisioning.drain import OPEN, AtDeadline, Drain
from xce.domain.provisioning.instance import Instance, InstanceState

DrainCommand = DrainHost | OpenHost | ReportDrain

#: Why a host is drained that its provisioner closes.
FOR_RETURN = "to go back"


def drain(space: Workspace, command: DrainCommand, stamp: Stamp) -> None:
    """A person or the scheduler says something of a host."""
    match command:
        case DrainHost():
            _drain(space, command, stamp)
        case OpenHost():
            _open(space, command, stamp)
        case ReportDrain():
            _report(space, command, stamp)


def may_reopen(space: Workspace, command: Reopen, stamp: Stamp) -> None:
    """End the drain of an instance's host that its provisioner opens again.

    Raises:
        RejectedError: a person drains it, and waits for its jobs.
    """
    known = _open_drain(space, space.get(Instance, ids.instance_id(command.instance)))
    if known is None:
        return
    if not known.yields:
        raise RejectedError(f"host {known.name} is drained by hand; a job does not open it")
    known.cancel(why=command.why, at=stamp.at, by=stamp.by)


def end(space: Workspace, instance: str, why: str, stamp: Stamp) -> None:
    """An instance is gone, and with it the drain of its host."""
    known = _open_drain(space, space.get(Instance, ids.instance_id(instance)))
    if known is not None:
        known.end(why=why, at=stamp.at, by=stamp.by)


def _open_drain(space: Workspace, instance: Instance) -> Drain | None:
    """Return the drain of an instance's host, if it is under way."""
    if instance.host is None:
        return None
    known = space.find(Drain, ids.drain_id(instance.host))
    return known if known is not None and known.state in OPEN else None


def _drain(space: Workspace, command: DrainHost, stamp: Stamp) -> None:
    if command.deadline is None and command.at_deadline is not AtDeadline.WAIT:
        raise RejectedError(f"to {command.at_deadline} jobs at the deadline needs a deadline")
    if command.instance is not None:
        _instance_of(space, command.host, command.instance).start_drain(
            why=command.why,
            at=stamp.at,
            by=stamp.by,
            epoch=_epoch(space, command.instance),
        )
    _ask(space, command, stamp, yields=False)


def _ask(space: Workspace, command: DrainHost, stamp: Stamp, *, yields: bool) -> None:
    known = space.find(Drain, ids.drain_id(command.host))
    if known is None:
        space.add(
            Drain.ask(
                host=command.host,
                instance=command.instance,
                why=command.why,
                yields=yields,
                deadline=command.deadline,
                at_deadline=command.at_deadline,
                at=stamp.at,
                by=stamp.by,
            )
        )
        return
    if known.state in OPEN and known.yields and not yields:
        known.cancel(why="drained by hand instead", at=stamp.at, by=stamp.by)
    known.ask_again(
        instance=command.instance,
        why=command.why,
        yields=yields,
        deadline=command.deadline,
        at_deadline=command.at_deadline,
        at=stamp.at,
        by=stamp.by,
    )


def _open(space: Workspace, command: OpenHost, stamp: Stamp) -> None:
    known = space.find(Drain, ids.drain_id(command.host))
    if known is None and command.instance is None:
        raise NotFoundError(f"host {command.host} was never drained")
    if command.instance is not None:
        _instance_of(space, command.host, command.instance).reopen(
            why=command.why, at=stamp.at, by=stamp.by, epoch=_epoch(space, command.instance)
        )
    if known is not None:
        known.cancel(why=command.why, at=stamp.at, by=stamp.by)


def _report(space: Workspace, command: ReportDrain, stamp: Stamp) -> None:
    known = space.find(Drain, ids.drain_id(command.host))
    if known is None or known.state not in OPEN:
        instance = None
        if command.instance is not None:
            instance = _instance_of(space, command.host, command.instance)
        if instance is None or instance.state is not InstanceState.DRAINING:
            raise RejectedError(f"host {command.host} is not being drained")
        _ask(space, DrainHost(command.host, command.instance, FOR_RETURN), stamp, yields=True)
        known = space.get(Drain, ids.drain_id(command.host))
    known.look(jobs=command.jobs, at=stamp.at, by=stamp.by)
    if known.state not in OPEN and known.instance is not None:
        space.get(Instance, ids.instance_id(known.instance)).reopen(
            why=f"job {command.jobs[0]} had started on it",
            at=stamp.at,
            by=stamp.by,
            epoch=_epoch(space, known.instance),
        )


def _instance_of(space: Workspace, host: str, instance: str) -> Instance:
    known = space.get(Instance, ids.instance_id(instance))
    if known.host != host:
        raise RejectedError(f"instance {instance} is host {known.host}, not {host}")
    return known


def _epoch(space: Workspace, instance: str) -> int:
    return space.fence(space.get(Instance, ids.instance_id(instance)).provider)

"""What an administrator's drain does in a simulated cluster."""

from xce.domain.events.ids import name_of
from xce.domain.formats.snapshot import HostState
from xce.domain.provisioning.drain import AtDeadline, Drain
from xce.replay.cluster import SimulatedCluster
from xce.replay.jobs import Jobs
from xce.replay.timetable import Timetable


def follow_drain(
    event: Drain.Event, cluster: SimulatedCluster, jobs: Jobs, time: Timetable
) -> None:
    """Do in the cluster what an event of a drain says, and look again when there is reason to."""
    host = name_of(event.originator_id)
    match event:
        case Drain.Asked(instance=None):
            cluster.set_host_state(host, HostState.DRAINING)
            time.poll_soon()
        case Drain.Asked(deadline=deadline):
            time.poll_soon()
            if deadline is not None:
                time.poll_at(deadline)
        case Drain.DeadlinePassed(jobs=stopped, at_deadline=AtDeadline.REQUEUE):
            for job in stopped:
                jobs.stop(job)
            time.poll_soon()
        case Drain.Cancelled() | Drain.SlippedIn() if cluster.is_own(host):
            cluster.set_host_state(host, HostState.OPEN)
            time.wake_soon()
        case _:
            pass

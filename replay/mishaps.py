"""What happens to the hosts of a simulated world against our will."""

from collections.abc import Mapping
from datetime import timedelta

from xce.domain.formats.snapshot import HostState
from xce.replay.cluster import SimulatedCluster
from xce.replay.jobs import Jobs
from xce.replay.providers import SimulatedProvider
from xce.replay.timetable import Timetable


class Mishaps:
    """Takes hosts from the cluster, and machines from their providers."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        jobs: Jobs,
        providers: Mapping[str, SimulatedProvider],
        timetable: Timetable,
    ) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._providers = providers
        self._timetable = timetable

    def lose_host(self, host: str) -> None:
        """A host dies: its jobs are queued again; a provisioned one's machine ends."""
        instance = self._cluster.instance_of(host)
        if instance is None:
            self._down(host)
            return
        provider, machine = self._machine_of(instance)
        provider.take(machine, self._timetable.now)
        self._timetable.watch(provider)
        self.bury(provider)

    def take_back(self, host: str, notice: timedelta) -> None:
        """The provider of a provisioned host says that it takes its machine back."""
        instance = self._cluster.instance_of(host)
        assert instance is not None, f"{host} is an own host"
        provider, machine = self._machine_of(instance)
        now = self._timetable.now
        provider.take(machine, now + notice, now)
        self._timetable.watch(provider)
        self._timetable.poll_soon()

    def bury(self, provider: SimulatedProvider) -> None:
        """Stop the jobs of machines that have ended by themselves; their hosts are down until our books say that they are gone."""
        for machine in provider.ended(self._timetable.now):
            host = self._cluster.find_host(f"{provider.name}/{machine}")
            if host is not None:
                self._down(host)

    def _down(self, host: str) -> None:
        self._jobs.stop_all_on(host)
        self._cluster.set_host_state(host, HostState.DOWN)

    def _machine_of(self, instance: str) -> tuple[SimulatedProvider, str]:
        for name, provider in self._providers.items():
            if instance.startswith(f"{name}/"):
                return provider, instance.removeprefix(f"{name}/")
        raise AssertionError(f"{instance} is of no provider")

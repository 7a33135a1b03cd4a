"""Interventions carried out in a simulated world."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from xce.domain.engine import commands as c
from xce.domain.engine import site_commands as s
from xce.domain.engine.calls import Step
from xce.domain.formats import interventions as i
from xce.domain.formats.base import Format
from xce.domain.formats.provider import ProviderDescription
from xce.replay.licence_servers import LicenceServer
from xce.replay.shell import CrashPoint
from xce.replay.workloads.workload import Shape, WorkloadJob
from xce.replay.world import World

#: Who gives the orders of a scenario.
ADMIN = "admin/scenario"
_SECOND = timedelta(seconds=1)
F = TypeVar("F", bound=Format)


@dataclass(frozen=True, slots=True)
class Done:
    """One intervention that was carried out, or could not be; in words."""

    what: str
    refused: bool


class Acts:
    """Does to a world what a scenario's timeline says."""

    def __init__(self, world: World, servers: dict[str, LicenceServer]) -> None:
        self._world = world
        self._servers = servers

    def prepare(self, timeline: tuple[i.Intervention, ...], tell: Callable[[Done], None]) -> None:
        """Put everything down for its time; ``tell`` hears of each when it is done."""
        for act in sorted(timeline, key=lambda act: act.at):
            self._world.at(act.at, partial(self.carry_out, act, tell))

    def carry_out(self, act: i.Intervention, tell: Callable[[Done], None]) -> None:
        """Do it now, whatever its time."""
        fields = act.model_dump(mode="json", exclude_unset=True, exclude={"at", "do"})
        words = " ".join(f"{name}={value}" for name, value in fields.items())
        # Told first: what follows from it comes after it.
        refused = not self._is_possible(act)
        tell(Done(f"{act.do} {words}".strip(), refused))
        if not refused:
            self._do(act)

    def _is_possible(self, act: i.Intervention) -> bool:
        match act:
            case i.KillHost(host=host) | i.Drain(host=host) | i.Open(host=host):
                return self._world.cluster.has_host(host)
            case i.TakeBackHost(host=host):
                return self._world.cluster.instance_of(host) is not None
            case i.SetLimit(limit=limit):
                return any(one.name == limit for one in self._world.config.cluster.limits)
            case _:
                return True

    def _do(self, act: i.Intervention) -> None:
        world = self._world
        match act:
            case i.SetTemplate():
                self._set_template(act)
            case i.SetBehaviour():
                world.providers[act.provider].behave(act.simulation)
                world.wake()
            case i.CutOff():
                world.providers[act.provider].cut_off(world.now + act.lasts, act.calls)
            case i.KillHost():
                world.mishaps.lose_host(act.host)
            case i.TakeBackHost():
                world.mishaps.take_back(act.host, act.notice)
            case i.CancelJob():
                world.jobs.cancel(act.job)
            case i.SlipIn():
                job = WorkloadJob(
                    act.job, (world.now - world.workload.start) // _SECOND, act.run_time // _SECOND, Shape(1)
                )  # fmt: skip
                world.jobs.slip_in(act.host, job)
            case i.Restart():
                world.go_down(act.lasts, frozenset(act.forgets))
            case i.Crash():
                world.crash_at_ask(CrashPoint(act.point.value), act.lasts)
            case i.Stall():
                world.turns.stall(act.provisioner, act.lasts)
            case i.Isolate():
                world.turns.isolate(act.provisioner, act.lasts)
            case i.SetClockBack():
                world.process.set_back += act.by
            case i.DelayDemand():
                world.process.delay_demand(act.by, world.now + act.lasts)
            case i.SetOutside():
                self._servers[act.server].set_outside(act.feature, act.amount)
            case i.BlindServer():
                self._servers[act.server].blind(world.now + act.lasts)
            case i.SetLimit() | i.SetPolicy() | i.SetSession():
                self._configure(act)
            case _:
                self._order(act)

    def _order(
        self,
        act: i.SetOwned | i.Freeze | i.Unfreeze | i.Drain | i.Open | i.Pause | i.Resume,
    ) -> None:
        """Give an administrator's order; one that the state does not allow changes nothing, as in a service."""
        now = self._world.now
        instance = None
        if isinstance(act, (i.Drain, i.Open)):
            instance = self._world.cluster.instance_of(act.host)
        command: c.Command
        match act:
            case i.SetOwned():
                command = c.SetOwned(act.shared, act.owned)
            case i.Freeze():
                command = s.Freeze(act.why)
            case i.Unfreeze():
                command = s.Unfreeze(act.why)
            case i.Drain():
                deadline = None if act.deadline is None else now + act.deadline
                command = s.DrainHost(act.host, instance, act.why, deadline, act.at_deadline)
            case i.Open():
                command = s.OpenHost(act.host, instance, act.why)
            case i.Pause():
                command = c.PauseProvider(
                    act.provider, act.item, now + act.lasts, "by the scenario"
                )
            case i.Resume():
                command = c.ResumeProvider(act.provider, act.item)
        self._world.shell.commit((Step((command,)),), by=ADMIN)
        self._world.wake()

    def _configure(self, act: i.SetLimit | i.SetPolicy | i.SetSession) -> None:
        config = self._world.config
        match act:
            case i.SetLimit(limit=name, amount=amount):
                limits = tuple(
                    one.model_copy(update={"amount": amount}) if one.name == name else one
                    for one in config.cluster.limits
                )
                cluster = config.cluster.model_copy(update={"limits": limits})
                config = config.model_copy(update={"cluster": cluster})
            case i.SetPolicy(policy=policy):
                config = config.model_copy(update={"policy": _changed(config.policy, policy)})
            case i.SetSession(session=session):
                config = config.model_copy(update={"session": _changed(config.session, session)})
        self._world.reconfigure(config)

    def _set_template(self, act: i.SetTemplate) -> None:
        provider = self._world.providers[act.provider]
        changed = {
            name: value
            for name, value in (
                ("price_per_hour", act.price_per_hour),
                ("max_number", act.max_number),
                ("priority", act.priority),
            )
            if value is not None
        }
        offers = tuple(
            offer.model_copy(update=changed) if offer.template_id == act.template else offer
            for offer in provider.description.templates
        )
        description: ProviderDescription = provider.description.model_copy(
            update={"templates": offers}
        )
        provider.redescribe(description)
        self._world.shell.describe(act.provider)
        self._world.wake()


def _changed(before: F, given: F) -> F:
    """Return a model with what another one gives; what that one leaves to its default stays."""
    return before.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})

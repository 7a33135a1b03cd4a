"""A controller over streams in memory, and orders to give it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.engine.source import Streams
from tests.unit.engine.test_controller import CLOUD, OPEN_HOSTS, names
from xce.domain.engine import commands as c
from xce.domain.engine.commands import Command
from xce.domain.engine.controller import (
    Controller,
)
from xce.domain.engine.messages import Answer, Caller, Order, Role
from xce.domain.events.base import DomainEvent
from xce.domain.provisioning.lease import ProviderLease

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
TERM = timedelta(seconds=30)
ADMIN = Caller(Role.ADMIN, "alice")
P1 = Caller(Role.PROVISIONER, "p1")
P2 = Caller(Role.PROVISIONER, "p2")
VIEWER = Caller(Role.VIEWER, "victor")
TAKE = c.TakeLease("cloud", "p1", TERM)
OPEN = replace(OPEN_HOSTS, deadline=AT + timedelta(days=1))


class Rig:
    """A controller over streams in memory, with a clock in seconds; each order is one append."""

    def __init__(self, streams: Streams | None = None, elapsed_s: float = 0.0) -> None:
        self.streams = streams or Streams()
        self.controller = Controller(self.streams)
        self.elapsed_s = elapsed_s
        self.new: list[DomainEvent] = []

    def order(self, caller: Caller, *commands: Command, fails: bool = False, **more: Any) -> Answer:
        more.setdefault("epochs", {"cloud": 1})
        order = Order(
            commands=commands,
            caller=caller,
            at=AT + timedelta(seconds=self.elapsed_s),
            elapsed_s=self.elapsed_s,
            **more,
        )
        try:
            answer = self.controller.perform(order)
        finally:
            self.save(fails=fails)
        return answer

    def tick(self) -> list[str]:
        self.controller.tick(at=AT + timedelta(seconds=self.elapsed_s), elapsed_s=self.elapsed_s)
        return self.save()

    def save(self, *, fails: bool = False) -> list[str]:
        if fails:
            self.controller.forget()
            return []
        self.new = self.streams.save(self.controller.take())
        self.controller.appended()
        return names(self.new)

    def restarted(self, primary: int | None = None) -> "Rig":
        again = Rig(self.streams, elapsed_s=5.0)
        lease = self.streams.get(ProviderLease, "lease:cloud")
        again.controller.start([lease], elapsed_s=again.elapsed_s, primary=primary)
        return again


def ready() -> Rig:
    rig = Rig()
    rig.order(P1, c.DescribeProvider(CLOUD), TAKE)
    return rig

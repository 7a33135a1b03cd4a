"""A template as a session sees it: what a host of it holds, what it costs, how preferred it is."""

from datetime import datetime

from xce.domain.cluster.kinds import HostKind
from xce.domain.formats.snapshot import Template


class Offer:
    """One template, compiled.

    Attributes:
        number: place in the order of preference: priority, priced before unpriced, price, id.
        allowed: how many more hosts of it may be asked for, pauses and capacities aside.
        cost: its price as a float, 0 where it has none; only proposals are made of it.
    """

    __slots__ = ("allowed", "cost", "is_paused", "kind", "number", "price", "priority", "template")

    def __init__(self, template: Template, kind: HostKind, now: datetime) -> None:
        self.template = template
        self.kind = kind
        self.number = 0
        self.priority = template.priority
        self.price = template.price_per_hour
        self.cost = float(self.price or 0)
        self.allowed = template.allowed
        self.is_paused = template.paused_until is not None and template.paused_until > now

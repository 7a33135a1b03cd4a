"""What is said to the log of a simulated site before anything happens: who can be asked, who asks, and what is shared."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from xce.domain.engine.commands import Command, DeclareShared, DescribeProvider, TakeLease
from xce.domain.formats.config import SimulationConfig

#: The lease outlives any simulation: there is nobody to take over.
LEASE_TERM: Final = timedelta(days=3650)
#: Who leads where there is nobody else.
BY_ITSELF: Final = "sim"


def declarations(config: SimulationConfig, *, leads: str | None) -> Iterator[Command]:
    """Yield the commands; ``leads`` has the leases from the beginning, None: nobody has."""
    for provider in config.providers:
        yield DescribeProvider(provider.description())
        if leads is not None:
            yield TakeLease(provider.name, leads, LEASE_TERM)
    for pool in config.cluster.shared:
        yield DeclareShared.of(pool)

"""What the contract suite needs of a provider under test: a factory, and how to make its time pass."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from xce.domain.formats.config import ProviderConfig
from xce.domain.formats.provider import Capabilities, ResourceOffer, TemplateOffer
from xce.domain.formats.simulated_provider import Behaviour, Delay, LeadTimes
from xce.domain.ports import Provider
from xce.replay.providers import SimulatedProvider

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
#: Longer than anything a provider under test takes.
LONG = timedelta(hours=1)
TEMPLATE = "c8"
RESOURCE = "lic_sim"


@dataclass(frozen=True, slots=True)
class Case:
    """A provider under test, new for each test. It creates hosts of ``TEMPLATE`` and lends at least 20 of ``RESOURCE``.

    ``wait``: let a length of time pass for the provider, and return the new time; real ones sleep.
    """

    name: str
    make: Callable[[], Provider]
    wait: Callable[[datetime, timedelta], datetime]


def simulated_config(**changes: object) -> ProviderConfig:
    """Return a simulated provider of hosts and tokens; ``changes`` are fields of its behaviour."""
    fields: dict[str, object] = {
        "lead_time": LeadTimes(lag=delay(20), boot=delay(90), join=delay(10)),
        "return_time": delay(30),
        **changes,
    }
    return ProviderConfig(
        name="sim",
        kinds=("host", "countable"),
        capabilities=Capabilities(request_tag=True, partial_returns=True),
        templates=(
            TemplateOffer(
                template_id=TEMPLATE, price_per_hour=Decimal("0.34"), provides={"slots": 8}
            ),
        ),
        resources=(ResourceOffer(name=RESOURCE, capacity=40, step=5),),
        simulation=Behaviour.model_validate(fields),
    )


def delay(seconds: int) -> Delay:
    """Return a delay that is always so long."""
    return Delay(p50=timedelta(seconds=seconds), p95=timedelta(seconds=seconds))


def virtual_wait(now: datetime, length: timedelta) -> datetime:
    """Return the time after a wait that takes none."""
    return now + length


#: A new provider is one more line.
CASES = (Case("simulated", lambda: SimulatedProvider(simulated_config(), seed=1), virtual_wait),)

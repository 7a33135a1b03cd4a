"""What the contract suite needs of a provider under test: a factory, and how to make its time pass."""

import atexit
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp

from xce.adapters.providers.install import Comes, install
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.formats.config import ProviderConfig
from xce.domain.formats.provider import Capabilities, ResourceOffer, TemplateOffer
from xce.domain.formats.script_provider import ScriptSettings
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


class Scripts:
    """The simulated provider as scripts, behind the caller of scripts; its time is a file."""

    def __init__(self) -> None:
        self._folder = Path()

    def make(self) -> Provider:
        """Return a new one, in a folder that is gone when the process ends."""
        self._folder = Path(mkdtemp(prefix="xce-contract-"))
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        install(Comes.SIMULATED, self._folder / "scripts", conf=SCRIPTS_CONF)
        settings = ScriptSettings(name="scripts", folder=str(self._folder / "scripts"))
        made = ScriptProvider(settings, self._folder / "kept")
        self._set(START)
        made.describe(START)
        return made

    def wait(self, now: datetime, length: timedelta) -> datetime:
        """Let time pass."""
        self._set(now + length)
        return now + length

    def _set(self, now: datetime) -> None:
        (self._folder / "kept" / "data" / "now").write_text(str(now.timestamp()))


SCRIPTS_CONF: dict[str, object] = {
    "templates": [
        {"templateId": TEMPLATE, "maxNumber": -1, "attributes": {"ncpus": ["Numeric", 8]}}
    ],
    "resources": [{"name": RESOURCE, "capacity": 40, "step": 5}],
    "lagSeconds": 20,
    "bootSeconds": 90,
    "returnSeconds": 30,
}
scripts = Scripts()

#: A new provider is one more line.
CASES = (
    Case("simulated", lambda: SimulatedProvider(simulated_config(), seed=1), virtual_wait),
    Case("scripts", scripts.make, scripts.wait),
)

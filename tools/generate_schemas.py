"""JSON Schemas of the formats, shipped in the package beside the models."""

import json
from collections.abc import Iterator

from pydantic import BaseModel

from xce.domain.formats.alert import AlertNotice
from xce.domain.formats.comparison import Comparison, RunOutcome
from xce.domain.formats.delta import Delta
from xce.domain.formats.policy import Decisions, PolicyInput
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.provider_messages import MESSAGES
from xce.domain.formats.scenario import Scenario, ScenarioResult
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.simulation import SimulationReport
from xce.domain.formats.snapshot import Snapshot

FORMATS: dict[str, type[BaseModel]] = {
    "xce.alert.1": AlertNotice,
    "xce.snapshot.1": Snapshot,
    "xce.delta.1": Delta,
    "xce.session.1": SessionResult,
    "xce.policy.1": PolicyInput,
    "xce.decisions.1": Decisions,
    "xce.provider-description.2": ProviderDescription,
    "xce.simulation.1": SimulationReport,
    "xce.comparison-run.1": RunOutcome,
    "xce.comparison.1": Comparison,
    "xce.scenario.1": Scenario,
    "xce.scenario-result.1": ScenarioResult,
}

FORMATS.update({f"xce.provider.{s}.input.2": given for s, (given, _) in MESSAGES.items()})
FORMATS.update(
    {
        f"xce.provider.{script}.output.2": answer
        for script, (_, answer) in MESSAGES.items()
        if answer is not None  # a description, which has its own
    }
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield one schema a format."""
    for name, model in FORMATS.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:xce:{name}",
            **model.model_json_schema(by_alias=True),
        }
        yield f"domain/formats/schemas/{name}.json", json.dumps(schema, indent=1) + "\n"

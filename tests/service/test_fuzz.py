"""Whatever the OpenAPI document allows, and what it does not, is answered with its statuses and never with a defect."""

import os
from collections.abc import Generator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks as general_checks
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from tests.service.running import TOKENS, Running, running
from xce.adapters.controller import openapi, orders, questions
from xce.domain.engine.messages import Role

EXAMPLES = int(os.environ.get("XCE_FUZZ_EXAMPLES", "10"))
_general: Any = general_checks
_openapi: Any = openapi_checks
CHECKS: list[Any] = [
    _general.not_a_server_error,
    _openapi.status_code_conformance,
    _openapi.content_type_conformance,
    _openapi.response_schema_conformance,
]
_schema: Any = schemathesis.openapi.from_dict(
    openapi.document([*orders.ENDPOINTS, *questions.ENDPOINTS])
)
OPERATIONS = {operation.ok().label: operation.ok() for operation in _schema.get_all_operations()}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    with running(tmp_path_factory.mktemp("fuzzed")) as made:
        yield made


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("label", [label for label in OPERATIONS if label != "GET /healthz"])
def test_nothing_that_can_be_called_meets_a_defect(
    fuzzed: Running, label: str, mode: GenerationMode
) -> None:
    headers = {"authorization": f"Bearer {TOKENS[Role.ADMIN]}"}

    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.data_too_large,
        ],
        database=None,
    )
    def holds(case: Any) -> None:
        answer = case.call(base_url=fuzzed.address, headers=headers, timeout=10)
        case.validate_response(answer, checks=CHECKS)

    holds()

"""The OpenAPI document, made from the table of endpoints and the models they name."""

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final, Literal, cast

from pydantic.json_schema import models_json_schema

from xce.adapters.controller.calls import IF_NONE_MATCH, STANDBY, Endpoint, Parameter
from xce.adapters.controller.problems import PROBLEM_JSON, TITLES
from xce.domain.engine.authorisation import ROLES
from xce.domain.engine.messages import Role
from xce.domain.formats.base import Format
from xce.domain.formats.rest import ProblemAnswer

_REF: Final = "#/components/schemas/{model}"
#: What every call with a token may be answered.
_ALWAYS: Final = (400, 401, 403, 429, 500, 503)


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document."""
    rows = list(endpoints)
    answers = dict.fromkeys(row.answer for row in rows if row.answer is not None)
    bodies = dict.fromkeys(row.body for row in rows if row.body is not None)
    out: list[type[Format]] = [*answers, ProblemAnswer]
    models: list[tuple[type[Format], Literal["serialization", "validation"]]] = [
        *((model, "serialization") for model in out),
        *((model, "validation") for model in bodies),
    ]
    definitions, schemas = models_json_schema(cast("Any", models), ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        paths.setdefault(row.plain_path, {})[row.method.lower()] = _operation(row, definitions)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "xce controller",
            "version": version("xce"),
            "description": "Facts about hosts and licence tokens: commands, questions, and what the scheduler publishes.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(row: Endpoint, definitions: Any) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": operation_id(row),
        "summary": row.summary,
        "description": description(row),
        "responses": _responses(row, definitions),
    }
    parameters = [
        *(
            Parameter(
                name,
                "path",
                "name",
                {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 256,
                    "pattern": "^[A-Za-z0-9._/-]+$",
                },
                required=True,
            )
            for name in row.path_parameters
        ),
        *row.parameters,
        *([IF_NONE_MATCH] if row.conditional else ()),
        *([STANDBY] if row.followed else ()),
    ]
    if parameters:
        operation["parameters"] = [
            {
                "name": parameter.name,
                "in": parameter.where,
                "required": parameter.required,
                "description": parameter.description,
                "schema": dict(parameter.schema),
            }
            for parameter in parameters
        ]
    if row.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": definitions[(row.body, "validation")]}},
        }
    if row.open:
        operation["security"] = []
    return operation


def operation_id(row: Endpoint) -> str:
    """Return a name for a row: ``get_v1_requests_id``."""
    words = "".join(c if c.isalnum() else " " for c in row.plain_path).split()
    return "_".join([row.method.lower(), *words])


def description(row: Endpoint) -> str:
    """Return what a row does, and for whom."""
    text = " ".join((row.handler.__doc__ or row.summary).split())
    if row.open:
        return f"{text} Needs no token."
    if row.action is None:
        return f"{text} Each command by itself needs a role that may give it."
    roles = ", ".join(role for role in Role if role in ROLES[row.action])
    return f"{text} For {roles}."


def _responses(row: Endpoint, definitions: Any) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    if row.stream:
        schema: dict[str, Any] = {"type": "string"}
        responses["200"] = {
            "description": "events as they happen",
            "content": {"text/event-stream": {"schema": schema}},
        }
    elif row.answer is None:
        responses["204"] = {"description": "taken"}
    else:
        answer: type[Format] = row.answer
        responses["200"] = {
            "description": " ".join((answer.__doc__ or "").split()),
            "content": {"application/json": {"schema": definitions[(answer, "serialization")]}},
        }
    if row.conditional:
        responses["304"] = {"description": "the same as before"}
    statuses = {*(() if row.open else _ALWAYS), 500, 503}
    if row.path_parameters or row.method != "GET" or row.answer is not None:
        statuses |= {404, 422}
    if row.method != "GET":
        statuses |= {409, 412, 413, 415}
    for status in sorted(statuses):
        responses[str(status)] = {
            "description": TITLES[status],
            "content": {PROBLEM_JSON: {"schema": {"$ref": _REF.format(model="ProblemAnswer")}}},
        }
    return responses

"""Commands as JSON: ``{"command": "open-request", ...}``, made from the command classes and checked like every other format.

The one way from outside into the state machine: REST, the client library and the docs all use it.
"""

import json
from dataclasses import MISSING, fields
from dataclasses import Field as DataclassField
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, Union, cast, get_type_hints

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, create_model, with_config

from xce.domain.engine.commands import COMMANDS, Command, command_name
from xce.domain.errors import InputError
from xce.domain.formats.base import Count, Format, Name, problems_of
from xce.domain.ports import GrantReport, MachineReport, StatusAnswer

#: Commands of one order.
COMMANDS_MAX: Final = 100

for _closed in (StatusAnswer, MachineReport, GrantReport):
    with_config(extra="forbid")(_closed)


#: What is made of classes at run time has no static type.
_make_model: Final[Any] = create_model


def _special(form: Any) -> Any:
    return form


def _default_of(field: "DataclassField[Any]") -> Any:
    if field.default_factory is not MISSING:
        return Field(default_factory=field.default_factory)
    return ... if field.default is MISSING else field.default


def _model_of(command: type[Command]) -> type[Format]:
    hints = get_type_hints(command, include_extras=True)
    own: dict[str, Any] = {
        "command": (_special(Literal)[command_name(command)], ...),
        **{field.name: (hints[field.name], _default_of(field)) for field in fields(command)},
    }
    return cast(
        "type[Format]",
        _make_model(command.__name__, __base__=Format, __doc__=command.__doc__, **own),
    )


#: The model of each command.
MODELS: Final[dict[type[Command], type[Format]]] = {
    command: _model_of(command) for command in COMMANDS
}
_COMMAND_OF: Final[dict[type[Format], type[Command]]] = {
    model: command for command, model in MODELS.items()
}
#: Any command.
_any_command: Final[Any] = _special(Annotated)[
    _special(Union)[tuple(MODELS.values())], Field(discriminator="command")
]


class _Order(Format):
    """Commands to be carried out together, all or nothing."""

    commands: tuple[Any, ...]
    epochs: dict[Name, Count] = Field(
        default_factory=dict,
        description="by provider: the lease epoch under which the caller acts; another one refuses the order",
    )


def _some(commands: tuple[Any, ...]) -> tuple[Any, ...]:
    if (
        not 1 <= len(commands) <= COMMANDS_MAX
    ):  # looked at after each of them, so that their mistakes are not hidden
        raise ValueError(f"{len(commands)} commands; wanted 1 to {COMMANDS_MAX}")
    return commands


OrderFormat: Final[type[_Order]] = _make_model(
    "Order",
    __base__=_Order,
    __doc__=_Order.__doc__,
    commands=(
        _special(Annotated)[_special(tuple)[_any_command, ...], AfterValidator(_some)],
        Field(json_schema_extra={"minItems": 1, "maxItems": COMMANDS_MAX}),
    ),
)

_ADAPTER: Final[TypeAdapter[Any]] = TypeAdapter(_any_command)


def read_order(text: str | bytes, source: str) -> tuple[tuple[Command, ...], dict[str, int]]:
    """Return the commands of an order, and the lease epochs it is given under.

    Raises:
        InputError: not an order; it lists every problem with its path.
    """
    order = OrderFormat.from_json(text, source)
    return tuple(_command(model) for model in order.commands), dict(order.epochs)


def read_command(document: dict[str, Any], source: str) -> Command:
    """Return the command of one JSON document.

    Raises:
        InputError: not a command; it lists every problem with its path.
    """
    try:
        return _command(_ADAPTER.validate_json(json.dumps(document), strict=True))
    except ValidationError as error:
        raise InputError(source, problems_of(error)) from None


def write_command(command: Command) -> dict[str, Any]:
    """Return a command as a JSON document."""
    values: dict[str, Any] = {field.name: getattr(command, field.name) for field in fields(command)}
    values["command"] = command_name(type(command))
    model = MODELS[type(command)].model_construct(None, **values)
    return model.model_dump(mode="json", by_alias=True)


def content_of(commands: tuple[Command, ...]) -> str:
    """Return the digest that two orders share exactly when their commands are equal."""
    text = json.dumps([write_command(command) for command in commands], sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _command(model: Format) -> Command:
    command_class = cast("Any", _COMMAND_OF[type(model)])
    return cast(
        "Command",
        command_class(
            **{field.name: getattr(model, field.name) for field in fields(command_class)}
        ),
    )

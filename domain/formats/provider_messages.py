"""The messages of the provider contract, versions 1 and 2: what scripts are given and what they answer.

What we write is exact. What we read is forgiving where existing scripts differ: a single object for a list, numbers as texts, the
pairs ``[kind, value]`` of attributes; keys that we do not know are kept. The rules are in ``docs/reference/provider-contract.md``.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from xce.domain.errors import Problem
from xce.domain.formats.base import Amount, Count, Lent, Name, Time, problems_of
from xce.domain.formats.provider import ItemName
from xce.domain.formats.snapshot import Attribute
from xce.domain.ports import MachineResult, RequestStatus

M = TypeVar("M", bound=BaseModel)

#: Ids or machines of one call.
PER_CALL_MAX: Final = 100


# ------------------------------------------------------------------------ plain values
def _text(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    return value


def _number(value: object) -> object:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _list(value: object) -> object:
    if value is None:
        return []
    return [cast("object", value)] if isinstance(value, dict) else value


def _time(value: object) -> object:
    """Return a time from RFC 3339 text, or seconds or milliseconds since 1970; anything else is unknown."""
    if isinstance(value, str):
        text = value.strip()
        if not _SECONDS.fullmatch(text):
            try:
                read = datetime.fromisoformat(text)
            except ValueError:
                return None
            read = read if read.tzinfo else read.replace(tzinfo=UTC)
            return read if 1970 <= read.year < 2900 else None
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = value / 1000 if value > 10**11 else value
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < 10**10 else None


def _duration(value: object) -> object:
    if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, float) and 0 <= value < 10**9:
        return round(value)
    return value if isinstance(value, int) and 0 <= value < 10**9 else None


def _price(value: object) -> object:
    """Return money from a number, a text, or the ``price:0.17,...`` of Symphony; anything else is unknown."""
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        return None
    match = _PRICE.search(text)
    return None if match is None else match["price"]


def _attribute(value: object) -> object:
    """Return the value of ``[kind, value]``, of its kind; a plain value stays."""
    if not isinstance(value, list):
        return value
    pair = cast("list[object]", value)
    if len(pair) != 2 or pair[0] not in ("String", "Numeric", "Boolean"):
        raise ValueError('wanted ["String", "Numeric" or "Boolean", value]')
    kind, inner = pair
    if kind == "String":
        return _text(inner)
    text = str(inner).strip()
    if kind == "Boolean":
        if text.lower() not in _FLAGS:
            raise ValueError(f"{text[:40]!r} is not Boolean")
        return _FLAGS[text.lower()]
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not Numeric")
    return Decimal(text)


_WHOLE = re.compile(r"[-+]?\d{1,15}", re.ASCII)
_SECONDS = re.compile(r"\d{1,15}(?:\.\d{0,9})?", re.ASCII)
_DECIMAL = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_PRICE = re.compile(
    r"^(?:.*\bprice:)?\s*\$?(?P<price>\d{1,14}(?:\.\d{1,6})?)\d*(?=$|[\s,/])", re.ASCII
)
_FLAGS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _word(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _result(value: object) -> object:
    return _word(value) or MachineResult.EXECUTING


#: Upper and lower case are the same; no result yet is one that is being worked on.
Status = Annotated[RequestStatus, BeforeValidator(_word)]
Result = Annotated[MachineResult, BeforeValidator(_result)]
#: A text; null is an empty one, a number is written out.
Text = Annotated[str, BeforeValidator(_text)]
#: A whole number, also as a text.
Number = Annotated[int, BeforeValidator(_number), Field(ge=-(2**53) + 1, le=2**53 - 1)]
#: A time, or null for what is none.
When = Annotated[Time | None, BeforeValidator(_time)]
#: Seconds, or null for what are none.
Seconds = Annotated[Count | None, BeforeValidator(_duration)]
Price = Annotated[Decimal | None, BeforeValidator(_price)]
TemplateAttribute: TypeAlias = Annotated[
    Attribute,
    BeforeValidator(_attribute),
    WithJsonSchema(
        {
            "type": "array",
            "prefixItems": [
                {"enum": ["String", "Numeric", "Boolean"]},
                {"type": ["string", "number", "boolean"]},
            ],
            "minItems": 2,
            "maxItems": 2,
        }
    ),
]


class Given(BaseModel):
    """Base of what scripts are given: exact, without fields that are null."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    def to_json(self) -> str:
        """Return the input file of a script."""
        return self.model_dump_json(exclude_none=True)


class Answer(BaseModel):
    """Base of what scripts answer: unknown keys are kept."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,
    )


# ---------------------------------------------------------------------- what we write
class TemplateCount(Given):
    """What is asked for: so many machines of a template."""

    template_id: str
    machine_count: Annotated[int, Field(ge=1)]


class RequestMachines(Given):
    """Input of ``requestMachines``."""

    template: TemplateCount
    rc_account: str = Field(default="default", alias="rc_account")
    user_data: dict[str, str] = Field(default_factory=dict)
    request_tag: str | None = Field(default=None, description="version 2")


class RequestId(Given):
    """One request asked after."""

    request_id: str


class GetRequestStatus(Given):
    """Input of ``getRequestStatus``: requests and returns."""

    requests: tuple[RequestId, ...]


class MachineName(Given):
    """A machine by the name and id that the provider reported."""

    name: str
    machine_id: str


class Machines(Given):
    """Input of ``requestReturnMachines`` (never empty) and ``getReturnRequests``."""

    machines: tuple[MachineName, ...]
    request_tag: str | None = Field(default=None, description="version 2, of a return: its id")


class CheckedMachine(MachineName):
    """A machine that has reported: its name in the cluster, and its template."""

    host: str
    template_id: str


class CheckMachines(Given):
    """Input of ``checkMachines`` (version 2), never empty."""

    machines: tuple[CheckedMachine, ...]


class RequestResources(Given):
    """Input of ``requestResources`` (version 2)."""

    resource: str
    amount: Annotated[int, Field(ge=1)]
    least_useful: int = 0
    request_tag: str


class GrantAmount(Given):
    """An amount of a grant that goes back."""

    grant_id: str
    amount: Annotated[int, Field(ge=1)]


class RequestReturnResources(Given):
    """Input of ``requestReturnResources`` (version 2)."""

    grants: tuple[GrantAmount, ...]
    request_tag: str | None = None


class GrantName(Given):
    """A grant, by the provider's id."""

    grant_id: str


class RenewResources(Given):
    """Input of ``renewResources`` (version 2): grants whose ends are to be put off."""

    grants: tuple[GrantName, ...]


class Nothing(Given):
    """Input of the scripts that are asked for all there is."""


# ----------------------------------------------------------------------- what we read
class TemplateAnswer(Answer):
    """A kind of host that a provider offers."""

    template_id: Annotated[ItemName, BeforeValidator(_text)]
    max_number: Annotated[Number, Field(ge=-1)] = Field(default=-1, description="-1: no limit")
    priority: Number = Field(default=0, description="higher first")
    available_number: Number | None = None
    attributes: dict[Name, TemplateAttribute] = Field(
        default_factory=dict, description="name to [kind, value]; kinds String, Numeric, Boolean"
    )
    price_info: Price = None
    instance_tags: Text = ""


class GetAvailableTemplatesAnswer(Answer):
    """Output of ``getAvailableTemplates``."""

    templates: Annotated[tuple[TemplateAnswer, ...], BeforeValidator(_list)]
    message: Text = ""


class RequestAnswer(Answer):
    """Output of everything that is asked and takes time: an id to ask after."""

    request_id: Text = ""
    message: Text = ""
    retry_after: Seconds = Field(default=None, description="version 2: seconds, with a refusal")


class MachineAnswer(Answer):
    """One machine of a request or a return."""

    machine_id: Annotated[str, BeforeValidator(_text)] = ""
    name: Annotated[str, BeforeValidator(_text)] = ""
    result: Result = MachineResult.EXECUTING
    status: Text = Field(default="", description="for people, never decided on")
    private_ip_address: Text = ""
    public_ip_address: Text = ""
    public_dns_name: Text = ""
    launchtime: When = Field(default=None, alias="launchtime")
    message: Text = ""
    template_id: Text = ""
    request_tag: Text = ""


class GrantAnswer(Answer):
    """One amount of a resource that a request brought, or that a return gives back."""

    grant_id: Annotated[Name, BeforeValidator(_text)]
    resource: Annotated[str, BeforeValidator(_text)] = ""
    amount: Annotated[Lent, BeforeValidator(_number)] = 1
    hold_until: When = None
    expires_at: When = None
    result: Result = MachineResult.SUCCEED
    message: Text = ""
    request_tag: Text = ""


class StatusOfRequest(Answer):
    """Where one request or return is."""

    request_id: Annotated[Name, BeforeValidator(_text)]
    status: Status
    message: Text = ""
    machines: Annotated[tuple[MachineAnswer, ...], BeforeValidator(_list)] = ()
    grants: Annotated[tuple[GrantAnswer, ...], BeforeValidator(_list)] = ()


class GetRequestStatusAnswer(Answer):
    """Output of ``getRequestStatus``."""

    requests: Annotated[tuple[StatusOfRequest, ...], BeforeValidator(_list)]
    message: Text = ""


class TakenBack(Answer):
    """A host that the provider takes back, or that is gone."""

    machine: Text = ""
    machine_id: Text = ""
    grace_period: Seconds = None


class GetReturnRequestsAnswer(Answer):
    """Output of ``getReturnRequests``."""

    requests: Annotated[tuple[TakenBack, ...], BeforeValidator(_list)] = ()
    message: Text = ""


class ListMachinesAnswer(Answer):
    """Output of ``listMachines`` (version 2): everything the provider has for us."""

    machines: Annotated[tuple[MachineAnswer, ...], BeforeValidator(_list)]


class CheckMachinesAnswer(ListMachinesAnswer):
    """Output of ``checkMachines`` (version 2): one that is executing, or not named, is looked at again."""


class ListGrantsAnswer(Answer):
    """Output of ``listGrants`` (version 2)."""

    grants: Annotated[tuple[GrantAnswer, ...], BeforeValidator(_list)]


class RenewedGrant(Answer):
    """A grant of which the end was put off."""

    grant_id: Annotated[Name, BeforeValidator(_text)]
    expires_at: When = None


class RenewResourcesAnswer(Answer):
    """Output of ``renewResources`` (version 2): a grant that is not named ends when it would have."""

    grants: Annotated[tuple[RenewedGrant, ...], BeforeValidator(_list)]


class ResourceAnswer(Answer):
    """A countable resource that a provider lends."""

    name: Annotated[ItemName, BeforeValidator(_text)]
    headroom: Annotated[Count, BeforeValidator(_number)] | None = Field(
        default=None, description="how many more it lends; null: unknown"
    )
    capacity: Annotated[Count, BeforeValidator(_number)] | None = None
    step: Annotated[Amount, BeforeValidator(_number)] = 1
    price: Price = None
    hold: Seconds = Field(default=None, description="seconds that a grant is kept at least")
    recalled_to: Annotated[Count, BeforeValidator(_number)] | None = Field(
        default=None,
        description="it wants what it lends us to fall to this amount; null: it wants nothing back",
    )


class GetAvailableResourcesAnswer(Answer):
    """Output of ``getAvailableResources`` (version 2)."""

    resources: Annotated[tuple[ResourceAnswer, ...], BeforeValidator(_list)]


class ObservedResource(Answer):
    """What a monitor sees of a resource."""

    name: Annotated[ItemName, BeforeValidator(_text)]
    issued: Annotated[Count, BeforeValidator(_number)] | None = None
    in_use: Annotated[Count, BeforeValidator(_number)] | None = None
    queued: Annotated[Count, BeforeValidator(_number)] | None = None
    observed_at: When = None


class ObserveResourcesAnswer(Answer):
    """Output of ``observeResources`` (version 2)."""

    resources: Annotated[tuple[ObservedResource, ...], BeforeValidator(_list)]


#: Every script: what it is given, and what it answers. ``getProviderDescription`` answers ``provider.ProviderDescription``.
MESSAGES: Final[Mapping[str, tuple[type[Given], type[BaseModel] | None]]] = {
    "getAvailableTemplates": (Nothing, GetAvailableTemplatesAnswer),
    "requestMachines": (RequestMachines, RequestAnswer),
    "getRequestStatus": (GetRequestStatus, GetRequestStatusAnswer),
    "requestReturnMachines": (Machines, RequestAnswer),
    "getReturnRequests": (Machines, GetReturnRequestsAnswer),
    "getProviderDescription": (Nothing, None),
    "listMachines": (Nothing, ListMachinesAnswer),
    "checkMachines": (CheckMachines, CheckMachinesAnswer),
    "getAvailableResources": (Nothing, GetAvailableResourcesAnswer),
    "requestResources": (RequestResources, RequestAnswer),
    "requestReturnResources": (RequestReturnResources, RequestAnswer),
    "renewResources": (RenewResources, RenewResourcesAnswer),
    "listGrants": (Nothing, ListGrantsAnswer),
    "observeResources": (Nothing, ObserveResourcesAnswer),
}


class NotUnderstoodError(ValueError):
    """A JSON object was read and is not the message that it should be; ``problems`` say where."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems[:3])))


def understood(model: type[M], message: object) -> M:
    """Return a message as its model.

    Raises:
        NotUnderstoodError: it is another message, or something in it is wrong.
    """
    try:
        return model.model_validate(message)
    except ValidationError as error:
        raise NotUnderstoodError(problems_of(error)) from None

"""The REST interface and the controller's configuration: pages made from the table of endpoints and the models."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from xce.adapters.controller import openapi, orders, questions
from xce.adapters.controller.app import own_endpoints
from xce.adapters.controller.problems import STATUS_OF, TITLES, RefusedCallError
from xce.domain.engine.authorisation import ROLES
from xce.domain.engine.commands import COMMANDS, command_name
from xce.domain.engine.messages import Role
from xce.domain.engine.wire import MODELS
from xce.domain.formats.alert_settings import AlertSettings
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.controller_config import ControllerConfig, Listen
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.provisioner_config import ProvisionerConfig
from xce.domain.formats.scheduler_config import SchedulerConfig
from xce.domain.formats.scheduler_orders import OrdersDocument
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.values import write_duration

MADE = "Made from the code by `tools/generate.py`; do not edit."

HEAD = f"""# REST interface

{MADE} The controller serves the whole as an OpenAPI 3.1 document at `/v1/openapi.json`, with a schema for each body and answer.

- **Who calls**: `Authorization: Bearer TOKEN`, or a client certificate. [Roles](roles.md) says who may do what.
- **Bodies** are JSON, UTF-8, with no unknown field and no key twice. Times are RFC 3339, durations texts such as `30s`, money decimal strings.
- **Answers** of changes come when the events are durable. Nothing of a refused order is recorded.
- **Repeats**: with an `Idempotency-Key`, the same call again gets the same answer and does nothing, also after a restart. The key belongs to its caller; for other
  commands it is refused (`key-reused`). Ids that the caller gives (requests, returns) make a repeat harmless without a key as well.
- **Versions**: a single thing has an `ETag`; a change with `If-Match` is refused with 412 when it has changed since.
- **The same again**: a list has an `ETag`, too; with `If-None-Match` an answer that is the same as before is 304, without its body.
- **Several controllers**: one is the primary. One that stands by answers 503 `not-primary` with `Retry-After`, and names the primary, in `X-XCE-Primary`
  too where it has a `url`; `/healthz`, `/metrics` and this interface's document it answers itself. Give a client all addresses: it finds the primary. A caller who takes what may be behind says so with
  `X-XCE-Standby: allow`: then a standby answers what is marked with ° from what it has read of the log, with `X-XCE-Standby: true` and `X-XCE-Position`. Never plan on such an answer.
- **Leases**: a provisioner names in `epochs` the lease epoch under which it acts on each provider. An old one is refused (`stale-epoch`): it must stop acting.
  What it says of a provider (descriptions, pauses) is refused, too, where another one acts on the provider.
- **Bookings** name in `primary` and `as_of` the `primary` and `now` of the supply that the session was of: one that comes late, behind a newer one or after
  a failover, is refused (`late-report`). Without them a report counts whenever it comes.
- **Pages**: lists take `limit` (at most 1000) and `cursor`; `next` of one page is the cursor of the next, null on the last.
- **Errors** are `application/problem+json` with a stable `code`; a message that cannot be read lists all its problems with their paths. 503 and 429 may be
  tried again, with the same key.
- **Calls** are named: `X-Request-Id` is taken over or made, and is in the answer and in the log.
- **In memory only**: session results, snapshots, bookings and renewals. They are unknown after a start.

## The stream

`GET /v1/stream` answers with Server-Sent Events, for as long as the caller reads:

    event: session
    data: {{"number": 3, "age_s": 0.1, "by": "scheduler/sched", "result": {{...}}}}

    id: 4711
    event: event
    data: {{"position": 4711, "name": "xce.request.intended", "aggregate": "request:R1", ...}}

The newest session result comes at once, then each newer one; one that the reader did not take in time is skipped, and `result` is null while demand is unknown.
Events come in order, none skipped, from `after` or `Last-Event-ID`. A comment comes every 15 s when nothing happens. A reader that takes nothing for 30 s
(`limits.stream_stall`) is cut off and comes back with the position it has.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the three pages."""
    yield "docs/reference/rest.md", HEAD + _endpoints() + _commands() + _problems()
    yield "docs/reference/controller.md", _configuration()
    yield "docs/reference/provisioner.md", _provisioner()
    yield "docs/reference/scheduler.md", _scheduler()


def _endpoints() -> str:
    text = "\n## Endpoints\n\n| call | does | body | answer |\n|---|---|---|---|\n"
    for row in (*orders.ENDPOINTS, *questions.ENDPOINTS, *own_endpoints()):
        body = "" if row.body is None else f"`{row.body.__name__}`"
        answer = "" if row.answer is None else f"`{row.answer.__name__}`"
        mark = "°" if row.followed else ""
        text += f"| `{row.method} {row.plain_path}`{mark} | {_cell(openapi.description(row))} | {body} | {answer} |\n"
    return text


def _commands() -> str:
    text = (
        '\n## Commands\n\n`POST /v1/commands` takes `{"commands": [...], "epochs": {"PROVIDER": EPOCH}}`:'
        " each command an object with its name in `command`, and its fields. Up to 100, all or nothing.\n"
        "\n| command | fields | for | does |\n|---|---|---|---|\n"
    )
    for command in COMMANDS:
        fields = [f"`{name}`" for name in MODELS[command].model_fields if name != "command"]
        roles = ", ".join(role for role in Role if role in ROLES[command])
        summary = (command.__doc__ or "").strip().partition("\n")[0]
        text += (
            f"| `{command_name(command)}` | {', '.join(fields)} | {roles} | {_cell(summary)} |\n"
        )
    return text


def _problems() -> str:
    text = "\n## Statuses of problems\n\n| status | title | codes |\n|---|---|---|\n"
    codes: dict[int, list[str]] = {}
    for kind in (RefusedCallError, *_below(RefusedCallError)):
        codes.setdefault(kind.status, []).append(kind.code)
    seen: set[str] = set()
    for kind, status in STATUS_OF:
        for one in [kind, *_below(kind)]:
            if one.code not in seen:
                seen.add(one.code)
                codes.setdefault(status, []).append(one.code)
    codes.setdefault(500, []).append("internal")
    for status, title in TITLES.items():
        names = ", ".join(f"`{code}`" for code in dict.fromkeys(codes.get(status, ())))
        text += f"| {status} | {title} | {names} |\n"
    return text


def _below(kind: Any) -> list[Any]:
    return [one for sub in kind.__subclasses__() for one in (sub, *_below(sub))]


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


def _configuration() -> str:
    text = f"""# The controller's configuration

{MADE} `examples/controller/controller.yaml` is a commented example; [how to run the controller](../how-to/run-the-controller.md) uses it.
`xce controller --config FILE --check` says what is wrong, each mistake with its line.

| key | default | meaning |
|---|---|---|
"""
    modules = frozenset({ControllerConfig.__module__, AlertSettings.__module__})
    return text + "".join(_rows(ControllerConfig, "", modules))


def _scheduler() -> str:
    text = f"""# The scheduler driver's configuration

{MADE} `examples/live/scheduler.yaml` is a short example; [how to run the scheduler driver](../how-to/run-the-scheduler.md) says what it does.
`xce scheduler --config FILE --check` says what is wrong, each mistake with its line.

| key | default | meaning |
|---|---|---|
"""
    modules = frozenset({SchedulerConfig.__module__, Listen.__module__})
    text += "".join(_rows(SchedulerConfig, "", modules))
    return f"""{text}
## Orders (`xce.scheduler-orders/1`)

What the other scheduler is to do: the file `source.watched.orders`, or `GET /v1/orders` of `source.posted`.

| key | default | meaning |
|---|---|---|
{"".join(_rows(OrdersDocument, "", frozenset({OrdersDocument.__module__})))}"""


def _provisioner() -> str:
    text = f"""# The provisioner's configuration

{MADE} `examples/provisioner/provisioner.yaml` is a commented example; [how to run the provisioner](../how-to/run-the-provisioner.md) uses it.
`xce provisioner --config FILE --check` says what is wrong, each mistake with its line. The rules behind `policy` are in the [policy reference](policy.md);
a `description` has the fields of [a provider in a configuration](configuration.md).

| key | default | meaning |
|---|---|---|
"""
    parts = (ProvisionerConfig, LifecycleSettings, ScriptSettings, PolicyConfig, PolicySettings)
    modules = frozenset(part.__module__ for part in parts) - {"xce.domain.formats.config"}
    rows = (
        *_rows(ProvisionerConfig, "", modules),
        *(f"| `policy.{row[3:]}" for row in _rows(PolicyConfig, "", modules)),
    )
    return text + "".join(dict.fromkeys(rows))


def _rows(model: type[BaseModel], above: str, modules: frozenset[str]) -> Iterator[str]:
    for name, info in model.model_fields.items():
        key = f"{above}{name}"
        inner = _inner(info)
        default = _default(info)
        meaning = _cell(info.description or (inner.__doc__ if inner else "") or "")
        yield f"| `{key}` | {default} | {meaning} |\n"
        if inner is not None and inner.__module__ in modules:
            many = "tuple" in str(info.annotation)
            yield from _rows(inner, f"{key}[]." if many else f"{key}.", modules)


def _inner(info: FieldInfo) -> type[BaseModel] | None:
    todo: list[Any] = [info.annotation]
    while todo:
        one = todo.pop()
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
        todo += get_args(one)
    return None


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if isinstance(info.default, BaseModel) or info.default in (PydanticUndefined, ()):
        return ""
    return f"`{_plain(info.default)}`"


def _plain(value: object) -> str:
    if value is None:
        return "null"
    if value == "":
        return '""'
    if isinstance(value, tuple):
        return ", ".join(map(_plain, cast("tuple[object, ...]", value)))
    if isinstance(value, bool):
        return str(value).lower()
    return write_duration(value) if isinstance(value, timedelta) else str(value)

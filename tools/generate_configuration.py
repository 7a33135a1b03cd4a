"""The configuration reference: what the models say of each key, and what only a person can say of the whole."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from xce.domain.formats.config import (
    ClusterConfig,
    DriverConfig,
    HostGroup,
    MemoryRule,
    PolicyConfig,
    ProviderConfig,
    SharedPool,
    SimulationConfig,
    WorkloadConfig,
)
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.policy import AskRate, Budget, StandingMinimum
from xce.domain.formats.provider import (
    Billing,
    Capabilities,
    Granularity,
    LeadTime,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.formats.simulated_provider import (
    Behaviour,
    Delay,
    LeadTimes,
    OutsideUse,
    Refusal,
    TakeBacks,
    TemplateBehaviour,
    Throttle,
)
from xce.domain.formats.snapshot import Group, Limit, Queue, Quota, Settings
from xce.domain.formats.workload_rules import CutRule, LicencePeak, LicenceRule, ScaleRule
from xce.domain.values import write_duration

PATH: Final = "docs/reference/configuration.md"

#: Every part of the file: the path of its keys, and its model.
PARTS: Final[tuple[tuple[str, type[BaseModel]], ...]] = (
    ("the whole file", SimulationConfig),
    ("cluster", ClusterConfig),
    ("cluster.hosts[]", HostGroup),
    ("cluster.shared[]", SharedPool),
    ("cluster.queues[]", Queue),
    ("cluster.limits[]", Limit),
    ("cluster.quotas[]", Quota),
    ("cluster.groups[]", Group),
    ("providers[]", ProviderConfig),
    ("providers[].templates[]", TemplateOffer),
    ("providers[].resources[]", ResourceOffer),
    ("providers[].lead_time", LeadTime),
    ("providers[].billing", Billing),
    ("providers[].granularity", Granularity),
    ("providers[].capabilities", Capabilities),
    ("providers[].simulation", Behaviour),
    ("providers[].simulation.lead_time", LeadTimes),
    ("a delay, such as providers[].simulation.lead_time.boot", Delay),
    ("providers[].simulation.refusals[]", Refusal),
    ("providers[].simulation.outside_use.RESOURCE[]", OutsideUse),
    ("providers[].simulation.throttle", Throttle),
    ("providers[].simulation.take_backs", TakeBacks),
    ("providers[].simulation.templates.TEMPLATE", TemplateBehaviour),
    ("workload", WorkloadConfig),
    ("workload.memory", MemoryRule),
    ("workload.licences[]", LicenceRule),
    ("workload.licences[].peaks[]", LicencePeak),
    ("workload.cut", CutRule),
    ("workload.scale", ScaleRule),
    ("session", Settings),
    ("policy", PolicyConfig),
    ("policy.standing[]", StandingMinimum),
    ("policy.budgets[]", Budget),
    ("policy.budgets[].max_asked", AskRate),
    ("lifecycle", LifecycleSettings),
    ("driver", DriverConfig),
)

#: What the models leave to the name of a key.
MEANING: Final[dict[str, str]] = {
    "SimulationConfig.cluster": "the own partition and the rules of the cluster",
    "SimulationConfig.providers": "who creates hosts or lends counts, and how the simulated ones behave",
    "SimulationConfig.workload": "how a trace becomes jobs",
    "SimulationConfig.session": "how sessions decide",
    "SimulationConfig.policy": "what may be bought and kept",
    "SimulationConfig.lifecycle": "how what was asked for is followed, and what becomes of what nobody owns",
    "SimulationConfig.driver": "seed and intervals of virtual time",
    "ClusterConfig.hosts": "groups of own hosts",
    "ClusterConfig.shared": "cluster-wide countable resources, such as licences",
    "ClusterConfig.queues": "queues; one that is not listed has priority 0",
    "ClusterConfig.limits": "at most so much of a resource for the running jobs that match",
    "ClusterConfig.quotas": "guaranteed and greatest amounts of groups",
    "ClusterConfig.groups": "named sets of users",
    "HostGroup.total": "amounts that each host has: slots, mem, any other name",
    "HostGroup.state": "only open hosts take work",
    "HostGroup.exclusive_to": "the only user whose jobs may use these hosts",
    "SharedPool.name": "the name that jobs use in rusage",
    "SharedPool.owned": "how much of it the cluster owns",
    "Queue.name": "as in the trace",
    "Queue.priority": "higher first",
    "Limit.name": "named in pend reasons",
    "Limit.amount": "the most",
    "Limit.projects": "null: all projects",
    "Limit.queues": "null: all queues",
    "Limit.arrays": "null: all arrays",
    "Limit.per": "count separately for each value of this, or of several together",
    "Quota.name": "named in pend reasons",
    "Quota.group": "an entry of groups",
    "Quota.resource": "slots, a host consumable or a shared resource",
    "Quota.guaranteed": "kept for the group while it has jobs that could start",
    "Quota.maximum": "the most the group may use; null: no limit",
    "Group.name": "used by limits and quotas",
    "Group.users": "its members",
    "ProviderConfig.name": "used in the log, in budgets and by shared resources",
    "ProviderConfig.contract": "version of the provider contract",
    "ProviderConfig.capabilities": "what it can do beyond version 1 of the contract",
    "ProviderConfig.lead_time": "what it says of its lead time",
    "ProviderConfig.granularity": "sizes of one ask",
    "ProviderConfig.billing": "how use turns into cost",
    "ProviderConfig.minimum_hold": "nothing of it goes back earlier",
    "ProviderConfig.region": "for people",
    "ProviderConfig.zone": "for people",
    "ProviderConfig.attributes": "anything else, for people",
    "ProviderConfig.templates": "kinds of hosts that it creates",
    "ProviderConfig.resources": "countable resources that it lends",
    "ProviderConfig.simulation": "what it does in a simulation",
    "TemplateOffer.template_id": "its name; the same at two providers is the same kind of host",
    "TemplateOffer.attributes": "attributes that its hosts will have",
    "TemplateOffer.provides": "amounts that each of its hosts will have",
    "ResourceOffer.name": "a shared resource of the cluster",
    "ResourceOffer.step": "lent and taken back in multiples of this",
    "ResourceOffer.minimum_hold": "a grant does not go back earlier",
    "LeadTime.p50": "median",
    "LeadTime.p95": "95th percentile",
    "Billing.minimum": "what is paid at least",
    "Billing.unit": "each second, or each started hour",
    "Granularity.minimum": "of one ask",
    "Granularity.step": "an ask is a multiple of this",
    "Capabilities.cancel": "can be told to give a request up",
    "Behaviour.lead_time": "how long hosts and tokens really take",
    "Behaviour.refusals": "when asks are refused; the first rule that applies",
    "Delay.p50": "median",
    "Delay.p95": "95th percentile",
    "Refusal.code": "stable reason, as providers give it",
    "Refusal.why": "for people",
    "Refusal.retry_after": "when it may be asked again; null: it does not say",
    "Throttle.calls": "so many calls",
    "Throttle.per": "within so long",
    "TemplateBehaviour.lead_time": "how long its hosts really take",
    "TemplateBehaviour.return_time": "from the return until the machine is gone and costs no more",
    "TemplateBehaviour.boot_failure": "of its machines, fails instead of booting",
    "TemplateBehaviour.never_join": "of its machines, boots and never joins",
    "TemplateBehaviour.unhealthy": "of its machines, joins and fails its health check",
    "TemplateBehaviour.take_backs": "what the provider takes back by itself",
    "OutsideUse.start": "when it begins",
    "OutsideUse.amount": "units that others hold from then on",
    "WorkloadConfig.memory": "how the memory column is read",
    "WorkloadConfig.cut": "which part of the jobs",
    "WorkloadConfig.scale": "how the jobs are changed",
    "WorkloadConfig.licences": "shares of the jobs that need tokens",
    "MemoryRule.unit": "of a number in the trace",
    "MemoryRule.scope": "whether it is of each processor or of the whole job",
    "LicenceRule.feature": "a shared resource of the cluster",
    "Settings.idle_host_after": "a provisioned host without a job for so long may go back",
    "Settings.order": "what a job that cannot start does to those behind it; --order overrides it",
    "PolicyConfig.budgets": "bounds on what exists or is asked",
    "StandingMinimum.template": "a template's own id, at whatever price",
    "Budget.name": "named in decisions",
    "Budget.max_hosts": "null: no bound",
}

HEAD: Final = """# The configuration file

Made from the code by `tools/generate.py`; do not edit. `examples/metacentrum.yaml` and `examples/kth.yaml` are whole, commented files.

    xce config check site.yaml          say what is wrong, each mistake with its line; exit code 2 if anything is
    xce config check site.yaml --json   the same for programs
    xce sim swf TRACE --config site.yaml

Every mistake is one line, `file:line: path: message`, and all of them are said at once. A key that is not known is a mistake, with the
key that was probably meant. Nothing has a default that depends on the machine.

## How values are written

The file is YAML in UTF-8, with a few rules that keep plain words from turning into something else:

- Only `true` and `false` are flags; `yes`, `no`, `on` and `off` are texts. Only decimal numbers are numbers; `010`, `0x10` and `10:30` are texts.
- Anchors and aliases work; merge keys (`<<`), tags (`!x`) and several documents in a file do not. A key may stand only once.

| word below | written as |
|---|---|
| duration | `90s`, `15min`, `1h30m`, `2d`, or whole seconds |
| amount | a whole number in base units (slots, tokens, MiB), or with a unit: `8GiB` |
| money | `0.17` or `"0.17"`: exact, in the one currency of the site |
| share | `0` to `1`, exact |
| time | `2013-01-01T00:00:00Z` |
| attribute | a text, a number, `true` or `false` |
| delay | a duration, which then always holds, or `{p50: 2min, p95: 5min}`: log-normal |

## How a trace becomes jobs

| of the record | of the job |
|---|---|
| job number | its id |
| user 62, group 1 | user `u62`, project `g1` |
| queue name (a further column of some logs), else queue 3 | queue `q_1d`, else `q3`, else `normal` |
| request (a further column), else processors asked, else processors used | tasks, `span`, `select`, exclusive hosts |
| memory asked | `rusage[mem=...]`, see `workload.memory` |
| time asked | the run limit; none if it is unknown or above ten years |
| run time | known to the simulation only, never to a session |

A request such as `2:ppn=4:x86_64:^cl_a:n7.site.org#excl` asks for two nodes with 4 processors each: `span[ptile=4]` (`span[hosts=1]` for a single node),
`select[x86_64 && !cl_a && hostname==n7]` and exclusive hosts. Chunks joined by `+` become a compound request. A word with a dot, and `host=NAME`, is the name of a host, up to the first dot; it is compared with the
attribute that `workload.host_attribute` names. `mem=3gb` is memory of each node and wins over the memory column. A part of a processor is rounded down, to no less than one.

Jobs that cannot be simulated are left out and named with the reason: a run time that is not known (`workload.run_time_unknown`), a number of
processors that is not known. Everything that was changed or not understood is counted and shown with the first job that has it.

Second 0 of the trace is `driver.time_zero`, else what the header says (`UnixStartTime`), else the first submission if submit times count from 1970, else
2000-01-01.

## What a simulated provider does

It answers an ask at once: accepted, or refused by a rule of `refusals`, by its `capacity`, or because others hold the tokens (`outside_use`); a rule with `late`
accepts, and brings nothing in the end. `throttle` answers "too many requests"; of `lost_answers` nothing is heard although the ask is carried out. After `lead_time.lag` the machine
exists and costs; after `lead_time.boot` it is a success, or, by `boot_failure`, a failure that leaves nothing; after `lead_time.join` it joins the
cluster, unless it is one of the `never_join`. Tokens come after `lead_time.lag`. A return ends after `return_time`.
What it says of a request may lag behind (`answer_delay`), a failed machine may stay and cost until it is given back (`failed_stay`), and machines may be
taken back with or without a word (`take_backs`).

All chances are drawn from `driver.seed`, the provider's name and the id of the request, never from the order of calls: the same request meets the same luck
in another run, whatever else has changed. A tag that is asked again gets the answer it got.

## Keys
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    yield PATH, HEAD + "".join(text for path, model in PARTS for text in part(path, model, MEANING))


def part(
    path: str, model: type[BaseModel], meanings: Mapping[str, str], *, by_alias: bool = False
) -> Iterator[str]:
    """Yield the section of one model: its keys with type, default and meaning."""
    schema = model.model_json_schema(by_alias=by_alias)
    yield f"\n### {path}\n\n{_first_paragraph(model)}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
    for name, field in model.model_fields.items():
        key = (field.alias or name) if by_alias else name
        found: Mapping[str, Any] = schema["properties"][key]
        meaning = field.description or _meaning(model, name, meanings)
        yield f"| `{key}` | {_type(found, schema)} | {_default(field)} | {_cell(meaning)} |\n"


def _meaning(model: type[BaseModel], name: str, meanings: Mapping[str, str]) -> str:
    for owner in model.__mro__:
        if f"{owner.__name__}.{name}" in meanings:
            return meanings[f"{owner.__name__}.{name}"]
    raise SystemExit(
        f"no meaning of {model.__name__}.{name}: give the field a description, or add it to MEANING"
    )


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _type(found: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "$ref" in found:
        return _referred(found["$ref"], schema)
    if "enum" in found or "const" in found:
        return _values(found.get("enum", [found.get("const")]))
    if "oneOf" in found:
        return "see below"
    if "anyOf" in found:
        branches = [branch for branch in found["anyOf"] if branch.get("type") != "null"]
        kinds = {str(branch.get("type")) for branch in branches}
        if "boolean" in kinds:
            return "attribute"
        if kinds == {"integer", "string"} and any("pattern" in branch for branch in branches):
            return "amount"
        return " or ".join(dict.fromkeys(_type(branch, schema) for branch in branches))
    match found.get("type"):
        case ["string", "integer"]:
            return "duration"
        case ["string", "number"]:
            return "share"
        case "array":
            return _list(found, schema)
        case "object":
            inner: Mapping[str, Any]
            for inner in (
                *found.get("patternProperties", {}).values(),
                *([found["additionalProperties"]] if "additionalProperties" in found else []),
            ):
                return f"mapping: name to {_type(inner, schema)}"
            return "mapping"
        case "integer":
            return "whole number"
        case "boolean":
            return "`true` or `false`"
        case "string" if found.get("format") == "date-time":
            return "time"
        case "string" if found.get("pattern") == r"^\d+(\.\d+)?$":
            return "money"
        case _:
            return "text"


def _list(found: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "prefixItems" in found:
        return f"pair of {_type(found['prefixItems'][0], schema)}s"
    inner = _type(found["items"], schema)
    return f"list: {inner}"


def _referred(reference: str, schema: Mapping[str, Any]) -> str:
    name = reference.rsplit("/", 1)[1]
    found = schema["$defs"][name]
    if "enum" in found:
        return _values(found["enum"])
    return "delay" if name == "Delay" else "see below"


def _values(values: list[object]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: object = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, Delay):
        return f"`{write_duration(value.p50)}`"
    if isinstance(value, BaseModel) or value in (PydanticUndefined, (), {}):
        return ""
    if isinstance(value, tuple):
        values = cast("tuple[object, ...]", value)
        return f"`[{', '.join(map(_written, values))}]`"
    return f"`{_written(value)}`"


def _written(value: object) -> str:
    match value:
        case timedelta():
            return write_duration(value)
        case datetime():
            return f"{value:%Y-%m-%dT%H:%M:%SZ}"
        case Decimal():
            return format(value, "f")
        case Enum():
            return str(value.value)
        case str():
            return value
        case _:
            return json.dumps(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

"""The table of the made-up work's parameters in docs/reference/workloads.md, from the models and their defaults."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from xce.domain.formats.eda import EdaFreeze, EdaNights, EdaParameters, EdaTool
from xce.domain.formats.simulated_provider import Delay
from xce.domain.values import write_duration

PATH: Final = "docs/reference/workloads.md"
PAGE: Final = Path(__file__).parents[1] / PATH
BEGIN, END = "<!-- eda: made by tools/generate.py -->\n", "<!-- /eda -->\n"

#: What a model leaves to the name of a key.
MEANING: Final[dict[str, str]] = {
    "days": "from the start on",
    "users": "who submit by day",
    "projects": "among which users are spread",
    "tools": "the kinds of jobs; the shares add up to 1",
    "nights": "regressions",
    "freeze": "null: there is none",
    "nights.user": "who drops them",
    "nights.queue": "where they wait",
    "nights.smallest": "elements of an array",
    "tools[].name": "for people and `nights.tool`",
    "tools[].queue": "where its jobs wait",
    "tools[].tasks": "of a job; more than one run on one host",
    "tools[].run_time": "log-normal, by median and 95th percentile",
    "tools[].bundle_min": "so few of them",
}
#: Where a default, or its order of magnitude, comes from; all others are assumptions.
SOURCE: Final[dict[str, str]] = {
    "nights.arrays": "paddy3118: over 50,000 simulations a night in one project; here a small site",
    "nights.largest": "paddy3118, SemiWiki: arrays of 100,000, flows of a million; here a small site",
    "freeze.factor": "verikwest: a steep rise; how steep is an assumption",
    "killed": "Intel: a recognised share; how large is an assumption",
    "tools[].memory": "HPC Cost Simulator: 1 GB to 4 TB in powers of two; JSSPP: cores and memory both bind",
    "tools[].run_time": "HPC Cost Simulator: classes of 1, 5, 20, 60, 240, 1,440 min; RTDA: characterisation takes seconds",
    "tools[].bundle_max": "infino-ai: a synthesis takes 4 to 12 features at once",
}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page with the tables of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    yield PATH, f"{before}{BEGIN}{_parameters()}\n{_tools()}{END}{after}"


def _parameters() -> str:
    lines = ["| key | default | meaning | source |", "|---|---|---|---|"]
    for prefix, model in (
        ("", EdaParameters),
        ("nights.", EdaNights),
        ("freeze.", EdaFreeze),
        ("tools[].", EdaTool),
    ):
        for name, field in model.model_fields.items():
            key = f"{prefix}{name}"
            default = "" if field.is_required() else _shown(field.get_default(call_default_factory=True))  # fmt: skip
            meaning = field.description or MEANING[key]
            lines.append(f"| `{key}` | {default} | {meaning} | {SOURCE.get(key, 'assumption')} |")
    return "\n".join(lines) + "\n"


def _tools() -> str:
    lines = [
        "The tools of the defaults:",
        "",
        "| tool | share | run time | memory | slots | licence | with subfeatures |",
        "|---|---|---|---|---|---|---|",
    ]
    for tool in EdaParameters().tools:
        memory = ", ".join(f"{mib // 1024} GiB" for mib in tool.memory)
        licence = f"`{tool.feature}` {_percent(tool.licensed)}"
        bundle = (
            f"{_percent(tool.bundle)}: {tool.bundle_min} to {tool.bundle_max} of "
            + ", ".join(f"`{name}`" for name in tool.subfeatures)
            if tool.bundle
            else ""
        )
        lines.append(
            f"| {tool.name} | {_percent(tool.share)} | {_shown(tool.run_time)} | {memory} | {tool.slots} | {licence} | {bundle} |"
        )
    return "\n".join(lines) + "\n"


def _percent(value: Decimal) -> str:
    return f"{value:.0%}"


def _shown(value: object) -> str:
    match value:
        case None:
            return "`null`"
        case Delay(p50=p50, p95=p95):
            return f"{write_duration(p50)}, {write_duration(p95)}"
        case timedelta():
            return f"`{write_duration(value)}`"
        case BaseModel():
            return "below"
        case Enum():
            return f"`{value.value}`"
        case tuple():
            return "below" if value else "`[]`"
        case _:
            return f"`{value}`" if not hasattr(value, "isoformat") else f"`{value:%Y-%m-%d}`"

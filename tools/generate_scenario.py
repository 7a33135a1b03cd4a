"""The reference of scenario files: what the models say of each key, intervention and measure."""

from collections.abc import Iterator
from typing import Final, get_args

from generate_configuration import part
from pydantic import BaseModel

from xce.domain.formats.expectations import (
    ExpectAsks,
    ExpectedAsk,
    ExpectReason,
    ExpectValue,
    Measure,
)
from xce.domain.formats.interventions import Intervention
from xce.domain.formats.licence_server import FeatureBehaviour, LicenceServerConfig
from xce.domain.formats.scenario import (
    JobFailures,
    Provisioners,
    Scenario,
    ScenarioJobs,
    ScenarioWorkload,
)

PATH: Final = "docs/reference/scenario.md"

PARTS: Final[tuple[tuple[str, type[BaseModel]], ...]] = (
    ("the whole file", Scenario),
    ("workload", ScenarioWorkload),
    ("workload.jobs[]", ScenarioJobs),
    ("workload.failures", JobFailures),
    ("provisioners", Provisioners),
    ("servers[]", LicenceServerConfig),
    ("servers[].features[]", FeatureBehaviour),
)
EXPECTATIONS: Final[tuple[tuple[str, type[BaseModel]], ...]] = (
    ("expect[], a measure", ExpectValue),
    ("expect[], all asks", ExpectAsks),
    ("expect[].asks[]", ExpectedAsk),
    ("expect[], a reason", ExpectReason),
)

MEANING: Final[dict[str, str]] = {
    "Scenario.name": "its name, in results",
    "Scenario.cluster": "the own partition and its rules, as in a configuration",
    "Scenario.providers": "providers and what they do, as in a configuration",
    "Scenario.servers": "simulated licence servers, which shared resources name as their observer",
    "Scenario.workload": "the jobs",
    "Scenario.session": "how sessions decide, as in a configuration",
    "Scenario.policy": "what may be bought and kept, as in a configuration",
    "Scenario.lifecycle": "how what was asked for is followed, as in a configuration",
    "Scenario.driver": "seed and intervals of virtual time, as in a configuration",
    "Scenario.expect": "what must come of it",
    "ScenarioWorkload.jobs": "inline jobs",
    "ScenarioJobs.tasks": "how many tasks each has",
    "ScenarioJobs.resreq": "resource requirement of each task",
    "ScenarioJobs.exclusive": "takes whole hosts, and only empty ones",
    "ScenarioJobs.user": "who submits",
    "ScenarioJobs.project": "what for",
    "ScenarioJobs.queue": "where to",
    "ScenarioJobs.priority": "within the queue, higher first",
    "ScenarioJobs.held": "true: waits for ever",
    "LicenceServerConfig.name": "the observer that shared resources name",
    "FeatureBehaviour.name": "a shared resource",
    "LicenceServerConfig.features": "what it serves",
    "ExpectAsks.asks": "in order",
    "ExpectValue.why": "for people: what the rule is",
    "ExpectedAsk.at": "after the start",
    "ExpectedAsk.amount": "hosts or units",
    "ExpectValue.of": "the measure, see below",
    "ExpectValue.provider": "null: all",
    "ExpectValue.always": "whenever something has happened",
    "ExpectValue.equals": "exactly this",
    "ExpectValue.at_least": "this or more",
    "ExpectValue.at_most": "this or less",
    "ExpectReason.at": "when all of that time has happened",
    "ExpectReason.says": "a part of what the last session says of the job",
}
MEASURES: Final[dict[Measure, str]] = {
    Measure.REQUESTS: "requests made so far",
    Measure.ASKED: "hosts or units asked for so far",
    Measure.EXISTING: "machines and lent units that exist at the providers in truth, failed and returning ones too",
    Measure.MADE: "machines that the providers have ever made, in truth",
    Measure.OWNED: "live instances and lent units in the books",
    Measure.JOINED: "instances that take work",
    Measure.IN_FLIGHT: "hosts or units asked for that are not there yet",
    Measure.RETURNS: "returns begun so far",
    Measure.ORPHANS: "orphans that are open",
    Measure.PAUSES: "pauses that hold",
    Measure.REFUSED: "writes of provisioners that were refused so far, since another one leads",
    Measure.EVENTS: "events so far, of the topic `event`, with the fields `where`",
    Measure.WAITING: "jobs that wait; with `job`, whether that one does (1 or 0)",
    Measure.RUNNING: "jobs that run",
    Measure.ENDED: "jobs that have ended",
    Measure.DEMAND: "jobs for which the last session wanted more hosts or units",
    Measure.LONGEST_WAIT: "seconds that a started job waited at most",
    Measure.MEAN_WAIT: "seconds that started jobs waited on average; unknown before the first",
    Measure.TOTAL: "of a shared resource: owned and borrowed",
    Measure.BORROWED: "of a shared resource: the lent part",
    Measure.OCCUPIED: "of a shared resource: what nothing may fall below",
    Measure.FREE: "of a shared resource: what a job may book",
    Measure.COST: "money spent so far; unknown where a price is",
    Measure.COST_PER_HOUR: "what everything obtained costs an hour now",
}

HEAD: Final = """# Scenario files

Made from the code by `tools/generate.py`; do not edit. How to write one: [docs/how-to/write-a-scenario.md](../how-to/write-a-scenario.md). `examples/scenarios/` has one for
each of many field cases. The JSON Schemas are `xce.scenario.1` (the file) and `xce.scenario-result.1` (what `--json` prints).

    xce sim run SCENARIO [--json] [--out DIR] [--seed N]

Exit code 0: all is as expected; 3: something is not, and the time around it is shown; 2: the file is wrong, each mistake with its line.

The file is YAML as in [the configuration](configuration.md), where values, clusters, providers, policy and driver are described. Times are durations after
`start`: `at: 5min`. One seed gives one run. The nine invariants are looked at after each event, and in the end whether every machine that a provider made is in
the books (`truths_checked`).

A process that was ended by `restart` or `crash` leaves nothing but the log: no session, no call and no join is recorded until the next one begins, while jobs, hosts and providers go on.
With `provisioners` there are several beside one controller, of which one acts: leases, epochs and refusals are the controller's own. All of them end with its process.
The wall clock of that process's machine can be set back; stamps and durations are those of the daemons' clock, which does not follow it.
Several things of one time happen in this order: the timeline, submissions, then what happens by itself. A measure `at` a time is looked at when all of that time has happened.

## The file
"""
_BETWEEN: Final = """
## The timeline

Each entry of `timeline` has `do` and `at`. What is not possible then, such as killing a host that is not there, is told and changes nothing.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    acts = get_args(get_args(Intervention)[0])
    texts = [
        HEAD,
        *(text for path, model in PARTS for text in part(path, model, MEANING)),
        _BETWEEN,
        *(text for act in acts for text in _act(act)),
        "\n## Expectations\n",
        *(text for path, model in EXPECTATIONS for text in part(path, model, MEANING)),
        "\n## Measures\n\n| `of` | what it counts |\n|---|---|\n",
        *(f"| `{measure}` | {MEASURES[measure]} |\n" for measure in Measure),
    ]
    yield PATH, "".join(texts)


def _act(act: type[BaseModel]) -> Iterator[str]:
    (name,) = get_args(act.model_fields["do"].annotation)
    meanings = {
        f"{act.__name__}.{field}": _MEANING_OF_ACTS[field]
        for field in act.model_fields
        if field in _MEANING_OF_ACTS
    }
    yield from part(f"do: {name}", act, meanings)


_MEANING_OF_ACTS: Final[dict[str, str]] = {
    "do": "which",
    "provider": "its name",
    "template": "one of its templates",
    "item": "a template or resource; null: the whole provider",
    "price_per_hour": "null: as before",
    "max_number": "null: as before; -1: no limit",
    "priority": "null: as before",
    "simulation": "all of it, as in a configuration",
    "host": "its name in the cluster",
    "notice": "from then until it is gone",
    "shared": "its name",
    "owned": "the new amount",
    "why": "for people",
    "at_deadline": "what happens to jobs that still run",
    "lasts": "how long",
    "job": "its id",
    "run_time": "how long it runs",
    "point": "where",
    "server": "its name",
    "feature": "its name",
    "amount": "tokens",
}

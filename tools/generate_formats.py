"""The reference of the JSON files: what the models say of each field, and what only a person can say of the whole."""

from collections.abc import Iterator
from typing import Final

from generate_configuration import MEANING, part
from pydantic import BaseModel

from xce.domain.formats import delta, policy, provider, session_result, snapshot

PATH: Final = "docs/reference/files.md"

#: Every part of each file: the path of its fields, and its model. Fields in JSON have the names of the provider contract where it has any.
FILES: Final[tuple[tuple[str, str, tuple[tuple[str, type[BaseModel]], ...]], ...]] = (
    (
        "Snapshot: xce.snapshot/1",
        (
            "What a session reads: `xce session FILE`. The rules are [a page of their own](session.md); `examples/evening.json` and\n"
            "`examples/filling.json` are small whole ones."
        ),
        (
            ("the whole file", snapshot.Snapshot),
            ("hosts[]", snapshot.Host),
            ("shared[]", snapshot.Shared),
            ("queues[]", snapshot.Queue),
            ("limits[]", snapshot.Limit),
            ("quotas[]", snapshot.Quota),
            ("groups[]", snapshot.Group),
            ("running[]", snapshot.RunningJob),
            ("running[].hosts[]", snapshot.HostUse),
            ("pending[]", snapshot.PendingJob),
            ("pending[].tasks", snapshot.Tasks),
            ("pending[].array, running[].array", snapshot.ArrayElement),
            ("catalog", snapshot.Catalog),
            ("catalog.templates[]", snapshot.Template),
            ("catalog.countable[]", snapshot.Countable),
            ("catalog.in_flight", snapshot.InFlight),
            ("catalog.in_flight.hosts[]", snapshot.InFlightHost),
            ("catalog.in_flight.counts[]", snapshot.InFlightCount),
            ("settings", snapshot.Settings),
        ),
    ),
    (
        "Delta: xce.delta/1",
        (
            "What makes one snapshot of the one before: recordings hold them, and sessions one after the other take them.\n"
            "[Why](../explanation/sessions-and-deltas.md). Every list changes in the same way; fields that have not changed are left out."
        ),
        (
            ("the whole document", delta.Delta),
            (
                "hosts; in the same way shared, queues, limits, quotas, groups, running, pending, catalog.templates, catalog.countable, catalog.in_flight.hosts",
                delta.Changes[snapshot.Host],
            ),
            ("catalog", delta.CatalogChanges),
            ("catalog.in_flight", delta.InFlightChanges),
        ),
    ),
    (
        "Session result: xce.session/1",
        (
            "What `xce session --json` prints. Lists are in job order, else by name.\n"
            "[How to read it](../how-to/read-a-session.md)."
        ),
        (
            ("the whole document", session_result.SessionResult),
            ("allocations[]", session_result.Allocation),
            ("allocations[].hosts[]", session_result.PlacedOn),
            ("allocations[].shared[]", session_result.SharedAmount),
            ("reason_sets[]", session_result.ReasonSet),
            ("reason_sets[].reasons[], pending[].expanded[]", session_result.Reason),
            ("pending[]", session_result.Pending),
            ("pending[].provisioning", session_result.Provisioning),
            ("demand", session_result.Demand),
            ("demand.hosts[]", session_result.HostDemand),
            ("demand.hosts[].jobs[]", session_result.JobHosts),
            ("demand.countable[]", session_result.CountDemand),
            ("demand.countable[].jobs[]", session_result.JobAmount),
            ("demand.impossible[], demand.not_counted[]", session_result.JobWhy),
            ("idle", session_result.Idle),
            ("idle.hosts[]", session_result.IdleHost),
            ("idle.counts[]", session_result.IdleCount),
        ),
    ),
    (
        "Round of the policy: xce.policy/1",
        (
            "What `xce policy FILE` reads. `demand` and `idle` are those of a session result. The rules are [a page of their own](policy.md), with\n"
            "a small whole file."
        ),
        (
            ("the whole file", policy.PolicyInput),
            ("providers[]", provider.ProviderDescription),
            ("providers[].templates[]", provider.TemplateOffer),
            ("providers[].resources[]", provider.ResourceOffer),
            ("providers[].capabilities", provider.Capabilities),
            ("providers[].leadTime", provider.LeadTime),
            ("providers[].granularity", provider.Granularity),
            ("providers[].billing", provider.Billing),
            ("inventory", policy.Inventory),
            ("inventory.requests[]", policy.RequestEntry),
            ("inventory.instances[]", policy.InstanceEntry),
            ("inventory.grants[]", policy.GrantEntry),
            ("budgets[]", policy.Budget),
            ("budgets[].max_asked", policy.AskRate),
            ("asked[]", policy.AskedEntry),
            ("pauses[]", policy.Pause),
            ("settings", policy.PolicySettings),
        ),
    ),
    (
        "Decisions: xce.decisions/1",
        "What `xce policy --json` prints, in the order in which it is to be carried out.",
        (
            ("the whole document", policy.Decisions),
            ("decisions[]", policy.Decision),
            ("decisions[].grants[]", policy.GrantPart),
        ),
    ),
)

#: What the models leave to the name of a field.
MEANINGS: Final[dict[str, str]] = {
    **MEANING,
    "Snapshot.format": "which format this is",
    "Snapshot.now": "the time of the session",
    "Snapshot.position": "log position at which the supply was read; comes back in the result",
    "Snapshot.hosts": "machines of the cluster",
    "Snapshot.shared": "cluster-wide countable resources, such as licence tokens",
    "Snapshot.queues": "queues; one that is not listed has priority 0, and a warning says so",
    "Snapshot.limits": "at most so much of a resource for the running jobs that match",
    "Snapshot.quotas": "guaranteed and greatest amounts of groups",
    "Snapshot.groups": "named sets of users",
    "Snapshot.running": "jobs that have resources; all use follows from them",
    "Snapshot.pending": "jobs that wait",
    "Snapshot.catalog": "what could be obtained, and what is on its way",
    "Snapshot.settings": "what the site has set for its sessions",
    "Host.name": "unique",
    "Host.state": "only open hosts take work; running jobs go on in any state but down",
    "Host.attributes": "what `select` compares",
    "Host.total": "slots, mem (MiB or with a unit), any other consumable",
    "Host.booted_at": "not used by sessions",
    "Shared.name": "the name that jobs use in rusage",
    "Shared.total": "all of it, used or not",
    "Queue.name": "the name that jobs use",
    "RunningJob.id": "unique among running jobs",
    "RunningJob.user": "for limits and quotas",
    "RunningJob.project": "for limits",
    "RunningJob.queue": "for limits",
    "RunningJob.started": "not used by sessions",
    "RunningJob.hosts": "where it runs, and all it takes there",
    "RunningJob.shared": "what it holds of shared resources",
    "RunningJob.exclusive": "no other job joins it on its hosts",
    "RunningJob.run_limit": "not used by sessions",
    "RunningJob.array": "its job array",
    "HostUse.name": "the host",
    "HostUse.tasks": "how many of its tasks run there",
    "HostUse.uses": "all that it takes there, slots too",
    "Tasks.min": "the fewest with which it starts",
    "PendingJob.id": "unique among pending jobs; one that also runs is left out",
    "PendingJob.user": "for limits, quotas and hosts of one user",
    "PendingJob.project": "for limits",
    "PendingJob.queue": "for its priority, waiting rules and limits",
    "PendingJob.priority": "within its queue, higher first",
    "PendingJob.tasks": "how many tasks it has",
    "PendingJob.resreq": "what it needs, in [the requirement language](resreq.md); empty: a slot for each task",
    "PendingJob.held": "true: does not start, and is no demand",
    "PendingJob.run_limit": "longest time it may run; null: no known end",
    "PendingJob.array": "its job array",
    "ArrayElement.id": "of the array",
    "ArrayElement.index": "of this element",
    "Catalog.templates": "kinds of hosts that can be created",
    "Catalog.countable": "shared resources of which more can be obtained",
    "Catalog.in_flight": "what was asked for and is not there yet; it is used before anything new",
    "Template.id": "unique",
    "Template.attributes": "what its hosts will have, for `select`",
    "Template.provides": "what its hosts will have in all",
    "Template.paused_until": "until then it has no room",
    "Template.paused_why": "is said with the jobs that it keeps waiting",
    "Countable.name": "a shared resource of the snapshot",
    "Countable.price_per_hour": "of one unit",
    "InFlight.hosts": "hosts",
    "InFlight.counts": "amounts of shared resources",
    "InFlightHost.id": "of its instance, or of the request with a number; once a host has it as `instance`, it has joined",
    "InFlightHost.template": "what it will be",
    "InFlightHost.expected_name": "its name in the cluster, where that is known",
    "InFlightHost.ready_at": "not used by sessions",
    "InFlightCount.name": "a shared resource of the snapshot",
    "InFlightCount.amount": "units on their way",
    "Delta.format": "which format this is",
    "Delta.now": "the time of the snapshot that it makes",
    "Delta.position": "the position of the snapshot that it makes",
    "Delta.hosts": "machines of the cluster",
    "Delta.shared": "cluster-wide countable resources",
    "Delta.queues": "queues",
    "Delta.limits": "limits",
    "Delta.quotas": "quotas",
    "Delta.groups": "groups",
    "Delta.running": "jobs that have resources",
    "Delta.pending": "jobs that wait",
    "Delta.catalog": "what could be obtained, and what is on its way",
    "CatalogChanges.templates": "kinds of hosts that can be created",
    "CatalogChanges.countable": "shared resources of which more can be obtained",
    "CatalogChanges.in_flight": "what was asked for and is not there yet",
    "InFlightChanges.hosts": "hosts",
    "SessionResult.format": "which format this is",
    "SessionResult.position": "that of the snapshot",
    "SessionResult.allocations": "the jobs that start",
    "SessionResult.reason_sets": "each set of reasons once; jobs refer to it by id",
    "SessionResult.pending": "the jobs that wait",
    "SessionResult.demand": "what is missing",
    "SessionResult.idle": "what could go back",
    "SessionResult.warnings": "what looked wrong and was read all the same",
    "Allocation.job": "id of the job",
    "Allocation.hosts": "where it starts",
    "Allocation.shared": "what it takes of shared resources",
    "PlacedOn.name": "the host",
    "PlacedOn.tasks": "how many tasks start there",
    "PlacedOn.uses": "what they take there",
    "SharedAmount.name": "the shared resource",
    "SharedAmount.amount": "units",
    "ReasonSet.id": "counts from 1, in job order",
    "ReasonSet.reasons": "all that was found at the stage that stopped the job",
    "Reason.kind": "what sort of reason",
    "Reason.hosts": "where it holds; null: for the cluster",
    "Pending.job": "id of the job",
    "Pending.reason": "the main reason",
    "Pending.provisioning": "what will start it; null: it is not in the demand",
    "Provisioning.templates": "new hosts that it uses; several jobs may use the same",
    "Provisioning.countable": "new units that it uses",
    "JobHosts.job": "id of the job",
    "JobHosts.order": "its place among the counted jobs, from 1",
    "JobHosts.hosts": "new hosts of the template that it uses",
    "JobAmount.job": "id of the job",
    "JobAmount.order": "its place among the counted jobs, from 1",
    "JobAmount.amount": "new units that it uses",
    "HostDemand.template": "id of the template",
    "HostDemand.count": "new hosts of it",
    "HostDemand.jobs": "for whom",
    "CountDemand.name": "the shared resource",
    "CountDemand.amount": "what has to be asked for",
    "CountDemand.wanted": "the same and what is in flight",
    "CountDemand.jobs": "for whom",
    "JobWhy.job": "id of the job",
    "JobWhy.why": "why it is not in the demand",
    "Demand.hosts": "new hosts, by template",
    "Demand.tight": "whether it was proved that nothing in it is spare",
    "Demand.countable": "new units, by shared resource",
    "Demand.impossible": "jobs that could not start on all there is and could be",
    "Demand.not_counted": "every other waiting job that is not in the demand",
    "IdleHost.instance": "id of its instance",
    "IdleHost.host": "its name",
    "IdleHost.idle_since": "since when it has had no job",
    "IdleCount.name": "the shared resource",
    "IdleCount.amount": "units that were not needed for the whole window",
    "Idle.hosts": "provisioned hosts without a job for the idle time",
    "Idle.counts": "borrowed units that nobody needed",
    "PolicyInput.format": "which format this is",
    "PolicyInput.now": "the time of the round",
    "PolicyInput.demand": "what is missing, as a session said",
    "PolicyInput.idle": "what could go back, as a session said",
    "PolicyInput.providers": "who can be asked, as they describe themselves",
    "PolicyInput.inventory": "what is asked, owned or owed",
    "PolicyInput.budgets": "bounds on what exists or is asked",
    "PolicyInput.pauses": "whom not to ask for a while",
    "PolicyInput.settings": "what the site has set for its policy",
    "ProviderDescription.name": "unique",
    "ProviderDescription.contract": "version of the provider contract",
    "ProviderDescription.capabilities": "what it can do beyond version 1 of the contract",
    "ProviderDescription.lead_time": "how long it takes",
    "ProviderDescription.granularity": "sizes of one ask",
    "ProviderDescription.minimum_hold": "nothing of it goes back earlier",
    "ProviderDescription.billing": "how use turns into cost",
    "ProviderDescription.region": "for people",
    "ProviderDescription.zone": "for people",
    "ProviderDescription.attributes": "anything else, for people",
    "ProviderDescription.templates": "kinds of hosts that it creates",
    "ProviderDescription.resources": "countable resources that it lends",
    "Inventory.requests": "asks that are open, or of which something lives",
    "Inventory.instances": "hosts, from granted to returned",
    "Inventory.grants": "amounts, from granted to returned",
    "RequestEntry.id": "unique; also the tag that the provider knows",
    "RequestEntry.provider": "whom it was asked of",
    "RequestEntry.kind": "hosts or a countable resource",
    "RequestEntry.template": "of hosts",
    "RequestEntry.resource": "of a countable resource",
    "RequestEntry.granted": "what came",
    "RequestEntry.state": "see [its lifecycle](lifecycles.md)",
    "RequestEntry.asked_at": "time of the intent",
    "RequestEntry.deadline": "when it is given up; null: `request_deadline` after it was asked",
    "AskedEntry.provider": "whom they were asked of",
    "AskedEntry.template": "what was asked",
    "AskedEntry.hosts": "how many",
    "InstanceEntry.id": "unique",
    "InstanceEntry.provider": "whose it is",
    "InstanceEntry.template": "what it is",
    "InstanceEntry.request": "the request that brought it",
    "InstanceEntry.state": "see [its lifecycle](lifecycles.md)",
    "InstanceEntry.granted_at": "when it began to exist, and to cost",
    "InstanceEntry.joined_at": "when it joined the cluster",
    "InstanceEntry.hold_until": "does not go back before",
    "InstanceEntry.price_per_hour": "null: unknown",
    "GrantEntry.id": "unique",
    "GrantEntry.provider": "the lender",
    "GrantEntry.resource": "of what",
    "GrantEntry.request": "the request that brought it",
    "GrantEntry.amount": "units granted",
    "GrantEntry.returning": "units on their way back",
    "GrantEntry.returned": "units that are back",
    "GrantEntry.state": "see [its lifecycle](lifecycles.md)",
    "GrantEntry.granted_at": "when it came",
    "GrantEntry.hold_until": "does not go back before",
    "GrantEntry.expires_at": "when the lender ends it by itself",
    "Pause.provider": "whom",
    "Pause.until": "from then on it is asked again",
    "Pause.why": "for people",
    "Decisions.format": "which format this is",
    "Decisions.decisions": "cancels, requests, returns, holds",
    "Decision.kind": "what to do; hold: what is deliberately not done",
    "Decision.provider": "whom it concerns",
    "Decision.template": "of hosts",
    "Decision.resource": "of a countable resource",
    "Decision.instances": "the hosts that go back, or stay",
    "Decision.grants": "the amounts that go back",
    "Decision.reason": "for people, with the figures it rests on",
    "GrantPart.grant": "id of the grant",
    "GrantPart.amount": "units of it",
}

HEAD: Final = """# The JSON files

Made from the code by `tools/generate.py`; do not edit. The same as JSON Schemas: `domain/formats/schemas/`, shipped with the package. The configuration, which people write in YAML, has
[its own page](configuration.md).

Every file is one JSON document in UTF-8 and says its format. A field that is missing has its default; a field that is not known, a wrong type, a name that is there twice is a mistake. All
mistakes are said at once, with the path of each value, and nothing is done with a file that has any.

| word below | written as |
|---|---|
| time | RFC 3339 with a zone: `2026-03-01T10:00:00Z` |
| duration | `"90s"`, `"15min"`, `"1h30m"`, `"2d"`, or whole seconds |
| amount | a whole number in base units (slots, tokens, MiB), or a text with a unit: `"8GiB"` |
| money | a decimal text: `"0.17"`, in the one currency of the site |
| attribute | a text, a number, `true` or `false` |

`null` where a number could be means unknown, which is neither zero nor free.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    text = HEAD
    for title, about, parts in FILES:
        text += f"\n## {title}\n\n{about}\n"
        for path, model in parts:
            text += "".join(part(path, model, MEANINGS, by_alias=True))
    yield PATH, text

"""What is wrong with a scenario whose fields are right one by one: names that nobody has, times after its end."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Final

from xce.domain.cluster.resreq import parse
from xce.domain.errors import InputError
from xce.domain.events.stored import EVENTS
from xce.domain.formats import interventions as i
from xce.domain.formats.config_check import Contradiction, Loc, contradictions
from xce.domain.formats.expectations import ExpectAsks, ExpectReason, ExpectValue
from xce.domain.formats.scenario import Scenario

_TOPICS: Final = frozenset(one.TOPIC for one in EVENTS.event_classes())


def scenario_contradictions(scenario: Scenario) -> Iterator[Contradiction]:
    """Yield everything that does not fit together."""
    for found in contradictions(scenario.config()):
        loc = found.loc
        if loc and loc[0] == "workload":
            loc = ("workload", "rules", *loc[1:])
        yield Contradiction(loc, found.message)
    yield from _workload(scenario)
    yield from _servers(scenario)
    yield from _provisioners(scenario)
    yield from timeline_contradictions(scenario)
    yield from _expect(scenario)


def _workload(scenario: Scenario) -> Iterator[Contradiction]:
    work = scenario.workload
    if not work.jobs and work.file is None and work.generator is None:
        yield Contradiction(("workload",), "has no work: wanted jobs, a file or a generator")
    owner: dict[str, int] = {}
    for at, group in enumerate(work.jobs):
        for job in group.ids():
            if owner.setdefault(job, at) != at:
                yield Contradiction(
                    ("workload", "jobs", at, "id"), f"job {job!r} is also in entry {owner[job] + 1}"
                )
                break
        try:
            parse(group.resreq)
        except InputError as error:
            first = error.problems[0]
            where = f"column {first.column}: " if first.column else ""
            yield Contradiction(("workload", "jobs", at, "resreq"), where + first.message)
    yield from _waits(scenario, owner)


def _waits(scenario: Scenario, owner: Mapping[str, int]) -> Iterator[Contradiction]:
    """Yield what jobs wait for and nobody has: a session takes a job that it does not know for one that has ended."""
    work = scenario.workload
    later = {act.job for act in scenario.timeline if isinstance(act, i.SlipIn)}
    all_known = work.file is None and work.generator is None
    for at, group in enumerate(work.jobs):
        for j, job in enumerate(group.waits_for):
            loc: Loc = ("workload", "jobs", at, "waits_for", j)
            if owner.get(job) == at:
                yield Contradiction(loc, f"job {job!r} is one of these, and would wait for itself")
            elif all_known and job not in owner and job not in later:
                yield Contradiction(loc, f"there is no job {job!r}")


def _servers(scenario: Scenario) -> Iterator[Contradiction]:
    servers = [server.name for server in scenario.servers]
    pools = {pool.name: pool for pool in scenario.cluster.shared}
    for at, server in enumerate(scenario.servers):
        if server.name in servers[:at]:
            yield Contradiction(("servers", at, "name"), f"{server.name!r} is there twice")
        for j, feature in enumerate(server.features):
            loc: Loc = ("servers", at, "features", j, "name")
            yield from _unknown(loc, "shared resource", feature.name, pools)
            pool = pools.get(feature.name)
            if pool is not None and pool.observer != server.name:
                yield Contradiction(
                    loc,
                    f"{feature.name!r} has the observer {pool.observer!r}; wanted {server.name!r}",
                )


def _provisioners(scenario: Scenario) -> Iterator[Contradiction]:
    if scenario.provisioners is None:
        return
    names = scenario.provisioners.names
    for at, name in enumerate(names):
        if name in names[:at]:
            yield Contradiction(("provisioners", "names", at), f"{name!r} is there twice")
    if not scenario.providers:
        yield Contradiction(("provisioners",), "have nobody to ask: there are no providers")


def timeline_contradictions(scenario: Scenario) -> Iterator[Contradiction]:
    """Yield what of a timeline does not fit to its site."""
    providers = {provider.name: provider for provider in scenario.providers}
    pools = [pool.name for pool in scenario.cluster.shared]
    features = {server.name: [one.name for one in server.features] for server in scenario.servers}
    for at, act in enumerate(scenario.timeline):
        loc: Loc = ("timeline", at)
        yield from _in_time((*loc, "at"), act.at, scenario)
        match act:
            case i.SetTemplate(provider=name, template=template):
                yield from _unknown((*loc, "provider"), "provider", name, providers)
                if name in providers:
                    offers = [offer.template_id for offer in providers[name].templates]
                    yield from _unknown((*loc, "template"), "template", template, offers)
            case (
                i.SetBehaviour(provider=name)
                | i.CutOff(provider=name)
                | i.Pause(provider=name)
                | i.Resume(provider=name)
            ):
                yield from _unknown((*loc, "provider"), "provider", name, providers)
            case i.SetOwned(shared=name):
                yield from _unknown((*loc, "shared"), "shared resource", name, pools)
            case i.SetLimit(limit=name):
                limits = [limit.name for limit in scenario.cluster.limits]
                yield from _unknown((*loc, "limit"), "limit", name, limits)
            case i.SetOutside(server=name, feature=feature):
                yield from _unknown((*loc, "server"), "server", name, features)
                if name in features:
                    yield from _unknown((*loc, "feature"), "feature", feature, features[name])
            case i.Stall(provisioner=name) | i.Isolate(provisioner=name):
                names = () if scenario.provisioners is None else scenario.provisioners.names
                yield from _unknown((*loc, "provisioner"), "provisioner", name, names)
            case i.Restart(forgets=topics):
                for j, topic in enumerate(topics):
                    if topic not in _TOPICS:
                        yield Contradiction((*loc, "forgets", j), f"{topic!r} is no event")
            case i.BlindServer(server=name):
                yield from _unknown((*loc, "server"), "server", name, features)
            case _:
                pass


def _expect(scenario: Scenario) -> Iterator[Contradiction]:
    providers = [provider.name for provider in scenario.providers]
    items = [
        *(offer.template_id for provider in scenario.providers for offer in provider.templates),
        *(offer.name for provider in scenario.providers for offer in provider.resources),
    ]
    pools = [pool.name for pool in scenario.cluster.shared]
    for at, one in enumerate(scenario.expect):
        loc: Loc = ("expect", at)
        if isinstance(one, (ExpectAsks, ExpectValue)):
            if one.provider is not None:
                yield from _unknown((*loc, "provider"), "provider", one.provider, providers)
            if one.item is not None:
                yield from _unknown((*loc, "item"), "template or resource", one.item, items)
        match one:
            case ExpectAsks(asks=asks):
                for j, ask in enumerate(asks):
                    yield from _in_time((*loc, "asks", j, "at"), ask.at, scenario)
                    if ask.item is not None:
                        where = (*loc, "asks", j, "item")
                        yield from _unknown(where, "template or resource", ask.item, items)
            case ExpectReason(at=time):
                yield from _in_time((*loc, "at"), time, scenario)
            case ExpectValue():
                if one.shared is not None:
                    yield from _unknown((*loc, "shared"), "shared resource", one.shared, pools)
                for key in ("at", "by", "after", "until"):
                    time = getattr(one, key)
                    if time is not None:
                        yield from _in_time((*loc, key), time, scenario)


def _in_time(loc: Loc, time: timedelta, scenario: Scenario) -> Iterator[Contradiction]:
    if scenario.until is not None and time > scenario.until:
        yield Contradiction(loc, "is after the end of the run, which `until` says")


def _unknown(loc: Loc, what: str, name: str, known: Collection[str]) -> Iterator[Contradiction]:
    if name not in known:
        others = ", ".join(sorted(known)) or "none"
        yield Contradiction(loc, f"{name!r} is no {what} here; there are: {others}")

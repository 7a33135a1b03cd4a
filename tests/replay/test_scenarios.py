"""Every scenario that comes with the project holds; and broken code does not get past them."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from xce.adapters.settings.load import load_scenario, read_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.engine.workspace import Workspace
from xce.domain.errors import InputError
from xce.domain.events.stored import EventRegistry
from xce.domain.provisioning.lease import ProviderLease
from xce.replay.scenario.run import Runner, ScenarioRun

SCENARIOS = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))


def run_file(path: Path) -> ScenarioRun:
    with open_log(MEMORY) as log:
        return Runner(load_scenario(path), log).run()


def run_text(text: str, seed: int | None = None) -> ScenarioRun:
    with open_log(MEMORY) as log:
        return Runner(read_scenario(text.encode(), "made-up.yaml"), log, seed=seed).run()


def not_met(run: ScenarioRun) -> list[str]:
    return [f"{one.expectation}: found {one.found}" for one in run.verdicts if not one.passed]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_holds(path: Path) -> None:
    scenario = load_scenario(path)

    assert not_met(run_file(path)) == []
    assert scenario.name == path.stem, "its name is that of its file"
    assert scenario.about
    assert scenario.expect


@pytest.mark.parametrize("case", range(1, 30))
def test_a_field_case_with_a_course_in_time_has_its_scenario(case: int) -> None:
    assert [path for path in SCENARIOS if path.name.startswith(f"f{case:02}-")]


def test_the_same_seed_gives_the_same_bytes_and_another_one_another_run() -> None:
    text = (ROOT / "examples" / "scenarios" / "an-evening-with-trouble.yaml").read_text()

    first, again, other = run_text(text), run_text(text), run_text(text, seed=99)

    assert first.result().to_json() == again.result().to_json()
    assert first.moments == again.moments
    assert first.report.log.digest != other.report.log.digest


# ------------------------------------------------------------- broken on purpose
def returning(value: object) -> Callable[..., object]:
    """Return a function that returns a value, whatever it is given."""

    def broken(*given: object, **more: object) -> object:
        return value

    return broken


def no_job(world: object, instances: Iterable[str]) -> dict[str, bool]:
    return dict.fromkeys(instances, False)


def unfenced(space: Workspace, provider: str) -> int:
    """Return the epoch under which a fact is written, whoever writes it."""
    lease = space.find(ProviderLease, f"lease:{provider}")
    assert lease is not None
    return lease.epoch


_DECODE = EventRegistry.decode


def skipping(registry: EventRegistry, *row: Any) -> object:
    """Read an event, and skip one that is not known."""
    return _DECODE(registry, *row) if row[3] in registry.names() else None


#: What is broken, how, and the scenario that must notice.
BROKEN: tuple[tuple[str, Callable[..., object], str], ...] = (
    (
        "xce.projections.inventory.LiveInventory.in_flight",
        returning(((), ())),
        "f01-starting-hosts-are-supply",
    ),
    (
        "xce.projections.inventory.LiveInventory.in_flight",
        returning(((), ())),
        "f02-one-job-one-count",
    ),
    ("xce.domain.engine.polling._useless", returning(()), "f03-hosts-that-never-join"),
    ("xce.domain.engine.polling._outcomes", returning(()), "f04-crash-after-the-call"),
    ("xce.domain.engine.polling._too_late", returning(True), "f05-a-request-that-runs-for-ever"),
    (
        "xce.projections.catalog.LiveCatalog._turn_ends",
        returning(None),
        "f06-the-fallback-is-reached",
    ),
    ("xce.projections.failures.Failures.view", returning(()), "f07-errored-machines-count"),
    ("xce.replay.world.World.look", no_job, "f10-a-job-slips-in"),
    (
        "xce.projections.catalog.LiveCatalog._measured",
        returning({}),
        "f17-a-host-smaller-than-promised",
    ),
    ("xce.domain.engine.polling._outcomes", returning(()), "f19-an-answer-that-cannot-be-read"),
    (
        "xce.domain.sharing.meter.Meter.observe",
        returning(True),
        "f25-licence-counts-that-disagree",
    ),
    (
        "xce.domain.engine.steady_clock.SteadyClock._earliest",
        returning(None),
        "f22-the-clock-is-set-back",
    ),
    (
        "xce.domain.engine.workspace.Workspace.fence",
        unfenced,
        "f23-a-leader-that-does-not-know-it-lost",
    ),
    (
        "xce.domain.engine.lease_terms.LeaseTerms.left_s",
        returning(0.0),
        "f23-a-leader-that-cannot-renew",
    ),
    (
        "xce.domain.events.stored.EventRegistry.decode",
        skipping,
        "f26-a-release-that-does-not-know-an-event",
    ),
    (
        "xce.domain.policy.wanted._hosts_asked_for",
        returning(Counter[str | None]()),
        "f28-a-plan-sees-its-own-last-decision",
    ),
)


@pytest.mark.parametrize(("target", "broken", "noticed_by"), BROKEN)
def test_what_is_broken_on_purpose_is_noticed(
    monkeypatch: pytest.MonkeyPatch, target: str, broken: Callable[..., object], noticed_by: str
) -> None:
    monkeypatch.setattr(target, broken)
    try:
        found = not_met(run_file(ROOT / "examples" / "scenarios" / f"{noticed_by}.yaml"))
    except AssertionError as error:  # the world itself does not let it happen
        found = [str(error)]

    assert found


# -------------------------------------------------------------------- mistakes
def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_scenario(text.encode(), "s.yaml")
    return caught.value.lines()


def test_every_mistake_of_a_scenario_is_told_with_its_line() -> None:
    assert mistakes("""name: worse
providers:
  - name: cloud
    templates: [{template_id: T, max_numbers: 6, provides: {slots: 4}}]
workload:
  jobs: [{id: "j[1-2]", run_tme: 5}]
timeline:
  - {at: 3min, do: pause, provider: cloud}
expect:
  - asks: [{at: 0s, ammount: 3}]
  - {of: asked, at: 5min}
""") == [
        "s.yaml:4: providers[0].templates[0].max_numbers: unknown key; did you mean max_number?",
        "s.yaml:6: workload.jobs[0].run_time: required field is missing",
        "s.yaml:6: workload.jobs[0].run_tme: unknown key; did you mean run_time?",
        "s.yaml:8: timeline[0].lasts: required field is missing",
        "s.yaml:10: expect[0].asks[0].amount: required field is missing",
        "s.yaml:10: expect[0].asks[0].ammount: unknown key; did you mean amount?",
        "s.yaml:11: expect[1]: wanted a bound: equals, at_least or at_most",
    ]


def test_names_that_nobody_has_and_times_after_the_end_are_mistakes() -> None:
    assert mistakes("""name: worse
until: 10min
providers: [{name: cloud, templates: [{template_id: T}]}]
workload: {jobs: [{id: j1, run_time: 5min}]}
timeline:
  - {at: 20min, do: set-template, provider: cloud, template: U}
expect:
  - {of: asked, item: V, by: 15min, equals: 1}
  - {of: free, shared: lic, equals: 1}
""") == [
        "s.yaml:6: timeline[0].at: is after the end of the run, which `until` says",
        "s.yaml:6: timeline[0].template: 'U' is no template here; there are: T",
        "s.yaml:8: expect[0].item: 'V' is no template or resource here; there are: T",
        "s.yaml:8: expect[0].by: is after the end of the run, which `until` says",
        "s.yaml:9: expect[1].shared: 'lic' is no shared resource here; there are: none",
    ]


def test_mistakes_of_provisioners_clocks_and_releases_are_told() -> None:
    assert mistakes("""name: worse
provisioners:
  names: [A, B, A]
  lease_term: 0s
workload: {jobs: [{id: j1, run_time: 5min}]}
""") == ["s.yaml:4: provisioners.lease_term: wanted at least 1s: with 0 a simulation would stay at one moment for ever"]  # fmt: skip
    assert mistakes("""name: worse
provisioners:
  names: [A, B, A]
workload: {jobs: [{id: j1, run_time: 5min}]}
timeline:
  - {at: 1min, do: stall, provisioner: C, lasts: 1min}
  - {at: 1min, do: restart, forgets: [xce.site.frozen, xce.site.freezed]}
  - {at: 1min, do: set-clock-back}
""") == ["s.yaml:8: timeline[2].by: required field is missing"]
    assert mistakes("""name: worse
provisioners:
  names: [A, B, A]
workload: {jobs: [{id: j1, run_time: 5min}]}
timeline:
  - {at: 1min, do: stall, provisioner: C, lasts: 1min}
  - {at: 1min, do: restart, forgets: [xce.site.frozen, xce.site.freezed]}
""") == [
        "s.yaml:2: provisioners: have nobody to ask: there are no providers",
        "s.yaml:3: provisioners.names[2]: 'A' is there twice",
        "s.yaml:6: timeline[0].provisioner: 'C' is no provisioner here; there are: A, A, B",
        "s.yaml:7: timeline[1].forgets[1]: 'xce.site.freezed' is no event",
    ]


# ------------------------------------------------------------------- verdicts
SMALL = """name: small
until: 1h
cluster: {hosts: [{name: own1, total: {slots: 1}}]}
workload: {jobs: [{id: "j[1-2]", run_time: 10min}]}
expect: [%s]
"""


@pytest.mark.parametrize(
    ("expectation", "holds"),
    [
        ("{of: running, at: 5min, equals: 1}", True),
        ("{of: running, at: 5min, equals: 2}", False),
        ("{of: running, at: 59min, at_most: 0}", True),
        ("{of: ended, by: 11min, equals: 1}", True),
        ("{of: ended, by: 9min, equals: 1}", False),
        ("{of: ended, by: 11min, after: 1min, equals: 0}", True),
        ("{of: running, always: true, at_most: 1}", True),
        ("{of: running, always: true, equals: 1}", False),
        ("{of: running, always: true, after: 1min, until: 9min, equals: 1}", True),
        ("{of: waiting, job: j2, at: 5min, equals: 1}", True),
        ("{of: waiting, job: j1, at: 5min, equals: 1}", False),
        ("{of: longest-wait, at_least: 600, at_most: 660}", True),
        ("{of: ended, equals: 2}", True),
        ("{asks: []}", True),
        ("{asks: [{at: 0s, amount: 1}]}", False),
        ("{reason_of: j2, at: 5min, says: nothing of the kind}", False),
    ],
)
def test_an_expectation_holds_or_does_not(expectation: str, holds: bool) -> None:
    run = run_text(SMALL % expectation)

    assert run.verdicts[0].passed is holds
    assert bool(run.verdicts[0].around) is not holds


def test_jobs_fail_and_are_tried_again_or_given_up() -> None:
    text = SMALL % "{of: events, at_least: 0}"
    half = run_text(text.replace("}]}\nexpect", "}], failures: {share: 0.5, tries: 9}}\nexpect"))
    never = run_text(text.replace("}]}\nexpect", "}], failures: {share: 1, tries: 3}}\nexpect"))

    assert half.report.jobs.ended == never.report.jobs.ended == 2
    assert len(never.starts) == 6


@pytest.mark.parametrize("end", ["", "until: 8d"])
def test_a_run_that_comes_to_the_end_of_the_calendar_is_an_error_and_no_defect(end: str) -> None:
    text = f"""
name: late
start: 2900-12-31T23:00:00Z
{end}
cluster: {{hosts: [{{name: a, total: {{slots: 1}}}}]}}
workload: {{jobs: [{{id: "j[1-3]", run_time: 9d}}]}}
"""
    with pytest.raises(InputError, match="has come to the year 2901 and is not over"):
        run_text(text)

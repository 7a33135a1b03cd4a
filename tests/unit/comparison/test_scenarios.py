"""Scenarios in a comparison: their licence servers, what is done to them, and their jobs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.unit.prompt.sites import TEXT
from xce.adapters.cli.compare import compared, plan
from xce.adapters.comparison.policies import read_axis, read_policies
from xce.adapters.comparison.runs import Around, Run, carry_out
from xce.adapters.report.comparison import render_comparison
from xce.adapters.settings.load import load_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import InputError
from xce.replay.scenario.run import Runner

EXAMPLES = ROOT / "examples"
Change = Callable[[Around], Around]
TIMELINE = """timeline:
  - {at: 4min, do: set-template, provider: cloud, template: small, price_per_hour: 0.95}
  - {at: 6min, do: set-outside, server: server, feature: lic, amount: 2}
  - {at: 20min, do: set-owned, shared: lic, owned: 4}
"""


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    path = tmp_path / "workshop.yaml"
    path.write_text(TEXT.replace("expect:", f"{TIMELINE}expect:"))
    return path


@pytest.mark.parametrize("name", ["licences-that-linger", "owned-licences-change", "a-price-falls"])
def test_a_run_of_a_comparison_is_the_run_of_the_scenario(name: str) -> None:
    path = EXAMPLES / "scenarios" / f"{name}.yaml"
    with open_log(MEMORY) as log:
        alone = Runner(load_scenario(path), log).run()

    (run,), workloads = plan(read_policies([path], []), [], None)
    outcome = carry_out(run, workloads[run.digest])

    assert (run.policy, run.workload) == (name, name)
    assert outcome.report == alone.report


def without_timeline(around: Around) -> Around:
    return replace(around, timeline=())


def without_servers(around: Around) -> Around:
    return replace(around, servers=())


def without_end(around: Around) -> Around:
    return replace(around, until=None)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (None, without_timeline),
        (without_timeline, without_servers),  # the timeline names the server
        (None, without_end),
    ],
)
def test_what_happens_around_a_policy_decides_what_comes_of_it(
    workshop: Path, first: Change | None, then: Change
) -> None:
    (run,), workloads = plan(read_policies([workshop], []), [], None)
    more = run if first is None else replace(run, around=first(run.around))
    less = replace(more, around=then(more.around))

    one, other = (carry_out(each, workloads[run.digest]).report for each in (more, less))

    assert (one.log, one.ended) != (other.log, other.ended)


def test_a_run_is_known_by_what_happens_around_it(workshop: Path) -> None:
    policies = read_policies([workshop], [read_axis("timeline.0.price_per_hour=0.95,0.10")])

    (one, other), _ = plan(policies, [], None)
    bare = Run.of(one.policy, one.workload, one.settings, one.config, one.digest, one.jobs)

    assert len({one.key, other.key, bare.key}) == 3
    assert bare.around == Around()


def test_a_trace_takes_the_place_of_the_jobs_of_a_scenario(workshop: Path) -> None:
    trace = EXAMPLES / "small.swf"

    (run,), workloads = plan(read_policies([workshop], []), [trace], 20)

    assert (run.workload, run.jobs) == ("small.swf", 20)
    assert workloads[run.digest].start == load_scenario(workshop).start
    assert run.around.servers
    assert carry_out(run, workloads[run.digest]).figures.jobs > 0


def test_scenarios_of_several_names_have_their_own_jobs_under_one_name(
    workshop: Path, tmp_path: Path
) -> None:
    other = tmp_path / "studio.yaml"
    other.write_text(TEXT.replace("name: workshop", "name: studio"))

    runs, workloads = plan(read_policies([workshop, other], []), [], None)

    assert [(run.policy, run.workload) for run in runs] == [
        ("workshop", "own jobs"),
        ("studio", "own jobs"),
    ]
    assert len(workloads) == 2, "a workload is known by its name too"


def test_a_configuration_has_no_jobs_of_its_own() -> None:
    with pytest.raises(InputError, match=r"small.yaml: is no scenario.*wanted --workload"):
        plan(read_policies([EXAMPLES / "small.yaml"], []), [], None)


def test_a_mistake_in_a_scenario_is_told_as_one(workshop: Path) -> None:
    with pytest.raises(InputError, match=r"timeline\[0\]\.template: 'huge' is no template here"):
        read_policies([workshop], [read_axis("timeline.0.template=huge")])


EXPECTING = """name: expecting
until: 2h
cluster: {hosts: [{name: own1, total: {slots: 1}}]}
providers:
  - name: cloud
    templates: [{template_id: T, max_number: 6, price_per_hour: 0.50, provides: {slots: 4}}]
    simulation: {lead_time: {lag: 0s, boot: 2min, join: 0s}}
workload: {jobs: [{id: "j[1-8]", run_time: 10min}]}
policy: {budgets: [{name: site, max_cost_per_hour: 0.10}]}
expect:
  - {of: ended, by: 20min, equals: 8, why: the demand of a shift}
  - {of: running, at: 1min, equals: 1}
"""


def test_what_a_scenario_expects_is_judged_under_each_policy(tmp_path: Path) -> None:
    path = tmp_path / "expecting.yaml"
    path.write_text(EXPECTING)
    axis = read_axis("policy.budgets.site.max_cost_per_hour=0.10,2.00")
    runs, workloads = plan(read_policies([path], [axis]), [], None)

    comparison = compared([carry_out(run, workloads[run.digest]) for run in runs])

    poor, rich = comparison.runs
    assert [(run.figures.not_as_expected) for run in (poor, rich)] == [1, 0]
    assert [(one.expectation, one.passed, one.found) for one in poor.verdicts] == [
        ("ended = 8 by 20m", False, "2"),
        ("running = 1 at 1m", True, "1"),
    ]
    assert {one.figure: one.policies for one in comparison.best}["not_as_expected"] == (
        rich.policy,
    )
    page = render_comparison(comparison)
    assert "not as expected</th>" in page
    assert page.count('class="n bad"') == 1
    assert "ended = 8 by 20m; found: 2" in page


def test_what_is_expected_is_part_of_what_a_run_is_known_by(tmp_path: Path) -> None:
    path = tmp_path / "expecting.yaml"
    path.write_text(EXPECTING)
    (one,), _ = plan(read_policies([path], []), [], None)
    path.write_text(EXPECTING.replace("equals: 8", "equals: 7"))
    (other,), _ = plan(read_policies([path], []), [], None)

    assert one.key != other.key


def test_a_scenario_without_expectations_has_no_such_column(workshop: Path) -> None:
    (run,), workloads = plan(read_policies([workshop], []), [], None)
    bare = replace(run, around=replace(run.around, expect=()))

    comparison = compared([carry_out(bare, workloads[run.digest])])

    assert comparison.runs[0].figures.not_as_expected is None
    assert "not as expected" not in render_comparison(comparison)

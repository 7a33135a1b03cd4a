"""Odd and hostile outputs: a clear error or a job left out, never anything else, and never a session that one job stops."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slurm.made import NOW, Slurm, job, node, running
from xce.adapters.schedulers.slurm import read_jobs, read_nodes, read_rules
from xce.adapters.schedulers.slurm.build import view_of
from xce.adapters.schedulers.slurm.facts import Readings
from xce.adapters.schedulers.slurm.reader import json_of
from xce.domain.errors import InputError
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.scheduling.session import run_session

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from(["n[1-2]", "n[1", "a&b", "[a|b]", "cpu=1", "gpu:2", "1-3%2", "x:9", "2", "PENDING", "RUNNING"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["number", "set", "infinite", "x"]), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
RECORDS = (
    st.sampled_from([job(1), running(2, "n1"), job(3, array_job_id=3, array_task_string="1-3")])
    .flatmap(lambda record: st.tuples(st.just(record), st.dictionaries(st.sampled_from(sorted({*record, "shared", "required_nodes", "features", "licenses", "tres_per_node", "dependency", "array_max_tasks", "het_job_id"})), VALUES, max_size=4)))
    .map(lambda pair: pair[0] | pair[1])
)  # fmt: skip
NODES = st.dictionaries(st.sampled_from(sorted({*node("n1"), "tres", "effective_cpus"})), VALUES, max_size=3).map(lambda changes: node("n1") | changes)  # fmt: skip


@given(st.lists(RECORDS, min_size=1, max_size=3), NODES)
def test_odd_records_are_refused_or_read_and_never_break_a_session(
    jobs: list[dict[str, Any]], host: dict[str, Any]
) -> None:
    slurm = Slurm(jobs, [host])
    try:
        view = slurm.view()
    except InputError:
        return

    assert not [one for one in contradictions(view.snapshot) if "twice" not in one.message]
    run_session(view.snapshot)
    type(view.snapshot).model_validate_json(view.snapshot.to_json())


READERS: tuple[Callable[[str], object], ...] = (
    read_jobs.jobs_of_text, read_nodes.nodes_of_text, read_rules.partitions_of_text, read_rules.licences_of_text,
    read_rules.reservations_of_text, read_rules.settings_of_text, read_rules.qos_of_text,
    partial(read_rules.associations_of_text, cluster="ca"),
)  # fmt: skip


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in READERS:
        try:
            read(text)
        except InputError:
            continue


@given(VALUES)
def test_any_document_is_read_or_refused(document: Any) -> None:
    for name in ("jobs", "nodes", "partitions", "licenses", "reservations"):
        for told in (document, {name: document}, {name: [document]}):
            try:
                match name:
                    case "jobs":
                        read_jobs.jobs_of_json(told, name)
                    case "nodes":
                        read_nodes.nodes_of_json(told, name)
                    case "partitions":
                        read_rules.partitions_of_json(told, name)
                    case "licenses":
                        read_rules.licences_of_json(told, name)
                    case _:
                        read_rules.reservations_of_json(told, name, NOW)
            except InputError:
                continue


@pytest.mark.parametrize(
    "output", [b"", b"{", b"\xff", b"slurm_load_jobs error: contact", b"[NaN]"]
)
def test_what_is_not_json_is_told_with_its_command(output: bytes) -> None:
    with pytest.raises(InputError, match="squeue --json: is not JSON"):
        json_of(output, "squeue --json")


@pytest.mark.parametrize(
    "changes",
    [
        {"features": 'a"b'},
        {"features": "x" * 300},
        {"features": "a\x01b"},
        {"features": "(a"},
        {"tasks": 2_000_000, "cpus": 2_000_000},
        {"memory_per_cpu": 2**60},
        {"licenses": "sim:" + "9" * 30},
        {"tres_per_node": "gres:gpu:" + "9" * 25},
    ],
)
def test_one_odd_job_does_not_stop_the_others(changes: dict[str, Any]) -> None:
    view = Slurm([job(1, **changes), job(2)]).view()

    assert [one.job for one in run_session(view.snapshot).allocations] in (["2"], ["1", "2"])


def test_names_that_nothing_can_have_are_told() -> None:
    with pytest.raises(InputError, match="what Slurm shows"):
        Slurm([job(1, partition="x" * 300)]).view()


def test_control_characters_are_shown_as_question_marks() -> None:
    (found,) = Slurm([job(1, account="a\x01b\n")]).view().snapshot.pending

    assert found.project == "a?b?"


def test_only_a_line_break_ends_a_record() -> None:
    line = "JobId=1 JobName=a\u2028JobId=9\x0bJobId=8 UserId=ann(1) GroupId=g(1) JobState=PENDING Command=(null)\n"

    jobs, problems = read_jobs.jobs_of_text(line)

    assert ([one.number for one in jobs], problems) == ([1], [])


def test_an_empty_cluster_is_a_view() -> None:
    view = view_of(Readings(NOW, (), ()))

    assert json.loads(view.snapshot.to_json())["hosts"] == []

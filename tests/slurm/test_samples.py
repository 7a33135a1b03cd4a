"""Samples of what a Slurm 22.05 printed: all are read, with fields more, fields less, and fields of a wrong type."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.slurm.made import NOW
from xce.adapters.schedulers.slurm import read_jobs, read_nodes, read_rules
from xce.adapters.schedulers.slurm.build import View, view_of
from xce.adapters.schedulers.slurm.facts import Readings
from xce.domain.errors import InputError
from xce.domain.formats.snapshot import HostState
from xce.domain.formats.snapshot_check import contradictions

Document = dict[str, Any]


@pytest.fixture(scope="module")
def samples(shared: Path) -> Path:
    return shared / "samples" / "slurm"


def document(samples: Path, name: str) -> Document:
    found: Document = json.loads((samples / name).read_text("utf-8"))
    return found


def text(samples: Path, name: str) -> str:
    return (samples / name).read_text("utf-8")


def seen(jobs: Document, nodes: Document) -> View:
    found, problems = read_jobs.jobs_of_json(jobs, "squeue --json")
    hosts = read_nodes.nodes_of_json(nodes, "sinfo --json")
    return view_of(
        Readings(NOW, hosts, found, troubles=tuple(("squeue --json", one) for one in problems))
    )


def test_jobs_nodes_and_rules_of_the_samples_make_a_snapshot(samples: Path) -> None:
    jobs, problems = read_jobs.jobs_of_text(text(samples, "scontrol_o_job.txt"))
    nodes = read_nodes.nodes_of_text(text(samples, "scontrol_o_node.txt"))
    view = view_of(
        Readings(
            NOW,
            nodes,
            jobs,
            read_rules.partitions_of_text(text(samples, "scontrol_o_partition.txt")),
            read_rules.licences_of_text(text(samples, "scontrol_o_licenses.txt")),
            (),
            read_rules.qos_of_text(text(samples, "sacctmgr_qos.txt")),
            read_rules.associations_of_text(text(samples, "sacctmgr_assoc.txt"), "ca"),
        )
    )
    pending = {one.id: one for one in view.snapshot.pending}

    assert not problems
    assert list(contradictions(view.snapshot)) == []
    assert {one.id for one in view.snapshot.running} == {"1", "2", "3"}
    assert pending["4"].resreq == 'rusage[mem=100MiB, "tool@srv"=1/job]'
    assert pending["5"].resreq == 'rusage[mem=100MiB, localtok=2/job, "tool@srv"=1/job]'
    assert (pending["6"].queue, pending["6"].held) == ("main:small", False)
    assert pending["7"].resreq == "select[tmpl_big] rusage[slots=16, mem=1600MiB]"
    assert pending["8"].resreq == "select[tmpl_future] rusage[slots=8, mem=2048MiB] span[hosts=-1]"
    assert pending["8"].tasks.min == 2
    assert pending["9"].held
    assert pending["10"].held
    assert [f"11_{n}" in pending for n in (0, 1, 20, 21)] == [False, True, True, False]
    assert pending["12"].waits_for == ("4",)
    assert "13" not in pending  # it failed
    assert [limit.name for limit in view.snapshot.limits] == ["qos small GrpTRES cpu"]
    assert {one.name: one.total for one in view.snapshot.shared} == {"localtok": 2, "tool@srv": 2}
    states = {host.name: host.state for host in view.snapshot.hosts}
    assert states == {"cas1": HostState.OPEN, "cas2": HostState.CLOSED, "cad1": HostState.OPEN}


def test_json_and_text_of_one_moment_say_the_same(samples: Path) -> None:
    of_json, _ = read_jobs.jobs_of_json(document(samples, "squeue.json"), "squeue --json")
    of_text, _ = read_jobs.jobs_of_text(text(samples, "scontrol_o_job.txt"))
    by_text = {job.number: view_of(Readings(NOW, (), (job,))).snapshot.pending for job in of_text}

    nodes = read_nodes.nodes_of_json(document(samples, "sinfo.json"), "sinfo --json")
    assert {node.name: (node.cpus, node.memory, node.features, node.reason) for node in nodes} == {
        node.name: (node.cpus, node.memory, node.features, node.reason)
        for node in read_nodes.nodes_of_text(text(samples, "scontrol_o_node.txt"))
    }
    for job in of_json:
        made = view_of(Readings(NOW, (), (job,))).snapshot.pending
        assert [one.resreq for one in made] == [one.resreq for one in by_text[job.number]]
        assert [one.held for one in made] == [one.held for one in by_text[job.number]]


def test_slurmrestd_says_what_the_commands_say(samples: Path) -> None:
    jobs = document(samples, "rest_jobs.json")
    nodes = document(samples, "rest_nodes.json")
    partitions = read_rules.partitions_of_json(document(samples, "rest_partitions.json"), "rest")
    licences = read_rules.licences_of_json(document(samples, "rest_licenses.json"), "rest")

    by_commands = seen(document(samples, "squeue.json"), document(samples, "sinfo.json"))
    assert seen(jobs, nodes).snapshot == by_commands.snapshot
    assert [(one.name, one.tier, one.is_up) for one in partitions] == [("main", 1, True)]
    assert {(one.name, one.total, one.used) for one in licences} == {
        (one.name, one.total, one.used)
        for one in read_rules.licences_of_text(text(samples, "scontrol_o_licenses.txt"))
    }


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all fields of the records of a document."""
    found: list[tuple[str | int, ...]] = []
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            found += [(*path, key), *places(inner, (*path, key))]
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[object]", value)):
            found += places(inner, (*path, number))
    return found


def at(value: Any, path: tuple[str | int, ...], change: Callable[[Any, str | int], None]) -> None:
    for key in path[:-1]:
        value = value[key]
    change(value, path[-1])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fields_that_are_missing_null_or_new_are_survived(
    samples: Path, data: st.DataObject
) -> None:
    jobs, nodes = document(samples, "squeue.json"), document(samples, "sinfo.json")
    for told, name in ((jobs, "jobs"), (nodes, "nodes")):
        fields = [path for path in places(told) if path[0] == name and len(path) == 3]
        for path in data.draw(st.lists(st.sampled_from(fields), max_size=40, unique=True)):
            if data.draw(st.booleans()):
                at(told, path, lambda record, key: record.pop(key))
            else:
                at(told, path, lambda record, key: record.update({key: None}))
        told[name][0]["new_in_slurm_99"] = {"set": True}

    view = seen(jobs, nodes)

    assert list(contradictions(view.snapshot)) == []


READ = (
    "job_id", "job_state", "cpus", "tasks", "node_count", "memory_per_cpu", "priority", "state_reason", "features", "licenses",
    "partition", "submit_time", "time_limit", "array_job_id", "dependency", "tres_req_str",
)  # fmt: skip


@pytest.mark.parametrize("field", READ)
def test_a_field_of_a_wrong_type_is_told_with_command_and_field(samples: Path, field: str) -> None:
    jobs = document(samples, "squeue.json")
    waiting = next(n for n, job in enumerate(jobs["jobs"]) if job["job_state"] == "PENDING")
    number = jobs["jobs"][waiting]["job_id"]
    jobs["jobs"][waiting][field] = {"odd": []}

    try:
        view = seen(jobs, document(samples, "sinfo.json"))
    except InputError as error:
        told = [str(error)]
    else:
        told = [f"{source}: {problem}" for source, problem in view.troubles]
        assert str(number) not in {job.id for job in view.snapshot.pending}

    assert any(line.startswith(f"squeue --json: jobs[{waiting}].{field}") for line in told), told


@pytest.mark.parametrize("field", ["nodes", "job_resources", "cpus", "licenses"])
def test_what_a_running_job_holds_is_never_guessed(samples: Path, field: str) -> None:
    jobs = document(samples, "squeue.json")
    place = next(n for n, job in enumerate(jobs["jobs"]) if job["job_state"] == "RUNNING")
    jobs["jobs"][place][field] = ["x", 3]

    with pytest.raises(InputError, match=rf"squeue --json: jobs\[{place}\]\.{field}"):
        seen(jobs, document(samples, "sinfo.json"))


@pytest.mark.parametrize("field", ["name", "state", "cpus", "real_memory", "features", "boot_time"])
def test_a_node_of_a_wrong_type_is_told_with_command_and_field(samples: Path, field: str) -> None:
    nodes = document(samples, "sinfo.json")
    nodes["nodes"][1][field] = {"odd": 1}
    if field == "features":
        nodes["nodes"][1]["active_features"] = ""

    with pytest.raises(InputError, match=rf"sinfo --json: nodes\[1\]\.{field}"):
        read_nodes.nodes_of_json(nodes, "sinfo --json")

"""Samples with one thing changed, as another version or a bad day may have it: a view, or an error that names the command; never a busy host that seems free."""

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.slurm.made import CONFIG, NOW
from tests.slurm.test_samples import at, places
from xce.adapters.schedulers.slurm.build import View, view_of
from xce.adapters.schedulers.slurm.reader import Reader
from xce.domain.errors import InputError, TransientError
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.scheduling.session import run_session

FILES = {
    "partition": "scontrol_o_partition.txt",
    "lic": "scontrol_o_licenses.txt",
    "node": "scontrol_o_node.txt",
    "job": "scontrol_o_job.txt",
    "qos": "sacctmgr_qos.txt",
    "assoc": "sacctmgr_assoc.txt",
    "squeue": "squeue.json",
    "sinfo": "sinfo.json",
}
COMMANDS = ("squeue", "sinfo", "scontrol", "sacctmgr", "what Slurm shows")
WORDS = (
    "", "UNLIMITED", "INFINITE", "N/A", "n/a", "(null)", "None", "Unknown", "NONE", "0", "5", "5K", "1.5G", "7T", "9Q", "-3", "x y",
    "n[001-003,7]x", "n[1", "a,b", "a&b", "[a|b]", "1-3%2", "3-1", "IDLE+DRAIN", "mixed*", "2-00:00:00", "2026-11-29T17:00:31",
    "18446744073709551614", "4294967295", "gres:gpu:a100:2(S:0-1)", "a=b=c", "ä€", "a\tb",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *WORDS, None, True, False, 0, 7, -1, 2**32 - 2, 2**64 - 1, 2**70, 1.0, 1.5, [], {}, [[]], ["x"], ["IDLE", "DRAIN"], [None], [3],
    {"set": True, "infinite": False, "number": 3}, {"set": False, "infinite": False, "number": 0},
    {"set": True, "infinite": True, "number": 0}, {"number": "3"}, {"set": 1, "number": 3}, {"odd": {"odd": []}},
)  # fmt: skip


class Sampled:
    """Commands that print the samples; changed outputs in their place."""

    def __init__(self, samples: Path, changed: dict[str, bytes]) -> None:
        self._samples = samples
        self._changed = changed
        self.only_text = bool(changed.keys() & {"node", "job"})

    def __call__(self, command: Sequence[str]) -> bytes:
        if "config" in command:
            return self._changed.get("config", CONFIG.encode())
        if "reservation" in command:
            return self._changed.get("reservation", b"No reservations in the system\n")
        if "--json" in command and self.only_text:
            raise TransientError(f"{command[0]}: unrecognized option '--json'")
        name = next(name for name in FILES if name in command)
        return self._changed.get(name) or (self._samples / FILES[name]).read_bytes()


@pytest.fixture(scope="module")
def samples(shared: Path) -> Path:
    return shared / "samples" / "slurm"


def busy(view: View) -> set[str]:
    return {place.name for job in view.snapshot.running for place in job.hosts}


def view_or_error(samples: Path, changed: dict[str, bytes]) -> View | str:
    try:
        return view_of(Reader(Sampled(samples, changed)).read(NOW))
    except InputError as error:
        return str(error)


def check(samples: Path, changed: dict[str, bytes]) -> None:
    """Check what is read with something changed."""
    view = view_or_error(samples, changed)
    if isinstance(view, str):
        assert view.startswith(COMMANDS), view
        return
    found = [one for one in contradictions(view.snapshot) if "twice" not in one.message]
    assert not found, found
    assert all(source.startswith((*COMMANDS, "job", "node", "partition", "reservation")) for source, _ in view.troubles)  # fmt: skip
    run_session(view.snapshot)
    was_busy = busy(view_of(Reader(Sampled(samples, {})).read(NOW)))
    names = {host.name for host in view.snapshot.hosts}
    assert was_busy & names <= busy(view), "a busy host seems free"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_field_of_json(samples: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["squeue", "sinfo"]))
    document = json.loads((samples / FILES[name]).read_text("utf-8"))
    path = data.draw(st.sampled_from(places(document)))
    value = data.draw(st.sampled_from(["(deleted)", *VALUES]))

    def change(record: Any, key: str | int) -> None:
        if value == "(deleted)":
            record.pop(key)
        else:
            record[key] = value

    at(document, path, change)

    check(samples, {name: json.dumps(document).encode()})


PAIR = re.compile(r"(?<=\s)[A-Za-z][\w/:]*=\S*")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_word_of_scontrol(samples: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["node", "job", "partition", "lic"]))
    text = (samples / FILES[name]).read_text("utf-8")
    pair = data.draw(st.sampled_from(list(PAIR.finditer(text))))
    key = pair[0].partition("=")[0]
    value = data.draw(st.sampled_from(["(deleted)", *WORDS]))
    word = "" if value == "(deleted)" else f"{key}={value}"
    text = text[: pair.start()] + word + text[pair.end() :]

    check(samples, {name: text.encode()})


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_cell_of_sacctmgr(samples: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["qos", "assoc"]))
    rows = [line.split("|") for line in (samples / FILES[name]).read_text("utf-8").splitlines()]
    row = data.draw(st.sampled_from(rows))
    row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(WORDS))

    check(samples, {name: "\n".join("|".join(one) for one in rows).encode()})


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_output_that_was_cut_off(samples: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(FILES)))
    whole = (samples / FILES[name]).read_bytes()
    cut = whole[: data.draw(st.integers(1, len(whole)))]

    if name in ("node", "job"):  # what is missing after the cut cannot be known
        view = view_or_error(samples, {name: cut})
        assert not isinstance(view, str) or view.startswith(COMMANDS), view
        return
    check(samples, {name: cut})


@pytest.mark.parametrize("name", ["squeue", "sinfo"])
@pytest.mark.parametrize(
    "output", [b"", b"null", b"[]", b"{}", b'{"jobs": null}', b'{"errors": ["away"], "jobs": [], "nodes": []}']
)  # fmt: skip
def test_json_without_records_is_no_empty_cluster(samples: Path, name: str, output: bytes) -> None:
    run = partial(Sampled(samples, {}))

    def changed(command: Sequence[str]) -> bytes:
        return output if command[0] == name else run(command)

    with pytest.raises(InputError, match=f"{name} --json"):
        Reader(changed).read(NOW)


@pytest.mark.parametrize("name", ["node", "job", "partition", "lic"])
def test_scontrol_without_its_option_for_one_line_says_the_same(samples: Path, name: str) -> None:
    text = (samples / FILES[name]).read_text("utf-8")
    broken = re.sub(r"(?<=\S) (?=[A-Z][\w/:]*=)", "\n   ", text).replace("\n\n", "\n")

    def read(changed: dict[str, bytes]) -> View:
        also = {"node": (samples / FILES["node"]).read_bytes()} | changed
        return view_of(Reader(Sampled(samples, also)).read(NOW))

    assert read({name: broken.encode()}).snapshot == read({}).snapshot

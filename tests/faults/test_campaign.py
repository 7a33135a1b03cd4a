"""Runs under seeded failure keep every promise; a run is its seed and its faults; what fails is made small and told as one command.

``XCE_FAULT_SEEDS`` sets how many seeds are run.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.faults.plants import PLANTS, Plant
from xce.adapters.cli.main import app
from xce.adapters.faults import campaign
from xce.adapters.faults.campaign import (
    Campaign,
    command_of,
    faults_of,
    quiet,
    run_seed,
    shrunk,
)
from xce.adapters.faults.life import RealLife, supply_of_node
from xce.adapters.faults.processes import in_processes
from xce.domain.errors import InputError, PermanentError
from xce.replay.faults.world import World

SEEDS = int(os.environ.get("XCE_FAULT_SEEDS", "60"))
PARTS = 10
#: Breaks its promise in many runs.
EASY = "the capacity forgets what goes back"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with quiet():
        yield


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Plant a fault of ours that is found soon."""
    found = next(one for one in PLANTS if one.name == EASY)
    found.plant(monkeypatch)
    return found


def first_failure() -> int:
    return next(seed for seed in range(40) if run_seed(seed).promise is not None)


@pytest.mark.parametrize("part", range(PARTS))
def test_runs_under_failure_keep_every_promise(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        outcome = run_seed(seed)
        assert outcome.promise is None, (outcome.message, command_of(shrunk(outcome)))


def test_the_storms_are_real() -> None:
    outcomes = [run_seed(seed) for seed in range(8)]

    kinds = {fault.partition(":")[0] for one in outcomes for fault in one.faults}
    assert len(kinds) >= 15, kinds
    assert min(one.events for one in outcomes) > 20


def test_one_seed_gives_one_run_to_the_last_event() -> None:
    worlds = [World(7, RealLife, supply_of_node) for _ in range(2)]

    one, other = (world.run() for world in worlds)

    assert one == other
    assert worlds[0].disk.recorded == worlds[1].disk.recorded


def test_a_run_with_its_own_faults_named_is_the_same_run() -> None:
    by_chance = World(5, RealLife, supply_of_node)
    outcome = by_chance.run()
    assert outcome.faults

    named = World(5, RealLife, supply_of_node, outcome.faults)

    assert named.run() == outcome
    assert named.disk.recorded == by_chance.disk.recorded


def test_without_faults_everything_settles() -> None:
    for seed in range(6):
        outcome = run_seed(seed, only=())
        assert (outcome.promise, outcome.faults) == (None, ())


def test_a_failure_is_told_with_fewer_faults_that_are_enough(planted: Plant) -> None:
    failed = run_seed(first_failure())

    small = shrunk(failed)

    assert small.promise == failed.promise
    assert len(small.faults) <= len(failed.faults)
    again = run_seed(small.seed, small.faults)
    assert again == small
    for fault in small.faults:
        rest = tuple(one for one in small.faults if one != fault)
        assert run_seed(small.seed, rest).promise != small.promise, f"{fault} is not needed"


def test_a_failure_is_told_as_one_command_that_shows_it_again(planted: Plant) -> None:
    runner = CliRunner()
    seed = str(first_failure())

    told = runner.invoke(app, ["sim", "faults", "--seed", seed, "--json"])

    assert told.exit_code == 3
    (failed,) = json.loads(told.stdout)["failed"]
    assert failed["promise"] in planted.promises
    program, *arguments = failed["command"].replace("'", "").split(" ")
    again = runner.invoke(app, [*arguments, "--json"])
    assert program == "xce"
    assert again.exit_code == 3
    assert json.loads(again.stdout)["failed"][0]["message"] == failed["message"]


def test_a_command_names_faults_as_they_were() -> None:
    faults = ("death before a call:12", "kill:3")
    outcome = run_seed(1, only=())
    text = command_of(type(outcome)(1, "invariant-4", "", faults, outcome.events, outcome.seconds))

    assert faults_of(text.split("'")[1]) == faults


def test_a_campaign_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "TOGETHER", 4)
    file = tmp_path / "campaign.jsonl"
    begun = Campaign(0, 6, file).run(1, lambda progress: None)
    assert begun.runs == 6
    first, _ = file.read_text("utf-8").splitlines()
    file.write_text(first + "\n", "utf-8")

    half = Campaign(0, 6, file)

    assert half.progress.runs == 4
    assert half.run(1, lambda progress: None) == begun


def test_a_campaign_that_is_asked_for_more_runs_runs_those_that_its_last_part_did_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "TOGETHER", 4)
    file = tmp_path / "campaign.jsonl"
    Campaign(0, 6, file).run(1, lambda progress: None)

    longer = Campaign(0, 8, file)

    assert longer.progress.runs == 6
    assert longer.run(1, lambda progress: None) == Campaign(0, 8, None).run(
        1, lambda progress: None
    )
    assert Campaign(0, 8, file).progress.runs == 8


def test_a_line_of_an_earlier_release_is_a_whole_part(tmp_path: Path) -> None:
    file = tmp_path / "campaign.jsonl"
    file.write_text('{"start":0,"events":5,"faults":2,"failed":[]}\n', "utf-8")

    assert Campaign(0, 50, file).run(1, lambda progress: None).runs == 50


def test_a_key_press_ends_a_campaign_at_once_and_without_a_word_of_its_processes(
    tmp_path: Path,
) -> None:
    arguments = [sys.executable, "-m", "xce.adapters.cli.entry", "sim", "faults", "--runs", "100000",
                 "--processes", "2", "--file", str(tmp_path / "campaign.jsonl")]  # fmt: skip
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and len(children.read_text().split()) < 3:  # and a tracker
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate()  # until nobody has these outputs any more

    assert (process.returncode, *said) == (130, "", "xce: interrupted\n")


def test_a_process_that_is_killed_ends_its_campaign_and_is_named() -> None:
    with pytest.raises(PermanentError, match="a process ended with signal SIGKILL before its part"):
        list(in_processes(_die, [(0, 50)], 1))


def _die(part: tuple[int, int], parent: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_campaign_asks_for_a_folder_for_its_file_before_it_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        Campaign(0, 50, tmp_path / "none" / "campaign.jsonl")


@pytest.mark.parametrize("text", ["kill", "kill:", "kill:0", "kill:x", "kill 3", "4:kill"])
def test_what_names_no_fault_is_refused(text: str) -> None:
    told = CliRunner().invoke(app, ["sim", "faults", "--only", text])

    assert isinstance(told.exception, InputError)
    assert "such as kill:4" in str(told.exception)


def test_named_faults_that_do_not_happen_are_told() -> None:
    only = "no-such-fault:1,late-answer:99999"

    told = CliRunner().invoke(app, ["sim", "faults", "--seed", "5", "--only", only])

    assert told.exit_code == 0
    assert told.stdout.startswith("1 run, ")
    assert told.stderr == (
        "did not happen in the run of seed 5: no such fault:1, late answer:99999\n"
    )


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "campaign.jsonl"
    file.write_text('{"start": 0}\n', "utf-8")

    with pytest.raises(InputError, match=r"campaign\.jsonl:1"):
        Campaign(0, 50, file)


def test_named_faults_are_of_one_run() -> None:
    told = CliRunner().invoke(app, ["sim", "faults", "--runs", "2", "--only", "kill:1"])

    assert told.exit_code == 2
    kept = CliRunner().invoke(app, ["sim", "faults", "--file", "f.jsonl", "--only", "kill:1"])
    assert kept.exit_code == 2


WHOLE = '{"start":0,"events":70,"faults":9,"failed":[]}\n'


def test_a_campaign_that_was_ended_in_the_middle_of_a_line_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "campaign.jsonl"
    file.write_text(WHOLE + '{"start":50,"even')

    assert Campaign(0, 52, file).progress.runs == 50
    assert Campaign(0, 52, file).run(1, lambda progress: None).runs == 52
    assert Campaign(0, 52, file).progress.runs == 52
    assert file.read_text().startswith(WHOLE + '{"start":50,"events":')


def test_what_another_campaign_keeps_in_the_file_is_not_counted(tmp_path: Path) -> None:
    file = tmp_path / "campaign.jsonl"
    file.write_text(WHOLE)

    assert Campaign(1000, 50, file).progress.runs == 0
    assert Campaign(0, 50, file).progress.runs == 50


@pytest.mark.parametrize("content", [b"\xbc\n", b"{}\n", b"\0\n"])
def test_a_file_that_is_no_campaign_is_refused_with_its_line(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "campaign.jsonl"
    file.write_bytes(WHOLE.encode() + content)

    with pytest.raises(InputError, match=r"campaign\.jsonl:2: is "):
        Campaign(0, 50, file)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(InputError, match="a line of more than 16 MiB"):
        Campaign(0, 50, Path("/dev/zero"))


def test_a_file_that_cannot_be_written_is_said_before_anything_runs() -> None:
    with pytest.raises(InputError, match="/proc/campaign: cannot be written"):
        Campaign(0, 50, Path("/proc/campaign")).run(1, lambda progress: None)

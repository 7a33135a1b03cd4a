"""``xce sim repl``: scripts, standard input, JSON, recordings, and how it ends."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.unit.prompt.sites import TEXT, the_site
from tests.unit.test_files import files_of_at_most
from xce.adapters.cli import exit_codes
from xce.adapters.cli import main as entry
from xce.adapters.cli.repl import LINE_MAX, Edge
from xce.adapters.store.open import open_log
from xce.domain.errors import InputError


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "workshop.yaml"
    path.write_text(TEXT)
    return path


class Ran:
    """What a command printed, and its exit code."""

    def __init__(self, out: str, err: str, code: int) -> None:
        self.out, self.err, self.code = out, err, code

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def ran(*arguments: object, stdin: str | None = "") -> Ran:
        given = None if stdin is None else io.StringIO(stdin)
        monkeypatch.setattr(sys, "stdin", given)
        monkeypatch.setattr(sys, "argv", ["xce", *(str(one) for one in arguments)])
        code = 0
        try:
            entry.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        printed = capsys.readouterr()
        return Ran(printed.out, printed.err, code)

    return ran


@pytest.mark.parametrize("way", ["file", "standard input"])
def test_a_line_that_is_too_long_is_no_command_and_no_two(
    run: Any, site: Path, tmp_path: Path, way: str
) -> None:
    script = "step\n# " + "x" * LINE_MAX + "\nquit\n"
    (tmp_path / "long.txt").write_text(script)

    if way == "file":
        ran = run("sim", "repl", site, "--file", tmp_path / "long.txt")
    else:
        ran = run("sim", "repl", site, stdin=script)

    assert ran.code == exit_codes.USAGE
    assert "2: is longer than 65,536 characters" in ran.err.replace("\n", "")
    assert "> step" in ran.out


def test_what_is_no_text_is_no_command(
    run: Any, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(text: str) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8")

    (tmp_path / "odd.txt").write_bytes(b"\xff\n")
    script = run("sim", "repl", site, "--file", tmp_path / "odd.txt")
    monkeypatch.setattr(io, "StringIO", given)
    piped = run("sim", "repl", site)

    assert (script.code, piped.code) == (exit_codes.USAGE, exit_codes.USAGE)
    assert script.err == f"xce: {tmp_path / 'odd.txt'}:1: is not UTF-8 text\n"
    assert piped.err == "xce: <stdin>:1: is not UTF-8 text\n"


def test_a_script_is_printed_with_its_answers(run: Any, site: Path, tmp_path: Path) -> None:
    script = tmp_path / "look.txt"
    script.write_text("# the first session\nrun until session\n\ninfo hosts\nquit\nstep\n")

    ran = run("sim", "repl", site, "--file", script)

    assert ran.code == exit_codes.DONE
    *before, row, last = ran.out.splitlines()
    assert before[:4] == [
        "> run until session",
        "10:00:00     - job a1 starts",
        "2026-03-01 10:00:00: 1 moment, 0 events; a session",
        "> info hosts",
    ]
    assert before[4].split() == ["HOST", "STATE", "INSTANCE", "JOBS", "USE", "IDLE", "SINCE"]
    assert row.split() == [
        "own1",
        "open",
        "-",
        "1",
        "2",
        "of",
        "2",
        "slots,",
        "0",
        "of",
        "8GiB",
        "mem",
        "-",
    ]
    assert last == "> quit"


def test_commands_come_from_standard_input_where_it_is_no_terminal(run: Any, site: Path) -> None:
    ran = run("sim", "repl", site, "--json", stdin="step 2\ninfo jobs\n")

    assert ran.code == exit_codes.DONE
    assert [one["command"] for one in ran.documents] == ["step 2", "info jobs"]
    assert {one["job"] for one in ran.documents[1]["jobs"]} == {"a1", "never"}
    assert ran.err == ""


def test_a_wrong_command_ends_a_script_with_its_line_and_what_was_before_is_done(
    run: Any, site: Path, tmp_path: Path
) -> None:
    script = tmp_path / "wrong.txt"
    script.write_text("step\n\nsett price small 1\nstep\n")

    ran = run("sim", "repl", site, "--file", script, "--json")

    assert ran.code == exit_codes.USAGE
    assert ran.err == f"xce: {script}:3: sett: 'sett' is no command here; did you mean set?\n"
    assert [one["command"] for one in ran.documents] == ["step"]


def test_every_problem_of_a_file_that_a_script_loads_is_told(run: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nwrkload: {}\nuntil: soon\n")

    ran = run("sim", "repl", stdin=f"load {bad}\n")

    assert ran.code == exit_codes.USAGE
    assert ran.err.splitlines()[0].startswith(f"xce: <stdin>:1: {bad}:2: wrkload: ")
    assert ran.err.splitlines()[1].startswith(f"xce: <stdin>:1: {bad}:3: until: ")


def test_without_a_file_one_is_loaded(run: Any, site: Path) -> None:
    ran = run("sim", "repl", "--json", stdin=f"load {site}\nstep\n")

    assert [one["branch"] for one in ran.documents] == ["main", "main"]
    assert ran.documents[0]["name"] == "workshop"


def test_a_trace_is_walked_through_with_its_configuration(run: Any) -> None:
    trace, config = ROOT / "examples" / "small.swf", ROOT / "examples" / "small.yaml"

    ran = run("sim", "repl", trace, "--config", config, "--json", stdin="step 3\nrun\ninfo\n")
    loaded = run("sim", "repl", "--json", stdin=f"load {trace} {config}\nrun\ninfo\n")

    assert ran.documents[-1]["figures"] == loaded.documents[-1]["figures"]
    assert int(ran.documents[-1]["figures"]["ended"]) > 0
    assert ran.documents[-1]["name"] == "small.swf"


def test_a_seed_is_that_of_all_branches(run: Any, site: Path) -> None:
    said = "run\ninfo\n"

    one, other, again = (
        run("sim", "repl", site, "--seed", seed, "--json", stdin=said).documents
        for seed in (1, 9, 9)
    )

    assert other == again
    assert one[-1]["seed"] == 1
    assert one[-1]["figures"] != other[-1]["figures"]


def test_a_recording_of_a_branch_is_verified_by_the_command_for_it(
    run: Any, site: Path, tmp_path: Path
) -> None:
    path = tmp_path / "dearer.rec.gz"
    said = f"run until 4min\nfork dearer\nset price small 0.95\nrun\nrecord {path}\n"

    ran = run("sim", "repl", site, "--json", stdin=said)
    verified = run("replay", "verify", path, "--json")

    assert ran.code == verified.code == exit_codes.DONE
    assert verified.documents[0]["verified"] is True
    assert verified.documents[0]["sessions"] == ran.documents[-1]["sessions"]


def test_a_recording_never_takes_the_place_of_a_file(run: Any, site: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.rec.gz"
    path.write_text("mine")

    ran = run("sim", "repl", site, stdin=f"step\nrecord {path}\n")

    assert ran.code == exit_codes.USAGE
    assert f"<stdin>:2: {path}: exists already" in ran.err
    assert path.read_text() == "mine"


def test_a_recording_for_which_there_is_no_room_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "out.rec.gz"

    with (
        Edge(None) as edge,
        files_of_at_most(10),
        pytest.raises(InputError, match="cannot be written"),
        edge.new_recording(str(path), the_site()) as writer,
    ):
        assert writer is not None

    assert not path.exists()


def test_a_recording_that_comes_to_nothing_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "half.rec.gz"

    def half(edge: Edge) -> None:
        with edge.new_recording(str(path), the_site()) as writer:
            writer.event({"name": "first", "position": 1, "at": "2026-03-01T10:00:00Z"})
            assert path.exists()
            raise InputError.of("record", "interrupted")

    with Edge(None) as edge, pytest.raises(InputError, match="interrupted"):
        half(edge)

    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        (("nowhere.yaml",), "", "nowhere.yaml: cannot be read: No such file or directory"),
        (("--config", "x.yaml"), "", "--config: is for a trace"),
        (
            (str(ROOT / "examples" / "small.swf"),),
            "",
            "small.swf: is no scenario; its jobs are run with a configuration too: --config FILE",
        ),
        (("--file", "nowhere.txt"), "", "nowhere.txt: cannot be read: No such file or directory"),
        ((), None, "<stdin>: is closed; wanted commands"),
        ((), "load a b c\n", "<stdin>:1: load: wanted: load SCENARIO | TRACE CONFIG"),
    ],
)
def test_what_is_wrong_is_told(run: Any, arguments: Any, stdin: Any, says: str) -> None:
    ran = run("sim", "repl", *arguments, stdin=stdin)

    assert ran.code == exit_codes.USAGE
    assert says in ran.err


def test_a_log_is_no_scenario_that_a_prompt_could_load(run: Any, tmp_path: Path) -> None:
    with open_log(tmp_path / "events.db"):
        pass

    ran = run("sim", "repl", stdin=f"load {tmp_path / 'events.db'}\n")

    assert ran.code == exit_codes.USAGE
    assert "is a log; to walk through it: xce sim repl events.db" in ran.err


def test_a_recording_is_explored_as_work_under_a_configuration(
    run: Any, site: Path, tmp_path: Path
) -> None:
    path, config = tmp_path / "day.rec.gz", ROOT / "examples" / "small.yaml"
    run("sim", "repl", site, stdin=f"run\nrecord {path}\n")

    ran = run("sim", "repl", path, "--config", config, "--json", stdin="run 1h\ninfo\n")

    assert ran.code == exit_codes.DONE
    assert int(ran.documents[-1]["figures"]["ended"]) > 0


def test_a_recording_is_walked_through(run: Any, site: Path, tmp_path: Path) -> None:
    path = tmp_path / "day.rec.gz"
    run("sim", "repl", site, stdin=f"run 40min\nrecord {path}\n")

    ran = run("sim", "repl", path, "--json", stdin="step\nrun until start b1\ndiff 1\n")

    assert ran.code == exit_codes.DONE
    first, there, compared = ran.documents
    assert first["at"] == {"moment": 1, "session": 1, "position": 5}
    assert there["stopped"] == "job b1 starts"
    assert "job b1" in [one["what"] for one in compared["differences"]]


def test_a_log_is_walked_through_and_not_written(run: Any, site: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("sim", "run", site, "--out", out, "--quiet")
    before = (out / "log.db").read_bytes()

    ran = run("sim", "repl", out / "log.db", stdin="run until request.closed\ninfo requests\n")

    assert ran.code == exit_codes.DONE
    assert "> info requests\nREQUEST " in ran.out
    assert (out / "log.db").read_bytes() == before


def test_a_seed_is_for_simulations(run: Any, site: Path, tmp_path: Path) -> None:
    path = tmp_path / "day.rec.gz"
    run("sim", "repl", site, stdin=f"run 5min\nrecord {path}\n")

    ran = run("sim", "repl", path, "--seed", "3", stdin="step\n")

    assert ran.code == exit_codes.USAGE
    assert "--seed: is for a simulation" in ran.err


def test_names_of_others_command_no_terminal(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text(TEXT.replace("name: workshop", 'name: "work\\u202eshop"'))

    ran = run("sim", "repl", path, stdin="info\n")

    assert "\u202e" not in ran.out
    assert "work\\u202eshop, seed 1" in ran.out

"""What others wrote is shown on a terminal, and commands nothing there."""

import io
import json
from typing import Any

import pytest
from rich.text import Text

from tests.replay.worlds import finish
from xce.adapters.cli import policy, session, simulate, terminal
from xce.adapters.cli.main import end
from xce.adapters.cli.visible import PlainConsole, visible
from xce.adapters.report.canvas import Canvas
from xce.adapters.settings.load import read_config
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide
from xce.replay.workloads.eda_day import eda_day

CSI, TURNED, SEPARATOR, MARKUP = (
    "\x9b31mred",
    "\u202egpj.exe",
    "a\u2028b\x85c",
    "[/red][bold]x:warning:",
)
HOSTILE = (CSI, TURNED, SEPARATOR, MARKUP)
ESCAPE = "\x1b]0;owned\x07"


def is_harmless(text: str) -> bool:
    return all(char == "\n" or char.isprintable() for char in text)


def test_a_text_without_surprises_is_left_alone() -> None:
    assert visible("größe-7 [x] %s {0} 中") == "größe-7 [x] %s {0} 中"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        (CSI, r"\x9b31mred"),
        (TURNED, r"\u202egpj.exe"),
        (SEPARATOR, r"a\u2028b\x85c"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\U000e0041", r"\U000e0041"),
        ("\ufeff\u200b", r"\ufeff\u200b"),
    ],
)
def test_what_a_terminal_would_obey_is_written_as_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_console_writes_no_character_of_others_that_commands(is_terminal: bool) -> None:
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=is_terminal, width=200, color_system=None)

    for text in (*HOSTILE, ESCAPE):
        console.print(text)
        console.print(Text(text))

    assert is_harmless(file.getvalue())
    assert "[/red][bold]x:warning:" in file.getvalue()


def test_a_session_with_hostile_names_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    document: dict[str, Any] = {
        "format": "xce.snapshot/1",
        "now": "2026-03-01T10:00:00Z",
        "hosts": [
            {"name": name, "total": {"slots": 1}, "instance": name, "idle_since": "2026-03-01T01:00:00Z"}
            for name in HOSTILE
        ],
        "limits": [{"name": f"l{n}", "resource": "jobs", "amount": 0, "users": [n]} for n in HOSTILE],
        "pending": [
            *({"id": name, "user": name} for name in HOSTILE),
            *({"id": f"f{name}", "queue": name, "tasks": {"min": 9}} for name in HOSTILE),
            {"id": "paused", "resreq": "rusage[gpu=1]"},
        ],
        "catalog": {
            "templates": [
                *({"id": n, "provides": {"slots": 1}, "allowed": 1} for n in HOSTILE),
                {
                    "id": "p", "provides": {"slots": 1, "gpu": 1}, "allowed": 1,
                    "paused_until": "2026-03-01T11:00:00Z", "paused_why": ESCAPE,
                },
            ]
        },
    }  # fmt: skip

    result = session.session(json.dumps(document), "x", trace=True)
    session.render(result, terminal.out)

    printed = capsys.readouterr()
    assert is_harmless(printed.out)
    assert is_harmless(printed.err)
    assert r"\x9b31mred" in printed.out


def test_decisions_with_hostile_names_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    document: dict[str, Any] = {
        "format": "xce.policy/1",
        "now": "2026-03-01T10:00:00Z",
        "demand": {
            "hosts": [
                {"template": CSI, "count": 5, "jobs": [{"job": TURNED, "order": 1, "hosts": 5}]}
            ],
            "order": [[CSI, 5]],
        },
        "providers": [{"name": SEPARATOR, "templates": [{"templateId": CSI}]}],
        "pauses": [{"provider": SEPARATOR, "until": "2026-03-01T11:00:00Z", "why": ESCAPE}],
    }

    terminal.print_table(policy.table_of(decide(read_policy_input(json.dumps(document)))))

    assert is_harmless(capsys.readouterr().out)


def test_an_error_about_a_hostile_text_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        end(f"file.json: pending[0].resreq: a is the text {ESCAPE}\nsecond {CSI}", 2)

    assert capsys.readouterr().err == (
        "xce: file.json: pending[0].resreq: a is the text \\x1b]0;owned\\x07\n"
        "xce: second \\x9b31mred\n"
    )


def test_a_simulation_with_hostile_names_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Names that look like markup ended a finished run with an exception."""
    config = f"""
cluster:
  hosts: [{{name: own, total: {{slots: 200, mem: 4TiB}}}}]
  shared: [{{name: "{MARKUP}", owned: 1, provider: "[/b]", max_borrow: 1}}]
providers:
  - name: "[/b]"
    kinds: [host, countable]
    templates: [{{template_id: "{TURNED}", provides: {{slots: 4}}}}]
    resources: [{{name: "{MARKUP}", capacity: 1}}]
"""
    report = finish(read_config(config.encode(), "case.yaml"), eda_day(1)).report

    simulate.render(report.model_copy(update={"source": f"[/x]{CSI}"}), terminal.out)

    printed = capsys.readouterr().out
    assert is_harmless(printed)
    assert MARKUP in printed


def test_a_picture_takes_a_name_with_dollar_signs_as_it_is() -> None:
    """Between dollar signs matplotlib reads formulas; a wrong one ended a report with an exception."""
    name = r"$\frac{x^$ 中"
    with Canvas("case") as canvas:
        axes = canvas.axes[0]
        axes.plot([0, 1], [0, 1], label=name)
        axes.legend()
        svg = canvas.svg()

    assert name in svg


def test_an_input_with_very_many_mistakes_gets_a_hundred_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        end("\n".join(f"problem {number}" for number in range(250)), 2)

    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[99], lines[100]) == (101, "xce: problem 99", "xce: and 150 more")

"""What the README shows of the demo, from a run of the demo."""

import io
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from rich.console import Console

from xce.adapters.cli.simulate import new_log, render, simulate
from xce.adapters.settings.load import read_config
from xce.replay.workloads.eda_day import eda_day

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- demo: made by tools/generate.py -->\n", "<!-- /demo -->\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the README with the demo's output of today."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    yield "README.md", f"{before}{BEGIN}```text\n{demo_output()}```\n{END}{after}"


def demo_output() -> str:
    """Return what the demo prints about its run, without colour."""
    config = read_config(files("xce.adapters.cli").joinpath("demo.yaml").read_bytes(), "demo.yaml")
    with new_log(None) as log:
        run = simulate(config, eda_day(config.driver.seed), log, quiet=True)
    console = Console(file=io.StringIO(), width=100, color_system=None)
    render(run.report, console)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(lines) + "\n"

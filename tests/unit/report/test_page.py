"""The HTML report: one file, the same bytes for the same run, with and without pictures."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.made_up.run import MadeUp, made_up_run
from xce.adapters.report import pictures
from xce.adapters.report.page import ROWS_MAX, Table, render, write_report
from xce.domain.errors import InputError
from xce.domain.formats.simulation import SimulationReport
from xce.replay.statistics import Statistics

VOID = {"meta", "br", "img", "link", "hr"}


class Balance(HTMLParser):
    """Finds tags that are closed out of order, and collects addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def run() -> MadeUp:
    return made_up_run(1)


@pytest.fixture(scope="module")
def report(run: MadeUp) -> SimulationReport:
    return run.statistics.summary(run.history, end=run.end, log=run.head)


@pytest.fixture(scope="module")
def page(run: MadeUp, report: SimulationReport) -> str:
    return render(report, run.statistics, run.history)


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(page: str) -> None:
    parser = Balance()
    parser.feed(page)

    assert parser.open == []
    assert all(address.startswith("#") for address in parser.addresses)
    assert "<script" not in page
    assert "@import" not in page


def test_every_picture_is_there_and_is_an_svg(page: str) -> None:
    svgs = re.findall(r"<svg.*?</svg>", page, re.DOTALL)

    assert len(svgs) == 5
    for svg in svgs:
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    for title in (
        "Demand against supply",
        "Tokens of lic_sim",
        "Hosts from providers",
        "Waiting times",
        "Cost over time",
    ):
        assert title in page


def test_the_same_run_gives_the_same_bytes(page: str) -> None:
    again = made_up_run(1)
    summary = again.statistics.summary(again.history, end=again.end, log=again.head)

    assert render(summary, again.statistics, again.history) == page


def test_without_matplotlib_the_page_has_all_but_pictures_and_says_how_to_get_them(
    run: MadeUp, report: SimulationReport, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)

    plain = render(report, run.statistics, run.history)

    assert "<svg" not in plain
    assert "pip install" in plain
    tables = page[page.index("<h2>Hosts</h2>") :]
    assert plain.endswith(tables)


def test_the_numbers_of_the_page_are_those_of_the_report(
    page: str, report: SimulationReport
) -> None:
    assert f"{report.jobs.ended}" in page
    assert report.log.digest in page
    for use in report.templates:
        assert use.cost is not None
        assert f"{use.cost:.2f}" in page


def test_requests_and_returns_have_a_row_each_with_reasons(run: MadeUp, page: str) -> None:
    for use in run.history.requests.values():
        assert f"<td>{use.request}</td>" in page
    assert page.count("demand of waiting jobs") == len(run.history.requests)
    assert page.count("idle for 30 min") == len(run.history.hosts)


def test_names_cannot_become_markup(run: MadeUp, report: SimulationReport) -> None:
    hostile = report.model_copy(update={"source": "<script>alert(1)</script>&"})

    page = render(hostile, run.statistics, run.history)

    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_run_in_which_nothing_happened_is_a_page_too(run: MadeUp) -> None:
    workload = replace(run.workload, jobs=(), left_out=(), notes=())
    idle = Statistics(run.config, workload)
    nothing = type(run.history)()
    summary = idle.summary(nothing, end=run.end, log=run.head)

    page = render(summary, idle, nothing)

    assert "Nothing was asked for." in page
    assert "Nothing was given back." in page
    assert "<svg" not in page


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    table = Table.of("n #", ((str(n),) for n in range(ROWS_MAX + 5)))

    assert (len(table.rows), table.left_out) == (ROWS_MAX, 5)
    assert table.rows[table.gap_after - 1] == (str(ROWS_MAX // 2 - 1),)
    assert table.rows[table.gap_after] == (str(ROWS_MAX // 2 + 5),)


def test_a_page_that_cannot_be_written_is_an_input_error(
    tmp_path: Path, run: MadeUp, report: SimulationReport
) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_report(tmp_path / "none" / "page.html", report, run.statistics, run.history)


def test_a_page_is_written(
    tmp_path: Path, run: MadeUp, report: SimulationReport, page: str
) -> None:
    write_report(tmp_path / "page.html", report, run.statistics, run.history)

    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_each_wait_falls_into_one_class() -> None:
    assert pictures.wait_classes([0, 1, 60, 61, 86_400, 86_401]) == (1, 2, 1, 0, 0, 0, 0, 1, 1)

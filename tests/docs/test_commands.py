"""What README, tutorial, how-to and explanation pages show is what happens.

``XCE_ACCEPT=1 pytest tests/docs/test_commands.py`` writes what the commands print now into the pages; read the diff before it is committed.
"""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.console import Command, Page, Shell, WrittenFile, agrees, read_page, with_output

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        ROOT / "README.md",
        *(ROOT / "docs" / "tutorial").glob("*.md"),
        *(ROOT / "docs" / "how-to").glob("*.md"),
        *(ROOT / "docs" / "explanation").glob("*.md"),
    )
    if read_page(path.read_text(encoding="utf-8")).steps
)
#: What a clone has that pages name.
OF_A_CLONE = ("examples", "docs", "tests")


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_happens(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for name in OF_A_CLONE:
        (tmp_path / name).symlink_to(ROOT / name)
    shell = Shell(tmp_path)
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    steps = read_page(text)
    for earlier in steps.before:
        said = shell.run(earlier)
        assert shell.code == 0, f"{earlier}\n{said}"

    answers = list(done(steps, shell))

    if os.environ.get("XCE_ACCEPT"):
        for command, printed in reversed(answers):
            if not agrees(command.shown, printed):
                text = with_output(text, command, printed)
        path.write_text(text, encoding="utf-8")
        return
    for command, printed in answers:
        shown = "\n".join(command.shown)
        assert agrees(command.shown, printed), (
            f"{page}:{command.first}: $ {command.text}\nthe page shows\n{shown}\nprinted is\n{printed}"
        )


def done(page: Page, shell: Shell) -> list[tuple[Command, str]]:
    """Do what a page says; return each command with what it printed."""
    answers: list[tuple[Command, str]] = []
    for i, step in enumerate(page.steps):
        if isinstance(step, WrittenFile):
            (shell.folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        printed = shell.run(step.text)
        following = page.steps[i + 1] if i + 1 < len(page.steps) else None
        if not (isinstance(following, Command) and following.text == "echo $?"):
            assert shell.code == 0, f"$ {step.text}\nexit code {shell.code}\n{printed}"
        answers.append((step, printed))
    return answers


def test_the_pages_for_beginners_are_run() -> None:
    assert {
        "README.md",
        "docs/tutorial/first-day.md",
        "docs/how-to/read-a-session.md",
        "docs/how-to/simulate-a-trace.md",
        "docs/explanation/demand.md",
    } <= set(PAGES)


def test_output_that_differs_in_one_line_does_not_agree() -> None:
    shown = ("cost: 1", "...", "end")

    assert agrees(shown, "cost: 1  \na\nb\nend\n\n")
    assert agrees((), "anything\n")
    assert not agrees(shown, "cost: 2\na\nend\n")
    assert not agrees(shown, "cost: 1\na\nend\nmore\n")


def test_a_pipe_ends_with_the_last_exit_code_that_is_not_0(tmp_path: Path) -> None:
    shell = Shell(tmp_path)

    assert shell.run("xce session nowhere.json | head -n 1") == (
        "xce: nowhere.json: cannot be read: No such file or directory\n"
    )
    assert shell.code == 2
    assert shell.run("echo '[]' | xce session -").startswith("xce: <stdin>: ")
    assert shell.run("echo $?") == "2\n"


def test_a_page_is_read_as_its_reader_would() -> None:
    page = read_page(
        "<!-- before: xce demo -->\n<!-- file: a.txt -->\n\n```yaml\nx: 1\n```\n\n"
        "```console\n$ ls \\\n    a.txt\na.txt\n$ cat b\n$ echo $?\n1\n```\n"
        "<!-- not run: slow -->\n```console\n$ rm a.txt\n```\n```text\n$ no\n```\n"
    )

    assert page.before == ["xce demo"]
    assert page.steps == [
        WrittenFile("a.txt", "x: 1\n"),
        Command("ls  a.txt", ("a.txt",), 10, 11),
        Command("cat b", (), 12, 12),
        Command("echo $?", ("1",), 13, 14),
    ]

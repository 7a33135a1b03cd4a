"""Every relative link of the documentation leads somewhere, and the anchors exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

#: Folders with files that are not ours, that are made, or (src) that lead to the folders at the top.
NOT_READ = {"build", "dist", "src", "xce-demo"}
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
#: A path in code marks, in pages that send the reader there.
_PATH = re.compile(r"`((?:docs|examples|tools|tests|adapters|domain|projections|replay)/[\w./-]+)`")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> Iterator[Path]:
    for top in sorted(ROOT.iterdir()):
        if top.is_dir() and top.name not in NOT_READ and not top.name.startswith("."):
            yield from sorted(top.rglob("*.md"))
        elif top.suffix == ".md":
            yield top


def text_of(path: Path) -> str:
    """Return a page without its code blocks."""
    return _FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """Return the anchors that the headings of a page have, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in found)
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken(path: Path) -> Iterator[str]:
    for target in _LINK.findall(text_of(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            yield target
    if path.name != "CHANGELOG.md":
        for name in _PATH.findall(text_of(path)):
            if not (ROOT / name).exists():
                yield name


@pytest.mark.parametrize("page", [str(path.relative_to(ROOT)) for path in pages()])
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    assert list(broken(ROOT / page)) == []


def test_a_link_to_nowhere_and_a_wrong_anchor_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A title, with `code`\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-title-with-code) [c](other.md#b) ![d](no.png) [e](https://x)\n"
        "```text\n[f](no.md)\n```\n",
        encoding="utf-8",
    )

    assert list(broken(page)) == ["other.md#b", "no.png"]

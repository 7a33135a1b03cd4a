"""The pages about lifecycles, events and audit tables are those that the code makes."""

import sys
from importlib import import_module

import pytest

from tests.conftest import ROOT
from xce.domain.events.stored import EVENTS


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    return dict(import_module("generate_events").pages())


def test_the_pages_are_up_to_date(pages: dict[str, str]) -> None:
    stale = [path for path, text in pages.items() if (ROOT / path).read_text("utf-8") != text]

    assert not stale, "run: python tools/generate.py"


def test_each_event_is_on_its_pages(pages: dict[str, str]) -> None:
    for name in EVENTS.names():
        assert f"`{name}`" in pages["docs/reference/events.md"]
    for event_class in EVENTS.event_classes():
        assert f"| {event_class.__name__} |" in pages["docs/reference/lifecycles.md"]

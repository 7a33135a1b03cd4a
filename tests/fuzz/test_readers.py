"""Whatever scripts print, and whatever stands in files of providers, is read or refused: no crash, no terminal code, no unbounded memory.

``XCE_READER_TEXTS`` texts are made up for each reader; ``make fuzz`` hunts for an hour. What it found before is fed again here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz.hunt import Hunt
from tests.fuzz.targets import Target, targets

TEXTS = int(os.environ.get("XCE_READER_TEXTS", "100"))
TARGETS = {one.name: one for one in targets()}
#: What readers did not survive once.
FOUND_BEFORE: tuple[tuple[str, bytes], ...] = (
    ("own folder", b'["vm-1\xb1", "n1"]\n'),
    ("own folder", b'[["vm-1"], "n1"]\n'),
    ("own folder", b"[" * 100_000),
    ("import hostProviders.json", json.dumps({"providers": [{"name": "a", "scriptPath": "x" * 300, "confPath": "y" * 300}]}).encode()),
    ("import hostProviders.json", json.dumps({"providers": [{"name": "a", "scriptPath": "aws", "type": "t" * 300}]}).encode()),
    ("simulated.json", b'{"a":' * 100_000),
    ("lmstat", b"Vendor daemon status (on lic1):\n\n     vend: UP v11.18.0\n"),
)  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_no_text_breaks_a_reader(name: str) -> None:
    hunt = Hunt(TARGETS[name], "tests")
    hunt.seeds()
    for _ in range(TEXTS):
        hunt.once()

    assert [(one.text, one.why) for one in hunt.findings] == []


@pytest.mark.parametrize(("name", "text"), FOUND_BEFORE)
def test_what_broke_a_reader_once_does_not_any_more(name: str, text: bytes) -> None:
    TARGETS[name].feed(text)


def test_a_hunt_tells_of_a_reader_that_breaks() -> None:
    def brittle(text: bytes) -> str:
        if b"\xff" in text:
            raise IndexError("out of range")
        return ""

    hunt = Hunt(Target("brittle", (b'{"a": 1}',), brittle), "tests")
    while not hunt.findings:
        hunt.once()

    (found,) = hunt.findings
    assert b"\xff" in found.text
    assert "IndexError: out of range" in found.why


LARGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from tests.fuzz.targets import targets
status = next(one for one in targets() if one.name == "getRequestStatus")
size = 16 * 1024 * 1024 - 2000
many = b'{"machineId": "vm", "result": "succeed"},'
for text in (
    b"x" * size,
    b'{"requests": [{"requestId": "add-1", "status": "complete", "machines": [' + many * (size // len(many)) + b"]}]}",
    b"[" * size,
    b"{'a': " * (size // 6),
    b'{"message": "' + b"\\\\ud800" * (size // 6) + b'"}',
    b"\\x1b[0;" * (size // 4),
):
    status.feed(text)
print("read")
"""


def test_outputs_as_large_as_the_limit_are_read_or_refused_within_a_gibibyte(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LARGE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout == "read\n", done.stderr[-3000:]

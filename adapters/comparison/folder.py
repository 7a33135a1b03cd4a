"""The folder of a comparison: one file for each run, whole or not there, so that a comparison that was ended goes on."""

import os
from pathlib import Path
from typing import Final

from xce.adapters.files import cannot_write
from xce.domain.errors import InputError
from xce.domain.formats.comparison import RunOutcome

RUNS: Final = "runs"
REPORT: Final = "report.html"
DOCUMENT: Final = "comparison.json"
TABLE: Final = "comparison.csv"


class ResultFolder:
    """Keeps outcomes by their key."""

    def __init__(self, path: Path) -> None:
        """Make the folder where it is not there.

        Raises:
            InputError: it cannot be made.
        """
        self.path = path
        try:
            (path / RUNS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError.of(str(path), f"cannot be used: {error.strerror or error}") from None

    def find(self, key: str) -> RunOutcome | None:
        """Return what came of a run; None if it is not there, or is no outcome of this release."""
        try:
            outcome = RunOutcome.from_json((self.path / RUNS / f"{key}.json").read_bytes(), key)
        except (OSError, InputError):
            return None
        return outcome if outcome.key == key else None

    def keep(self, outcome: RunOutcome) -> None:
        """Write an outcome; see ``write``."""
        self.write(f"{RUNS}/{outcome.key}.json", outcome.to_json(indent=1) + "\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder: all of it, or nothing.

        Raises:
            InputError: it cannot be written.
            TransientError: the disk is full.
        """
        path = self.path / name
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with part.open("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise cannot_write(str(path), error) from None
        return path

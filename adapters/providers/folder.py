"""What a script provider keeps on disk: its calls, answers that come only once, names of machines, the last good templates.

Nothing in it is needed elsewhere: without it an outcome is unknown rather than known. The layout, below the provider's own folder:

    data/, logs/          the scripts' own
    calls/NAME            one run each (``call``)
    answers/DIGEST.json   the terminal answer of a request or return, by its id at the provider
    returns/DIGEST.json   what a return of ours consisted of
    names.jsonl           names of machines, the last line of an id counts
    kept.json             the last good description
"""

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from xce.adapters.providers import call
from xce.domain.formats.script_output import Message, as_object

_FOLDERS: Final = ("data", "logs", "calls", "answers", "returns")
#: Names are written anew when the file has so many lines more than machines.
_NAMES_SLACK: Final = 10_000


class ProviderFolder:
    """The folder of one provider. Not for two processes at once; after a crash the next one goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        for name in _FOLDERS:
            (self.path / name).mkdir(parents=True, exist_ok=True)
        self._count = 0
        self._names: dict[str, str] | None = None
        self._lines = 0

    @property
    def data(self) -> Path:
        """Where the scripts keep what they like."""
        return self.path / "data"

    @property
    def logs(self) -> Path:
        """Where the scripts write their logs."""
        return self.path / "logs"

    # ------------------------------------------------------------------------- calls
    def kept_call(self, script: str, key: str) -> Path:
        """Return where the run of a script about ``key`` is, and stays."""
        return self.path / "calls" / f"{script}-{_digest(key)}"

    def passing_call(self, script: str) -> Path:
        """Return where a run can be whose outcome is not needed once it was read."""
        self._count += 1
        return self.path / "calls" / f"passing-{script}-{os.getpid()}-{self._count}"

    def passing_calls(self) -> Iterator[tuple[str, Path]]:
        """Yield the runs that nobody has read to the end, with their scripts: those of a process that died."""
        for path in sorted((self.path / "calls").glob("passing-*")):
            yield path.name.split("-")[1], path

    def aside(self, path: Path) -> None:
        """Let a run that is to be repeated keep its traces under another name."""
        number = 1
        while (other := path.with_name(f"{path.name}.{number}")).exists():
            number += 1
        path.rename(other)

    def prune(self, keep: int) -> None:
        """Remove the oldest calls and answers, beyond ``keep`` of each."""
        for name in ("calls", "answers", "returns"):
            entries = [Path(one) for one in os.scandir(self.path / name)]
            if len(entries) <= keep:
                continue
            entries.sort(key=_changed)
            for path in entries[: len(entries) - keep]:
                if path.is_dir():
                    call.discard(path)
                else:
                    path.unlink(missing_ok=True)

    # ----------------------------------------------------------------------- answers
    def answer(self, theirs: str) -> Message | None:
        """Return the terminal answer of a request or return of the provider, if it was heard."""
        return _loaded(self.path / "answers" / f"{_digest(theirs)}.json")

    def keep_answer(self, theirs: str, answer: Message) -> None:
        """Keep a terminal answer; it is on disk when this returns."""
        write_synced(self.path / "answers" / f"{_digest(theirs)}.json", answer)

    def forget_answer_before(self, run: Path, theirs: str) -> None:
        """Forget the answer to an id that was heard before a run began: the provider has used the id again."""
        answer = self.path / "answers" / f"{_digest(theirs)}.json"
        try:
            is_older = answer.stat().st_mtime_ns < (run / "input.json").stat().st_mtime_ns
        except FileNotFoundError:
            return
        if is_older:
            answer.unlink(missing_ok=True)

    def returned(self, return_id: str) -> Message | None:
        """Return what is known of a return of ours."""
        return _loaded(self.path / "returns" / f"{_digest(return_id)}.json")

    def keep_returned(self, return_id: str, what: Message) -> None:
        """Keep what is known of a return of ours."""
        write_synced(self.path / "returns" / f"{_digest(return_id)}.json", what)

    # ------------------------------------------------------------------- description
    def description(self) -> Message | None:
        """Return the last good description."""
        return _loaded(self.path / "kept.json")

    def keep_description(self, description: Message) -> None:
        """Keep a description as the last good one."""
        write_synced(self.path / "kept.json", description)

    # ------------------------------------------------------------------------- names
    def name_of(self, machine: str) -> str | None:
        """Return the name that the provider last reported for a machine."""
        return self._all_names().get(machine)

    def learn(self, names: Mapping[str, str]) -> None:
        """Remember names that are new; a name is a comfort, so this need not be on disk at once."""
        known = self._all_names()
        new = {
            machine: name for machine, name in names.items() if name and known.get(machine) != name
        }
        if not new:
            return
        known.update(new)
        with (self.path / "names.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(pair) + "\n" for pair in new.items())
        self._lines += len(new)

    def forget(self, machines: frozenset[str]) -> None:
        """Forget machines that are gone; the file is written anew now and then."""
        known = self._all_names()
        for machine in machines:
            known.pop(machine, None)
        if self._lines > len(known) + _NAMES_SLACK:
            part = self.path / "names.part"
            part.write_text("".join(json.dumps(p) + "\n" for p in known.items()), encoding="utf-8")
            part.replace(self.path / "names.jsonl")
            self._lines = len(known)

    def _all_names(self) -> dict[str, str]:
        if self._names is None:
            self._names = {}
            try:
                lines = (self.path / "names.jsonl").read_bytes().splitlines()
            except FileNotFoundError:
                lines = []
            self._lines = len(lines)
            for line in lines:
                match _json(line):
                    case [str(machine), str(name)]:
                        self._names[machine] = name
                    case _:
                        continue  # the last line of a process that was killed
        return self._names


def write_synced(path: Path, value: Message) -> None:
    """Write a small JSON file whole or not at all; it is on disk when this returns."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    call.sync_folder(path.parent)


def _loaded(path: Path) -> Message | None:
    try:
        return as_object(_json(path.read_bytes()))
    except FileNotFoundError:
        return None


def _json(text: bytes) -> object:
    """Return what a text says; None: it was damaged, and says nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _digest(key: str) -> str:
    return sha256(key.encode(errors="replace")).hexdigest()[:32]


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0

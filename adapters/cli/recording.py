"""``xce recording``: what is in a recording, several as one, and the same without the names of users and jobs."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.allocators import allocators_for
from xce.adapters.cli import terminal
from xce.adapters.files import cannot_write
from xce.adapters.recordings import read_lines, writing
from xce.domain.errors import InputError
from xce.replay.anonymous import anonymised
from xce.replay.joined import joined
from xce.replay.recording import RecordedSession, RecordingReader, Start

app = typer.Typer(
    name="recording",
    help="Look into recordings, join those of several daemons, and pass them on without names.",
    no_args_is_help=True,
    add_completion=False,
)

RecordingArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RECORDING", help="Made by xce scheduler, xce provisioner or xce sim with --record."
    ),
]


@app.command(epilog="Example: xce recording show evening.rec.gz")
def show(
    recording: RecordingArgument,
    session: Annotated[
        int | None, typer.Option("--session", min=1, help="Print the snapshot of this session.")
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Say who made a recording, when, and what is in it; or print one snapshot, for xce session."""
    reader = RecordingReader(str(recording))
    start: Start | None = None
    first = last = None
    for entry in reader.entries(read_lines(recording)):
        if isinstance(entry, Start):
            start = entry
        elif isinstance(entry, RecordedSession):
            if entry.number == session:
                terminal.write_json(entry.snapshot.to_json())
                return
            first, last = first or entry.snapshot.now, entry.snapshot.now
    if session is not None:
        raise InputError.of(
            "--session", f"there is no {session}; the recording has {reader.counts.sessions}"
        )
    assert start is not None, "a recording has a start"
    if as_json:
        document = {
            "by": start.by,
            "release": start.release,
            "at": start.at,
            "trace": start.trace,
            "whole": reader.whole,
            **reader.counts.document(),
            "config": start.config,
        }
        terminal.write_json(json.dumps(document))
        return
    cut = "" if reader.whole else " (cut off)"
    at = datetime.fromisoformat(start.at).astimezone(UTC)
    counts = reader.counts
    held = ", ".join(
        (
            f"{counts.sessions} sessions",
            f"{counts.rounds} rounds of the policy",
            f"{counts.events} events",
            f"{counts.answers} answers of providers",
        )
    )
    lines = [
        f"made by {start.by}, release {start.release}, at {at:%Y-%m-%d %H:%M:%S} UTC{cut}",
        held,
    ]
    if first is not None and last is not None:
        lines.append(f"from {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC")
    for line in lines:
        terminal.out.print(line, soft_wrap=True)


@app.command(epilog="Example: xce recording anonymise evening.rec.gz evening-anonymous.rec.gz")
def anonymise(
    recording: RecordingArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The new file; never an existing one.")
    ],
) -> None:
    """Write it again without the names of users and jobs and without texts of events; it can still be verified.

    Names of hosts, queues, projects, groups, limits and licences stay.
    """
    with _new(out) as write:
        writer = anonymised(
            lambda: read_lines(recording), str(recording), write, allocators=allocators_for
        )
    counts = writer.counts
    terminal.err.print(f"{out}: {counts.sessions} sessions, {counts.events} events")


@app.command(
    epilog="Example: xce recording join evening.rec.gz scheduler.rec.gz provisioner.rec.gz"
)
def join(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The new file; never an existing one.")
    ],
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDING...",
            help="Of xce scheduler and of each xce provisioner; of daemons that were started again, all.",
        ),
    ],
) -> None:
    """Make one recording of those of several daemons, so that sessions and the policy are verified, and passed on, together."""
    with _new(out) as write:
        made = joined(((str(path), read_lines(path)) for path in recordings), write)
    counts = made.writer.counts
    terminal.err.print(
        f"{out}: {counts.sessions} sessions, {counts.rounds} rounds of the policy, {counts.events} events;"
        f" {made.tied} rounds are about sessions of the recording",
        soft_wrap=True,
    )


@contextmanager
def _new(out: Path) -> Generator[Callable[[str], None]]:
    """Open a new recording, and yield what writes its lines."""
    with writing(out) as file:

        def write(line: str) -> None:
            try:
                file.write(line.encode())
            except OSError as error:
                raise cannot_write(str(out), error) from None

        yield write

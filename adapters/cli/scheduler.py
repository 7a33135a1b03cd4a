"""``xce scheduler``: the live driver between a batch system and the controller, and a fake batch system to try it with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.domain.errors import InputError, PermanentError

app = typer.Typer(
    help="Run sessions over a batch system's view, send results to the controller, obey drains.",
    invoke_without_command=True,
    epilog="Example: xce scheduler --config scheduler.yaml",
)
fake = typer.Typer(
    help="A small batch system in one file, for trying out: its hosts, its jobs, what it did.",
    no_args_is_help=True,
)
app.add_typer(fake, name="fake")

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The state of the fake batch system.")
]


@app.callback()
def run(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The configuration, in YAML.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read the configuration and its files, and stop.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Keep what is seen and said in a recording."),
    ] = None,
    observe_only: Annotated[
        bool,
        typer.Option(
            "--observe-only", help="Write nothing to Slurm: say in the log what would be done."
        ),
    ] = False,
) -> None:
    """Drive until SIGTERM."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        raise InputError.of("xce scheduler", "wanted --config FILE")
    try:
        from xce.adapters.controller.service import set_up_logging
        from xce.adapters.schedulers.service import (
            SchedulerService,
            client_of,
            read_scheduler_config,
        )
    except ModuleNotFoundError as error:
        raise PermanentError(
            f"{error.name} is not installed; install xce with its extra: pip install 'xce[controller]'"
        ) from None
    read = read_scheduler_config(config)
    if record is not None:
        read = read.model_copy(update={"record": str(record.absolute())})
    if observe_only:
        slurm = read.source.slurm
        if slurm is None:
            raise InputError.of("--observe-only", "is for a source slurm")
        slurm = slurm.model_copy(update={"observe_only": True})
        read = read.model_copy(update={"source": read.source.model_copy(update={"slurm": slurm})})
    if check:
        client_of(read.controller).close()
        terminal.out.print(f"{config} is fit for use", markup=False, highlight=False)
        return
    set_up_logging()
    SchedulerService(read).run()


# -------------------------------------------------------------------------- fake
@fake.command(
    epilog="Example: xce scheduler fake host batch.json h1 --slots 8 --mem 32GiB --attribute type=X86_64"
)
def host(
    file: FileArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    slots: Annotated[int, typer.Option("--slots", min=1, help="How many tasks it takes.")] = 1,
    mem: Annotated[str, typer.Option("--mem", help="Memory, with a unit.")] = "1GiB",
    attribute: Annotated[
        list[str] | None, typer.Option("--attribute", help="NAME=VALUE; may be repeated.")
    ] = None,
    instance: Annotated[
        str | None, typer.Option("--instance", help="The instance it is, of a provisioned host.")
    ] = None,
) -> None:
    """Add a host, as if it had booted now."""
    from xce.adapters.clock import SystemClock
    from xce.adapters.schedulers import fake_state
    from xce.adapters.schedulers.fake import FakeFile
    from xce.domain.formats.snapshot import Host

    pairs = [text.partition("=") for text in attribute or ()]
    for (key, equals, _), text in zip(pairs, attribute or (), strict=True):
        if not key or not equals:
            raise InputError.of("--attribute", f"{text!r} is not NAME=VALUE")
    now = SystemClock().now()
    document = {
        "name": name,
        "attributes": {key: value for key, _, value in pairs},
        "total": {"slots": slots, "mem": mem},
        "instance": instance,
        "booted_at": now.isoformat(),
        "idle_since": now.isoformat(),
    }
    made = Host.from_json(_json(document), "the host")
    FakeFile(file).change(lambda state: fake_state.with_host(state, made))


@fake.command(
    epilog="Example: xce scheduler fake submit batch.json --count 5 --run-time 30s --project chip1"
)
def submit(
    file: FileArgument,
    count: Annotated[int, typer.Option("--count", min=1, max=100_000, help="How many.")] = 1,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks of each.")] = 1,
    resreq: Annotated[str, typer.Option("--resreq", help="What each task needs.")] = "",
    run_time: Annotated[str, typer.Option("--run-time", help="How long each runs.")] = "1min",
    user: Annotated[str, typer.Option("--user", help="Whose they are.")] = "nobody",
    queue: Annotated[str, typer.Option("--queue", help="Where they wait.")] = "normal",
    project: Annotated[
        str, typer.Option("--project", help="Who pays for them; budgets may be of projects.")
    ] = "default",
    as_json: terminal.JsonOption = False,
) -> None:
    """Submit jobs; their numbers go to stdout."""
    from xce.adapters.clock import SystemClock
    from xce.adapters.schedulers import fake_state
    from xce.adapters.schedulers.fake import FakeFile
    from xce.domain.cluster.resreq import parse
    from xce.domain.formats.snapshot import PendingJob
    from xce.domain.values import read_duration

    document = {
        "id": "new",
        "user": user,
        "queue": queue,
        "project": project,
        "resreq": resreq,
        "tasks": {"min": tasks},
    }
    job = PendingJob.from_json(_json(document), "the job")
    try:
        length = read_duration(run_time)
    except ValueError as error:
        raise InputError.of("--run-time", str(error)) from None
    try:
        parse(resreq)
    except InputError as error:
        first = error.problems[0]
        raise InputError.of("--resreq", f"column {first.column}: {first.message}") from None
    now = SystemClock().now()
    numbers: list[int] = []

    def add(state: fake_state.FakeState) -> fake_state.FakeState:
        numbers.append(state.next_job)
        return fake_state.submitted(state, [job] * count, length, now)

    FakeFile(file).change(add)
    made = range(numbers[-1], numbers[-1] + count)
    if as_json:
        terminal.write_json(_json({"jobs": [str(number) for number in made]}))
        return
    for number in made:
        terminal.out.print(str(number), markup=False, highlight=False)


@fake.command(epilog="Example: xce scheduler fake remove batch.json h1")
def remove(
    file: FileArgument,
    name: Annotated[str, typer.Argument(metavar="HOST", help="The host's name.")],
) -> None:
    """Take a host away, as if it had died; its jobs go back into the queue."""
    from xce.adapters.schedulers import fake_state
    from xce.adapters.schedulers.fake import FakeFile

    FakeFile(file).change(lambda state: fake_state.without_host(state, name))


@fake.command(epilog="Example: xce scheduler fake end batch.json 17")
def end(
    file: FileArgument,
    job: Annotated[str, typer.Argument(metavar="JOB", help="A running job's number.")],
) -> None:
    """End a running job now."""
    from xce.adapters.clock import SystemClock
    from xce.adapters.schedulers import fake_state
    from xce.adapters.schedulers.fake import FakeFile
    from xce.domain.errors import NotFoundError

    now = SystemClock().now()

    def over(state: fake_state.FakeState) -> fake_state.FakeState:
        if all(run.job.id != job for run in state.running):
            raise NotFoundError(f"job {job} does not run")
        return fake_state.ended(state, {job: now})

    FakeFile(file).change(over)


@fake.command(epilog="Example: xce scheduler fake show batch.json")
def show(file: FileArgument, as_json: terminal.JsonOption = False) -> None:
    """Show its hosts and jobs."""
    from xce.adapters.schedulers.fake import FakeFile

    if not file.exists():
        raise InputError.of(str(file), "there is no such file; xce scheduler fake host makes one")
    state = FakeFile(file).read()
    if as_json:
        terminal.write_json(state.to_json())
        return
    hosts = _table("host", "state", "slots", "instance", "jobs")
    for one in state.hosts:
        jobs = [
            run.job.id for run in state.running if any(u.name == one.name for u in run.job.hosts)
        ]
        slots = str(one.total.get("slots", 0))
        hosts.add_row(one.name, one.state.value, slots, one.instance or "-", ", ".join(jobs) or "-")
    terminal.print_table(hosts)
    jobs_table = _table("job", "project", "state", "hosts", "until")
    for run in state.running:
        where = ", ".join(use.name for use in run.job.hosts)
        until = f"{run.ends_at:%Y-%m-%d %H:%M:%S} UTC"
        jobs_table.add_row(run.job.id, run.job.project, "running", where, until)
    for waiting in state.waiting:
        jobs_table.add_row(waiting.job.id, waiting.job.project, "waiting", "-", "-")
    terminal.out.print()
    terminal.print_table(jobs_table)
    terminal.out.print()
    terminal.out.print(f"{len(state.ended)} ended", highlight=False)


def _table(*titles: str) -> Table:
    return Table(*titles, box=None, pad_edge=False, header_style="bold")


def _json(document: Mapping[str, object]) -> str:
    import json

    return json.dumps(document)

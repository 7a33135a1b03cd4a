"""``xce config check FILE``: what a configuration is for, whether it can be used, and what it amounts to."""

from collections.abc import Iterator
from typing import Annotated

import typer

from xce.adapters.cli import exit_codes, import_lsf, terminal
from xce.adapters.settings.kinds import Kind, kind_of
from xce.adapters.settings.yaml_tree import read_tree
from xce.domain.errors import InputError
from xce.domain.formats.base import Count, Format
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.provider import Kind as OfferKind

app = typer.Typer(help="Check and convert configurations.", no_args_is_help=True)
app.command(
    "import-lsf", epilog="Example: xce config import-lsf $LSF_ENVDIR/resource_connector --out ."
)(import_lsf.command)


class ProblemEntry(Format):
    """One thing that is wrong with a configuration."""

    message: str
    path: str
    line: Count | None
    column: Count | None


class ConfigSummary(Format):
    """What a configuration describes."""

    hosts: Count
    slots: Count
    queues: Count
    shared: tuple[str, ...]
    providers: tuple[str, ...]
    templates: tuple[str, ...]


class CheckedConfig(Format):
    """The answer of ``xce config check --json``."""

    file: str
    fit: bool
    kind: str | None = None
    problems: tuple[ProblemEntry, ...] = ()
    warnings: tuple[str, ...] = ()
    summary: ConfigSummary | None = None


@app.command(epilog="Example: xce config check examples/small.yaml")
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A configuration in YAML; - is stdin.")
    ],
    as_json: terminal.JsonOption = False,
) -> None:
    """Read a configuration of any kind and say what is wrong with it, every mistake with its line."""
    source = terminal.source_name(file)
    try:
        kind, config = kind_of(read_tree(terminal.read_input(file), source), source)
    except InputError as error:
        if not as_json:
            raise
        terminal.write_json(_unfit(source, error).to_json())
        raise typer.Exit(exit_codes.USAGE) from None
    simulated = config if isinstance(config, SimulationConfig) else None
    summary = None if simulated is None else summary_of(simulated)
    warnings = () if simulated is None else tuple(warnings_of(simulated))
    if as_json:
        checked = CheckedConfig(
            file=source, fit=True, kind=kind.name, warnings=warnings, summary=summary
        )
        terminal.write_json(checked.to_json())
    else:
        for line in _for_people(source, kind, summary):
            terminal.out.print(line, markup=False, highlight=False, soft_wrap=True)
        for warning in warnings:
            terminal.err.print(f"warning: {warning}", soft_wrap=True)


def warnings_of(config: SimulationConfig) -> Iterator[str]:
    """Yield what is allowed and is hardly meant: hosts without slots, on which no job starts that takes any; offers of nothing."""
    for i, group in enumerate(config.cluster.hosts):
        if not group.total.get("slots"):
            yield f"cluster.hosts[{i}]: {group.name} has no slots in total"
    kinds = [kind.value for kind in OfferKind]
    for i, provider in enumerate(config.providers):
        for kind in provider.kinds:
            if kind not in kinds:
                yield f"providers[{i}].kinds: {kind!r} is ignored; this release knows {', '.join(kinds)}"
        if not provider.templates and not provider.resources:
            yield f"providers[{i}]: {provider.name} offers nothing: it has no templates and no resources"
        for j, offer in enumerate(provider.templates):
            if not offer.provides.get("slots"):
                yield f"providers[{i}].templates[{j}]: {offer.template_id} provides no slots"


def summary_of(config: SimulationConfig) -> ConfigSummary:
    """Return what a configuration describes, in numbers and names."""
    hosts = config.cluster.all_hosts()
    return ConfigSummary(
        hosts=len(hosts),
        slots=sum(host.total.get("slots", 0) for host in hosts),
        queues=len(config.cluster.queues),
        shared=tuple(pool.name for pool in config.cluster.shared),
        providers=tuple(provider.name for provider in config.providers),
        templates=tuple(
            dict.fromkeys(
                offer.template_id for provider in config.providers for offer in provider.templates
            )
        ),
    )


def _unfit(source: str, error: InputError) -> CheckedConfig:
    problems = tuple(
        ProblemEntry(
            message=problem.message, path=problem.path, line=problem.line, column=problem.column
        )
        for problem in error.problems
    )
    return CheckedConfig(file=source, fit=False, problems=problems)


def _for_people(source: str, kind: Kind, summary: ConfigSummary | None) -> list[str]:
    if summary is None:
        return [
            f"{source} is fit for use",
            f"configuration of a {kind.name}: {kind.command}; names of files in it are not looked up",
        ]

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(names) or "none"

    return [
        f"{source} is fit for use",
        f"own partition   {summary.hosts} hosts, {summary.slots} slots, {summary.queues} queues",
        f"shared          {listed(summary.shared)}",
        f"providers       {listed(summary.providers)}",
        f"templates       {listed(summary.templates)}",
    ]

"""``xce config import-lsf DIR``: the configuration of an LSF resource connector as ours."""

from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.cli import terminal
from xce.adapters.files import write_file
from xce.adapters.providers.lsf_import import import_lsf
from xce.domain.errors import InputError


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="The folder with hostProviders.json, such as $LSF_ENVDIR/resource_connector.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write provisioner.yaml, and queues.yaml where there are rules of queues, into this folder.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the provisioner in its configuration.")
    ] = "provisioner",
) -> None:
    """Convert hostProviders.json, *prov_templates.json, policy_config.json and lsb.queues to our configuration, as YAML.

    What our configuration cannot say, and what was not found, is a warning on stderr.
    """
    if not folder.is_dir():
        raise InputError.of(str(folder), "is no folder")
    made = import_lsf(folder, name)
    if out is None:
        typer.echo(made.provisioner, nl=False)
        if made.queues:
            typer.echo("---\n" + made.queues, nl=False)
    else:
        if not out.is_dir():
            raise InputError.of(str(out), "is no folder")
        write_file(out / "provisioner.yaml", made.provisioner)
        if made.queues:
            write_file(out / "queues.yaml", made.queues)
    for warning in made.warnings:
        terminal.err.print(f"warning: {warning}", soft_wrap=True)

"""``xce provisioner``: the daemon that owns providers and talks to them."""

from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.cli import terminal
from xce.domain.errors import InputError, PermanentError

app = typer.Typer(
    help="Run a provisioner: it takes the leases of its providers, asks them for what is in demand and gives back what is idle.",
    invoke_without_command=True,
    epilog="Example: xce provisioner --config provisioner.yaml",
)


@app.callback()
def run(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The configuration, in YAML.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read the configuration and its files, and stop.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", metavar="FILE", help="Keep what is decided and answered in a recording."
        ),
    ] = None,
) -> None:
    """Act on providers until SIGTERM; what was asked and not answered is looked up by whoever acts next."""
    if config is None:
        raise InputError.of("xce provisioner", "wanted --config FILE")
    try:
        from xce.adapters.controller.service import set_up_logging
        from xce.adapters.provisioner.service import ProvisionerService, read_provisioner_config
    except ModuleNotFoundError as error:
        raise PermanentError(
            f"{error.name} is not installed; install xce with its extra: pip install 'xce[controller]'"
        ) from None
    read = read_provisioner_config(config)
    if record is not None:
        read = read.model_copy(update={"record": str(record.absolute())})
    service = ProvisionerService(read)
    if check:
        terminal.out.print(f"{config} is fit for use", markup=False, highlight=False)
        return
    set_up_logging()
    service.stop_on_signals()
    service.run()

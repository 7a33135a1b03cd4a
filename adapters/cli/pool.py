"""``xce pool apply|show|scripts``: a licence pool that several sites share."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell
from xce.adapters.clock import SystemClock
from xce.adapters.providers.pool import scripts as pool_scripts
from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.settings.load import read_model
from xce.domain.errors import InputError
from xce.domain.formats.licence_pool import LicencePool

app = typer.Typer(
    name="pool",
    help="Lend licences to several sites from one file.",
    no_args_is_help=True,
    add_completion=False,
)

BookArgument = Annotated[
    Path, typer.Argument(metavar="BOOK", help="The file of the pool, such as pool.db.")
]


@app.command(epilog="Example: xce pool apply pool.db examples/pool.yaml")
def apply(
    book: BookArgument,
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="What is lent to whom (xce.pool/1), in YAML.")
    ],
) -> None:
    """Make a pool, or change what it lends; what is lent stays lent."""
    settings = read_model(
        terminal.read_input(config), terminal.source_name(config), LicencePool, lambda _: ()
    )
    with PoolBook(book) as opened:
        opened.apply(settings)
    names = ", ".join(one.name for one in settings.resources)
    terminal.err.print(f"{book} lends {names}")


@app.command(epilog="Example: xce pool show pool.db")
def show(book: BookArgument, as_json: terminal.JsonOption = False) -> None:
    """Show what each site holds, is entitled to, is denied and is asked to give back."""
    rows = _rows(book)
    if as_json:
        terminal.write_json(json.dumps(rows, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("RESOURCE", "SITE"):
        table.add_column(heading)
    for heading in ("HOLDS", "GUARANTEED", "CAP", "ENTITLED", "LENDABLE", "DENIED", "RECALLED"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*(cell("-" if value is None else str(value)) for value in row.values()))
    terminal.print_table(table)


@app.command(epilog="Example: xce pool scripts pool.db site-a providers/pool")
def scripts(
    book: BookArgument,
    site: Annotated[str, typer.Argument(metavar="SITE", help="The site that will borrow.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the scripts go.")],
) -> None:
    """Write the scripts with which a site borrows from the pool: a provider of version 2 of the contract."""
    with PoolBook(book, make=False) as opened:
        lends = opened.settings().resources
    known = dict.fromkeys(one.name for resource in lends for one in resource.sites)
    if site not in known:
        raise InputError.of(
            "SITE", f"the pool lends nothing to {site}; it lends to {', '.join(known)}"
        )
    names = pool_scripts.install(book, site, folder)
    terminal.err.print(f"{folder}: {len(names)} scripts for {site}")


def _rows(book: Path) -> list[dict[str, Any]]:
    now = SystemClock().now()
    rows: list[dict[str, Any]] = []
    with PoolBook(book, make=False) as opened:
        for one in opened.settings().resources:
            standing = opened.standing(one.name, now)
            rows += [
                {
                    "resource": one.name,
                    "site": site.name,
                    "holds": standing.has(site.name),
                    "guaranteed": site.guaranteed,
                    "cap": site.cap,
                    "entitled": standing.entitled(site.name),
                    "lendable": standing.lendable(site.name),
                    "denied": standing.wishes.get(site.name, 0),
                    "recalled": standing.recalled(site.name),
                }
                for site in one.sites
            ]
    return rows

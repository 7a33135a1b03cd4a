"""``xcecli why JOB``: why a job waits, what would help, what was asked for it, what came of it, and when it may start."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.operators import completion
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import Times, show
from xce.domain.engine.why import (
    Why,
    add_holds,
    add_running,
    add_session,
    add_supply,
    lines_of,
    request_document,
)
from xce.domain.errors import NotFoundError
from xce.domain.formats.rest import Supply
from xce.domain.formats.snapshot import Snapshot

if TYPE_CHECKING:
    from xce.adapters.client import Client


def why(
    context: typer.Context,
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB", autocompletion=completion.JOBS, help="Its id in the batch system."
        ),
    ],
    as_json: terminal.JsonOption = False,
) -> None:
    """Why a job waits: the pend reason, what would help, the ask made for it, the provider's answer, what is expected and when."""
    connection = connection_of(context)
    with connection.client() as client:
        found = explained(client, job)
    if as_json:
        terminal.write_json(json.dumps(asdict(found)))
        return
    times = Times(connection.local)
    for line in lines_of(found, times.of):
        show(line)


def explained(client: "Client", job: str) -> Why:
    """Return all that the controller knows of a job.

    Raises:
        NotFoundError: neither the newest session has it, nor was anything asked for it.
    """
    message = client.session()
    snapshot = _snapshot(client)
    supply = client.supply()
    found = Why(job)
    if supply.site.frozen:
        found.frozen = supply.site.why
    add_running(found, () if snapshot is None else snapshot.running)
    if message.result is not None:
        found.session_age_s = message.age_s
        add_session(found, message.result)
    known_after = _of_requests(found, client, supply)
    add_supply(found, supply.catalog, supply.now)
    if found.state == "pending":
        reports = client.standing().reports.values()
        add_holds(found, (hold for report in reports for hold in report.holds))
    if found.state == "unknown" and not found.requests:
        older = "" if not known_after else f", of those behind position {known_after}"
        raise NotFoundError(
            f"job {job} is not known here: the newest session does not have it, and no request{older} was made for it"
        )
    return found


def _snapshot(client: "Client") -> Snapshot | None:
    try:
        return client.snapshot()
    except NotFoundError:
        return None


def _of_requests(found: Why, client: "Client", supply: Supply) -> int:
    """Add the asks that were made for the job, with what came of them; return the position behind which all are known."""
    known = client.job(found.job)
    for entry in known.requests:
        brought = [one for one in supply.inventory.instances if one.request == entry.id]
        found.requests.append(request_document(entry, brought))
    return known.known_after

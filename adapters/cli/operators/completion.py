"""What the shell offers where a name is wanted: names that the controller knows now. Nothing, rather than an error or a long wait."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from xce.adapters.cli.operators.connection import Connection
from xce.domain.errors import XceError

if TYPE_CHECKING:
    from xce.adapters.client import Client

#: Names that are offered.
OFFERED_MAX: Final = 100
#: A shell that waits longer for its completion seems to hang.
WITHIN_S: Final = 2.0

Completer = Callable[[typer.Context, str], list[str]]


def _connection(context: typer.Context) -> Connection:
    """Return the connection that the flags so far stand for; a command that is completed has not begun."""
    given: dict[str, Any] = context.find_root().params
    return Connection(
        tuple(given.get("address") or ()),
        _path(given.get("token_file")),
        _path(given.get("ca")),
        _path(given.get("config")),
    )


def _path(value: Any) -> Path | None:
    return None if value is None else Path(value)


def _names(of: Callable[["Client"], Iterable[str | None]]) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            with _connection(ctx).client(attempts=1, timeout_s=WITHIN_S) as client:
                found = (name for name in of(client) if name and name.startswith(incomplete))
                return list(islice(dict.fromkeys(found), OFFERED_MAX))
        except (XceError, OSError):
            return []

    return complete


def _hosts(client: "Client") -> Iterable[str | None]:
    yield from (one.host for one in client.instances())
    yield from (one.host for one in client.drains())
    yield from (host.name for host in client.snapshot().hosts)


def _jobs(client: "Client") -> Iterable[str]:
    result = client.session().result
    return () if result is None else (one.job for one in result.pending)


def _items(client: "Client") -> Iterable[str]:
    for one in client.providers():
        yield from (offer.template_id for offer in one.description.templates)
        yield from (offer.name for offer in one.description.resources)


HOSTS: Final = _names(_hosts)
DRAINED: Final = _names(lambda client: (one.host for one in client.drains()))
INSTANCES: Final = _names(lambda client: (one.id for one in client.instances()))
ITEMS: Final = _names(_items)
JOBS: Final = _names(_jobs)
ORPHANS: Final = _names(lambda client: (one.id for one in client.orphans()))
PROVIDERS: Final = _names(lambda client: (one.name for one in client.providers()))
REQUESTS: Final = _names(lambda client: (one.id for one in client.requests()))
SHARED: Final = _names(lambda client: (one.name for one in client.shared()))

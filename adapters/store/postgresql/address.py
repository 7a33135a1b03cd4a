"""Addresses of logs on PostgreSQL: read once, and never shown with a secret.

``postgresql://USER@HOST:PORT/DATABASE`` as libpq reads it (several hosts, ``sslmode`` and so on included), and one setting of ours:
``?schema=NAME``, the schema that the log's tables are in; "xce" unless it says otherwise. A password belongs into ``PGPASSWORD`` or the password file
of libpq; one in the address works too.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from psycopg import Error
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from xce.adapters.store.addresses import SCHEME, is_address
from xce.domain.errors import InputError

DEFAULT_SCHEMA: Final = "xce"
#: What an address is called that cannot be read: what it says may be a password in the wrong place.
_UNREAD: Final = "the address of the log"
_SCHEMA: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_PORTS: Final = re.compile(r"\d{0,5}(,\d{0,5})*")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a log is.

    Attributes:
        shown: the address without secrets, for messages.
        schema: of the log's tables.
        conninfo: all that libpq needs, secrets included.
    """

    shown: str
    schema: str
    conninfo: str = field(repr=False)


def read_address(text: str) -> Address:
    """Return what an address says.

    Raises:
        InputError: it is not one; the message does not repeat it.
    """
    if not is_address(text):
        raise _not_one("it begins otherwise")
    base, mark, query = text.partition("?")
    settings = parse_qsl(query, keep_blank_values=True)
    schema = dict(settings).get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise _not_one("the schema must be a plain name in lower case, and not begin with pg_")
    rest = urlencode(
        [(name, value) for name, value in settings if name != "schema"], quote_via=quote
    )
    try:
        parts: dict[str, Any] = conninfo_to_dict(base + (mark + rest if rest else ""))
    except Error:  # its message may repeat a part of the password
        raise _not_one(
            "libpq cannot read it; special characters are written as %40 and so on"
        ) from None
    port = str(parts.get("port") or "")
    name = str(parts.get("dbname") or "")
    if (port and not _PORTS.fullmatch(port)) or "@" in name:
        raise _not_one("special characters in a password are written as %40 and so on")
    return Address(_shown(parts, schema), schema, make_conninfo("", **parts))


def _not_one(why: str) -> InputError:
    return InputError.of(
        _UNREAD, f"is no address of PostgreSQL; wanted {SCHEME}USER@HOST:PORT/DATABASE: {why}"
    )


def _shown(parts: dict[str, Any], schema: str) -> str:
    user = quote(str(parts["user"]), safe="") + "@" if parts.get("user") else ""
    hosts = str(parts.get("host") or parts.get("hostaddr") or "").split(",")
    ports = str(parts.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    places = ",".join(
        quote(host, safe="[]:") + (f":{port}" if port else "")
        for host, port in zip(hosts, ports, strict=False)
    )
    name = quote(str(parts.get("dbname") or ""), safe="")
    return f"{SCHEME}{user}{places}/{name}" + (
        "" if schema == DEFAULT_SCHEMA else f"?schema={schema}"
    )

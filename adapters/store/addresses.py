"""What a log is called: a file, ``:memory:``, or an address of PostgreSQL. Needs no driver of a database."""

from typing import Final

SCHEME: Final = "postgresql://"
_SCHEMES: Final = (SCHEME, "postgres://")


def is_address(name: str) -> bool:
    """Return whether a log's name is an address of PostgreSQL rather than a file."""
    return name.startswith(_SCHEMES)

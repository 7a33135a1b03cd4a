"""Error codes in what providers say, as the LSF resource connector reads them."""

import re
from typing import Final

#: Codes that mean: this template is not to be had just now. Any ``Error Code: X`` pauses the template it came with.
CAPACITY_CODES: Final = frozenset(
    {
        "InsufficientAddressCapacity",
        "InsufficientCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "cannot_start_capacity",
        "cannot_start_compute",
        "cannot_start_ip_address",
        "cannot_start_network",
        "cannot_start_placement_group",
        "cannot_start_storage",
    }
)
_ERROR_CODE = re.compile(r"Error Code\s*:\s*[\"']?(?P<code>[A-Za-z][A-Za-z0-9_.-]{0,99})")


def error_code(text: str) -> str | None:
    """Return the code of ``Error Code: X`` in a message; None: it names none."""
    match = _ERROR_CODE.search(text)
    return None if match is None else match["code"].rstrip(".-")

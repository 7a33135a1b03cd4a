"""Texts of lmstat made up for tests."""

HEAD = """lmutil - Copyright (c) 1989-2023 Flexera. All Rights Reserved.
Flexible License Manager status on Tue 5/12/2026 14:07

"""


def server(host: str = "keys", vendors: str = "    northlm: UP v11.19.5\n") -> str:
    """Return the beginning of the block of a server that is up."""
    return (
        f"License server status: 27020@{host}\n"
        f"    License file(s) on {host}: /srv/keys/all.lic:\n\n"
        f"{host}: license server UP (MASTER) v11.19.5\n\n"
        f"Vendor daemon status (on {host}):\n\n{vendors}Feature usage info:\n\n"
    )


def users(name: str, issued: int, in_use: int) -> str:
    """Return the header of a feature."""
    issued_of = "license" if issued == 1 else "licenses"
    used_of = "license" if in_use == 1 else "licenses"
    return (
        f"Users of {name}:  (Total of {issued} {issued_of} issued;"
        f"  Total of {in_use} {used_of} in use)\n\n"
    )


def pool(name: str, vendor: str = "northlm", version: str = "v1.0") -> str:
    """Return the detail header of a part of a feature."""
    return f'  "{name}" {version}, vendor: {vendor}, expiry: 30-jun-2027\n  floating license\n\n'


def session(
    who: str = "aster n1 /dev/tty", handle: int = 1, end: str = "", start: str = "Tue 5/12 8:03"
) -> str:
    """Return the line of a session."""
    return f"    {who} (v1.0) (keys/27020 {handle}), start {start}{end}\n"

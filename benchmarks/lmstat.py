"""How fast a text of lmstat is read: ``python -m benchmarks.lmstat``; ``--write FILE`` only makes the text.

10,000 features with 1,000,000 sessions; the budget is 6 s of CPU and 400 MiB for the whole command ``xce licence parse FILE --json``.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FEATURES: Final = 10_000
SESSIONS: Final = 100


def lines(features: int = FEATURES, sessions: int = SESSIONS) -> Iterator[str]:
    """Yield the lines of a text; every fifth session holds several licences, some linger."""
    yield "lmutil - Copyright (c) 1989-2023 Flexera. All Rights Reserved."
    yield "Flexible License Manager status on Tue 5/12/2026 14:07"
    yield ""
    yield "License server status: 27020@tokens.example.net"
    yield "    License file(s) on tokens.example.net: /srv/keys/all.lic:"
    yield ""
    yield "tokens.example.net: license server UP (MASTER) v11.19.5"
    yield ""
    yield "Vendor daemon status (on tokens.example.net):"
    yield ""
    yield "    northlm: UP v11.19.5"
    yield "Feature usage info:"
    for feature in range(features):
        used = sum(5 if session % 5 == 0 else 1 for session in range(sessions))
        yield ""
        yield f"Users of feature_{feature}:  (Total of {2 * used} licenses issued;  Total of {used} licenses in use)"
        yield ""
        yield f'  "feature_{feature}" v2026.03, vendor: northlm, expiry: 30-jun-2027'
        yield "  vendor_string: grp=eda:rev=7"
        yield "  floating license"
        yield ""
        for session in range(sessions):
            number = feature * sessions + session
            amount = ", 5 licenses" if session % 5 == 0 else ""
            linger = "  (linger: 320100 / 432000)" if session % 50 == 7 else ""
            yield (
                f"    user{number % 5000} farm-n{session:03} /dev/pts/{session % 9} (v2026.03)"
                f" (tokens.example.net/27020 {number}), start Tue 5/12 {session % 14}:{session % 60:02}{amount}{linger}"
            )
    yield ""


def main() -> None:
    """Make the text, run the command over it and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(sys.argv[2]) if sys.argv[1:2] == ["--write"] else Path(folder) / "lmstat.txt"
        with place.open("w") as file:
            file.writelines(f"{line}\n" for line in lines())
        if sys.argv[1:2] == ["--write"]:
            return
        command = [sys.executable, "-m", "xce.adapters.cli.main", "licence", "parse", str(place)]
        start = time.perf_counter()
        subprocess.run([*command, "--json"], check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{FEATURES:,} features, {FEATURES * SESSIONS:,} sessions, {place.stat().st_size / 1e6:.0f} MB: "
            f"{used.ru_utime + used.ru_stime:.2f} s CPU of 6, {used.ru_maxrss / 1024:.0f} MiB of 400, {wall:.2f} s"
        )


if __name__ == "__main__":
    main()

"""``python -m tests.fuzz [--seconds 3600] [--seed N] [--only NAME] [--keep DIR]``: hunt for texts that break a reader of provider output or files.

The exit code is 1 where something was found; its texts are in DIR, and ``--replay FILE --only NAME`` feeds one again.
"""

import argparse
import logging
import resource
import sys
import time
from pathlib import Path

import structlog

from tests.fuzz.hunt import Finding, Hunt, hunt_for, name_of, peak_mib
from tests.fuzz.targets import targets

#: No reader of small texts needs more; what asks for more is a finding (MemoryError).
ADDRESS_SPACE = 2 << 30


def main() -> int:
    """Hunt; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[2].strip())
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--replay", type=Path)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    chosen = [one for one in targets() if options.only in one.name]
    if options.replay is not None:
        print(chosen[0].feed(options.replay.read_bytes()))
        return 0
    print(f"seed {options.seed}: {len(chosen)} readers, {options.seconds:g} s", flush=True)

    def tell(finding: Finding) -> None:
        options.keep.mkdir(exist_ok=True)
        path = options.keep / name_of(finding)
        path.write_bytes(finding.text)
        print(f"{finding.target}: {path}\n{finding.why}\n", flush=True)

    hunts = [Hunt(target, options.seed, tell=tell) for target in chosen]
    hunt_for(hunts, options.seconds, lambda line: print(line, flush=True))
    for one in hunts:
        print(f"{one.target.name:<36} {one.tried:>9} texts, slowest {one.slowest_s:.2f} s CPU")
    found = sum(len(one.findings) for one in hunts)
    print(f"{sum(one.tried for one in hunts)} texts, {found} findings, {peak_mib():.0f} MiB")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

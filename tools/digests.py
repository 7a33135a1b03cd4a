"""Prints one digest a line: of the session over each snapshot file, with trace, and of the demo's log and report."""

import sys
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from xce.adapters.cli.simulate import new_log, simulate
from xce.adapters.settings.load import read_config
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.session import run_session
from xce.replay.workloads.eda_day import eda_day

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "allocator"))


def main() -> None:
    """Print the digests, by file name."""
    spreadjob: Allocator = import_module("xce_spreadjob").SPREADJOB
    snapshots = sorted(
        path
        for folder in ("tests/data", "examples")
        for path in (ROOT / folder).rglob("*.json")
        if b'"xce.snapshot/1"' in path.read_bytes()
    )
    for path in snapshots:
        snapshot = Snapshot.from_json(path.read_bytes(), path.name)
        result = run_session(snapshot, trace=True, allocators=[spreadjob])
        print(path.relative_to(ROOT), sha256(result.to_json().encode()).hexdigest())
    config = read_config(files("xce.adapters.cli").joinpath("demo.yaml").read_bytes(), "demo.yaml")
    with new_log(None) as log:
        run = simulate(config, eda_day(config.driver.seed), log, quiet=True)
        print("demo log", log.head())
    print("demo report", sha256(run.report.to_json().encode()).hexdigest())


if __name__ == "__main__":
    main()

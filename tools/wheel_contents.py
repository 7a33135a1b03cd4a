"""Fails unless a wheel holds every module and data file of the four folders, and nothing else of them."""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("domain", "projections", "replay", "adapters")
DATA = {".lark", ".yaml", ".json", ".toml", ".html", ".j2"}


def expected() -> set[str]:
    """Return the archive names of all that must be in the wheel."""
    names = {"xce/__init__.py", "xce/py.typed"}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix == ".py" or path.suffix in DATA:
                names.add(f"xce/{path.relative_to(ROOT).as_posix()}")
    return names


def main() -> int:
    """Compare the wheel named by the first argument."""
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        found = {name for name in wheel.namelist() if name.startswith("xce/")}
    missing, extra = (
        expected() - found,
        found - expected() - {f"xce/{f}/README.md" for f in FOLDERS},
    )
    for name in sorted(missing):
        print(f"wheel: missing {name}", file=sys.stderr)
    for name in sorted(extra):
        print(f"wheel: unexpected {name}", file=sys.stderr)
    print(f"wheel: {len(found)} files")
    return 1 if missing or extra else 0


if __name__ == "__main__":
    raise SystemExit(main())

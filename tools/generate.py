"""Writes all that is made from the code: JSON Schemas, lifecycle diagrams, event, audit and CLI reference, pictures.

python tools/generate.py           write
python tools/generate.py --check   exit 1 and name the files that are out of date
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).parents[1]

#: A page: path below the root, and its text.
Page = tuple[str, str]


def generators() -> list[Callable[[], Iterator[Page]]]:
    """Return everything that makes pages."""
    import generate_cli
    import generate_configuration
    import generate_demand_picture
    import generate_events
    import generate_f29
    import generate_formats
    import generate_licence_picture
    import generate_readme
    import generate_reasons
    import generate_rest
    import generate_roles
    import generate_scenario
    import generate_schemas
    import generate_workloads

    modules = (
        generate_schemas,
        generate_workloads,
        generate_cli,
        generate_configuration,
        generate_demand_picture,
        generate_events,
        generate_f29,
        generate_formats,
        generate_licence_picture,
        generate_readme,
        generate_reasons,
        generate_rest,
        generate_roles,
        generate_scenario,
    )
    return [module.pages for module in modules]


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    stale = [
        path
        for generator in generators()
        for path, text in generator()
        if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text
        if not _write(path, text, check="--check" in arguments)
    ]
    for path in stale:
        print(f"out of date: {path}; run: python tools/generate.py", file=sys.stderr)
    return 1 if stale else 0


def _write(path: str, text: str, *, check: bool) -> bool:
    if check:
        return False
    target = ROOT / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"wrote {path}")
    return True


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

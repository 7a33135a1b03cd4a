"""Runs the same sessions and the demo on every Python from 3.11 that is found, and compares the bytes: ``make interpreters``.

    python tools/interpreters.py            digests of sessions and of the demo's log must be equal everywhere
    python tools/interpreters.py --tests    runs the tests on each as well

Environments are kept in ``.interpreters/`` and made anew when ``pyproject.toml`` changes.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".interpreters"
OLDEST = (3, 11)


def found() -> dict[tuple[int, int], str]:
    """Return one interpreter for each minor version from 3.11, from PATH and from pyenv."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"), reverse=True)
    candidates = [
        folder / f"python{version}"
        for folder in folders
        for version in ("3", *(f"3.{minor}" for minor in range(OLDEST[1], 20)))
    ]
    interpreters: dict[tuple[int, int], str] = {}
    for candidate in candidates:
        if candidate.is_file() and (version := _version(candidate)) is not None:
            interpreters.setdefault(version, str(candidate))
    return dict(sorted(interpreters.items()))


def _version(python: Path) -> tuple[int, int] | None:
    done = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    numbers = re.findall(r"\d+", done.stdout)
    if done.returncode != 0 or len(numbers) != 2:
        return None
    version = (int(numbers[0]), int(numbers[1]))
    return version if version >= OLDEST else None


def environment(version: tuple[int, int], interpreter: str) -> Path:
    """Return the Python of an environment that has the project and the test tools."""
    folder = HOME / f"{version[0]}.{version[1]}"
    python, stamp = folder / "bin" / "python", folder / ".ready"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"setting up {folder.relative_to(ROOT)}", flush=True)
        quiet = ["-q", "--disable-pip-version-check", "--no-input"]
        pip = [str(python), "-m", "pip", "install", *quiet]
        subprocess.run([interpreter, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
        subprocess.run(
            [*pip, "--editable", ".[report,controller,postgresql]", "--group", "dev"],
            check=True,
            cwd=ROOT,
        )
        stamp.write_text(wanted)
    return python


def digests(python: Path) -> str:
    """Return what sessions over all snapshot files, and the demo, amount to; one line each."""
    done = subprocess.run(
        [python, ROOT / "tools" / "digests.py"],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "random"},
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def main() -> int:
    """Compare; 1 when something differs or a test fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="run the tests on each as well")
    given = parser.parse_args()
    pythons = {version: environment(version, path) for version, path in found().items()}
    first: list[str] = []
    failed = False
    for version, python in pythons.items():
        lines = digests(python).splitlines()
        first = first or lines
        differs = sorted(set(first) ^ set(lines))
        name = f"{version[0]}.{version[1]}"
        print(
            f"{name}: {len(lines)} digests, {len(differs)} differ", *differs, sep="\n  ", flush=True
        )
        failed |= bool(differs)
        if given.tests:
            tests = [python, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-q"]
            failed |= subprocess.run(tests, check=False, cwd=ROOT).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The folders at the top are the sub-packages of xce, no more and no fewer, and the versions agree."""

import importlib
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import xce
from tests.conftest import ROOT

NOT_CODE = {"tests", "src", "docs", "build", "dist", "benchmarks", "examples", "tools"}


def folders() -> set[str]:
    return {
        folder.name
        for folder in ROOT.iterdir()
        if folder.is_dir() and (folder / "__init__.py").exists()
    } - NOT_CODE


def test_each_folder_has_its_link() -> None:
    links = {path.name for path in (ROOT / "src" / "xce").iterdir() if path.is_dir()}

    assert links - {"__pycache__"} == folders()
    assert all((ROOT / "src" / "xce" / name).is_symlink() for name in folders())


@pytest.mark.parametrize("folder", sorted(folders()))
def test_a_folder_is_imported_from_the_checkout(folder: str) -> None:
    module = importlib.import_module(f"{xce.__name__}.{folder}")

    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == ROOT / folder / "__init__.py"


@pytest.mark.parametrize("folder", sorted(folders()))
def test_each_folder_says_what_lives_there(folder: str) -> None:
    page = (ROOT / folder / "README.md").read_text(encoding="utf-8")

    assert page.startswith(f"# {folder}")
    assert len(page.splitlines()) <= 30


def test_every_package_folder_is_a_package() -> None:
    without = [
        str(path.parent.relative_to(ROOT))
        for name in folders()
        for path in (ROOT / name).rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    ]

    assert not without


def test_the_installed_version_is_the_one_in_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert version("xce") == project["version"]


def test_what_is_exported_can_be_imported() -> None:
    for name in xce.__all__:
        assert getattr(xce, name) is not None
    with pytest.raises(AttributeError, match="nonesuch"):
        xce.nonesuch  # noqa: B018

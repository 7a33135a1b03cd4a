"""The story takes longer than most: where tests run beside each other it comes first, so that nobody waits for it at the end."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of this folder before all others."""
    items.sort(key=lambda item: item.path.parent.name != "slurm_e2e")

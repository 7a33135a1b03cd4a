"""Every fault that is planted in our own code is found, by the promise that it breaks.

``XCE_PLANT_SEEDS`` sets within how many seeds; else it is few, and what takes hundreds is left out.
"""

import os

import pytest

from tests.faults.plants import PLANTS, Plant
from xce.adapters.faults.campaign import quiet, run_seed

SEEDS = int(os.environ.get("XCE_PLANT_SEEDS", "0"))
#: Most of what is not rare is found within the first dozen.
FEW = 200


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    if plant.rare and not SEEDS:
        pytest.skip("found by hundreds of seeds: set XCE_PLANT_SEEDS=1000")
    plant.plant(monkeypatch)
    with quiet():
        found = (run_seed(number).promise for number in range(SEEDS or FEW))
        assert any(
            promise is not None and any(promise.startswith(one) for one in plant.promises)
            for promise in found
        ), f"not found with {SEEDS or FEW} seeds"


def test_there_are_enough_of_them() -> None:
    assert len(PLANTS) >= 10
    assert len({plant.name for plant in PLANTS}) == len(PLANTS)

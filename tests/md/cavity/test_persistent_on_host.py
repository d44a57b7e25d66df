"""The kernel of strategy "persistent" on the host, all its blocks at once, against the reference."""

import pytest

from md.cavity.strategies import persistent
from md.cavity.strategies.persistent import Plan, Tile, tiles_along
from tests.md.cavity.beside_reference import assert_as_reference
from tests.md.cavity.emulated_cuda import EmulatedCuda


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    return EmulatedCuda(tmp_path_factory.mktemp("kernels"))


def tiled(tile):
    """Return a plan function that takes a tile."""

    def plan(shape, most_blocks):
        along_x = tiles_along(shape[1] - 2, tile.width, tile.columns)
        return Plan(tile, along_x, tiles_along(shape[0] - 2, tile.height, 1))

    return plan


@pytest.mark.parametrize(
    ("shape", "sweeps", "precision", "tile"),
    [
        ((41, 41), 50, "float64", None),
        ((41, 41), 50, "float32", None),
        ((3, 3), 2, "float64", None),
        ((44, 110), 50, "float64", Tile(2, 8, 3)),
        ((45, 273), 23, "float32", Tile(4, 8, 3)),
        ((60, 77), 5, "float64", Tile(1, 6, 4)),
    ],
)
def test_the_kernel_gives_the_fields_of_the_reference(device, monkeypatch, shape, sweeps, precision, tile):
    if tile is not None:
        monkeypatch.setattr(persistent, "plan_for", tiled(tile))
    assert_as_reference(shape, "persistent", device, sweeps=sweeps, precision=precision, lid=0.7)

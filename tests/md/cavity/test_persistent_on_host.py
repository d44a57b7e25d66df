"""The kernel of strategy "persistent" on the host, all its blocks at once, against the reference."""

import numpy as np
import pytest

import md
from md.cavity.boundary import apply
from md.cavity.strategies import persistent
from md.cavity.strategies.persistent import Plan, Tile, plan_for, tiles_along
from tests.emulated_cuda import EmulatedCuda

TOLERANCE = {"float64": 1e-14, "float32": 2e-6}  # of the largest value, after a few steps


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    return EmulatedCuda(tmp_path_factory.mktemp("kernels"))


def cavity(shape, sweeps, precision, strategy, backend):
    """Make a cavity with a moving lid and random fields, whose pressure has its boundary values."""
    made = md.Cavity(
        shape, viscosity=0.1, lid=0.7, sweeps=sweeps, precision=precision, strategy=strategy, backend=backend
    )
    u, v, p = np.random.default_rng(7).uniform(-1, 1, (3, *shape)).astype(precision)
    apply(p, "p", made.scheme.conditions)
    made._solver.load(u, v, p)
    return made


def largest_error(found, expected):
    """Return the largest difference of a field, in units of its largest value."""
    errors = []
    for name in "uvp":
        right = getattr(expected, name).astype(float)
        errors.append(np.abs(getattr(found, name) - right).max() / np.abs(right).max())
    return max(errors)


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
    found = cavity(shape, sweeps, precision, "persistent", device)
    expected = cavity(shape, sweeps, precision, "numpy", "cpu")
    for steps in (3, 1):
        found.run(steps)
        expected.run(steps)
        assert largest_error(found, expected) < TOLERANCE[precision]

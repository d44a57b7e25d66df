"""The kernel of strategy "persistent" on the host, all its blocks at once, against the reference."""

import itertools

import numpy as np
import pytest

import md
from md.cavity.strategies import persistent
from md.cavity.strategies.persistent import (
    Plan,
    Tile,
    exchanges_of,
    plan_for,
    shared_bytes,
    tiles_along,
)
from tests.md.cavity.strategies.beside_reference import (
    TOLERANCE,
    assert_as_reference,
    cavity,
    largest_error,
)
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda
from tests.tiers import full, nightly


@pytest.fixture(scope="module")
def device():
    return EmulatedCuda()


def tiled(tile):
    """Return a plan function that takes a tile."""

    def plan(shape, most_blocks, most_bytes):
        along_x = tiles_along(shape[1] - 2, tile.width, tile.halo)
        return Plan(tile, along_x, tiles_along(shape[0] - 2, tile.height, tile.halo))

    return plan


@pytest.mark.parametrize(
    ("shape", "sweeps", "precision", "tile"),
    [
        ((41, 41), 50, "float64", None),
        ((60, 110), 50, "float64", Tile(2, 8, 4)),
        full((3, 3), 2, "float64", None),
        full((41, 41), 50, "float32", None),
        nightly((45, 273), 23, "float32", Tile(4, 8, 4)),
        full((45, 273), 23, "float64", Tile(4, 8, 4)),
        full((60, 77), 5, "float64", Tile(1, 8, 4)),
        nightly((60, 77), 21, "float64", Tile(2, 8, 6, 12)),
    ],
)
def test_the_kernel_gives_the_fields_of_the_reference(device, monkeypatch, shape, sweeps, precision, tile):
    if tile is not None:
        monkeypatch.setattr(persistent, "plan_for", tiled(tile))
    assert_as_reference(shape, "persistent", device, (3, 2, 1), sweeps=sweeps, precision=precision, lid=0.7)


def test_a_field_that_is_not_finite_is_a_fault_at_the_step_of_the_reference(device):
    steps = []
    for strategy, backend in (("persistent", device), ("numpy", "cpu")):
        with pytest.warns(md.errors.UnstableTimeStep):
            made = md.Cavity((41, 41), viscosity=0.1, dt=0.1, strategy=strategy, backend=backend)
        with pytest.raises(md.errors.NonFiniteField) as fault:
            made.run(100)
        steps.append((fault.value.step, made.step))
    assert steps[0] == steps[1]
    assert 1 < steps[0][0] < 100


def test_boundary_values_set_between_launches_last_until_the_next_step(device, monkeypatch):
    monkeypatch.setattr(persistent, "plan_for", tiled(Tile(4, 8, 4)))
    u, v = np.random.default_rng(3).uniform(-1, 1, (2, 45, 271)).astype(np.float32)
    found, expected = (
        cavity((45, 271), name, backend, sweeps=15, precision="float32")
        for name, backend in (("persistent", device), ("numpy", "cpu"))
    )
    for one in (found, expected):
        one.run(4)
        one.set_fields(u=u, v=v)
        one.run(4)  # in one launch
    assert largest_error(found, expected) < TOLERANCE["float32"]


@pytest.mark.parametrize("precision", ["float64", nightly("float32")])
@pytest.mark.parametrize("steps", [1, 2, full(3)])
def test_a_saved_cavity_of_two_blocks_goes_on_to_the_last_bit(device, tmp_path, steps, precision):
    made = md.Cavity(
        (20, 70), viscosity=0.1, sweeps=10, precision=precision, strategy="persistent", backend=device
    )
    assert made._solver._plan.blocks == 2
    assert made.strategy.needed_bytes(made.scheme, "arrays", "row", device) == sum(
        array.host.nbytes for array in made._solver._fields[:7]
    )
    made.run(steps)
    made.save(tmp_path / "cavity.npz")
    loaded = md.Cavity.load(tmp_path / "cavity.npz", backend=device)
    for one in (made, loaded):
        one.run(4)
    for name in "uvp":
        np.testing.assert_array_equal(getattr(made, name), getattr(loaded, name))


class OneByOne(EmulatedCuda):
    """A device that runs the blocks of a kernel one after another."""

    at_once = 1


def test_blocks_that_wait_in_vain_give_up(monkeypatch):
    monkeypatch.setattr(persistent, "plan_for", tiled(Tile(2, 8, 4)))
    constants = persistent.constants_of
    monkeypatch.setattr(persistent, "constants_of", lambda *case: constants(*case) | {"MOST_POLLS": 20})
    made = md.Cavity((44, 110), viscosity=0.1, strategy="persistent", backend=OneByOne())
    with pytest.raises(md.backend.BackendUnavailableError, match="blocks waited too long for each other"):
        made.run(2)
    assert made.step == 0
    assert not made.u.any()


@pytest.mark.parametrize(
    "shape", [(41, 41), (129, 129), (257, 257), (1000, 1000), (3, 1000), (1000, 20), (90, 131)]
)
def test_the_tiles_cover_the_cavity_with_overlapping_halos(shape):
    plan = plan_for(shape, 132, 227 * 1024)
    assert plan.blocks <= 132
    for inner, count, extent, unit in (
        (shape[1] - 2, plan.along_x, plan.tile.width, plan.tile.columns),
        (shape[0] - 2, plan.along_y, plan.tile.height, 1),
    ):
        apart = -(-(inner - extent) // unit)  # of the first and the last tile, as persistent.cuh has it
        starts = [0] if count == 1 else [k * apart // (count - 1) * unit for k in range(count)]
        assert inner <= starts[-1] + extent < inner + extent
        assert all(b - a <= extent - 2 * plan.tile.halo for a, b in itertools.pairwise(starts))
    assert shared_bytes(plan.tile, 8) <= 227 * 1024


@pytest.mark.parametrize(("shape", "blocks"), [((66, 66), 1), ((67, 66), 3), ((66, 67), 4)])
def test_a_cavity_that_just_fits_a_block_has_one(shape, blocks):
    assert plan_for(shape, 132, 227 * 1024).blocks == blocks


def test_a_cavity_too_large_for_the_device_is_refused():
    device = EmulatedCuda(4)
    message = r"allowed: up to 4 tiles of 72 x 112 points .*; take strategy='cuda'"
    with pytest.raises(ValueError, match=message):
        md.Cavity((300, 300), viscosity=0.1, strategy="persistent", backend=device)
    assert md.Cavity((300, 300), viscosity=0.1, backend=device).strategy.name == "cuda"
    assert md.Cavity((90, 60), viscosity=0.1, backend=device).strategy.name == "persistent"
    device.staging_memory = 60 * 1024
    assert md.Cavity((90, 60), viscosity=0.1, backend=device).strategy.name == "cuda"
    assert md.Cavity((9, 9), viscosity=0.1, backend=device).strategy.name == "persistent"  # not "spectral"
    device.staging_memory = 0  # no tensor cores
    with pytest.raises(ValueError, match="allowed: none on this device: its blocks have 0 bytes"):
        md.Cavity((9, 9), viscosity=0.1, strategy="persistent", backend=device)


@pytest.mark.parametrize(
    ("sweeps", "halo", "exchanges"), [(50, 8, 7), (50, 16, 4), (6, 8, 1), (7, 8, 2), (14, 8, 2), (15, 8, 3)]
)
def test_the_exchanges_of_a_step_are_counted(sweeps, halo, exchanges):
    assert exchanges_of(sweeps, halo) == exchanges

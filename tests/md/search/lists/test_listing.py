"""Coordinates of one byte: no partner is lost, and few others pass the test; the kernel computes the same."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from md.particles.units import units_of
from md.search.lists.lister import Lists
from md.search.lists.listing import ListBuilder, farthest
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray
from tests.md.search.test_verlet_on_host import listed
from tests.tiers import full


def lists_of(device: EmulatedCuda, partners: HostArray) -> Lists:
    """Lists of one row each, without a pool."""
    guard = device.zeros(1, np.int64), device.zeros(6, np.float32)
    return Lists(None, None, partners, None, 1, 0, *guard)


def grid_of(lengths, periodic, reach, precision=np.float32) -> CellGrid:
    return CellGrid(md.Box(lengths, periodic), reach, np.dtype(precision), md.backend.get("cpu"))


def bytes_of(units, pos: np.ndarray) -> np.ndarray:
    """(n,) int32 bytes of positions."""
    whole = np.floor(pos.astype(np.float64) * units["per_unit"]).astype(np.int64) & 255
    return (whole << 8 * np.arange(pos.shape[1])).sum(1).astype(np.int32)


def passes(units, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether pairs pass the test, by their bytes."""
    apart = (a - b).astype(np.int32)[..., None].view(np.int8).astype(np.int64)
    return (apart**2).sum(-1) <= units["most"]


@st.composite
def pairs(draw):
    """A box, a reach, and pairs of positions nearer than it: in the box, or far beyond its open sides."""
    dim, reach = draw(st.sampled_from([2, 3])), draw(st.floats(0.3, 4))
    lengths = tuple(draw(st.floats(2.01 * reach, 60 * reach)) for _ in range(dim))
    periodic = tuple(draw(st.booleans()) for _ in range(dim))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    first = random.uniform(0, 1, (200, dim)) * lengths
    first[:50] = np.floor(first[:50] * 64) / 64
    first[:, ~np.array(periodic)] *= draw(st.sampled_from([1, -1, 1000]))
    step = random.normal(size=(200, dim))
    step *= reach * random.uniform(0, 1, (200, 1)) ** (1 / 8) / np.linalg.norm(step, axis=1, keepdims=True)
    second = np.where(periodic, (first + step) % lengths, first + step)
    return lengths, periodic, reach, first, second


@given(pairs())
def test_no_partner_is_lost(case):
    lengths, periodic, reach, first, second = case
    units = units_of(grid_of(lengths, periodic, reach, np.float64), reach)[0]
    assert passes(units, bytes_of(units, first), bytes_of(units, second)).all()
    assert passes(units, bytes_of(units, second), bytes_of(units, first)).all()


@pytest.mark.parametrize(("dim", "most"), [(3, 1.16), (2, 1.1)])
def test_few_others_of_the_cells_around_pass(dim, most):
    random, reach, side = np.random.default_rng(3), 1.6, 20.0
    grid = grid_of((side,) * dim, True, reach)
    units = units_of(grid, reach)[0]
    first = random.uniform(0, side, (100_000, dim))
    cell = side / grid.shape[0]
    second = cell * (np.floor(first / cell) + random.uniform(-1, 2, first.shape))
    apart = np.linalg.norm(first - second, axis=1)
    passed = passes(units, bytes_of(units, first), bytes_of(units, second % side))
    assert passed[apart < reach].all()
    assert 1 < passed.sum() / (apart < reach).sum() < most


@pytest.mark.parametrize(("dim", "precision"), [(3, "float32"), full(2, "float64")])
def test_the_kernel_stores_these_bytes_in_the_order_of_the_cells(dim, precision):
    device, n, real = EmulatedCuda(), 300, np.dtype(precision)
    random = np.random.default_rng(4)
    grid = grid_of((9.0, 8.0, 7.0)[:dim], False, 1.3, real)
    pos = random.uniform(-50, 1e5, (n, dim)).astype(real)
    order = random.permutation(n).astype(np.int32)
    padded = np.zeros((n, 4), real)
    padded[:, :dim] = pos
    builder = ListBuilder(grid, real.type(1.3), lambda reach: 8, True, device)
    found = device.zeros(n, np.int32)
    builder._kernels.store_bytes(n, HostArray(padded[:, :dim]), device.upload(order), builder._units, found)
    np.testing.assert_array_equal(found.host, bytes_of(builder._units[0], pos[order]))


def test_a_narrow_axis_has_one_round_of_units():
    units = units_of(grid_of((2.7, 40.0, 9.0), (True, True, False), 1.3), 1.3)[0]
    assert units["per_unit"][0] == 256 / 2.7
    assert units["per_unit"][1] * 40.0 % 256 == pytest.approx(0)
    assert units["most"] >= (1.3 * 256 / 2.7 + 3) ** 2


def test_lists_of_a_narrow_box_are_told_by_positions():
    for lengths, passing in (((2.7, 40.0, 40.0), np.inf), ((40.0, 9.0, 8.0), 2.53), ((40.0,) * 3, 1.40)):
        grid = grid_of(lengths, True, 1.3)
        found = farthest(grid, units_of(grid, 1.3))
        assert found == pytest.approx(passing, rel=0.02)


def worst_pairs(units, reach: float, dim: int, count=20_000) -> tuple[np.ndarray, np.ndarray]:
    """Pairs nearer than `reach`, with bytes that tell the longest distances.

    Along each axis one position is right below a whole unit and the other right above one, and the byte of
    the axis before takes one more by a borrow: directions near (1, 2, 2).
    """
    random, per_unit = np.random.default_rng(7), units["per_unit"]
    direction = np.array([1.0, 2.0, 2.0])[:dim] + random.normal(0, 0.05, (count, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    step = np.floor(direction * reach * random.uniform(0.985, 1.01, (count, 1)) * per_unit) + 2e-4
    first = (random.integers(300, 900, (count, dim)) - 1e-4) / per_unit
    second = first + step / per_unit
    is_near = np.linalg.norm(second - first, axis=1) < reach
    return first[is_near], second[is_near]


@pytest.mark.parametrize("dim", [2, 3])
def test_no_partner_is_lost_at_the_worst_places(dim):
    least = []
    for reach in np.linspace(0.9, 3.3, 40):
        units = units_of(grid_of((60 * reach,) * dim, False, reach, np.float64), reach)[0]
        first, second = worst_pairs(units, reach, dim)
        a, b = bytes_of(units, first), bytes_of(units, second)
        assert len(first) > 500
        assert passes(units, a, b).all()
        assert passes(units, b, a).all()
        bytes_apart = (a - b).astype(np.int32)[:, None].view(np.int8).astype(np.int64)
        least.append(units["most"] - (bytes_apart**2).sum(1).max())
    assert min(least) < 0.02 * units["most"]  # the bound is close to the largest sum of squares


@pytest.mark.parametrize("precision", ["float32", full("float64")])
def test_the_kernel_lists_pairs_at_the_worst_places(precision):
    device, real, reach, side = EmulatedCuda(), np.dtype(precision), 1.3, 80.0
    grid = grid_of((side,) * 3, False, reach, real)
    units = units_of(grid, reach)[0]
    first, second = (points[:200] for points in worst_pairs(units, 0.9999 * reach, 3))
    corner = 9 * np.stack(np.unravel_index(np.arange(200), (8, 8, 8)), 1)  # pairs are far from each other
    whole = np.ceil(corner * units["per_unit"]) / units["per_unit"]
    shift = whole - (first - first % (1 / units["per_unit"]))
    pos = np.stack([first + shift, second + shift], 1).reshape(-1, 3).astype(real)
    pos += 1 / units["per_unit"]
    assert (np.linalg.norm(pos[::2].astype(float) - pos[1::2], axis=1) < reach).all()
    n, padded = len(pos), np.zeros((len(pos), 4), real)
    padded[:, :3] = pos
    sort = CellSort("row", n, grid, md.backend.get("cpu"))
    sort.find(pos, by_number=True)
    on_device = SimpleNamespace(
        find=lambda pos, by_number: None, scratch=device.zeros(n, np.int32), order=device.upload(sort.order),
        start=device.upload(sort.start),
    )  # fmt: skip
    partners = device.zeros(n, np.uint64)
    builder = ListBuilder(grid, real.type(reach), lambda reach: 8, False, device)
    none = device.empty((0, 3), real)
    builder.build(n, HostArray(padded[:, :3]), on_device, none, lists_of(device, partners))
    assert all(listed(partners.host, n, 1, i) == [i ^ 1] for i in range(n))


def test_lists_are_built_by_the_number_of_the_cell():
    device, asked = EmulatedCuda(), []
    grid, n = grid_of((6.0, 6.0, 6.0), True, 1.3), 1
    home = 2 + 4 * (2 + 4 * 2)
    sort = SimpleNamespace(
        find=lambda pos, by_number: asked.append(by_number), scratch=device.zeros(4, np.int32),
        order=device.zeros(n, np.int32), start=device.upload(np.int32(np.arange(grid.size + 1) > home)),
    )  # fmt: skip
    assert grid.shape == (4, 4, 4)
    pos, partners = (
        HostArray(np.full((n, 4), 3.5, np.float32)[:, :3]),
        device.upload(np.full(1, 2**64 - 1, np.uint64)),
    )
    builder = ListBuilder(grid, np.float32(1.3), lambda reach: 8, True, device)
    builder.build(n, pos, sort, device.empty((0, 3), np.float32), lists_of(device, partners))
    assert asked == [True]
    assert listed(partners.host, n, 1, 0) == []

"""Coordinates of one byte: no partner is lost, and few others pass the test; the kernel computes the same."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.particles.cell_grid import CellGrid
from md.search.lists.listing import Listing, units_of
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray


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


@pytest.mark.parametrize(("dim", "precision"), [(3, "float32"), (2, "float64")])
def test_the_kernel_stores_these_bytes_in_the_order_of_the_cells(tmp_path, dim, precision):
    device, n, real = EmulatedCuda(tmp_path), 300, np.dtype(precision)
    random = np.random.default_rng(4)
    grid = grid_of((9.0, 8.0, 7.0)[:dim], False, 1.3, real)
    pos = random.uniform(-50, 1e5, (n, dim)).astype(real)
    order = random.permutation(n).astype(np.int32)
    padded = np.zeros((n, 4), real)
    padded[:, :dim] = pos
    listing = Listing(grid, real.type(1.3), 8, device)
    found = device.zeros(n, np.int32)
    listing._kernels.store_bytes(n, HostArray(padded[:, :dim]), device.upload(order), listing._units, found)
    np.testing.assert_array_equal(found.host, bytes_of(listing._units[0], pos[order]))


def test_a_narrow_axis_has_one_round_of_units():
    units = units_of(grid_of((2.7, 40.0, 9.0), (True, True, False), 1.3), 1.3)[0]
    assert units["per_unit"][0] == 256 / 2.7
    assert units["per_unit"][1] * 40.0 % 256 == pytest.approx(0)
    assert units["most"] >= (1.3 * 256 / 2.7 + 3) ** 2


def test_listing_sorts_by_the_number_of_the_cell(tmp_path):
    device, asked = EmulatedCuda(tmp_path), []
    grid, n = grid_of((6.0, 6.0, 6.0), True, 1.3), 1
    sort = SimpleNamespace(
        find=lambda pos, by_number: asked.append(by_number), scratch=device.zeros(n, np.int32),
        order=device.zeros(n, np.int32), start=device.zeros(grid.size + 1, np.int32),
    )  # fmt: skip
    pos, partners = HostArray(np.full((n, 4), 3, np.float32)[:, :3]), device.zeros(4, np.int32)
    outcome = device.empty((0, 3), np.float32), device.zeros(1, np.int64), device.zeros(2, np.float32)
    Listing(grid, np.float32(1.3), 8, device).fill(pos, sort, (partners, 1, 0), outcome)
    assert asked == [True]
    assert partners.host.tolist() == 4 * [0]  # no partner but the particle itself

"""Counting of the cells of particles by the kernel of a device, on the host."""

import numpy as np
import pytest

import md
from md.particles.cell_grid import CellGrid
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray
from tests.tiers import full


@pytest.mark.parametrize("dim", [full(2), 3])
@pytest.mark.parametrize("has_table", [False, True])
def test_keys_are_those_of_the_cpu_and_ranks_number_the_particles_of_a_cell(dim, has_table):
    device, cpu, n = EmulatedCuda(), md.backend.get("cpu"), 700
    grid = CellGrid(md.Box((7.0, 6.0, 5.0)[:dim]), 1.0, np.float32, cpu)
    random = np.random.default_rng(3)
    rows = np.zeros((n, 4), np.float32)
    rows[:, :dim] = random.random((n, dim)) * grid.box.lengths
    table = random.permutation(grid.size).astype(np.int32) if has_table else np.empty(0, np.int32)
    expected = np.empty(n, np.int32)
    grid.keys(rows[:, :dim], table, expected)
    keys, rank = device.empty(n, np.int32), device.empty(n, np.int32)
    counts = device.zeros(grid.size, np.int32)
    device.kernels("md.backend.sorting.counting").count_cells(
        n, HostArray(rows[:, :dim]), HostArray(table), grid.record, keys, counts, rank
    )
    np.testing.assert_array_equal(keys.host, expected)
    np.testing.assert_array_equal(counts.host, np.bincount(expected, minlength=grid.size))
    for key in np.unique(expected):
        assert sorted(rank.host[expected == key]) == list(range(counts.host[key]))

"""Sort of particles by cell: by rank or by number, in place or not, and the tiled order on a device."""

import numpy as np
import pytest

import md
import sfc
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort, _owned_first
from sfc.orderings.scans import TILE
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda
from tests.tiers import full

CPU = md.backend.get("cpu")


def cloud(n=200) -> tuple[md.State, CellGrid]:
    random, box = np.random.default_rng(6), md.Box((9.0, 7.0, 11.0), True)
    pos = random.uniform(0, 1, (n, 3)) * box.lengths
    state = md.State(pos, random.normal(size=(n, 3)), box, radius=random.uniform(0.1, 0.5, n))
    return state, CellGrid(box, 1.0, np.dtype(np.float64), CPU)


def numbers_of(grid: CellGrid, pos: np.ndarray) -> np.ndarray:
    """(n,) row-major numbers of the cells of positions."""
    cells = np.floor(pos * grid.record["per_side"][0]).astype(int)
    return cells[:, 0] + grid.shape[0] * (cells[:, 1] + grid.shape[1] * cells[:, 2])


@pytest.mark.parametrize(
    "shape", [(9, 7, 11), (4, 8, 12), (3, 2, 30), (1, 5, 6), full((13, 10)), full((2, 3))], ids=str
)
def test_a_device_ranks_cells_in_tiles_as_sfc_does(shape):
    grid = CellGrid(md.Box(shape, False), 1.0, np.dtype(np.float32), CPU)
    assert grid.shape == shape
    device = EmulatedCuda()
    found = device.zeros(grid.size, np.int32)
    device.kernels("md.particles.cell_sort").tiled_ranks(grid.size, grid.record, TILE, found)
    np.testing.assert_array_equal(found.host, sfc.ordering("tiled", shape).dense_ranks())


def test_particles_are_sorted_by_rank_or_by_number():
    state, grid = cloud()
    sort, numbers = CellSort("hilbert", len(state), grid, CPU), numbers_of(grid, state.pos)
    for by_number, keys in ((False, sort.rank[numbers]), (True, numbers), (False, sort.rank[numbers])):
        sort.find(CPU.upload_rows(state.pos), by_number)
        np.testing.assert_array_equal(sort.order, np.argsort(keys, kind="stable"))
        np.testing.assert_array_equal(sort.start, np.searchsorted(np.sort(keys), np.arange(grid.size + 1)))


@pytest.mark.parametrize("keep_roles", [False, True])
def test_arrays_keep_their_roles_or_are_swapped(keep_roles):
    state, grid = cloud()
    particles = ParticleArrays(state, np.dtype(np.float64), CPU)
    sort = CellSort("hilbert", len(state), grid, CPU)
    before = particles.spare and particles.arrays
    sort.apply(particles, keep_roles)
    assert all(a is b for a, b in zip(before, particles.arrays, strict=True)) == keep_roles
    for found, expected in (
        (particles.pos, state.pos),
        (particles.vel, state.vel),
        (particles.id, state.id),
        (particles.radius, state.radius),
    ):
        np.testing.assert_array_equal(found, expected[sort.order])
    assert np.any(sort.order != np.arange(len(state)))


def test_starts_of_rows_of_cells_are_stored_by_both_backends():
    state, grid = cloud()
    sort, found = CellSort("row", len(state), grid, CPU), np.full(grid.size // 3 + 1, -7, np.int32)
    assert grid.size % 3 == 0
    sort.find(CPU.upload_rows(state.pos))
    sort.store_starts(3, found)
    np.testing.assert_array_equal(found, sort.start[::3])
    assert found[-1] == len(state)
    device = EmulatedCuda()
    stored = device.zeros(len(found), np.int32)
    device.kernels("md.particles.cell_sort").store_starts(len(found), device.upload(sort.start), 3, stored)
    np.testing.assert_array_equal(stored.host, found)


@pytest.mark.parametrize(("n", "padded"), [(0, 0), (1, 4), (4, 4), (201, 204)])
def test_the_scratch_is_padded_so_that_four_numbers_can_be_read_at_once(n, padded):
    sort = CellSort("row", n, cloud()[1], CPU)
    assert (len(sort.scratch), len(sort.order)) == (padded, n)


class Part:
    """Region of some cells of a grid."""

    def __init__(self, is_inside: np.ndarray):
        self._is_inside = is_inside

    def cells_of(self, grid: CellGrid) -> np.ndarray:
        assert len(self._is_inside) == grid.size
        return self._is_inside


@pytest.mark.parametrize("order", ["row", "hilbert"])
def test_cells_of_a_region_are_ranked_as_they_follow_each_other_in_the_order(order):
    state, grid = cloud()
    numbers, random = numbers_of(grid, state.pos), np.random.default_rng(1)
    whole = CellSort(order, len(state), grid, CPU)
    sort = CellSort(order, len(state), grid, CPU, Part(random.random(grid.size) < 0.5))
    for share in (0.2, 0.7, 1.0, None):
        is_inside = np.ones(grid.size, bool)
        if share is not None:
            is_inside = random.random(grid.size) < share
            is_inside[numbers[:40]] = True
        some = state.pos[is_inside[numbers]]
        sort.make_room(len(some), region=None if share is None else Part(is_inside))
        whole.make_room(len(some))
        for one in (sort, whole):
            one.find(CPU.upload_rows(some))
        np.testing.assert_array_equal(sort.order, whole.order)
        counts, right = np.diff(sort.start), np.diff(whole.start)
        np.testing.assert_array_equal(counts[sort.rank[is_inside]], right[whole.rank[is_inside]])
        assert len(sort.start) == (grid.size + 1 if is_inside.all() else is_inside.sum() + 2)
        assert is_inside.all() or (sort.table[~is_inside] == len(counts) - 1).all()
        assert is_inside.all() or counts[-1] == 0


def test_all_cells_are_ranked_where_a_particle_is_outside_the_region():
    state, grid = cloud()
    numbers = numbers_of(grid, state.pos)
    is_inside = np.zeros(grid.size, bool)
    is_inside[numbers[1:]] = True
    is_inside[numbers[0]] = False
    region = Part(is_inside)
    whole, sort = CellSort("row", len(state), grid, CPU), CellSort("row", len(state), grid, CPU, region)
    for pos in (state.pos[is_inside[numbers]], state.pos, state.pos):
        for one in (whole, sort):
            one.make_room(len(pos), region=region if one is sort else None)
            one.find(CPU.upload_rows(pos))
        np.testing.assert_array_equal(sort.order, whole.order)
        if len(pos) == len(state):
            np.testing.assert_array_equal(sort.start, whole.start)
            np.testing.assert_array_equal(sort.rank, whole.rank)
        else:
            assert len(sort.start) < len(whole.start)


def test_a_sort_by_number_within_a_region_is_refused():
    state, grid = cloud()
    sort = CellSort("hilbert", len(state), grid, CPU, Part(np.arange(grid.size) > 3))
    with pytest.raises(ValueError, match="a sort by number within a region; allowed: by rank"):
        sort.find(CPU.upload_rows(state.pos), by_number=True)


@pytest.mark.parametrize("parts", [1, 3, 7])
@pytest.mark.parametrize("owned", [0, 1, 60, 100])
def test_owned_particles_come_before_ghosts_in_the_same_order(parts, owned):
    sorted_rows = np.random.default_rng(owned).permutation(100).astype(np.int32)
    order, before, moved = sorted_rows.copy(), np.empty(100, np.int32), np.empty(100, np.int32)
    _owned_first(owned, parts, order, before, moved)
    right = np.concatenate([sorted_rows[sorted_rows < owned], sorted_rows[sorted_rows >= owned]])
    np.testing.assert_array_equal(before, right)
    np.testing.assert_array_equal(moved[before], np.arange(100))
    np.testing.assert_array_equal(before[order], sorted_rows)

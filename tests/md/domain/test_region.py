"""Region of a rank: the cells of any grid in which its particles and ghosts are."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import md
from md import backend
from md.domain.communicator import in_turn
from md.domain.partition import Partition, around
from md.domain.region import Region
from md.particles.cell_grid import CellGrid

CPU = backend.get("cpu")


def grid_of(cutoff: float, box: md.Box) -> CellGrid:
    return CellGrid(box, cutoff, np.dtype(float), CPU)


@pytest.mark.parametrize("cutoff", [0.9, 1.5, 2.3, 4.1])
@pytest.mark.parametrize("periodic", [True, False])
def test_it_is_of_all_cells_that_overlap_those_within_two_of_the_own(cutoff, periodic):
    box = md.Box((23.0, 9.0, 31.0), periodic)
    coarse, fine = grid_of(1.5, box), grid_of(cutoff, box)
    partition = Partition("hilbert", coarse, 20)
    near = partition.owner == 4
    for _ in range(2):
        near = around(near, coarse.shape, (periodic,) * 3)

    def overlapping(axis: int, cell: int) -> list[int]:
        of, among = fine.shape[axis], coarse.shape[axis]
        ends = Fraction(cell, of), Fraction(cell + 1, of)
        return [k for k in range(among) if Fraction(k, among) < ends[1] and Fraction(k + 1, among) > ends[0]]

    spans = [[overlapping(axis, cell) for cell in range(fine.shape[axis])] for axis in range(3)]
    near = near.reshape(coarse.shape[::-1])
    right = [near[np.ix_(z, y, x)].any() for z, y, x in product(*spans[::-1])]
    assert any(right)
    assert not all(right)
    np.testing.assert_array_equal(Region(partition, 4).cells_of(fine), right)


@pytest.mark.parametrize("search", ["verlet", "coherent"])
def test_all_rows_are_in_it_and_the_sort_has_no_more_cells(search):
    state = md.scenes.benchmark_gas(20000, 0.1, seed=2)
    state.vel[...] *= 3
    counts = []

    def work(ranks):
        law, division = md.scenes.BENCHMARK_LAW, md.Division("row")
        run = md.Simulation(
            state, law, search=search, dt=1e-3, backend="cpu", communicator=ranks, division=division
        )
        for _ in range(30):
            run.run(7)
            particles, grid = run.system.particles, run.search.grid
            is_inside = particles.region.cells_of(grid)
            cells = np.empty(particles.rows, np.int32)
            grid.keys(particles.pos, np.empty(0, np.int32), cells)
            assert is_inside[cells].all()
            sort = run.search._sort if search == "coherent" else run.search._lister._sort
            assert len(sort.start) == is_inside.sum() + 2
            sort.find(particles.pos)
            assert sort.start[-1] == sort.start[-2] == particles.rows
            counts.append((is_inside.mean(), run.system.domain.migrations))

    in_turn(4, work)
    assert max(share for share, _ in counts) < 0.9
    assert max(migrations for _, migrations in counts) > 3

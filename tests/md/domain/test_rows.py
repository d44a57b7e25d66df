"""Rows of a rank on the CPU: ghosts are those particles that their ids say, in whichever order rows are."""

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.halo import HEAD, Message

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT


def made(state: md.State, ranks, **options) -> md.Simulation:
    options = {"search": "verlet", "fused": True, "division": md.Division("row")} | options
    return md.Simulation(state, LAW, dt=DT, backend="cpu", communicator=ranks, **options)


def lone_cluster() -> md.State:
    """Particles of which those of one rank are near cells of another one that has none there."""
    random, box = np.random.default_rng(1), md.Box((60.0, 12.0, 12.0))
    pos = random.random((300, 3)) * (8.0, 11.0, 11.0) + 0.5
    pos[150:, 0] += 45.0
    pos[:150, 0] += 19.7
    return md.State(pos, random.normal(0, 0.3, pos.shape), box)


def halves(shape, box, weights, ranks):
    """Divide the cells by the middle of the longest side."""
    return (np.arange(np.prod(shape)) % shape[0] >= shape[0] // 2).astype(np.int32)


@pytest.mark.parametrize(
    ("state", "options", "size"),
    [
        (md.scenes.benchmark_gas(6000, 0.2), {}, 3),
        (md.scenes.benchmark_gas(6000, 0.2), {"fused": False, "division": md.Division("hilbert")}, 4),
        (md.scenes.benchmark_gas(6000, 0.2), {"search": "coherent"}, 3),
        (lone_cluster(), {"division": md.Division(owners=halves), "allow_overlap": True}, 2),
    ],
    ids=["lists", "not fused", "cells", "a rank without ghosts"],
)
def test_ghosts_have_the_positions_of_their_owners(state, options, size):
    compared = []

    def work(ranks):
        run = made(state, ranks, **options)
        for _ in range(25):
            run.run(9)
            particles, halo = run.system.particles, run.system.domain.halo
            n, every = particles.n, np.empty((len(state), 3))
            ids, pos = ranks.concatenated(particles.id[:n], particles.pos[:n])
            every[ids] = pos
            found = (halo._named or halo._every)[1]  # those that are updated in each step
            rows = found.rows[found.rows != HEAD]
            np.testing.assert_array_equal(particles.pos[rows], every[particles.id[rows]])
            halo.refresh(particles, Message(0.0, 9, 9, 9), True)
            np.testing.assert_array_equal(particles.pos[n:], every[particles.id[n:]])
            compared.append(particles.rows - n)

    in_turn(size, work)
    assert sum(compared) > 0
    assert (min(compared) == 0) == (size == 2)


@pytest.mark.parametrize(("search", "keeps"), [("verlet", True), ("coherent", False)])
def test_a_migration_keeps_the_order_of_lists_and_sorts_that_of_cells(search, keeps):
    state, found = md.scenes.benchmark_gas(6000, 0.2), []

    def work(ranks):
        run = made(state, ranks, search=search)
        run.run(40)
        particles, domain = run.system.particles, run.system.domain
        before = particles.id[: particles.n].copy()
        domain.migrate()
        after = particles.id[: particles.n]
        stay = np.isin(before, after)
        found.append(np.array_equal(before[stay], after[: stay.sum()]))
        domain.migrate(cuts=True)
        cells = np.empty(particles.n, np.int32)
        domain.partition.grid.keys(particles.pos[: particles.n], domain.halo.table, cells)
        assert (np.diff(cells) >= 0).all()

    in_turn(3, work)
    assert found == 3 * [keeps]


@pytest.mark.parametrize("search", ["verlet", "coherent"])
def test_all_rows_are_in_the_region_of_the_rank_and_the_sort_has_no_more_cells(search):
    state = md.scenes.benchmark_gas(20000, 0.1, seed=2)
    state.vel[...] *= 3
    counts = []

    def work(ranks):
        run = md.Simulation(
            state, LAW, search=search, dt=1e-3, backend="cpu", communicator=ranks, division=md.Division("row")
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

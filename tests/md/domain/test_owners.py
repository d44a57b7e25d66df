"""Owners of cells that are no chunks of an order, by a function of the user's."""

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.partition import Partition, chunks
from tests.md.domain.test_divided import check, gas, simulation
from tests.md.domain.test_partition import partition_of


def layers(shape, box, weights, ranks):
    """Layers across axis 0, which no chunk of rows is."""
    return np.resize(np.arange(shape[0]) * ranks // shape[0], len(weights))


def scattered(shape, box, weights, ranks):
    """Cells in turn: each rank has ghosts of all others."""
    return np.arange(len(weights)) % ranks


@pytest.mark.parametrize("owners", [layers, scattered])
@pytest.mark.parametrize("size", [2, 3])
def test_a_gas_divided_by_a_function_is_that_of_one_rank(owners, size):
    for domain in check(gas(), size, division=md.Division(owners=owners)):
        partition = domain.partition
        right = owners(partition.grid.shape, None, np.ones(partition.grid.size), size)
        assert np.array_equal(partition.owner, right)
        assert domain.migrations > 1


def test_the_function_gets_cells_box_weights_and_ranks():
    given = []

    def owners(shape, box, weights, ranks):
        given.append((shape, box.lengths, weights.sum(), ranks))
        return layers(shape, box, weights, ranks)

    state = gas(500)

    def work(ranks):
        sim = simulation(state, ranks, division=md.Division(owners=owners))
        return sim.system.domain.partition.grid.shape

    shape, _ = in_turn(2, work)
    assert given[-1] == (shape, state.box.lengths, 500, 2)


def test_the_order_is_that_of_cells_in_memory():
    grid = partition_of(3).grid
    for order in ("row", "hilbert"):
        found = Partition(order, grid, 3, layers)
        assert np.array_equal(found.place, Partition(order, grid, 3).place)
        assert np.array_equal(found.owner, layers(grid.shape, None, np.ones(grid.size), 3))


def test_chunks_are_those_of_a_partition():
    found = partition_of(5)
    weights = np.random.default_rng(0).gamma(1.0, size=found.grid.size)
    found.cut(weights)
    assert np.array_equal(chunks(found.place, weights, 5), found.owner)


@pytest.mark.parametrize(("owners", "error", "message"), [
    (lambda *given: layers(*given) / 1, TypeError, r"returned float64; allowed: \(\d+,\) integers"),
    (lambda *given: layers(*given)[:-1], ValueError, r"returned shape \(\d+,\); allowed: \(\d+,\), a rank"),
    (lambda *given: layers(*given) + 1, ValueError, "returned rank 2; allowed: 0 to 1, of 2 ranks"),
    (lambda *given: layers(*given) - 1, ValueError, "returned rank -1; allowed: 0 to 1"),
    (lambda *given: layers(*given) * 0, ValueError, "no cell of rank 1; allowed: one cell or more of each"),
])  # fmt: skip
def test_wrong_owners_are_refused(owners, error, message):
    with pytest.raises(error, match=message):
        in_turn(2, lambda ranks: simulation(gas(500), ranks, division=md.Division(owners=owners)))


def test_ranks_with_different_functions_are_refused():
    functions = layers, scattered
    with pytest.raises(ValueError, match="ranks 0 and 1 differ in the division"):
        in_turn(2, lambda r: simulation(gas(500), r, division=md.Division(owners=functions[r.rank])))


def test_owners_that_are_no_function_are_refused():
    with pytest.raises(
        TypeError, match=r"owners of Division = 'bricks' .* a function of shape, box, weights"
    ):
        md.Division(owners="bricks")

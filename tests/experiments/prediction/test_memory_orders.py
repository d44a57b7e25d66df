"""Memory orders by name: permutations, windows, ages, and what names are refused."""

import itertools

import numpy as np
import pytest

import md
import sfc
from experiments.prediction import memory_orders
from experiments.prediction.memory_orders import POINTS, Aged, Order, in_windows, order_of, slots
from md.particles.cell_grid import CellGrid

CPU = md.backend.get("cpu")
BOX = md.Box((7.3, 5.2, 9.1))
N = 1000
LAW = md.laws.SpringDashpot(0.0, 0.0)
NAMES = (*sfc.orderings(3), *POINTS, "lattice", "shuffled", "window 64", "aged 7")


@pytest.fixture(scope="module")
def state() -> md.State:
    random = np.random.default_rng(5)
    pos, vel = random.random((N, 3)) * BOX.lengths, random.normal(size=(N, 3))
    return md.State(pos, vel, BOX, id=random.permutation(N))


def sorted_by(state: md.State, name: str, seed: int = 0) -> np.ndarray:
    grid = CellGrid(state.box, 1.0, np.dtype("float64"), CPU)
    return slots(order_of(name), state.pos, state.id, grid, seed)


@pytest.mark.parametrize("name", NAMES)
def test_every_order_is_a_permutation_and_the_same_again(state, name):
    found = sorted_by(state, name)
    assert np.array_equal(np.sort(found), np.arange(N))
    assert not np.array_equal(found, np.arange(N))
    assert np.array_equal(sorted_by(state, name), found)


@pytest.mark.parametrize("name", ["hilbert", "row", "tiled", "peano", "gilbert"])
def test_an_order_of_cells_is_that_of_a_reorder(state, name):
    run = md.Simulation(
        state, LAW, dt=1e-9, search="linked", backend="cpu", reorder=md.Reorder(name, md.Every(1)),
        precision="float64", allow_overlap=True,
    )  # fmt: skip
    run.run(1)
    assert np.array_equal(run.state.id, state.take(sorted_by(state, name)).id)


def test_tiles_are_of_positions(state):
    assert np.array_equal(sorted_by(state, "str"), sfc.argsort(state.pos, "str"))


@pytest.mark.parametrize("name", ["strided", "tiled_strided"])
def test_a_strided_order_is_that_of_cells(state, name):
    shape = tuple(int(side) for side in BOX.lengths)
    cells = (state.pos * (np.array(shape) / BOX.lengths)).astype(int)
    assert np.array_equal(sorted_by(state, name), sfc.argsort(cells, name, cells=shape))


def test_baselines_are_the_sites_of_the_lattice_and_none(state):
    assert np.array_equal(state.id[sorted_by(state, "lattice")], np.arange(N))
    assert not np.array_equal(sorted_by(state, "shuffled"), sorted_by(state, "shuffled", seed=1))


@pytest.mark.parametrize("window", [2, 64, 300, 5000])
def test_a_window_keeps_its_particles_and_shuffles_them(state, window):
    plain, found = sorted_by(state, "hilbert"), sorted_by(state, f"window {window}")
    for start in range(0, N, window):
        old, new = plain[start : start + window], found[start : start + window]
        assert np.array_equal(np.sort(old), np.sort(new))
        assert window == 2 or not np.array_equal(old, new)
    assert 0.3 < (plain != found).mean()
    assert not np.array_equal(found, sorted_by(state, f"window {window}", seed=1))


def test_a_window_of_one_shuffles_nothing(state):
    assert np.array_equal(sorted_by(state, "window 1"), sorted_by(state, "hilbert"))
    assert np.array_equal(in_windows(np.arange(9), 1, 0), np.arange(9))


def test_a_name_is_taken_apart():
    assert order_of("window 1024") == Order("hilbert", 1024, 0)
    assert order_of("aged 500") == Order("hilbert", 1, 500)
    assert order_of("row") == Order("row", 1, 0)


@pytest.mark.parametrize(
    "name", ["hilbrt", "window", "window 0", "window -4", "window 1.5", "aged", "aged 0", "aged x", "row 3"]
)
def test_an_unknown_name_is_refused_with_those_that_are_known(name):
    with pytest.raises(ValueError, match=rf"ordering '{name}'; allowed: .*") as caught:
        order_of(name)
    for known in ("hilbert", *POINTS, "lattice", "shuffled", "'window W'", "'aged S'"):
        assert known in str(caught.value)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="ordering = 3"):
        order_of(3)  # type: ignore[arg-type]


@pytest.mark.full
def test_an_aged_gas_is_copies_of_a_small_one_some_steps_later(monkeypatch):
    monkeypatch.setattr(memory_orders, "LEAST_COPY", 100)
    n, filling = 8 * 125, 0.3
    aged = Aged(n, filling, "cpu", seed=2)
    assert aged.copies == 2
    found = aged.after([25, 5])
    assert sorted(found) == [0, 5, 25]
    small = md.preparation.granular_gas(filling, md.scenes.box_for(125, filling), seed=2, backend="cpu")
    run = md.Simulation(
        small, md.scenes.BENCHMARK_LAW, search="linked", dt=md.scenes.BENCHMARK_DT, backend="cpu"
    )
    side = np.array(small.box.lengths)
    box = found[0].box
    assert box.lengths == pytest.approx(2 * side)
    for steps in (0, 5, 25):
        run.run(steps - run.step)
        expected, state = run.state.by_id(), found[steps]
        assert len(state) == n
        assert np.array_equal(state.id, np.arange(n))
        for k, corner in enumerate(itertools.product(range(2), repeat=3)):
            part = slice(125 * k, 125 * k + 125)
            at = small.pos + small.box.nearest(expected.pos - small.pos) + corner * side  # beside its copy
            assert np.abs(box.nearest(state.pos[part] - at)).max() < 1e-4
            assert np.abs(state.vel[part] - expected.vel).max() < 1e-2
    assert np.abs(box.nearest(found[25].pos - found[0].pos)).max() > 1e-2

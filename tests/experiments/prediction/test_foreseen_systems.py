"""Particles of a forecast: simulations of each kernel in each kind of memory order."""

import numpy as np
import pytest

import md
from experiments.prediction import foreseen_systems, memory_orders
from experiments.prediction.drawn_gases import Gas
from experiments.prediction.foreseen_systems import CELL_ORDERED, FLIGHT_DT, TAKEN, simulations, sorting
from experiments.prediction.memory_orders import order_of, slots
from md.particles.cell_grid import CellGrid

N, FILLING = 512, 0.2
CASES = {
    "linked": ("shuffled", "lattice", "hilbert", "window 64", "strided"),
    "scattered": ("shuffled", "lattice", "row", "window 16", "tiled_strided"),
    "coherent": ("random", "hilbert", "tiled"),
    "verlet": ("random", "row"),
    "wide_bvh": ("hilbert", "morton"),
    "boids": ("shuffled", "gray", "window 64"),
}


def made(kernel: str, orderings: tuple[str, ...], precision: str = "float64", seed: int = 4):
    return dict(simulations(Gas(kernel, N, FILLING, precision, orderings), "cpu", seed))


@pytest.mark.parametrize("kernel", CASES)
def test_each_order_has_the_same_particles_in_another_place(kernel):
    found = made(kernel, CASES[kernel])
    assert list(found) == list(CASES[kernel])
    first = next(iter(found.values()))
    for name, one in found.items():
        state = one.state
        assert len(state) == N
        assert np.array_equal(state.by_id().pos, first.state.by_id().pos)
        assert np.array_equal(state.by_id().vel, first.state.by_id().vel)
        if kernel in CELL_ORDERED:
            assert one.config.search == CELL_ORDERED[kernel](cell_order=name)
        else:
            assert one.config.search.name == ("linked" if kernel == "boids" else kernel)
        assert one.config.dt == (FLIGHT_DT if kernel == "boids" else md.scenes.BENCHMARK_DT)
        assert isinstance(one.law, md.laws.Boids) == (kernel == "boids")
        assert one.config.fused is True
    orders = {tuple(one.state.id) for one in found.values()}
    assert len(orders) == (1 if kernel in CELL_ORDERED else len(found))


def test_lists_over_shuffled_memory_are_not_sorted():
    one = made("verlet", ("shuffled", "row"))["shuffled"]
    assert one.config.search == md.search.Verlet()
    assert sorting("verlet", "shuffled", "cuda") == md.search.Verlet(sorts=False)
    assert sorting("verlet", "row", "cuda") == md.search.Verlet(cell_order="row")


@pytest.mark.parametrize("kernel", ["linked", "scattered", "boids"])
def test_free_orders_are_those_of_their_names(kernel, monkeypatch):
    monkeypatch.setattr(foreseen_systems, "moved", lambda state, *_: state)
    for name, one in made(kernel, CASES[kernel]).items():
        state = one.state
        grid = CellGrid(state.box, one.law.cutoff, np.dtype("float64"), md.backend.get("cpu"))
        if name.startswith("window") or name == "shuffled":
            continue  # drawn; permutations of another order
        order = slots(order_of(name), state.pos, state.id, grid, 4)
        assert np.array_equal(order, np.arange(N)), name


@pytest.mark.parametrize("kernel", ["linked", "boids", "verlet"])
def test_particles_on_the_cpu_have_taken_steps_since_they_were_in_order(kernel, monkeypatch):
    name = CASES[kernel][-1]
    later = made(kernel, (name,))[name]
    with monkeypatch.context() as patch:
        patch.setattr(foreseen_systems, "moved", lambda state, *_: state)
        start = made(kernel, (name,))[name]
    assert np.array_equal(later.state.id, start.state.id)
    assert not np.array_equal(later.state.pos, start.state.pos)
    start.run(TAKEN)
    both = later.state.by_id().pos, start.state.by_id().pos
    assert np.allclose(*both, atol=1e-4)


def test_particles_differ_by_seed_and_a_step_is_taken_in_the_precision_of_the_gas():
    one, other = (made("linked", ("hilbert",), "float32", seed)["hilbert"] for seed in (4, 5))
    assert not np.array_equal(one.state.by_id().pos, other.state.by_id().pos)
    assert one.config.precision == "float32"
    one.run(1)
    assert one.step == 1


def test_an_aged_gas_has_moved_since_it_was_in_order(monkeypatch):
    monkeypatch.setattr(memory_orders, "LEAST_COPY", 64)
    found = made("linked", ("shuffled", "hilbert", "aged 3", "aged 40"))
    start = memory_orders.Aged(N, FILLING, "cpu", 4).after([])[0]
    grid = CellGrid(start.box, found["aged 3"].law.cutoff, np.dtype("float64"), md.backend.get("cpu"))
    order = slots(order_of("hilbert"), start.pos, start.id, grid, 4)
    moved = []
    for name in ("aged 3", "aged 40"):
        state = found[name].state
        assert np.array_equal(state.id, order)
        moved.append(np.abs(start.box.nearest(state.by_id().pos - start.pos)).mean())
    assert 0 < 5 * moved[0] < moved[1]
    fresh = found["hilbert"].state.by_id().pos
    assert np.array_equal(fresh, found["shuffled"].state.by_id().pos)

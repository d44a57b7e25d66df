"""Systems: the gases and orders of their definition."""

import numpy as np
import pytest

import md
from experiments.prediction.systems import GEOMETRIES, own_side

every_geometry = pytest.mark.parametrize("name", list(GEOMETRIES))


@pytest.mark.parametrize(("name", "order"), [("squares", "hilbert"), ("cubes", "morton"), ("cubes", "peano")])
def test_the_memory_order_is_that_of_a_reorder(name, order):
    geometry = GEOMETRIES[name]
    state = geometry.gas(9, 3, 0.3, "ideal", 1.0, 4, "cpu")
    simulation = md.Simulation(
        state, md.laws.SpringDashpot(0.0, 0.0), dt=1e-9, backend="cpu", reorder=md.Reorder(order, md.Every(1))
    )
    simulation.run(1)
    assert np.array_equal(simulation.state.id, geometry.in_order(state, order, 0).id)


@every_geometry
def test_a_gas_has_the_filling_fraction_of_volume_and_no_overlaps(name):
    geometry = GEOMETRIES[name]
    state = geometry.gas(8, 5, 0.3, "granular", 1.0, 0, "cpu")
    volume = 8 * 8 * {"squares": 1, "cuboids": 5, "cubes": 8}[name]
    assert len(state) * np.pi / 6 == pytest.approx(0.3 * volume, rel=0.02)
    law = md.laws.SpringDashpot(1.0, 0.0)
    assert len(md.Simulation(state, law, backend="cpu").pairs()) == 0
    assert not np.array_equal(state.id, np.arange(len(state)))


@pytest.mark.parametrize(
    ("order", "side", "dim", "own"),
    [
        ("hilbert", 64, 2, 64),
        ("hilbert", 50, 2, 64),
        ("peano", 64, 2, 81),
        ("peano", 30, 3, 27),
        ("row", 50, 2, 50),
    ],
)
def test_a_curve_gets_a_power_of_its_base(order, side, dim, own):
    assert own_side(order, side, dim) == own

"""Systems: the gases and orders of their definition."""

import numpy as np
import pytest

import md
import sfc
from experiments.prediction.systems import GEOMETRIES, own_side
from tests import tiers


@pytest.mark.parametrize(("name", "order"), [("squares", "hilbert"), ("cubes", "morton"), ("cubes", "peano")])
def test_the_memory_order_is_that_of_a_reorder(name, order):
    geometry = GEOMETRIES[name]
    state = geometry.gas(9, 3, 0.3, "ideal", 1.0, 4, "cpu")
    simulation = md.Simulation(
        state, md.laws.SpringDashpot(0.0, 0.0), dt=1e-9, backend="cpu", reorder=md.Reorder(order, md.Every(1))
    )
    simulation.run(1)
    assert np.array_equal(simulation.state.id, geometry.in_order(state, order, 0).id)


@pytest.mark.parametrize("name", tiers.by_default(GEOMETRIES, lambda name: "squares" not in name, tiers.full))
def test_a_gas_has_the_filling_fraction_of_volume_and_no_overlaps(name):
    geometry = GEOMETRIES[name]
    state = geometry.gas(8, 5, 0.3, "granular", 1.0, 0, "cpu")
    volume = 8 * 8 * {"squares": 1, "cuboids": 5, "cubes": 8}[name.partition("_")[0]]
    assert len(state) * np.pi / 6 == pytest.approx(0.3 * volume, rel=0.02)
    law = md.laws.SpringDashpot(1.0, 0.0)
    assert len(md.Simulation(state, law, backend="cpu").pairs()) == 0
    assert not np.array_equal(state.id, np.arange(len(state)))


def test_geometries_of_one_shape_share_their_gas_and_differ_in_order_or_in_reads():
    for name, geometry in GEOMETRIES.items():
        other = GEOMETRIES[geometry.shape]
        gas, same = (one.gas(6, 3, 0.3, "ideal", 1.0, 2, "cpu") for one in (geometry, other))
        assert np.array_equal(gas.pos, same.pos)
        assert np.array_equal(gas.box.lengths, same.box.lengths)
        assert (geometry.ordered, geometry.read) != (other.ordered, other.read) or name == geometry.shape


@pytest.mark.parametrize(("name", "axes"), [("cuboids", 2), ("cuboids_boxes", 2), ("cuboids_space", 3)])
def test_cuboids_are_ordered_in_the_plane_or_in_space(name, axes):
    geometry = GEOMETRIES[name]
    state = geometry.in_order(geometry.gas(8, 4, 0.4, "ideal", 1.0, 0, "cpu"), "hilbert", 0)
    cells = state.pos[:, :axes].astype(int)
    ranks = sfc.covering("hilbert", (8, 8, 4)[:axes]).rank(cells).astype(int)
    assert (np.diff(ranks) >= 0).all()


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

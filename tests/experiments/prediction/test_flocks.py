"""Flocks: their starts, ages and memory orders, and measures of their structure by hand."""

import numpy as np
import pytest

import md
from experiments.prediction.flocks import (
    Aging,
    Flock,
    cells,
    cells_along,
    densest,
    places,
    random_distance,
    structure,
)

BOX = md.Box((20.0, 20.0, 20.0))


def test_starts_have_the_density_of_the_source_and_shuffled_memory():
    state = Flock(1000).state()
    assert len(state) / state.box.volume == pytest.approx(1 / 8)
    flat = Flock(1000, dim=2, density=0.02).state()
    assert flat.box.dim == 2
    assert len(flat) / flat.box.volume == pytest.approx(0.02)
    crowd = structure(Flock(2000, "clusters").state(), 5.0)
    assert crowd.neighbours_mean > 4 * structure(state, 5.0).neighbours_mean
    assert crowd.heading_correlation == pytest.approx(1)


def test_an_aging_flock_takes_the_steps_of_one_that_is_not_looked_at():
    flock = Flock(1000, seed=3)
    looked, straight = Aging(flock, "cpu", "float64"), Aging(flock, "cpu", "float64")
    assert np.array_equal(looked.at(0).pos, flock.state().by_id().pos)
    looked.at(2)
    last, other = looked.at(5), straight.at(5)
    assert np.array_equal(last.pos, other.pos)
    assert np.array_equal(last.id, np.arange(1000))
    assert looked.age == 5
    with pytest.raises(ValueError, match=r"age = 4; allowed: .*at least 5 \(steps\); make another Aging"):
        looked.at(4)


def test_memory_order_follows_the_cells():
    state = Flock(1000, seed=1).state()
    shape = cells_along(state.box, 5.0)
    assert shape.tolist() == [4, 4, 4]
    rows = places(state, "row", 5.0)
    cell = cells(state, shape)[rows]
    key = np.ravel_multi_index(tuple(cell.T[::-1]), (4, 4, 4))  # x is fastest
    assert (np.diff(key) >= 0).all()
    assert sorted(rows) == list(range(1000))


def test_structure_of_two_pairs_by_hand():
    pos = [[1.0, 1, 1], [2, 1, 1], [11, 11, 11], [11, 19.5, 11]]
    vel = [[1.0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 0]]
    found = structure(md.State(pos, vel, BOX), 5.0)
    assert found.neighbours_mean == 0.5  # of the first pair alone
    assert found.neighbours_largest == 1
    assert found.order_parameter == pytest.approx(np.hypot(2, 1) / 4)
    assert found.heading_correlation == pytest.approx(1)  # the only pair in a cell
    count = np.array([2, 1, 1, *[0] * 61])
    assert found.clustering == pytest.approx(count.var() / count.mean())
    assert found.speed_mean == 1
    assert found.nearest_over_random == pytest.approx((1 + 1 + 8.5 + 8.5) / 4 / random_distance(4, BOX))


def test_headings_that_differ_by_a_right_angle_are_not_correlated_and_opposite_ones_are():
    pos = [[1.0, 1, 1], [2, 1, 1]]
    for other, expected in (([0.0, 1, 0], 0), ([-3.0, 0, 0], -1), ([3.0, 0, 0], 1)):
        found = structure(md.State(pos, [[1.0, 0, 0], other], BOX), 5.0)
        assert found.heading_correlation == pytest.approx(expected)


def test_random_positions_have_the_measures_of_random_positions():
    box = md.Box((40.0, 40.0, 40.0))
    found = structure(md.scenes.flock(8000, box, seed=5), 5.0)
    assert found.neighbours_mean == pytest.approx(7999 / 64000 * 4 / 3 * np.pi * 125, rel=0.02)
    assert found.clustering == pytest.approx(1, abs=0.15)
    assert found.nearest_over_random == pytest.approx(1, abs=0.02)
    assert found.heading_correlation == pytest.approx(0, abs=0.01)
    flat = structure(md.scenes.flock(4000, md.Box((200.0, 200.0)), seed=5), 5.0)
    assert flat.nearest_over_random == pytest.approx(1, abs=0.03)


def test_the_densest_cell_is_that_of_the_crowd():
    pos = [[1.0, 1, 1], [12, 17, 3], [13, 18, 4], [12.5, 16, 1]]
    assert densest(md.State(pos, np.zeros((4, 3)), BOX), 5.0).tolist() == [12.5, 17.5, 2.5]

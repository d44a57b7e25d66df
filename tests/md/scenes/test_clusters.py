"""Clusters of a scene: as dense as before, apart from each other."""

import numpy as np
import pytest

import md


@pytest.mark.parametrize("dim", [2, 3])
def test_each_part_is_moved_as_a_whole_and_lies_in_the_middle_of_its_part_of_the_box(dim):
    random = np.random.default_rng(1)
    pos = random.random((4000, dim)) * 10
    before = md.State(pos, pos, md.Box((10.0,) * dim))
    after = md.scenes.in_clusters(before, 2.0**dim)
    assert after.box.lengths == pytest.approx((20.0,) * dim)
    assert np.array_equal(after.id, before.id)
    moved = np.asarray(after.pos) - pos
    expected = np.where(pos < 5, 2.5, 7.5)
    np.testing.assert_allclose(moved, expected)
    for axis in range(dim):
        assert not ((after.pos[:, axis] > 7.5) & (after.pos[:, axis] < 12.5)).any()


def test_a_ratio_of_one_moves_nothing():
    before = md.scenes.benchmark_gas(100, 0.2)
    np.testing.assert_array_equal(md.scenes.in_clusters(before, 1).pos, before.pos)


@pytest.mark.parametrize("room", [0.5, 2e6, float("nan")])
def test_another_ratio_is_refused(room):
    with pytest.raises(
        ValueError, match=r"room of the clusters = .*; allowed: a finite number of at least 1"
    ):
        md.scenes.in_clusters(md.scenes.benchmark_gas(100, 0.2), room)

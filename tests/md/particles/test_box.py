"""The nearest image: of both signs, at half a side, along periodic axes alone; wrapped integers."""

import numpy as np
import pytest

import md

BOX = md.Box((4.0, 6.0, 10.0), (True, True, False))


@pytest.mark.quick
def test_the_nearest_image_is_less_than_half_a_side_away_along_periodic_axes():
    apart = np.array(
        [[3.0, -5.0, 9.0], [-3.0, 5.0, -9.0], [1.9, -2.9, 1.0], [-1.9, 2.9, -1.0], [0.0, 0.0, 0.0]]
    )
    right = np.array(
        [[-1.0, 1.0, 9.0], [1.0, -1.0, -9.0], [1.9, -2.9, 1.0], [-1.9, 2.9, -1.0], [0.0, 0.0, 0.0]]
    )
    np.testing.assert_allclose(BOX.nearest(apart), right, rtol=0, atol=1e-15)


@pytest.mark.quick
def test_the_nearest_image_is_the_shortest_of_all():
    apart = np.random.default_rng(0).uniform(-1, 1, (200, 3)) * BOX.lengths
    shifts = np.array([[x, y, 0.0] for x in (-4.0, 0.0, 4.0) for y in (-6.0, 0.0, 6.0)])
    shortest = np.linalg.norm(apart[:, None] + shifts, axis=2).min(axis=1)
    np.testing.assert_allclose(np.linalg.norm(BOX.nearest(apart), axis=1), shortest, rtol=1e-14)


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int16, np.int64])
def test_integers_of_every_width_are_wrapped_in_double_precision(dtype):
    box = md.Box((6.1, 7.3))
    wrapped = box.wrap(np.array([[7, 8]], dtype))
    assert wrapped.dtype == np.float64
    np.testing.assert_allclose(wrapped, [[0.9, 0.7]], rtol=1e-14)

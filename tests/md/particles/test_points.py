"""Points of any unit and corner become a state: the same spheres, in diameters, in a box from the origin."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md

MM = np.random.default_rng(0).random((40, 3)) * (300, 240, 180)


def quietly(*arguments, **options):
    """A state, without the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", md.ConvertedPoints)
        return md.State.from_points(*arguments, **options)


def test_the_filling_fraction_is_that_of_the_points_unit():
    state = quietly(MM, box=(300, 240, 180), diameter=2)
    assert state.filling_fraction == pytest.approx(40 * np.pi / 6 * 8 / (300 * 240 * 180))
    assert state.box == md.Box((150, 120, 90))
    np.testing.assert_allclose(state.pos, MM / 2)


def test_without_a_diameter_the_error_says_what_would_follow():
    filled = 40 * np.pi / 6 / (300 * 240 * 180)
    with pytest.raises(
        ValueError, match=rf"diameter = None; .*diameter=.* would fill {filled:.3g} of the box"
    ):
        md.State.from_points(MM, box=(300, 240, 180))


@given(
    scale=st.floats(1e-3, 1e3),
    corner=st.tuples(*[st.floats(-1e3, 1e3)] * 3),
    flags=st.tuples(*[st.booleans()] * 3),
)
def test_unit_and_corner_do_not_matter(scale, corner, flags):
    lengths = np.array([10.0, 8.0, 6.0])
    pos = 0.01 + np.random.default_rng(1).random((30, 3)) * (lengths - 0.02)
    vel = np.random.default_rng(2).normal(size=(30, 3))
    wanted = md.State(pos, vel, md.Box(tuple(lengths), flags))
    found = quietly(
        pos * scale + corner,
        box=lengths * scale,
        periodic=flags,
        diameter=scale,
        origin=corner,
        velocities=vel * scale,
    )
    np.testing.assert_allclose(found.pos, wanted.pos, rtol=0, atol=1e-12 * (1 + 1e3 / scale))
    np.testing.assert_allclose(found.vel, wanted.vel, rtol=1e-12)
    np.testing.assert_allclose(found.box.lengths, lengths, rtol=1e-14)
    assert found.box.periodic == flags


def test_a_centred_box_is_shifted_along_all_axes_and_said():
    centred = MM - (150, 120, 90)
    with pytest.warns(md.ConvertedPoints, match=r"lower corner of the box is \[-150.0, -120.0, -90.0\]"):
        state = md.State.from_points(
            centred, box=(300, 240, 180), periodic=(True, True, False), diameter=2, velocities=MM
        )
    np.testing.assert_allclose(state.pos, MM / 2, atol=1e-12)


def test_nothing_is_said_where_nothing_is_assumed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = md.State.from_points(MM, box=(300, 240, 180), diameter=1, origin=(0, 0, 0), velocities=MM)
    np.testing.assert_array_equal(state.pos, MM)


def test_without_a_box_walls_are_put_around_the_spheres():
    state = quietly(MM, diameter=2)
    assert state.box.periodic == (False,) * 3
    np.testing.assert_allclose(state.pos.min(axis=0), 0.5)
    np.testing.assert_allclose(state.pos.max(axis=0), np.array(state.box.lengths) - 0.5)


def test_radii_are_kept_in_units_of_their_mean_diameter():
    sizes = np.linspace(0.5, 1.5, 40)
    state = quietly(MM, box=(300, 240, 180), radius=sizes)
    np.testing.assert_allclose(state.radius, sizes / 2)
    assert quietly(MM, box=(300, 240, 180), radius=np.full(40, 3.0)).radius is None


def test_rounding_at_a_side_is_mended_and_said():
    points = np.array([[0.0, 0, 0], [300, 240, 180], [-1e-5, 5, 5]])
    with pytest.warns(md.ConvertedPoints, match="2 points at a side"):
        state = md.State.from_points(
            points, box=(300, 240, 180), periodic=(True, True, False), diameter=1, velocities=points
        )
    np.testing.assert_array_equal(state.pos[1], [0, 0, 180])
    assert 299.99 < state.pos[2, 0] < 300


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"box": (30, 240, 180)}, r"points\[\d+\] = .* outside the box .* as are 3\d of 40; .*origin="),
        ({"box": (300, 240)}, r"box = \(300, 240\)"),
        ({"box": (300, 0, 180)}, r"box\[1\] = 0"),
        ({"diameter": 0}, "diameter = 0"),
        ({"diameter": np.nan}, "diameter = nan"),
        ({"radius": np.zeros(40)}, r"radius\[0\] = 0.0; allowed: above 0"),
        ({"radius": np.ones(3)}, "radius"),
        ({"velocities": MM[:, :2]}, "velocities"),
        ({"points": MM[:, :1]}, r"shape of points = \(40, 1\)"),
        ({"points": MM[:0]}, r"shape of points = \(0, 3\)"),
        ({"points": np.where(MM > 299, np.nan, np.r_[MM[:-1], [[np.inf, 0, 0]]])}, "points"),
        ({"box": None, "periodic": True}, "without a box; allowed: walls"),
    ],
)
def test_wrong_arguments_are_refused(change, text):
    arguments = {"points": MM, "box": (300, 240, 180), "diameter": 2} | change
    with pytest.raises(ValueError, match=text):
        md.State.from_points(**arguments)

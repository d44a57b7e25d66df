"""Airfoils: the outline and its properties, NACA sections, placement."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from md.boundaries.airfoil import Airfoil, naca

SQUARE = [(0, -0.5), (1, -0.5), (1, 0.5), (0, 0.5)]
SECTIONS = ["0012", "2412", "4415", "0006", "6321", "9940"]


def refused(message: str, error: type[Exception] = ValueError):
    return pytest.raises(error, match=message)


def turning(outline) -> float:
    """Compute twice the area, positive counter-clockwise, as a sum over triangles."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(outline, [*outline[1:], outline[0]], strict=True))


class TestOutline:
    def test_is_kept_counter_clockwise_with_its_first_point_first(self):
        assert Airfoil("square", SQUARE).outline.tolist() == np.array(SQUARE).tolist()
        clockwise = Airfoil("square", [SQUARE[0], *SQUARE[:0:-1]])
        assert clockwise.outline.tolist() == np.array(SQUARE).tolist()
        assert clockwise.area == 1

    def test_is_a_copy_that_cannot_be_written(self):
        given = np.array(SQUARE)
        airfoil = Airfoil("square", given)
        given[0] = 7
        assert airfoil.outline[0].tolist() == [0, -0.5]
        with refused("read-only"):
            airfoil.outline[0] = 7
        with pytest.raises(dataclasses.FrozenInstanceError):
            airfoil.outline = given

    @pytest.mark.parametrize("outline", [[(0, 0), (1, 0)], np.zeros((20_001, 2))])
    def test_of_too_few_or_too_many_points(self, outline):
        with refused(
            r"outline of 'bad' of shape \(.*\); allowed: \(m, 2\) with m of at least 3, up to 20000"
        ):
            Airfoil("bad", outline)

    @pytest.mark.parametrize("outline", [[(0, 0, 0)] * 3, [0.0, 1, 2], 1.0])
    def test_of_another_shape(self, outline):
        with refused(r"outline of 'bad' of shape .*; allowed: \(m, 2\)"):
            Airfoil("bad", outline)

    @pytest.mark.parametrize("outline", [[("0", "1")] * 3, [(True, False)] * 3, [(1j, 0)] * 3])
    def test_of_what_is_no_number(self, outline):
        with refused("outline of 'bad' of dtype .*; allowed: real numbers, in chords"):
            Airfoil("bad", outline)

    @pytest.mark.parametrize("outline", ["SQUARE", None, {1: 2}])
    def test_that_is_no_array(self, outline):
        with refused("outline of 'bad' = .*; allowed: an array of real numbers", TypeError):
            Airfoil("bad", outline)

    @pytest.mark.parametrize("name", [None, 2412, b"x"])
    def test_without_a_name(self, name):
        with refused("name of an airfoil = .*; allowed: a str", TypeError):
            Airfoil(name, SQUARE)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_that_is_not_finite(self, value):
        with refused(rf"outline of 'bad'\[2, 1\] = {value}; allowed: finite numbers; in chords"):
            Airfoil("bad", [(0, 0), (1, 0), (1, value)])

    @pytest.mark.parametrize(("after", "pair"), [(1, "1. and outline.2"), (4, "4. and outline.0")])
    def test_with_the_same_point_twice(self, after, pair):
        twice = [*SQUARE[:after], (SQUARE[after % 4][0] + 9e-10, SQUARE[after % 4][1]), *SQUARE[after:]]
        with refused(rf"outline\[{pair}\] of 'bad' are both .*; allowed: .* more than 1e-09 .*leave one out"):
            Airfoil("bad", twice)

    def test_with_points_nearly_the_same(self):
        assert len(Airfoil("good", [*SQUARE, (1.1e-9, -0.5 + 1e-12)]).outline) == 5

    @pytest.mark.parametrize(
        ("outline", "pair"),
        [
            ([(0, 0), (1, 0), (0, 1), (1, 1)], "1 and 3"),  # a bow tie
            ([(0, 0), (1, 0), (1, 1), (0.5, 0), (0, 1)], "0 and 2"),  # a point on a segment
            ([(0, 0), (0.5, 0), (1, 0), (1, 1), (0.5, 0), (0, 1)], "0 and 3"),  # the same point twice
            ([(0, 0), (0.4, 0), (0.4, -1), (0.6, -1), (0.6, 0), (0.2, 0), (0.2, 1)], "0 and 4"),  # along one
            ([(0, 0), (1, 0), (0.5, 0)], "0 and 1"),  # back on itself
            ([(2, 0), (1, 0), (1, 1), (0, 1), (0, 0)], "4 and 0"),
            ([(0, 0), (0.9, 0.3), (0.3, 0.1), (0, 1)], "0 and 1"),  # 0.9 and 0.3 are rounded
        ],
    )
    def test_that_crosses_itself(self, outline, pair):
        with refused(rf"segments {pair} of the outline of 'bad' cross or touch; allowed: .* points in order"):
            Airfoil("bad", outline)

    def test_may_be_of_any_other_form(self):
        spiral = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.4)]
        back = [(0.1, 0.4), (0.1, 0.9), (0.9, 0.9), (0.9, 0.1), (0, 0.1)]
        assert Airfoil("spiral", spiral + back).area > 0
        comb = [(0, 0), (0.2, 0), (0.4, 0.3), (0.6, 0), (1, 0), (0.5, 1)]
        assert Airfoil("comb", comb).area == pytest.approx(0.44)
        assert Airfoil("straight on", [(0, 0), (0.5, 0), (1, 0), (1, 1)]).area == 0.5


class TestProperties:
    def test_area_is_that_of_triangles(self):
        assert Airfoil("triangle", [(0, 0), (1, 0), (0.25, 0.5)]).area == pytest.approx(0.25)

    @pytest.mark.parametrize("far", [0.0, 1e7 / 3])
    def test_area_does_not_depend_on_the_place(self, far):
        assert Airfoil("square", np.array(SQUARE) + far).area == pytest.approx(1, abs=1e-8)

    def test_thickness_is_found_between_points_of_the_other_surface(self):
        assert Airfoil("kite", [(1, 0), (0.7, 0.1), (0, 0), (0.3, -0.2)]).thickness == pytest.approx(
            max(0.1 + 0.2 * 0.3 / 0.7, 0.2 + 0.1 * 0.3 / 0.7)
        )

    def test_thickness_of_what_is_bent_is_not_its_extent(self):
        bent = [(1, 0), (0.5, 0.4), (0, 0), (0.5, 0.3)]
        assert Airfoil("bent", bent).thickness == pytest.approx(0.1)

    def test_thickness_at_vertical_ends(self):
        assert Airfoil("wedge", [(0, 0), (1, -0.1), (1, 0.3)]).thickness == pytest.approx(0.4)
        assert Airfoil("square", SQUARE).thickness == 1

    def test_symmetric_are_sections_without_camber(self):
        assert naca("0012").is_symmetric
        assert naca("0012", closed=False).is_symmetric
        assert not naca("2412").is_symmetric
        assert not Airfoil("high", np.add(SQUARE, (0, 1))).is_symmetric

    @pytest.mark.parametrize(("off", "symmetric"), [(0.9e-6, True), (1.1e-6, False)])
    def test_symmetric_within_a_millionth(self, off, symmetric):
        assert Airfoil("square", [*SQUARE[:3], (0, 0.5 + off)]).is_symmetric is symmetric
        assert Airfoil("square", [*SQUARE[:3], (0, 0.5 - off)]).is_symmetric is symmetric

    def test_symmetric_with_other_points(self):
        assert Airfoil("square", [SQUARE[0], (0.3, -0.5), *SQUARE[1:]]).is_symmetric

    def test_not_symmetric_where_points_are_joined_in_another_order(self):
        assert not Airfoil("hook", [(0, 0), (0.5, -0.2), (1, -1), (0.5, 0.2), (1, 1)]).is_symmetric


class TestNaca:
    def test_0012_is_thickest_at_three_tenths(self):
        airfoil = naca("0012")
        top = airfoil.outline[airfoil.outline[:, 1].argmax()]
        assert top == pytest.approx([0.3, 0.06], abs=0.015)
        assert airfoil.thickness == pytest.approx(0.12, abs=1e-3)
        assert airfoil.thickness == pytest.approx(2 * top[1], rel=1e-12)

    def test_0012_has_the_ordinates_of_the_report(self):
        x, y = naca("0012", 2001, closed=False).outline[2000::-1].T
        table = {0.0125: 1.894, 0.05: 3.555, 0.1: 4.683, 0.3: 6.002, 0.5: 5.294, 0.9: 1.448, 1.0: 0.126}
        assert np.interp(list(table), x, y) * 100 == pytest.approx(list(table.values()), abs=1e-3)

    def test_2412_has_its_camber_where_it_should(self):
        outline = naca("2412", 1000, closed=False).outline
        middle = (outline[:1000][::-1] + outline[999:]) / 2
        top = middle[middle[:, 1].argmax()]
        assert top == pytest.approx([0.4, 0.02], abs=1e-3)
        assert top[1] == pytest.approx(0.02, abs=1e-6)
        assert np.interp([0.2, 0.7], *middle.T) == pytest.approx([0.015, 0.015], abs=1e-5)

    def test_thickness_is_perpendicular_to_the_camber_line(self):
        outline = naca("6321", 50, closed=False).outline
        upper, lower = outline[:50][::-1], outline[49:]
        middle, apart = (upper + lower) / 2, upper - lower
        slope = 2 * 0.06 / np.where(middle[:, 0] < 0.3, 0.3, 0.7) ** 2 * (0.3 - middle[:, 0])
        assert apart[:, 0] + slope * apart[:, 1] == pytest.approx(np.zeros(50), abs=1e-12)
        assert np.hypot(*apart.T) == pytest.approx(
            21 / 12 * np.hypot(*np.diff(pairs_of(naca("0012", 50, closed=False)), axis=0)[0].T), abs=1e-12
        )

    @pytest.mark.parametrize("digits", SECTIONS)
    @pytest.mark.parametrize("points", [3, 100])
    def test_starts_at_the_trailing_edge_with_the_upper_surface(self, digits, points):
        closed, open_ = naca(digits, points).outline, naca(digits, points, closed=False).outline
        assert len(closed) == 2 * points - 2
        assert len(open_) == 2 * points - 1
        assert closed[0] == pytest.approx([1, 0], abs=1e-12)
        assert closed[points - 1] == pytest.approx([0, 0], abs=1e-12)
        gap = open_[0] - open_[-1]
        assert np.hypot(*gap) == pytest.approx(0.021 * int(digits[2:]) / 100)
        assert (open_[0] + open_[-1]) / 2 == pytest.approx([1, 0], abs=1e-12)
        assert gap[1] > 0
        assert turning(closed) > 0

    def test_surfaces_are_joined_by_the_last_term_only(self):
        closed, whole = naca("0024").outline[:100], naca("0024", closed=False).outline[:100]
        assert whole - closed == pytest.approx(np.outer(closed[:, 0] ** 4, [0, 0.0021 * 1.2]), abs=1e-12)

    def test_points_are_denser_at_both_edges(self):
        x = naca("0012", 11).outline[10::-1, 0]
        assert x == pytest.approx((1 - np.cos(np.pi * np.arange(11) / 10)) / 2)

    def test_has_its_name(self):
        assert naca("4415").name == "NACA 4415"

    @pytest.mark.parametrize("digits", ["", "012", "23012", "00 2", "+012", "²412", "2412\n"])
    def test_of_something_else_than_four_digits(self, digits):
        with refused("digits = .*; allowed: (four digits, such as '0012' or '2412'|a str of at least one)"):
            naca(digits)

    @pytest.mark.parametrize("digits", [2412, None, b"2412"])
    def test_of_what_is_no_str(self, digits):
        with refused("digits = .*; allowed: a str; write them as a str, such as '0012'", TypeError):
            naca(digits)

    @pytest.mark.parametrize("closed", [1, None, "no"])
    def test_that_may_be_closed_or_not(self, closed):
        with refused("closed = .*; allowed: True or False", TypeError):
            naca("2412", closed=closed)

    @pytest.mark.parametrize("digits", ["0000", "2400"])
    def test_without_thickness(self, digits):
        with refused(rf"digits = '{digits}': a section without thickness; allowed: last two of 01 \.\. 99"):
            naca(digits)

    @pytest.mark.parametrize("digits", ["2012", "0412"])
    def test_with_a_camber_or_its_place_alone(self, digits):
        message = (
            f"'{digits}': a camber of {digits[0]} % at {digits[1]} tenths of the chord; allowed: .*both 0"
        )
        with refused(message):
            naca(digits)

    @pytest.mark.parametrize("points", [2, -1, 10_001, 10**30])
    def test_of_too_few_or_too_many_points(self, points):
        with refused(f"points = {points}; allowed: an integer of at least 3, up to 10000"):
            naca("0012", points)

    @pytest.mark.parametrize("points", [10.0, True, "10", None])
    def test_of_a_number_of_points_that_is_none(self, points):
        with refused(f"points = {points!r} of class .*; allowed: an integer", TypeError):
            naca("0012", points)

    def test_of_a_narrow_number_of_points(self):
        assert np.array_equal(naca("2412", np.int8(100)).outline, naca("2412").outline)


def pairs_of(airfoil: Airfoil) -> np.ndarray:
    """Return upper and lower surface of an open NACA section from leading to trailing edge: (2, k, 2)."""
    k = (len(airfoil.outline) + 1) // 2
    return np.stack([airfoil.outline[:k][::-1], airfoil.outline[k - 1 :]])


class TestPlaced:
    def test_as_it_is(self):
        airfoil = naca("2412")
        assert airfoil.placed(1, 0, (0.25, 0)) == pytest.approx(airfoil.outline, abs=1e-15)

    def test_the_leading_edge_goes_up(self):
        trailing, leading = naca("0012").placed(40, 30, [3.0, 5.0])[[0, 99]]
        slope = math.radians(30)
        assert leading == pytest.approx([3 - 10 * math.cos(slope), 5 + 10 * math.sin(slope)])
        assert trailing == pytest.approx([3 + 30 * math.cos(slope), 5 - 30 * math.sin(slope)])

    def test_the_upper_surface_turns_downstream(self):
        top = Airfoil("square", SQUARE).placed(1, 90, (0, 0))
        assert top == pytest.approx(np.array([[-0.5, 0.25], [-0.5, -0.75], [0.5, -0.75], [0.5, 0.25]]))

    @given(
        digits=st.sampled_from(SECTIONS),
        chord=st.floats(1e-3, 1e3),
        angle=st.floats(-720, 720),
        at=st.tuples(*[st.floats(-1e3, 1e3)] * 2),
    )
    def test_form_and_sense_stay(self, digits, chord, angle, at):
        airfoil = naca(digits, 20)
        placed = airfoil.placed(chord, angle, at)
        assert placed.shape == airfoil.outline.shape
        assert placed.dtype == np.float64
        assert turning(placed - at) / 2 == pytest.approx(airfoil.area * chord**2, rel=1e-6)
        distances = [np.hypot(*(points - points[0]).T) for points in (airfoil.outline, placed)]
        assert distances[1] == pytest.approx(distances[0] * chord, rel=1e-6, abs=1e-12 * (chord + 1e3))
        back = np.hypot(*(placed - at).T)
        assert back == pytest.approx(np.hypot(*(airfoil.outline - (0.25, 0)).T) * chord, abs=1e-9)

    @pytest.mark.parametrize("chord", [0, -1.5, math.inf, math.nan])
    def test_with_a_chord_that_is_not_positive_and_finite(self, chord):
        with refused(rf"chord = {chord}; allowed: a finite number of at least 1e-09, up to 1e\+100 \(d\)"):
            naca("0012").placed(chord, 0, (0, 0))

    @pytest.mark.parametrize("angle", [math.inf, math.nan])
    def test_with_an_angle_that_is_not_finite(self, angle):
        with refused(rf"angle = {angle}; allowed: a finite number \(degrees\)"):
            naca("0012").placed(1, angle, (0, 0))

    @pytest.mark.parametrize(
        ("at", "message", "error"),
        [
            ((0, 0, 0), r"at = \(0, 0, 0\) has 3 entries; allowed: a sequence of 2 numbers", ValueError),
            ((0, math.nan), r"at\[1\] = nan; allowed: a finite number", ValueError),
            (1.0, "at = 1.0 of class float; allowed: a sequence of 2 numbers", TypeError),
            ((0, "1"), r"at\[1\] = '1' of class str; allowed: a finite number", TypeError),
        ],
    )
    def test_at_something_else_than_a_point(self, at, message, error):
        with refused(message, error):
            naca("0012").placed(1, 0, at)

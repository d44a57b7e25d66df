"""Integer points in a box: cells as Python's integers give them, whatever the dtype, box and curve."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from sfc.integer_grid import IntegerGrid, cells_of_integers, integer_grid, is_exact_in_floats
from sfc.point_keys.grid import CHUNK
from tests.strategies import INTEGER_DTYPES

DTYPES = st.sampled_from([*INTEGER_DTYPES, *(dtype.newbyteorder(">") for dtype in INTEGER_DTYPES)])
CURVES = [("hilbert", 2), ("peano", 2), ("morton", 1)]
NOW = 1_732_618_800_000_000_000  # nanoseconds since 1970


def near(*ends: int):
    """Integers close to some, and any between the least and the largest of them."""
    offset = st.sampled_from([0, 1, -1, 2, -2, 1000, -1000])
    close = st.builds(
        lambda end, away: min(max(end + away, min(ends)), max(ends)), st.sampled_from(ends), offset
    )
    return st.one_of(close, st.integers(min(ends), max(ends)))


@st.composite
def points_in_boxes(draw, dim: int):
    """Points near the ends of a dtype, and the corners of a box, near 2**53, 2**63 and 2**64 too."""
    dtype = draw(DTYPES)
    ends = [int(np.iinfo(dtype).min), 0, int(np.iinfo(dtype).max)]
    middle = [end for end in (2**53, -(2**53)) if ends[0] < end < ends[-1]]
    rows = draw(st.lists(st.tuples(*[near(*ends, *middle)] * dim), min_size=1, max_size=8))
    around = near(*ends, *middle) if draw(st.booleans()) else near(-(2**64), -(2**63), 0, 2**63, 2**64)
    wide = st.one_of(
        st.sampled_from([0, 1, 2, 3, 7, 2**53 + 1, 2**63, 2**64 - 1, 2**64]), st.integers(0, 2**64)
    )
    low = draw(st.tuples(*[around] * dim))
    high = tuple(end + draw(wide) for end in low)
    if draw(st.booleans()):  # with the points inside
        low = tuple(min(row[k] for row in rows) - draw(st.integers(0, 3)) for k in range(dim))
        high = tuple(max(row[k] for row in rows) + draw(st.integers(0, 3)) for k in range(dim))
        high = tuple(min(end, first + 2**64) for first, end in zip(low, high, strict=True))
    return np.array(rows, dtype), low, high


@st.composite
def points_in_the_widest_boxes(draw):
    """Boxes 2**64 wide with a corner beside an end of a dtype, and points on the corners of the box."""
    dtype = draw(DTYPES)
    ends = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    corner = st.builds(
        sum, st.tuples(st.sampled_from(ends), st.integers(-2, 2), st.sampled_from([0, -(2**64)]))
    )
    low = draw(st.tuples(corner, corner))
    high = (low[0] + 2**64, low[1] + draw(st.sampled_from([2**64, 2**64 - 1, 2**63])))
    near = [
        st.sampled_from([min(max(end + away, ends[0]), ends[1]) for end in both for away in (-1, 0, 1)])
        for both in zip(low, high, strict=True)
    ]
    return np.array(draw(st.lists(st.tuples(*near), min_size=1, max_size=8)), dtype), low, high


def expected(point: list[int], low, high, base: int, order: int, stretch: bool) -> tuple[list[int], bool]:
    """The cell of a point, or of the nearest one in the box, and whether the point is outside."""
    extent = [b - a for a, b in zip(low, high, strict=True)]
    width = extent if stretch else [max(extent)] * len(low)
    near = [min(max(x, a), b) for x, a, b in zip(point, low, high, strict=True)]
    side = base**order
    parts = zip(near, low, width, strict=True)
    cell = [min(int(Fraction(x - a, w or 1) * side // 1), side - 1) for x, a, w in parts]
    return cell, near != point


either = st.one_of(points_in_boxes(2), points_in_the_widest_boxes())


@given(st.data(), st.sampled_from(CURVES), st.booleans())
def test_a_key_is_that_of_the_exact_cell(data, curve, stretch):
    name, dim = curve
    points, low, high = data.draw(points_in_boxes(dim) if dim == 1 else either)
    of = sfc.curve(name, dim)
    bits = data.draw(st.integers(0, of.max_order))
    cells, outside = zip(
        *(expected(p, low, high, of.base, bits, stretch) for p in points.tolist()), strict=True
    )
    want = of.encode(np.array(cells, np.uint64), bits)
    call = {"curve": name, "bits": bits, "box": (low, high), "stretch": stretch}
    if any(outside):
        row = outside.index(True)
        with pytest.raises(ValueError, match=rf"points\[{row}\] = .*allowed: a point in the box from"):
            sfc.keys(points, **call)
        with pytest.warns(UserWarning, match=rf"^{sum(outside)} of {len(points)} points"):
            found = sfc.keys(points, clip=True, **call)
    else:
        found = sfc.keys(points, **call)
        np.testing.assert_array_equal(sfc.argsort(points, **call), np.argsort(want, kind="stable"))
    np.testing.assert_array_equal(found, want)


@given(st.data(), st.sampled_from(CURVES))
def test_without_a_box_integers_are_cells_and_others_the_nearest(data, curve):
    name, dim = curve
    points, of = data.draw(points_in_boxes(dim))[0], sfc.curve(name, dim)
    bits = data.draw(st.integers(0, of.max_order))
    cells = [[min(max(x, 0), of.base**bits - 1) for x in point] for point in points.tolist()]
    if cells == points.tolist():
        found = sfc.keys(points, name, bits)
    else:
        row = next(k for k, cell in enumerate(cells) if cell != points[k].tolist())
        with pytest.raises(ValueError, match=rf"points\[{row}\] = .*allowed: a cell in the grid"):
            sfc.keys(points, name, bits)
        with pytest.warns(UserWarning, match="are outside the grid"):
            found = sfc.keys(points, name, bits, clip=True)
    np.testing.assert_array_equal(found, of.encode(np.array(cells, np.uint64), bits))


@given(st.data(), st.sampled_from([2, 3]), st.integers(0, 64))
def test_a_cell_is_exact_at_every_order(data, base, order):
    """Also at orders that no curve of that many dimensions has, of up to 2**64 cells a side."""
    order = min(order, 64 if base == 2 else 40)
    points, low, high = data.draw(either)
    grid = integer_grid(low, high, (base,) * len(low), order, True)
    cells, outside = cells_of_integers(points, grid)
    for row, point in enumerate(points.tolist()):
        assert (cells[row].tolist(), bool(outside[row])) == expected(point, low, high, base, order, True)


@pytest.mark.parametrize(("base", "order"), [(2, 48), (2, 5), (3, 10), (3, 30), (3, 40)])
@pytest.mark.parametrize("width", [49, 3**20, 3**40, 2**53 - 1, 2**63 + 1, 2**64 - 1, 2**64])
def test_quotients_that_floats_round_up_or_down(width, base, order):
    """The first number of a cell, and the numbers beside it, where the float64 quotient is off by one."""
    side = base**order
    cells = {c % side for c in (*range(20), *(k * side // 97 for k in range(98)), side - 1)}
    values = sorted({-(-c * width // side) + more for c in cells for more in (-1, 0, 1)})
    values = [v for v in values if 0 <= v <= min(width, 2**64 - 1)]
    grid = IntegerGrid((0,), (width,), (width,), (base,), order)
    found, _ = cells_of_integers(np.array(values, np.uint64)[:, None], grid)
    assert found[:, 0].tolist() == [min(v * side // width, side - 1) for v in values]


@pytest.mark.parametrize("low", [0, -7, 2**52 - 2**50, -(2**52)])
@pytest.mark.parametrize("width", [3, 49, 10**6 + 1, 2**26 - 1, 3**20, 2**40 + 1, 2**50 - 1])
def test_floats_take_the_place_of_integers_only_where_they_are_exact(width, low):
    """Numbers beside the ends of cells, of grids on both sides of that limit."""
    for order in range(1, 62):
        side, grid = 2**order, integer_grid((low,), (low + width,), (2,), order, False)
        values = {-(-c * width // side) + more for c in (1, side // 3, side - 1) for more in (-1, 0)}
        values = [v for v in values if 0 <= v <= width]
        keys = sfc.keys(np.array(values)[:, None] + low, "morton", order, (low, low + width))
        assert keys.tolist() == [min(v * side // width, side - 1) for v in values]
        assert is_exact_in_floats(grid) == (width * side <= 2**53)


@pytest.mark.parametrize(
    ("dtype", "box", "points", "keys", "outside"),
    [
        ("u8", (-1, 2**64 - 1), [0, 2**62, 2**63 - 1, 2**64 - 1], [0, 1, 2, 3], 0),
        ("i8", (-(2**63) - 1, 2**63 - 1), [-(2**63), -1, 0, 2**63 - 1], [0, 2, 2, 3], 0),
        ("i8", (-(2**63), 2**63), [-(2**63), -1, 0, 2**63 - 1], [0, 1, 2, 3], 0),
        ("i1", (-128 - 2**64, -128), [-128], [3], 0),
        ("i1", (-128 - 2**64, -128), [-128, -127, 127], [3, 3, 3], 2),
        ("i1", (-129 - 2**64, -129), [-128, 127], [3, 3], 2),
        ("i1", (127, 127 + 2**64), [-128, 127], [0, 0], 1),
        ("u8", (-(2**64), 0), [0, 5], [3, 3], 1),
    ],
)
def test_boxes_of_the_largest_width(dtype, box, points, keys, outside):
    given = np.array(points, dtype)[:, None]
    if not outside:
        assert sfc.keys(given, "morton", 2, box).tolist() == keys
        return
    with pytest.warns(UserWarning, match=f"^{outside} of {len(points)} points"):
        assert sfc.keys(given, "morton", 2, box, clip=True).tolist() == keys


def test_times_in_nanoseconds_keep_their_order():
    times = NOW + np.random.default_rng(0).permutation(4000)
    events = np.column_stack([times, times])
    keys = sfc.keys(events, "morton", 12, (NOW, NOW + 4096))
    np.testing.assert_array_equal(keys, sfc.keys(events - NOW, "morton", 12))
    for points in (events, events.tolist(), pd.DataFrame(events), events.astype(">u8")):
        ordered = np.asarray(
            sfc.sort(
                points if not isinstance(points, list) else events,
                curve="morton",
                bits=12,
                box=(NOW, NOW + 4096),
            )
        )
        assert (np.diff(ordered[:, 0].astype(np.int64)) > 0).all()
        np.testing.assert_array_equal(sfc.keys(points, "morton", 12, (NOW, NOW + 4096)), keys)


@pytest.mark.parametrize("box", [
    (0, 2**64), (0.0, 2.0**64), ([0, 0], [2**64, 2**64 - 1]), (np.uint64(0), np.uint64(2**64 - 1)),
    ([0.0, 0], np.array([2**64 - 1] * 2, np.uint64)), pd.DataFrame([[0, 0.0], [2**64 - 1, 2.0**63]]),
])  # fmt: skip
def test_a_box_is_of_integers_of_any_size_and_of_floats(box):
    points = np.array([[2**64 - 1, 0], [2**63, 2**53 + 1], [2**63 - 1, 2**62]], np.uint64)
    keys = sfc.keys(points, "morton", 1, box)
    np.testing.assert_array_equal(keys, sfc.curve("morton", 2).encode([[1, 0], [1, 0], [0, 0]], 1))


LONG = pytest.param(
    np.longdouble, marks=pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="as long as a double")
)


@pytest.mark.parametrize("kind", [Fraction, LONG])
def test_corners_of_other_classes_are_integers_too(kind):
    low, high = 2**60 + 1, 2**60 + 4
    points = np.array([[low], [low + 1], [high]])
    for box in ((kind(low), kind(high)), ([kind(low)], [kind(high)])):
        assert sfc.keys(points, "morton", 2, box).tolist() == [0, 1, 3]
        with pytest.raises(
            ValueError, match=rf"low\[0\] of the box = {low}; allowed: numbers that a float64"
        ):
            sfc.keys(points.astype(float), "morton", 2, box)
    if kind is np.longdouble:
        box = np.array([[kind(low)], [kind(high)]])
        assert sfc.keys(points, "morton", 2, box).tolist() == [0, 1, 3]


def test_many_points_are_placed_by_chunks():
    points = NOW + np.arange(2 * (CHUNK + 5)).reshape(-1, 2)
    box = (NOW, NOW + 2**20)
    np.testing.assert_array_equal(sfc.keys(points, bits=20, box=box), sfc.keys(points - NOW, bits=20))
    with pytest.raises(ValueError, match=rf"points\[{CHUNK + 3}\] = \[{NOW + 2 * CHUNK + 6}, "):
        sfc.keys(points, bits=20, box=(NOW, NOW + 2 * CHUNK + 5))


def test_integers_up_to_2_to_53_lie_in_a_box_of_fractions_as_floats_do():
    points = np.random.default_rng(1).integers(-(2**53), 2**53, (100, 2))
    for box in ((-(2.0**60), 0.3 + 2**53), (-1e30, 1e30), (-(2**65), 2.0**54)):
        np.testing.assert_array_equal(sfc.keys(points, box=box), sfc.keys(points.astype(float), box=box))
    small = points.astype(np.int16)
    box = (-40000.5, 40000.25)
    np.testing.assert_array_equal(sfc.keys(small, box=box), sfc.keys(small.astype(float), box=box))


@pytest.mark.parametrize(
    ("points", "box", "message"),
    [
        ([[2**53 + 1, 0]], (0.5, 1e16), r"points are from 0 to 9007199254740993; allowed: from -2"),
        (np.array([[-(2**63), 0]]), (-(2**64), 1), r"points are from -9223372036854775808 to 0; allowed"),
        ([[0.5, 0.5]], (0, 2**53 + 1), r"high\[0\] of the box = 9007199254740993; allowed: numbers that"),
        ([[1, 2]], (0.5, 10**30 + 1), r"high\[0\] of the box = 1000000000000000000000000000001"),
        ([[2**63, -1]], (-1, 2**63), "points holds integers from -1 to 9223372036854775808; allowed: "),
        ([[2**53 + 1, 0.5]], None, r"points\[0, 0\] = 9007199254740993 beside floats; allowed: numbers"),
        ([np.array([2**63], np.uint64), np.array([-1])], None, "points holds integers from -1 to 92233"),
        (pd.DataFrame({"t": [NOW + 1], "x": [0.5]}), None, rf"points\[0, 0\] = {NOW + 1} beside floats"),
        ([[2**64, 0]], None, "points holds integers from 0 to 18446744073709551616; allowed: integers of"),
        (np.array([[2**62, 0]], object), (0, 2**62), "points of dtype object"),
    ],
)  # fmt: skip
def test_an_integer_that_would_be_rounded_is_refused(points, box, message):
    with pytest.raises(ValueError, match=message):
        sfc.keys(points, box=box)


def test_integers_of_several_dtypes_stay_integers():
    rows = [np.array([5, 2], np.uint64), np.array([1, 7])]
    assert np.asarray(rows).dtype == float
    for points in (
        rows,
        [[np.uint64(5), 2], [1, 7]],
        pd.DataFrame({"x": np.array([5, 1], np.uint64), "y": [2, 7]}),
    ):
        np.testing.assert_array_equal(sfc.keys(points), sfc.keys([[5, 2], [1, 7]]))


def test_lists_that_are_sorted_with_the_points_keep_integers():
    points, wide = [[0.5, 0.9], [0.1, 0.2]], [2**64, 2**53 + 1]
    _, ids, names = sfc.sort(points, [np.uint64(5), -1], wide, curve="morton")
    assert (ids.dtype, ids.tolist(), names.tolist()) == (np.int64, [-1, 5], wide[::-1])
    assert sfc.sort([[np.uint64(5), 2], [1, 0]], curve="morton").tolist() == [[1, 0], [5, 2]]
    for ids in ([2**53 + 1, 0.5], [2**63, -1]):
        with pytest.raises(
            ValueError, match=r"arrays\[0\](\[0\] = 9007199254740993| holds integers from -1)"
        ):
            sfc.sort(points, ids)


def test_lists_of_large_floats_and_integers_between_them_are_points():
    assert sfc.keys([[2.0**60, 2**60], [0, 1e300]]).shape == (2,)
    assert sfc.keys([[2**60, 0.5]], box=(0, 2**60)).shape == (1,)

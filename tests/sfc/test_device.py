"""Curves on a device give the host's indices and cells, and refuse what the host refuses."""

import warnings

import numpy as np
import pytest

import sfc
from sfc.automaton import device
from tests.strategies import CURVES, INTEGER_DTYPES, MANY_DIMS, ORDERINGS

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed", exc_type=ImportError)
    if not cupy.cuda.is_available():
        pytest.skip("no CUDA device is visible")
    return cupy


WITH_TABLES = [place for place in MANY_DIMS if isinstance(sfc.curve(*place), sfc.Curve)]


@pytest.mark.parametrize(("name", "dim"), CURVES + WITH_TABLES)
def test_encode_and_decode_are_the_hosts(cupy, name, dim):
    curve = sfc.curve(name, dim)
    generator = np.random.default_rng(0)
    for order in (0, 1, 2, 5, curve.max_order):
        length = curve.side(order) ** dim
        index = generator.integers(0, length - 1, 1000, dtype=np.uint64, endpoint=True)
        cells = curve.decode(index, order)
        assert np.array_equal(cupy.asnumpy(sfc.device.decode(curve, cupy.asarray(index), order)), cells)
        assert np.array_equal(cupy.asnumpy(sfc.device.encode(curve, cupy.asarray(cells), order)), index)


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_every_integer_dtype_is_taken(cupy, dtype):
    curve = sfc.curve("hilbert", 3)
    cells = curve.traversal(2)
    found = sfc.device.encode(curve, cupy.asarray(cells.astype(dtype)), 2)
    assert np.array_equal(cupy.asnumpy(found), np.arange(64))


@pytest.mark.quick
def test_what_the_host_refuses_is_refused_alike(cupy):
    curve = sfc.curve("hilbert", 2)
    bad = np.array([[0, 1], [0, 4], [-1, 0]])
    for call, where in ((curve.encode, np), (lambda c, o: sfc.device.encode(curve, c, o), cupy)):
        with pytest.raises(ValueError, match=r"cell \[0, 4\] in row 1 .* 0 <= cell < 4"):
            call(where.asarray(bad), 2)
    with pytest.raises(ValueError, match=r"index 16 in row 0 .* 0 <= index < 16"):
        sfc.device.decode(curve, cupy.asarray([16]), 2)
    for call, where in ((curve.decode, np), (lambda i, o: sfc.device.decode(curve, i, o), cupy)):
        with pytest.raises(ValueError, match=r"index -1 in row 1 is negative; allowed: 0 <= index < 16"):
            call(where.asarray([0, -1]), 2)
    with pytest.raises(ValueError, match="dtype float64"):
        sfc.device.encode(curve, cupy.zeros((2, 2)), 2)
    with pytest.raises(ValueError, match=r"cells of shape \(2, 3\); allowed: \(n, 2\)"):
        sfc.device.encode(curve, cupy.zeros((2, 3), int), 2)


def test_no_cells_give_no_index(cupy):
    curve = sfc.curve("peano", 2)
    assert len(sfc.device.encode(curve, cupy.zeros((0, 2), int), 3)) == 0
    assert sfc.device.decode(curve, cupy.zeros(0, int), 3).shape == (0, 2)


SHAPES = {1: (37,), 2: (13, 7), 3: (8, 12, 4), 4: (3, 5, 4, 2)}


@pytest.mark.parametrize(("name", "dim"), ORDERINGS)
def test_rank_is_the_hosts(cupy, name, dim):
    ordering = sfc.covering(name, SHAPES[dim])
    cells = np.stack(np.unravel_index(np.arange(ordering.size), ordering.shape), axis=1)
    found = sfc.device.rank(ordering, cupy.asarray(cells))
    assert found.dtype == np.uint64
    assert np.array_equal(cupy.asnumpy(found), ordering.rank(cells))


def test_a_curve_without_tables_is_ranked_by_a_table_of_the_box(cupy):
    ordering = sfc.ordering("hilbert", (2,) * 9 + (3,))
    cells = np.stack(np.unravel_index(np.arange(ordering.size), ordering.shape), axis=1)
    found = sfc.device.rank(ordering, cupy.asarray(cells))
    assert np.array_equal(cupy.asnumpy(found), ordering.rank(cells))


@pytest.mark.parametrize("name", ["hilbert", "row", "pancake"])
@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_rank_takes_every_integer_dtype_and_part_of_an_array(cupy, name, dtype):
    ordering = sfc.ordering(name, (8, 12, 4))
    cells = np.random.default_rng(0).integers(0, (8, 12, 4), (50, 3)).astype(dtype)
    found = sfc.device.rank(ordering, cupy.asarray(cells)[::2])
    assert np.array_equal(cupy.asnumpy(found), ordering.rank(cells[::2]))


@pytest.mark.parametrize("name", ["hilbert", "zigzag"])
@pytest.mark.parametrize("cell", [[0, 7], [13, 0], [-1, 3], [2**40, 0]])
def test_rank_refuses_a_cell_outside_as_the_host_does(cupy, name, cell):
    ordering = sfc.ordering(name, (13, 7))
    cells = np.array([[0, 0], cell])
    for call, where in ((ordering.rank, np), (lambda c: sfc.device.rank(ordering, c), cupy)):
        with pytest.raises(ValueError, match=r"in row 1 is outside the box; allowed: 0 <= cell < \(13, 7\)"):
            call(where.asarray(cells))


def test_rank_of_no_cells_or_of_a_box_too_large_for_a_table(cupy):
    ordering = sfc.ordering("row", (2**20, 2**20))
    assert len(sfc.device.rank(sfc.ordering("row", (3, 4)), cupy.zeros((0, 2), int))) == 0
    with pytest.raises(ValueError, match=r"takes 8,796,093,022,208 bytes .* take a curve"):
        sfc.device.rank(ordering, cupy.zeros((1, 2), int))


@pytest.fixture
def shared(monkeypatch):
    """Let few points take the tables in shared memory too."""
    monkeypatch.setattr(device, "FEWEST", 1)


def indices_of(curve, order, n, most=2**64 - 1):
    """Random indices along a curve, its first and its last one included."""
    last = min(curve.side(order) ** curve.dim - 1, most)
    indices = np.random.default_rng(order).integers(0, last, n, dtype=np.uint64, endpoint=True)
    indices[:2] = 0, last
    return indices


@pytest.mark.parametrize(("name", "dim"), CURVES)
def test_tables_in_shared_memory_give_the_hosts_cells_and_indices(cupy, shared, name, dim):
    curve, n = sfc.curve(name, dim), 70_001
    for order in sorted({1, 2, 3, 7, 8, curve.max_order // 2, curve.max_order - 1, curve.max_order}):
        side = curve.side(order)
        for cell, index in (("u1", "u4"), ("i2", "i4"), ("u4", "u8"), ("i8", "i8")):
            if np.iinfo(cell).max < side - 1:
                continue
            most = np.iinfo(index).max
            indices = indices_of(curve, order, n, most)
            cells = curve.decode(indices, order)
            is_short = side**dim - 1 <= most  # else `out` is refused
            out = cupy.empty(n, index) if is_short else None
            found = sfc.device.encode(curve, cupy.asarray(cells.astype(cell)), order, out)
            assert found is out or out is None
            assert np.array_equal(cupy.asnumpy(found), indices)
            out = cupy.empty((n, dim), cell)
            assert sfc.device.decode(curve, cupy.asarray(indices.astype(index)), order, out) is out
            assert np.array_equal(cupy.asnumpy(out), cells)


def test_many_points_take_them_without_being_told(cupy):
    curve, n = sfc.curve("hilbert", 3), device.FEWEST + 5
    indices = indices_of(curve, 21, n)
    cells = curve.decode(indices, 21).astype(np.uint32)
    before = device._shared_kernel.cache_info()
    assert np.array_equal(cupy.asnumpy(sfc.device.encode(curve, cupy.asarray(cells), 21)), indices)
    after = device._shared_kernel.cache_info()
    assert after.hits + after.misses == before.hits + before.misses + 1


@pytest.mark.parametrize("part", [np.s_[1:], np.s_[::2], np.s_[3:-1], np.s_[::-1]])
@pytest.mark.parametrize("dim", [2, 3])
def test_parts_of_arrays_are_taken_and_filled(cupy, shared, dim, part):
    curve, n = sfc.curve("hilbert", dim), 20_011
    indices = indices_of(curve, 9, n)
    cells = curve.decode(indices, 9)
    for kind in (np.uint16, np.uint32):
        given, out = cupy.asarray(cells.astype(kind)), cupy.full(n, 7, np.uint32)
        sfc.device.encode(curve, given[part], 9, out[part])
        expected = np.full(n, 7)
        expected[part] = indices[part]
        assert np.array_equal(cupy.asnumpy(out), expected)
        out = cupy.full((n, dim), 7, kind)
        sfc.device.decode(curve, cupy.asarray(indices)[part], 9, out[part])
        expected = np.full((n, dim), 7)
        expected[part] = cells[part]
        assert np.array_equal(cupy.asnumpy(out), expected)


def test_out_may_be_the_array_that_is_given(cupy, shared):
    curve = sfc.curve("hilbert", 2)
    indices = indices_of(curve, 7, 3000)
    numbers = cupy.asarray(curve.decode(indices, 7).astype(np.uint32))
    sfc.device.encode(curve, numbers, 7, numbers[:, 0])
    assert np.array_equal(cupy.asnumpy(numbers[:, 0]), indices)


@pytest.mark.parametrize("fewest", [1, 2**40])
def test_the_first_wrong_row_is_told_by_both_kernels(cupy, monkeypatch, fewest):
    monkeypatch.setattr(device, "FEWEST", fewest)
    curve = sfc.curve("hilbert", 3)
    for wrong in (-1, 32, 2**40):
        cells = cupy.zeros((5000, 3), np.int64)
        cells[4321:, 1] = wrong
        with pytest.raises(ValueError, match=rf"cell \[0, {wrong}, 0\] in row 4321 .* 0 <= cell < 32"):
            sfc.device.encode(curve, cells, 5)
    for wrong, where in ((-1, "negative"), (2**15, "past the end")):
        index = cupy.zeros(5000, np.int64)
        index[4999] = wrong
        with pytest.raises(ValueError, match=rf"index {wrong} in row 4999 is {where}"):
            sfc.device.decode(curve, index, 5)


def test_what_cannot_hold_the_result_is_refused(cupy):
    curve, cells = sfc.curve("hilbert", 2), cupy.zeros((5, 2), np.uint16)
    with pytest.raises(ValueError, match=r"dtype of out = .*uint16.*4294967295, such as uint32"):
        sfc.device.encode(curve, cells, 16, cupy.empty(5, np.uint16))
    with pytest.raises(ValueError, match=r"out of shape \(4,\)"):
        sfc.device.encode(curve, cells, 16, cupy.empty(4, np.uint32))
    with pytest.raises(TypeError, match=r"(?s)out = .*array of cupy"):
        sfc.device.encode(curve, cells, 16, np.empty(5, np.uint32))


@pytest.mark.parametrize(("name", "dim"), [place for place in ORDERINGS if place[0] not in sfc.curves()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_keys_by_an_ordering_of_cells_are_the_hosts(cupy, name, dim, dtype):
    points = np.random.default_rng(8).normal(0, 50, (5_003, dim)).astype(dtype)
    low, high = points.min(axis=0), points.max(axis=0)
    sides = tuple(range(5, 5 + dim))
    calls = [{"box": (low, high)}, {"box": (-1000, 1000), "bits": 3}, {"box": (low, high), "cells": sides}]
    calls.append({"box": (low / 2, high / 2), "cells": sides, "clip": True})
    for arguments in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # points outside are clipped
            keys = sfc.keys(cupy.asarray(points), name, **arguments)
            np.testing.assert_array_equal(keys.get(), sfc.keys(points, name, **arguments))
            order = sfc.argsort(cupy.asarray(points), name, **arguments)
            np.testing.assert_array_equal(order.get(), sfc.argsort(points, name, **arguments))
    ordering = sfc.covering(name, sides)
    found = sfc.argsort(cupy.asarray(points), ordering, box=(low, high))
    np.testing.assert_array_equal(found.get(), sfc.argsort(points, ordering, box=(low, high)))


@pytest.mark.parametrize(("name", "dim"), CURVES)
def test_one_call_encodes_and_decodes_arrays_of_a_device(cupy, name, dim):
    curve = sfc.curve(name, dim)
    if not isinstance(curve, sfc.Curve):
        return
    cells = np.random.default_rng(9).integers(0, curve.side(3), (1_000, dim))
    index = sfc.encode(cupy.asarray(cells), bits=3, curve=name)
    np.testing.assert_array_equal(index.get(), curve.encode(cells, 3))
    np.testing.assert_array_equal(sfc.decode(index, bits=3, curve=name, dim=dim).get(), cells)
    np.testing.assert_array_equal(sfc.device.decode(curve, index, bits=3).get(), cells)
    with pytest.raises(TypeError, match="an array of numpy beside a box"):
        sfc.decode(index, bits=3, curve=name, dim=dim, box=(0, 1))


@pytest.mark.parametrize(("name", "dim"), CURVES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
def test_keys_and_order_of_points_are_the_hosts(cupy, shared, name, dim, dtype):
    points = np.random.default_rng(4).normal(0, 50, (30_011, dim)).astype(dtype)
    low, high = points.min(axis=0), points.max(axis=0)
    for arguments in ({}, {"bits": 5}, {"bits": 4, "stretch": True}, {"box": (low, high + dtype(1))}):
        if dtype is np.int16 and "box" not in arguments:
            arguments = arguments | {"box": (-1000, 1000)}
        given = cupy.asarray(points)
        found = sfc.keys(given, name, **arguments)
        assert isinstance(found, cupy.ndarray)
        np.testing.assert_array_equal(found.get(), sfc.keys(points, name, **arguments))
        order = sfc.argsort(given, name, **arguments)
        assert order.dtype == np.int64
        np.testing.assert_array_equal(order.get(), sfc.argsort(points, name, **arguments))
    ordered, rows = sfc.sort(given, cupy.arange(len(points)), curve=name, **arguments)
    np.testing.assert_array_equal(ordered.get(), points[rows.get()])


@pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
@pytest.mark.parametrize(("name", "dim"), [("hilbert", 2), ("peano", 3)])
def test_integers_in_a_box_are_placed_exactly_as_on_the_host(cupy, dtype, name, dim):
    ends = np.iinfo(dtype)
    points = np.random.default_rng(5).integers(ends.min, ends.max, (10_007, dim), dtype, endpoint=True)
    points[:3] = [[ends.min], [ends.max], [ends.max // 3]]
    low, high = int(ends.min), int(ends.max)
    for box in ((low, high), (low - 1, high), (low // 2, high // 2 + 1), (high - 5, high)):
        for stretch in (False, True):
            arguments = {"curve": name, "box": box, "stretch": stretch, "clip": True}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = sfc.keys(cupy.asarray(points), **arguments)
                np.testing.assert_array_equal(found.get(), sfc.keys(points, **arguments))
    messages = []
    for given in (points, cupy.asarray(points)):
        with pytest.raises(ValueError, match=r"points\[0\] = .* in the box from") as caught:
            sfc.keys(given, name, box=(low + 1, high))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("name", ["strided", "tiled_strided"])
def test_orders_of_points_are_the_hosts(cupy, name, dtype):
    points = np.random.default_rng(6).normal(0, 50, (30_011, 3)).astype(dtype)
    calls = [{"cells": (70, 5, 9)}, {"bits": 3}, {"bits": 3, "stretch": True}, {"cells": 4, "clip": True}]
    for call in calls:
        arguments = call | {"box": (-1000, (1000, 2000, 999))}
        for given in (points[:0], points[:1], points):
            order = sfc.argsort(cupy.asarray(given), name, **arguments)
            assert isinstance(order, cupy.ndarray)
            assert order.dtype == np.int64
            np.testing.assert_array_equal(order.get(), sfc.argsort(given, name, **arguments))
    cells = (points - points.min(axis=0)).astype(np.uint16) // 20
    for arguments in ({}, {"cells": (50, 40, 30)}, {"bits": 6}):
        order = sfc.argsort(cupy.asarray(cells), name, **arguments)
        np.testing.assert_array_equal(order.get(), sfc.argsort(cells, name, **arguments))
    for given in (cells, cupy.asarray(cells)):
        with pytest.warns(UserWarning, match=r"of 30011 points are outside the grid of \(50, 7, 30\) cells"):
            clipped = sfc.argsort(given, name, cells=(50, 7, 30), clip=True)
        ordered = sfc.sort(given, curve=name, cells=(50, 40, 30))
        assert type(ordered) is type(given) is type(clipped)
    nearest = np.minimum(cells, [49, 6, 29])
    np.testing.assert_array_equal(clipped.get(), sfc.argsort(nearest, name, cells=(50, 7, 30)))


@pytest.mark.parametrize("dim", [1, 3, 5])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", *INTEGER_DTYPES], ids=str)
def test_sort_tile_recursive_is_the_hosts(cupy, dtype, dim):
    generator = np.random.default_rng(7)
    if np.dtype(dtype).kind == "f":
        points = generator.normal(0, 50, (30_011, dim)).astype(dtype)
        few = np.array([-0.0, 0.0, -1.5, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
        points[::7] = generator.choice(few, points[::7].shape)
    else:
        ends = np.iinfo(dtype)
        points = generator.integers(ends.min, ends.max, (30_011, dim), dtype, endpoint=True)
    points[1::5] = points[0]  # ties in all axes
    for given in (points[:0], points[:1], points[:100], points, np.asfortranarray(points)):
        for options in ({}, {"capacity": 1}, {"capacity": 999}, {"capacity": 2**40}):
            order = sfc.argsort(cupy.asarray(given), "str", **options)
            assert isinstance(order, cupy.ndarray)
            assert order.dtype == np.int64
            np.testing.assert_array_equal(order.get(), sfc.argsort(given, "str", **options))
    ordered, rows = sfc.sort(cupy.asarray(points), cupy.arange(len(points)), curve="str")
    np.testing.assert_array_equal(ordered.get(), points[rows.get()])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_sort_tile_recursive_refuses_what_is_not_finite_as_on_the_host(cupy, value):
    points = np.random.default_rng(8).random((10_000, 3)).astype(np.float32)
    points[[4097, 5000], 1] = value
    messages = []
    for given in (points, cupy.asarray(points)):
        with pytest.raises(ValueError, match=r"points\[4097\] = .* finite numbers") as caught:
            sfc.argsort(given, "str")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_points_have_keys_and_an_order(cupy, n):
    points = cupy.asarray(np.random.default_rng(1).normal(size=(n, 3)).astype(np.float32))
    assert sfc.argsort(points).tolist() == sfc.argsort(points.get()).tolist()


@pytest.mark.parametrize("bits", [1, 40, 53, 64])
def test_equal_keys_keep_their_order(cupy, bits):
    keys = np.random.default_rng(bits).integers(0, 2**bits - 1, 5000, dtype=np.uint64, endpoint=True)
    keys[1::2] = keys[::2]  # each twice
    found = sfc.device.argsort(cupy.asarray(keys), bits).get()
    np.testing.assert_array_equal(found, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 4097, 99_999])
def test_points_without_a_cell_are_refused_as_on_the_host(cupy, value, row):
    points = np.random.default_rng(1).random((100_000, 3)).astype(np.float32)
    points[row, 1] = value
    for call in (lambda p: sfc.keys(p), lambda p: sfc.keys(p, box=(0, 1))):
        messages = []
        for given in (points, cupy.asarray(points)):
            with pytest.raises(ValueError, match=rf"points\[{row}\]") as caught:
                call(given)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_points_outside_are_refused_or_clipped_as_on_the_host(cupy):
    points = np.random.default_rng(1).normal(size=(1000, 2))
    given = cupy.asarray(points)
    first = int(((points < -1) | (points > 1)).any(axis=1).argmax())
    with pytest.raises(ValueError, match=rf"points\[{first}\] = .* in the box from"):
        sfc.keys(given, box=(-1, 1))
    with pytest.warns(UserWarning, match="of 1000 points are outside") as on_device:
        found = sfc.keys(given, box=(-1, 1), clip=True)
    with pytest.warns(UserWarning, match="of 1000 points are outside") as on_host:
        expected = sfc.keys(points, box=(-1, 1), clip=True)
    np.testing.assert_array_equal(found.get(), expected)
    assert str(on_device[0].message) == str(on_host[0].message)

"""Curves on a device give the host's indices and cells, and refuse what the host refuses."""

import numpy as np
import pytest

import sfc

pytestmark = pytest.mark.gpu
CURVES = [(name, dim) for dim in (2, 3) for name in sfc.curves(dim)]


@pytest.fixture(scope="module")
def cupy():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed", exc_type=ImportError)
    if not cupy.cuda.is_available():
        pytest.skip("no CUDA device is visible")
    return cupy


@pytest.mark.parametrize(("name", "dim"), CURVES)
def test_encode_and_decode_are_the_hosts(cupy, name, dim):
    curve = sfc.curve(name, dim)
    generator = np.random.default_rng(0)
    for order in (0, 1, 2, 5, curve.max_order):
        length = curve.side(order) ** dim
        index = generator.integers(0, length - 1, 1000, dtype=np.uint64, endpoint=True)
        cells = curve.decode(index, order)
        assert np.array_equal(cupy.asnumpy(sfc.device.decode(curve, cupy.asarray(index), order)), cells)
        assert np.array_equal(cupy.asnumpy(sfc.device.encode(curve, cupy.asarray(cells), order)), index)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_every_integer_dtype_is_taken(cupy, dtype):
    curve = sfc.curve("hilbert", 3)
    cells = curve.traversal(2)
    found = sfc.device.encode(curve, cupy.asarray(cells.astype(dtype)), 2)
    assert np.array_equal(cupy.asnumpy(found), np.arange(64))


def test_what_the_host_refuses_is_refused_alike(cupy):
    curve = sfc.curve("hilbert", 2)
    bad = np.array([[0, 1], [0, 4], [-1, 0]])
    for call, where in ((curve.encode, np), (lambda c, o: sfc.device.encode(curve, c, o), cupy)):
        with pytest.raises(ValueError, match=r"cell \[0, 4\] in row 1 .* 0 <= cell < 4"):
            call(where.asarray(bad), 2)
    with pytest.raises(ValueError, match=r"index 16 in row 0 .* 0 <= index < 16"):
        sfc.device.decode(curve, cupy.asarray([16]), 2)
    with pytest.raises(ValueError, match="dtype float64"):
        sfc.device.encode(curve, cupy.zeros((2, 2)), 2)
    with pytest.raises(ValueError, match=r"takes \(n, 2\)"):
        sfc.device.encode(curve, cupy.zeros((2, 3), int), 2)


def test_no_cells_give_no_index(cupy):
    curve = sfc.curve("peano", 2)
    assert len(sfc.device.encode(curve, cupy.zeros((0, 2), int), 3)) == 0
    assert sfc.device.decode(curve, cupy.zeros(0, int), 3).shape == (0, 2)

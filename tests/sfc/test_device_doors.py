"""What `sfc.device` refuses before it looks for a device."""

import numpy as np
import pytest

import sfc


class OnDevice:
    """An array of a device, by its attributes alone."""

    __module__ = "cupy"

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.size = shape, np.dtype(dtype), int(np.prod(shape))


CURVE, ORDERING = sfc.curve("hilbert", 2), sfc.ordering("row", (3, 4))
CALLS = {
    "encode": lambda values: sfc.device.encode(CURVE, values, 3),
    "decode": lambda values: sfc.device.decode(CURVE, values, 3),
    "rank": lambda values: sfc.device.rank(ORDERING, values),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize("values", [np.zeros((1, 2), int), [[0, 0]], None, 3])
def test_what_is_not_on_a_device_is_refused_with_the_remedy(call, values):
    with pytest.raises(
        TypeError, match=r"(cells|index) = .*; allowed: an array of cupy; bring it .* cupy\.asarray"
    ):
        call(values)


@every_call
@pytest.mark.parametrize("dtype", [float, bool, "m8[s]"])
def test_a_dtype_that_is_no_integer_is_refused_with_the_remedy(call, dtype):
    shape = (1,) if call is CALLS["decode"] else (1, 2)
    with pytest.raises(
        ValueError, match=r"(cells|index) of dtype .*; allowed: any integer dtype; .*scale .* floor"
    ):
        call(OnDevice(shape, dtype))


@every_call
@pytest.mark.parametrize("shape", [(2, 3), (), (1, 2, 2)])
def test_another_shape_is_refused(call, shape):
    with pytest.raises(ValueError, match=r"(cells|index) of shape .*; allowed: \((n, 2|n,)\)"):
        call(OnDevice(shape, int))


@pytest.mark.parametrize("wrong", ["hilbert", None, ORDERING, 3])
def test_what_is_no_curve_is_refused(wrong):
    for call in (sfc.device.encode, sfc.device.decode):
        with pytest.raises(TypeError, match=r"curve = .* of class .*; allowed: an sfc.Curve"):
            call(wrong, OnDevice((1, 2), int), 3)


def test_a_curve_without_tables_is_refused():
    curve = sfc.curve("hilbert", 10)
    for call in (sfc.device.encode, sfc.device.decode):
        with pytest.raises(
            TypeError, match=r"curve = <BitwiseCurve hilbert 10D>.* sfc.Curve; .* on the host"
        ):
            call(curve, OnDevice((1, 10), int), 2)


@pytest.mark.parametrize("wrong", ["hilbert", None, CURVE, 3])
def test_what_is_no_ordering_is_refused(wrong):
    with pytest.raises(TypeError, match=r"ordering = .* of class .*; allowed: an sfc.Ordering"):
        sfc.device.rank(wrong, OnDevice((1, 2), int))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((2.0, 2, "i4"), TypeError),
        ((2, 1, "i4"), ValueError),
        ((2, 2, "f4"), ValueError),
        ((2, 2, "m8[s]"), ValueError),
    ],
)
def test_the_source_for_no_curve_is_refused(arguments, error):
    with pytest.raises(error, match="allowed: "):
        sfc.device.source(*arguments)
    assert "unsigned short" in sfc.device.source(2, 2, np.dtype("u2"))

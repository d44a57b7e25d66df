"""Arrays of points, and arrays that are sorted with them."""

from typing import Any

import numpy as np

from sfc import checks, device

SORTED = "an array, a tensor, a pandas object or a list"
CONVERT = "convert it by numpy.asarray"
REALS = "floats of 16 to 64 bits, or any integer dtype"


def points_of(points: Any) -> Any:
    """Check the shape and dtype of points; return an array of numpy, or of cupy."""
    if device.holds(points):
        found = device.array(points)
        checks.fits("points", found, "fiu", REALS, ("n", "dim"))
        return found
    if hasattr(points, "__dlpack__") and not hasattr(points, "__array__"):
        points = np.from_dlpack(points)
    found = checks.array("points", points, "fiu", REALS, ("n", "dim"), whole=True)
    if found.dtype.itemsize > 8:
        raise checks.refuse_value("dtype of points", found.dtype.name, REALS)
    return found


def rows_in_order(name: str, values: Any, order: Any) -> Any:
    """Return a copy of an array with its rows in an order.

    Raises:
        TypeError: an object that is no array, or an array in other memory than the order.
        ValueError: another number of rows.
    """
    if isinstance(values, (list, tuple)):
        try:
            found = np.asarray(values)
        except ValueError as error:
            remedy = "give rows of one length, or an array of objects"
            raise checks.refuse_value(name, values, "a list that makes an array", remedy) from error
        values = checks.kept(name, values, found) if found.dtype.kind == "f" else found
    shape = getattr(values, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(values, "__getitem__"):
        raise checks.refuse_class(name, values, SORTED, CONVERT)
    if shape == ():
        raise checks.refuse_value(f"shape of {name}", (), f"an array of {len(order)} rows")
    if shape[0] != len(order):
        raise checks.refuse_value(f"rows of {name}", shape[0], f"{len(order)}, as many as points")
    if device.holds(values) != device.holds(order):
        where = "on the device" if device.holds(order) else "in host memory"
        raise checks.refuse_class(name, values, f"an array {where}, as points are")
    try:
        return values.iloc[order] if hasattr(values, "iloc") else values[order]
    except TypeError as error:  # such as a memoryview, which has a shape
        raise checks.refuse_class(name, values, SORTED, CONVERT) from error

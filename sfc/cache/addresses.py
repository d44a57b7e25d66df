"""Byte addresses of the loads that read rows of an array."""

import numpy as np

from sfc import checks
from sfc.cache.stream import MOST, AccessStream, whole_numbers

LAYOUTS = ("soa", "aos", "aos4")


def addresses(slots: AccessStream | np.ndarray, layout: str, dim: int, itemsize: int, n: int) -> np.ndarray:
    """Compute the byte addresses of the loads that read rows of an (n, dim) array.

    Args:
        slots: the rows read, in order: the reads of a stream, or (m,) integers, 0 <= slot < n.
        layout: "soa" (axis by axis; dim loads a row), "aos" (row by row; dim loads a row) or "aos4" (row by
            row, each padded to four items; a load per 16 bytes, one of float32 and two of float64).
        dim: items of a row; at most 4 in "aos4".
        itemsize: bytes of an item; in "aos4" 4, 8 or 16.
        n: rows of the array.

    Returns:
        (m * loads of a row,) int64. The array starts at address 0: `addresses // line` are the lines.

    Raises:
        TypeError: slots that make no array, a layout that is no str, or a number that is no integer.
        ValueError: an unknown layout, a slot outside the array, a row that the layout cannot store, or
            more addresses than fit in memory.
    """
    layout = checks.word("layout", layout, LAYOUTS)
    dim = checks.integer("dim", dim, 1, MOST, unit="items of a row")
    itemsize = checks.integer("itemsize", itemsize, 1, MOST, unit="bytes")
    if layout == "aos4" and (dim > 4 or itemsize not in (4, 8, 16)):
        raise ValueError(f"rows of {dim} x {itemsize} bytes; aos4 allows 1 to 4 x 4, 8 or 16; else take aos")
    width = itemsize * (4 if layout == "aos4" else dim)
    n = checks.integer("n", n, 0, MOST // width, unit=f"rows of {width} bytes")
    slots = slots.reads if isinstance(slots, AccessStream) else slots
    slots = whole_numbers("slots", slots, 0, n - 1, "let n be all rows of the array")
    loads = width // 16 if layout == "aos4" else dim
    checks.require_allocatable(
        f"addresses of {len(slots)} rows of {loads} loads",
        8 * (len(slots) + 1) * (loads + 1),
        "take fewer slots at a time, or rows of fewer items",
    )
    first, further = (itemsize, n * itemsize) if layout == "soa" else (width, width // loads)
    return (slots.astype(np.int64)[:, None] * first + np.arange(loads) * further).ravel()

"""From the rows of an array that are read to the bytes that are loaded."""

import numpy as np

from sfc.cache.checks import checked_integer, checked_integers
from sfc.cache.stream import AccessStream

LAYOUTS = ("soa", "aos", "aos4")


def addresses(slots: AccessStream | np.ndarray, layout: str, dim: int, itemsize: int, n: int) -> np.ndarray:
    """Byte addresses of the loads that read rows of an (n, dim) array.

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
        ValueError: an unknown layout, a slot outside the array, or a row the layout cannot hold.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; known: {', '.join(LAYOUTS)}")
    dim, itemsize = checked_integer("dim", dim, "items"), checked_integer("itemsize", itemsize, "bytes")
    if layout == "aos4" and (dim > 4 or itemsize not in (4, 8, 16)):
        raise ValueError(f"rows of {dim} x {itemsize} bytes; aos4 allows 1 to 4 x 4, 8 or 16; else take aos")
    width = itemsize * (4 if layout == "aos4" else dim)
    n = checked_integer("n", n, f"rows of {width} bytes", 0, (2**63 - 1) // width)
    slots = checked_integers("slots", slots.reads if isinstance(slots, AccessStream) else slots, 0, n)
    loads = width // 16 if layout == "aos4" else dim
    first, further = (itemsize, n * itemsize) if layout == "soa" else (width, width // loads)
    return (slots.astype(np.int64)[:, None] * first + np.arange(loads) * further).ravel()

"""Sort-Tile-Recursive: points in tiles of equal numbers, cut by one axis after the other.

The leaves of a packed R-tree: S. T. Leutenegger, J. M. Edgington and M. A. Lopez, STR: A Simple and Efficient
Algorithm for R-Tree Packing, Proceedings of the 13th International Conference on Data Engineering (1997) 497.
"""

from bisect import bisect_left
from typing import Any

import numpy as np

from sfc import checks, device
from sfc.point_keys.grid import refuse_infinite, stable_order

CAPACITY = 32  # points of a tile; as many as the threads of a warp
KEY_BITS = 64  # of the numbers that are sorted
SORTING = 80  # bytes for each point, of the numbers, the parts and the sorts


def sort_tile_recursive(points: Any, capacity: int = CAPACITY) -> Any:
    """Return the Sort-Tile-Recursive order: tiles of as many points each, by slabs and strips.

    All n points are sorted by axis 0 and cut into slabs. Each slab is sorted by axis 1 and cut into strips,
    and so on; after the sort by the last axis, each run of `capacity` points is a tile. A part of m points
    that is sorted by the first of the k last axes has t = ceil(m / capacity) tiles, and is cut into runs of
    `capacity` * ceil(t^((k - 1) / k)) points, so that there are up to ceil(t^(1 / k)). The last run has the
    points that are left. In 3D that makes up to ceil((n / capacity)^(1 / 3)) slabs.

    The sorts are exact and stable: points of equal coordinates keep the order of the sort before, by the
    axes before, and at last that in which they are given. -0.0 is equal to 0.0.

    Args:
        points: (n, dim) floats or integers, of numpy or cupy.
        capacity: points of a tile, at least 1. The default is a tile for each warp.

    Returns:
        (n,) int64 rows of the points in their order, in the memory of the points.

    Raises:
        TypeError: a capacity that is no integer.
        ValueError: one below 1; points without axes; a point that is not finite, with its row.

    Example:
        >>> import sfc
        >>> points = [[3, 0], [0, 9], [1, 1], [2, 5], [0, 2], [3, 7], [1, 8], [2, 4]]
        >>> sfc.argsort(points, "str", capacity=2).tolist()  # two slabs of four points, of two tiles each
        [2, 4, 6, 1, 0, 7, 3, 5]
    """
    n, dim = points.shape
    checks.integer("axes of the points", dim)
    capacity = min(checks.integer("capacity", capacity, unit="points of a tile"), max(n, 1))
    free = device.free_memory if device.holds(points) else None
    checks.require_allocatable(f"the order of {n} points", SORTING * n, "give fewer at a time", free)
    if points.dtype.kind == "f" and not np.isfinite(points).all():
        raise refuse_infinite(points, "leave such points out")
    order = np.zeros_like(points[:, 0], dtype=np.int64)
    if not n:
        return order
    order, starts = np.cumsum(order + 1) - 1, np.zeros(1, np.int64)
    for axis in range(dim):
        order = _sort_parts(order, starts, points[:, axis])
        starts = _cut(starts, n, capacity, dim - axis)
    return order


def _sort_parts(order: Any, starts: np.ndarray, along: Any) -> Any:
    """Sort each part of an order by the coordinates along an axis.

    Args:
        order: (n,) int64 of numpy or cupy, n above 0.
        starts: first place of each part in the order, of numpy.
        along: (n,) coordinates of the rows.
    """
    numbers, bits = _numbers(along)
    numbers = numbers[order]
    part = np.zeros_like(numbers)
    part[starts[1:]] = 1
    part = np.cumsum(part)
    part_bits = (len(starts) - 1).bit_length()
    if part_bits + bits <= KEY_BITS:
        # A factor of 2**64 multiplies zeros alone
        numbers += part * np.uint64(2**bits % 2**KEY_BITS)
        return order[stable_order(numbers, part_bits + bits)]
    places = stable_order(numbers, bits)
    return order[places[stable_order(part[places], part_bits)]]


def _numbers(along: Any) -> tuple[Any, int]:
    """Map finite coordinates to (n,) uint64 of the same order, as small as may be, and return their bits."""
    if along.dtype.kind == "f":
        real, word = (np.float64, np.uint64) if along.dtype.itemsize == 8 else (np.float32, np.uint32)
        words = along.astype(real).view(word)
        sign = word(1 << (8 * words.itemsize - 1))
        words[words == sign] = 0  # -0.0; a sum with 0.0 would lose small numbers on a device
        along = np.where(words < sign, words | sign, ~words)
    least, most = int(along.min()), int(along.max())
    return along.astype(np.uint64) - np.uint64(least % 2**KEY_BITS), (most - least).bit_length()


def _cut(starts: np.ndarray, n: int, capacity: int, axes: int) -> np.ndarray:
    """Cut each part of n places into runs, and return the first place of each.

    Args:
        starts: first place of each part, (parts,) int64.
        n: number of places, above 0.
        capacity: points of a tile, up to n.
        axes: by which a part is cut, that of this cut included.
    """
    sizes = np.diff(starts, append=n)
    tiles, of_part = np.unique(-(-sizes // capacity), return_inverse=True)
    runs = capacity * np.array([_tiles_of_run(one, axes) for one in tiles.tolist()])[of_part]
    counts = -(-sizes // runs)
    run = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + run * np.repeat(runs, counts)


def _tiles_of_run(tiles: int, axes: int) -> int:
    """Return ceil(tiles**((axes - 1) / axes)), exactly."""
    return bisect_left(range(tiles), tiles ** (axes - 1), key=lambda count: count**axes)

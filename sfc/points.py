"""Arrays of cells, indices and ranks: what is taken, and 64-bit words of it for the compiled loops.

Contract. Cells are (n, dim), indices and ranks (n,), of any integer dtype; an array without any entry may be
of floats too, as numpy's own empty ones are. A negative number as a word lies above every bound.
"""

from functools import lru_cache

import numba
import numpy as np

from sfc import checks
from sfc.compile import kernel


def cells_of(cells: object, shape: tuple[int, ...]) -> np.ndarray:
    """The cells as an array, (n, dim) of integers; where they are is not looked at.

    Args:
        cells: what was given.
        shape: of the grid or box, for its number of axes and for the remedy.

    Raises:
        TypeError: what makes no array.
        ValueError: another shape or dtype; says how points are scaled and floored.
    """
    return checks.array("cells", cells, "iu", checks.INTEGERS, ("n", len(shape)), floored(shape))


def numbers_of(name: str, numbers: object, count: int) -> np.ndarray:
    """The indices or ranks as an array, (n,) of integers; how large they are is not looked at.

    Args:
        name: what they are, for the message.
        numbers: what was given.
        count: how many there are, for the remedy.

    Raises:
        TypeError: what makes no array.
        ValueError: another shape or dtype.
    """
    return checks.array(name, numbers, "iu", checks.INTEGERS, ("n",), along(count))


@lru_cache(maxsize=256)
def floored(shape: tuple[int, ...]) -> str:
    """How points become cells of a grid or box, as code."""
    alike = len(set(shape)) == 1
    sides, last = (shape[0], shape[0] - 1) if alike else (shape, tuple(side - 1 for side in shape))
    return (
        f"scale points to the grid and floor them: "
        f"np.clip(np.floor((points - low) / (high - low) * {sides}), 0, {last}).astype(np.int64)"
    )


@lru_cache(maxsize=256)
def along(count: int) -> str:
    """How fractions of an order's length become indices, as code that is right for 0 to 1 inclusive.

    The largest float below the count bounds them before the cast, for one at or above 2**64 would wrap.
    """
    last = count - 1
    if int(float(last)) > last:
        last = int(np.nextafter(float(count), 0))
    return (
        f"scale fractions of the length and floor them: np.minimum(np.floor(fraction * {count}), {last})"
        f".astype(np.uint64)"
    )


def as_words(values: np.ndarray) -> np.ndarray:
    """The values as contiguous 64-bit words, without a copy where they are such; negative ones wrap."""
    kind = np.int64 if values.dtype.kind == "i" else np.uint64
    words = np.ascontiguousarray(values, dtype=kind).view(np.uint64)
    # Numba would compile anew for an array that it must not write
    return words if words.flags.writeable else words.copy()


@kernel(parallel=True)
def first_outside(words, sides):
    """First row with a word not below its side, or the number of rows; `sides` is a tuple of uint64."""
    bad = len(words)
    for i in numba.prange(len(words)):
        inside = True
        for k in range(len(sides)):
            inside &= words[i, k] < sides[k]
        if not inside:
            bad = min(bad, i)
    return bad

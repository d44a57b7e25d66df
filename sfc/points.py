"""Arrays of cells, indices and ranks: their checks, and their conversion to 64-bit words for compiled loops.

Contract. Cells are (n, dim), indices and ranks (n,), of any integer dtype; an empty array may also be of
floats, as numpy's default ones are. A negative number as a word is above every bound.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from sfc import checks
from sfc.compile import first_in_parts, kernel


def cells_of(cells: object, shape: tuple[int, ...]) -> np.ndarray:
    """Convert cells to an (n, dim) array of integers, without checking that they are in the box.

    Args:
        cells: array or nested sequences.
        shape: of the grid or box, for its number of axes and for the remedy.

    Raises:
        TypeError: an object that makes no array.
        ValueError: another shape or dtype; the message has the code that scales and floors points.
    """
    return checks.array("cells", cells, "iu", checks.INTEGERS, ("n", len(shape)), flooring_hint(shape))


def numbers_of(name: str, numbers: object, count: int) -> np.ndarray:
    """Convert indices or ranks to an (n,) array of integers, without checking their range.

    Args:
        name: of the argument, for the message.
        numbers: array or sequence.
        count: length of the order, for the remedy.

    Raises:
        TypeError: an object that makes no array.
        ValueError: another shape or dtype.
    """
    return checks.array(name, numbers, "iu", checks.INTEGERS, ("n",), along(count))


def output(out: object, shape: tuple[int, ...], most: int, default: type) -> np.ndarray:
    """Check the array that a caller gives for the result, or make one.

    Args:
        out: the array; None to make one.
        shape: of the result.
        most: largest number that may be stored.
        default: dtype of an array that is made.

    Raises:
        TypeError: an object that is no array.
        ValueError: another shape or dtype, a dtype with too few bits, a masked array, or a read-only one.
    """
    if out is None:
        return np.empty(shape, default)
    found = checks.instance("out", out, np.ndarray, f"an array of numpy, shape {shape}, or None")
    if isinstance(found, np.ma.MaskedArray):
        remedy = "give an array without a mask, such as out.data"
        raise checks.refuse_value("out", "a masked array", "an array of numpy", remedy)
    checks.fits("out", found, "iu", checks.INTEGERS, shape)
    require_room(found.dtype, most)
    if not found.flags.writeable:
        raise checks.refuse_value("out", "a read-only array", "a writeable one")
    return found


def require_room(kind: np.dtype, most: int) -> None:
    """Check that a dtype of a result holds the largest number.

    Raises:
        ValueError: a dtype of too few bits, or of no integers.
    """
    if kind.kind not in "iu" or np.iinfo(kind).max < most:
        kinds = [np.dtype(one).name for one in "BHIQ" if np.iinfo(one).max >= most]
        allowed = f"an integer dtype that holds {most}, such as {kinds[0]}"
        raise checks.refuse_value("dtype of out", kind.name, allowed)


def refuse_cell(cells: Any, row: int, where: str, sides: object, remedy: str) -> ValueError:
    """Return the error for a cell outside a grid or box.

    Args:
        cells: (n, dim) array of numpy or cupy.
        row: of the cell.
        where: the grid or box in words.
        sides: number of cells along each axis.
        remedy: what to do instead of checking the cells.
    """
    found, allowed = f"cell {cells[row].tolist()} in row {row} is outside {where}", f"0 <= cell < {sides}"
    return ValueError(f"{found}; allowed: {allowed}; {remedy} or check the cells")


def refuse_index(index: Any, row: int, order: int, length: int) -> ValueError:
    """Return the error for an index that a curve of some order and length does not have."""
    wrong = int(index[row])
    where = "is negative" if wrong < 0 else f"is past the end of the curve of order {order}"
    return ValueError(f"index {wrong} in row {row} {where}; allowed: 0 <= index < {length}")


@lru_cache(maxsize=256)
def flooring_hint(shape: tuple[int, ...]) -> str:
    """Return code that scales points to the cells of a grid or box, for error messages."""
    alike = len(set(shape)) == 1
    sides, last = (shape[0], shape[0] - 1) if alike else (shape, tuple(side - 1 for side in shape))
    return (
        f"give points of floats to sfc.keys, or scale points to the grid and floor them: "
        f"np.clip(np.floor((points - low) / (high - low) * {sides}), 0, {last}).astype(np.int64)"
    )


@lru_cache(maxsize=256)
def along(count: int) -> str:
    """Return the Python expression that scales a fraction to an index, for error messages.

    It is valid for fractions of an order's length from 0 to 1 inclusive. The largest float below the count
    bounds the index before the cast, because 2**64 and above would wrap.
    """
    last = count - 1
    if int(float(last)) > last:
        last = int(np.nextafter(float(count), 0))
    return (
        f"scale fractions of the length and floor them: np.minimum(np.floor(fraction * {count}), {last})"
        f".astype(np.uint64)"
    )


def as_words(values: np.ndarray) -> np.ndarray:
    """Convert values to contiguous 64-bit words, without a copy if possible; negative ones wrap."""
    kind = np.int64 if values.dtype.kind == "i" else np.uint64
    words = np.ascontiguousarray(values, dtype=kind).view(np.uint64)
    # Numba compiles a second version for read-only arrays
    return words if words.flags.writeable else words.copy()


@kernel
def _first_outside(words, sides):
    for i in range(len(words)):
        inside = True
        for k in range(len(sides)):
            inside &= words[i, k] < sides[k]
        if not inside:
            return i
    return len(words)


def first_outside(words: np.ndarray, sides: Sequence[int | np.uint64]) -> int:
    """Find the first row with a word not below its side, else the number of rows."""
    bounds = np.array(sides, np.uint64)
    return first_in_parts(lambda part: _first_outside(words[part], bounds), len(words))

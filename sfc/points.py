"""Arrays of cells, indices and ranks: what is taken, and 64-bit words of it for the compiled loops.

Contract. Cells are (n, dim), indices and ranks (n,), of any integer dtype; an array without any entry may be
of floats too, as numpy's own empty ones are. A negative number as a word lies above every bound.
"""

import math

import numba
import numpy as np

from sfc.compile import kernel

MOST_BYTES = 2**40  # of an array that lists every cell


def is_integer(value) -> bool:
    """Whether a value is a whole number of Python's or numpy's, and no boolean."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def require_integers(what: str, values: np.ndarray) -> None:
    """Refuse anything but an integer dtype; an empty array of floats passes.

    Raises:
        ValueError: floats, booleans or objects, with the remedy.
    """
    if not (np.issubdtype(values.dtype, np.integer) or (values.size == 0 and values.dtype.kind == "f")):
        raise ValueError(
            f"{what} of dtype {values.dtype}; allowed: any integer dtype; convert with .astype(np.int64)"
        )


def checked_cells(cells, dim: int, taker: str) -> np.ndarray:
    """The cells as an array, (n, dim) of integers.

    Raises:
        ValueError: another shape or dtype; says who takes what.
    """
    cells = np.asarray(cells)
    if cells.ndim != 2 or cells.shape[1] != dim:
        raise ValueError(f"cells of shape {cells.shape}; {taker} takes (n, {dim})")
    require_integers("cells", cells)
    return cells


def checked_numbers(what: str, numbers) -> np.ndarray:
    """The indices or ranks as an array, (n,) of integers.

    Raises:
        ValueError: another shape or dtype.
    """
    numbers = np.asarray(numbers)
    if numbers.ndim != 1:
        raise ValueError(f"{what} of shape {numbers.shape}; allowed: (n,); flatten with .ravel()")
    require_integers(what, numbers)
    return numbers


def require_room(what: str, count: int, width: int, remedy: str) -> None:
    """Refuse to list more than memory can be asked for.

    Raises:
        ValueError: `count` entries of `width` 64-bit words over `MOST_BYTES`.
    """
    if count * width * 8 > MOST_BYTES:
        raise ValueError(
            f"{what}: {count} cells of {width * 8} bytes each; allowed: up to 2**{math.log2(MOST_BYTES):.0f} "
            f"bytes in all; {remedy}"
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

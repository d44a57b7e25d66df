"""What the models of a cache take as a number or a row of numbers; anything else is refused."""

import numpy as np


def checked_integer(what: str, value: int, unit: str, low: int = 1, high: float = np.inf) -> int:
    """The value as a Python integer.

    Args:
        what: what the value is, for the message.
        value: a Python or a numpy integer.
        unit: what it counts, for the message.
        low: the lowest allowed.
        high: the highest allowed.

    Raises:
        ValueError: a boolean, a float, anything else that is no integer, or a value out of range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        allowed = f"of at least {low}" if high == np.inf else f"from {low} to {high}"
        raise ValueError(f"{what} {value!r} {unit}; allowed: an integer {allowed}")
    return int(value)


def words(values: np.ndarray) -> np.ndarray:
    """Checked integers as the int64 that kernels are compiled for; a copy where they are narrower.

    Of uint64 the upper half is negative; each value stays one of its own.
    """
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def checked_integers(what: str, values: np.ndarray, low: float = -np.inf, end: float = np.inf) -> np.ndarray:
    """The values, contiguous and in native byte order.

    Args:
        what: what the values are, for the message.
        values: (n,) integers of any dtype.
        low: the lowest allowed.
        end: the lowest above those allowed.

    Returns:
        (n,) integers of the same dtype; a copy only where it is needed.

    Raises:
        ValueError: not one-dimensional, not integers, or a value out of range.
    """
    values = np.asarray(values)
    if values.shape == (0,) and values.dtype.kind == "f":  # numpy's own empty array
        values = values.astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        found = f"{values.dtype} of shape {values.shape}"
        raise ValueError(f"{what} are {found}; allowed: integers of shape (n,), as by ravel and astype")
    for value in (int(values.min()), int(values.max())) if len(values) else ():
        if not low <= value < end:
            raise ValueError(f"{what} hold {value}; allowed: {low} <= value < {end}")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))

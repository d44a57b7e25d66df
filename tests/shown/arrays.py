"""Arrays of numbers as JSON: exact values if they are few, hashes if they are many; and short digests."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import Any

import numpy as np

MOST_VALUES = 2000  # of an array that is written out
ENDS = 3  # rows of a longer array that are written out at either end
BITS = 23  # of a number in a digest that any machine gives: 7 digits
NOISE = 1e-9  # of the largest value of an array: below it a digest has 0
LETTERS = 10  # of a digest


def node(values: Any) -> dict[str, Any]:
    """Return an array as JSON.

    Args:
        values: numbers of any shape; masked ones become NaN.

    Returns:
        `shape`, and `values` or, of many, hashes: `exact` of the bytes and `rounded` of the rounded numbers.
    """
    array = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    made: dict[str, Any] = {"shape": list(array.shape)}
    if array.size <= MOST_VALUES:
        return made | {"values": plain(array.tolist())}
    data = np.ascontiguousarray(array, "<f8") + 0.0
    return made | {
        "exact": hashlib.sha256(data.tobytes()).hexdigest(),
        "rounded": hashlib.sha256(_rounded(array)).hexdigest()[:LETTERS],
        "first": plain(array[:ENDS].reshape(-1)[: 2 * ENDS].tolist()),
        "last": plain(array[-ENDS:].reshape(-1)[-2 * ENDS :].tolist()),
    }


def points(values: Any) -> np.ndarray:
    """Return the different finite rows of an array (n, k), sorted."""
    array = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan), float)
    kept = array[np.isfinite(array).all(axis=1)] + 0.0
    return np.unique(kept, axis=0) if len(kept) else kept


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: numpy's numbers as Python's, NaN and infinities as words.

    A dataclass is the dict of its fields. The text of an object would have all digits of its numbers, of
    which the last differ from machine to machine.

    Raises:
        TypeError: an object of another class.
    """
    if dataclasses.is_dataclass(value):
        return plain(vars(value))
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) + 0.0 if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"no rule for {type(value).__name__}: {value!r}")


def digest(record: Any) -> str:
    """Return a short digest of a record, the same on any machine: its numbers have 7 digits.

    Exact hashes in it are left out.
    """
    text = json.dumps(_for_digest(record), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:LETTERS]


def _for_digest(value: Any) -> Any:
    if isinstance(value, dict):
        if "shape" in value and "exact" in value:
            return [value["shape"], value["rounded"]]
        if "shape" in value and "values" in value:
            return [
                value["shape"],
                hashlib.sha256(_rounded(np.array(value["values"], dtype=float))).hexdigest(),
            ]
        return {name: _for_digest(part) for name, part in value.items() if name != "bytes"}
    if isinstance(value, list):
        return [_for_digest(part) for part in value]
    return _rounded(np.array(value)).hex() if isinstance(value, float) else value


def _rounded(array: np.ndarray) -> bytes:
    """Return the bytes of the numbers of an array with `BITS` bits; noise around 0 is 0."""
    flat = np.ascontiguousarray(array, "<f8").reshape(-1)
    finite = np.abs(flat[np.isfinite(flat)])
    floor = NOISE * finite.max() if finite.size else 0.0
    mantissa, exponent = np.frexp(np.where(np.abs(flat) <= floor, 0.0, flat))
    return (np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS) + 0.0).tobytes()

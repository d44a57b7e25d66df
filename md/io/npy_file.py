"""Arrays in files of numpy, checked before anything is allocated: `.npy`, and members of `.npz`."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO

import numpy as np

from sfc import checks

READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
WHOLE = "give a file that numpy.save has written, of numbers"


def read_npy(path: Path) -> np.ndarray:
    """Map an array of a `.npy` file into memory, read-only; nothing is read yet.

    Raises:
        ValueError: no such file of numpy, a damaged one, one shorter than it declares, or of Python objects.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        shape, fortran, dtype = header(str(path), file, os.fstat(file.fileno()).st_size)
        start = file.tell()
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start, shape, "F" if fortran else "C")


def header(name: str, file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of an array; the file is left at the first byte of its values.

    Args:
        name: of the file, for messages.
        file: opened, at its start.
        size: its bytes.

    Returns:
        Shape, whether the first index varies fastest, dtype.

    Raises:
        ValueError: as `read_npy`.
    """
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, dtype = READERS[version](file)
    except (ValueError, KeyError, TypeError, EOFError, SyntaxError, MemoryError, RecursionError) as error:
        found = "damaged" if isinstance(error, KeyError) or "pickle" in str(error) else f"{error!s:.120}"
        raise ValueError(f"{name} cannot be read as an array of numpy ({found}); {WHOLE}") from error
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects; allowed: numbers; save them as arrays of numbers")
    declared, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or declared != there:
        raise ValueError(
            f"{name} declares shape {shape} of {dtype}, {checks.bytes_shown(declared)}, and holds "
            f"{checks.bytes_shown(there)}; {WHOLE}"
        )
    return shape, fortran, dtype

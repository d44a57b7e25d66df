"""Loads of a sparse matrix times a vector on a GPU, a thread for each row (CSR, scalar kernel).

A thread loads where its row begins and ends; then for each entry the column and the value together, and the
number of the vector in that column. The lanes of a warp wait for the longest row. Bell and Garland (2009),
Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from sfc import checks
from sfc.cache import LoadStream, WarpLoads
from sfc.cache.loads import LANES, READ, WRITTEN, starts_of

INDEX = 4  # bytes of a column, and of the place at which a row begins


def csr_loads(matrix: csr_array, block: int = 256, registers: int = 32) -> LoadStream:
    """Make the stream of y = A x.

    Args:
        matrix: A, with values of 4 or 8 bytes, as have x and y.
        block: threads of a block.
        registers: of a thread.

    Raises:
        TypeError: no matrix of that format.
        ValueError: a matrix without rows, more entries than 32 bits count, or values of another size.
    """
    checks.instance("matrix", matrix, csr_array, "a scipy.sparse.csr_array", "make csr_array(matrix)")
    size, entries = matrix.data.dtype.itemsize, len(matrix.data)
    if size not in (4, 8) or entries >= 2**31:
        raise ValueError(
            f"a matrix of {entries} values of {size} bytes; allowed: fewer than 2**31, of 4 or 8 bytes"
        )
    rows, columns = matrix.shape
    base = starts_of([INDEX * (rows + 1), INDEX * entries, size * entries, size * columns, size * rows])
    begin, column = matrix.indptr.astype(np.int64), matrix.indices
    return LoadStream(rows, block, partial(_loads_of, begin, column, size, base), registers)


def _loads_of(
    begin: np.ndarray, column: np.ndarray, size: int, base: np.ndarray, warps: np.ndarray
) -> WarpLoads:
    """Return the loads of some warps, with as many instructions as the longest row of them needs."""
    rows = warps[:, None] * LANES + np.arange(LANES)
    is_there = rows < len(begin) - 1
    rows = np.where(is_there, rows, 0)
    lengths = np.where(is_there, begin[rows + 1] - begin[rows], 0)
    addresses = [base[0] + INDEX * rows, base[0] + INDEX * (rows + 1)]
    waits, kinds = [True, False], [READ, READ]
    there = [is_there, is_there]
    for k in range(int(lengths.max())):
        goes_on = k < lengths
        place = np.where(goes_on, begin[rows] + k, 0)
        addresses += [base[1] + INDEX * place, base[2] + size * place, base[3] + size * column[place]]
        waits, kinds, there = [*waits, True, False, True], kinds + 3 * [READ], there + 3 * [goes_on]
    addresses.append(base[4] + size * rows)
    waits, kinds, there = [*waits, True], [*kinds, WRITTEN], [*there, is_there]
    address = np.where(np.stack(there, axis=1), np.stack(addresses, axis=1), -1)
    return WarpLoads.of(address, waits, kinds)

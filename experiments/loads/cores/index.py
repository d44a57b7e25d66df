"""Loads of numpy's gather, a loop that scatters, and scipy's sparse matrix times a vector on a core."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sfc.cache import end, note, starts_of
from sfc.cache.core import CoreStream, one_by_one
from sfc.cache.loads import READ, WRITTEN
from sfc.compile import kernel

INDEX = 4  # bytes of a number of an element
STORE = 3  # instruction of a scatter that stores a sum


def gather_stream(index: np.ndarray, size: int) -> CoreStream:
    """Make the stream of `np.take(x, index, out=y)`, without its copy of the index in 64 bits.

    Args:
        index: (n, k) int32 numbers of elements of x.
        size: bytes of an element.
    """
    n, reads = index.shape
    base = starts_of([INDEX * n * reads, size * (int(index.max()) + 1), size * n * reads])
    return one_by_one(_gather, (index, size, base), n, branches=False)


def scatter_stream(index: np.ndarray, size: int) -> CoreStream:
    """Make the stream of a loop of sums[index[i]] += value[i].

    A sum is loaded, and stored with the value added: its line has to be in the first cache for either. That
    the line goes back to memory later takes no time of its own (`sfc.cache.core.foresee`).

    Args:
        index: (n,) int32 numbers of sums.
        size: bytes of a value and of a sum.
    """
    n = len(index)
    base = starts_of([INDEX * n, size * n, size * (int(index.max()) + 1)])
    return one_by_one(_scatter, (index, size, base), n, branches=False, adds=STORE)


def spmv_stream(matrix: csr_array) -> CoreStream:
    """Make the stream of `matrix @ x` of a matrix in rows, with 32-bit columns."""
    rows, columns = matrix.shape
    size, entries = matrix.data.itemsize, len(matrix.data)
    base = starts_of([INDEX * (rows + 1), INDEX * entries, size * entries, size * columns, size * rows])
    return one_by_one(_spmv, (matrix.indptr, matrix.indices, size, base), rows, branches=False)


@kernel
def _gather(items, index, size, base, noted):
    reads = index.shape[1]
    for k in range(len(items)):
        i = items[k]
        for r in range(reads):
            note(noted, 0, base[0] + 4 * (i * reads + r), READ, False)
            note(noted, 1, base[1] + size * index[i, r], READ, False)
            note(noted, 2, base[2] + size * (i * reads + r), WRITTEN, False)
        end(noted, k)


@kernel
def _scatter(items, index, size, base, noted):
    for k in range(len(items)):
        i = items[k]
        note(noted, 0, base[0] + 4 * i, READ, False)
        note(noted, 1, base[1] + size * i, READ, False)
        note(noted, 2, base[2] + size * index[i], READ, False)
        note(noted, STORE, base[2] + size * index[i], WRITTEN, False)
        end(noted, k)


@kernel
def _spmv(items, begin, column, size, base, noted):
    for k in range(len(items)):
        i = items[k]
        note(noted, 0, base[0] + 4 * (i + 1), READ, False)
        for entry in range(begin[i], begin[i + 1]):
            note(noted, 1, base[1] + 4 * entry, READ, False)
            note(noted, 2, base[2] + size * entry, READ, False)
            note(noted, 3, base[3] + size * column[entry], READ, False)
        note(noted, 4, base[4] + size * i, WRITTEN, False)
        end(noted, k)

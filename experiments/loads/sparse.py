"""Loads of a sparse matrix times a vector on a GPU, a thread for each row (CSR, scalar kernel).

A thread loads where its row begins and ends; then for each entry the column and the value together, and the
number of the vector in that column. The lanes of a warp wait for the longest row. Bell and Garland (2009),
Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC.
"""

from __future__ import annotations

from scipy.sparse import csr_array

from sfc import checks
from sfc.cache import LoadStream, end, in_lockstep, note, starts_of
from sfc.cache.loads import READ, WRITTEN
from sfc.compile import kernel

INDEX = 4  # bytes of a column, and of the place at which a row begins
STORE = 2**61  # place of the store: behind all loads


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
    return in_lockstep(_row_by_row, (matrix.indptr, matrix.indices, size, base), rows, block, registers)


@kernel
def _row_by_row(threads, begin, column, size, base, noted):
    for k in range(len(threads)):
        i = threads[k]
        note(noted, 0, base[0] + INDEX * i, READ, True)
        note(noted, 1, base[0] + INDEX * (i + 1), READ, False)
        for turn in range(begin[i + 1] - begin[i]):
            entry, place = begin[i] + turn, 3 * turn + 2
            note(noted, place, base[1] + INDEX * entry, READ, True)
            note(noted, place + 1, base[2] + size * entry, READ, False)
            note(noted, place + 2, base[3] + size * column[entry], READ, True)
        note(noted, STORE, base[4] + size * i, WRITTEN, True)
        end(noted, k)

"""Loads of the kernels that take elements by an index (experiments/measurement/kernels/index_kernels.cu).

The streams have the instructions of the machine code for compute capability 9.0, in their order:

- gather: for each entry its load, then that of the row that it names, as one load of 4, 8 or 16 bytes. The
  loop over the entries is not unrolled, and the row is added before the next entry is loaded, so that a warp
  waits before each load. The store of y waits for the last row.
- scatter: the entry and the value together, then the atomic addition, which gives nothing back.
- spmv: as `csr_loads`; the loop is not unrolled in the machine code either: column and value together, then
  the number of x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from experiments.loads.sparse import INDEX, csr_loads
from experiments.measurement.kernels.index_kernels import BLOCK, REGISTERS, indices, row_size
from sfc.cache import Access, LoadStream


def gather_loads(index: Any, row_bytes: int = 4) -> LoadStream:
    """Make the stream of y[i] = sum over k of x[index[i, k]].

    Args:
        index: (n, k) integers, numbers of rows of x, from 0 on.
        row_bytes: of a row of x and of y: 4, 8 or 16.

    Raises:
        TypeError: no integers.
        ValueError: an index that is empty or out of range, or other bytes.
    """
    size = row_size("row_bytes", row_bytes, REGISTERS["gather"])
    index = indices("index", index, ("n", "k"))
    n, reads = index.shape
    items = np.arange(n, dtype=np.int32)
    entries = items[:, None] + n * np.arange(reads, dtype=np.int32)  # column by column
    accesses = [
        Access("index", entries, INDEX, waits=True),
        Access("x", index, size, waits=True),
        Access("y", items, size, "written", waits=True),
    ]
    return LoadStream.of(accesses, BLOCK, REGISTERS["gather"][size])


def scatter_loads(index: Any, size: int = 4) -> LoadStream:
    """Make the stream of sum[index[i]] += value[i].

    Args:
        index: (n,) integers, numbers of sums, from 0 on.
        size: bytes of a float: 4 or 8.

    Raises:
        TypeError: no integers.
        ValueError: an index that is empty or out of range, or other bytes.
    """
    size = row_size("size", size, REGISTERS["scatter"])
    index = indices("index", index, ("n",))
    items = np.arange(len(index), dtype=np.int32)
    accesses = [
        Access("index", items, INDEX),
        Access("value", items, size),
        Access("sum", index, size, "added", waits=True),
    ]
    return LoadStream.of(accesses, BLOCK, REGISTERS["scatter"][size])


def spmv_loads(matrix: csr_array) -> LoadStream:
    """Make the stream of y = A x with the block and the registers of our kernel.

    Args:
        matrix: A, of float32 or float64.

    Raises:
        TypeError, ValueError: as `csr_loads`.
    """
    size = getattr(getattr(matrix, "dtype", None), "itemsize", 0)
    return csr_loads(matrix, BLOCK, REGISTERS["spmv"].get(size, 1))

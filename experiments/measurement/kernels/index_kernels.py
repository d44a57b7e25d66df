"""Kernels that take elements of arrays by an index: gather, scatter, and a sparse matrix times a vector.

Each is a class that allocates its arrays on a backend, launches its kernel, compares the result with numpy's
or scipy's, and times launches. The CUDA kernels are in index_kernels.cu, those of the CPU below; the loads of
the CUDA kernels are in `experiments.loads.index`. The product with a matrix is the scalar kernel
of Bell and Garland (2009), Implementing sparse matrix-vector multiplication on throughput-oriented
processors, SC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_array

from experiments.measurement.correctness import check_error
from md.backend import Backend, OnDevice
from sfc import checks
from sfc.compile import kernel

BLOCK = 256  # threads of a block
REGISTERS = {  # of a thread, by bytes of what it takes; as nvcc 13.0 prints them for compute capability 9.0
    "gather": {4: 14, 8: 15, 16: 19},
    "scatter": {4: 10, 8: 10},
    "spmv": {4: 18, 8: 18},
}
SAMPLES = 9  # launches that are timed
LAUNCHES = 64  # up to which sums of `Scatter` are exact
DELAY = 2e-4  # s before each launch that is timed, longer than it takes the host
LARGEST = 255  # of the numbers, which are integers, so that sums are exact
EXACT = {4: 2**24, 8: 2**53}  # integers up to which each is a float, by its bytes
MOST = 2**31 - 1  # entries that an int32 counts
INDEX = "an array of integers, numbers of elements"


class IndexKernel(ABC):
    """A kernel with its arrays on a backend.

    Args:
        name: of the kernel, as profilers print it.
        backend: of the arrays.
        items: number of threads that work.
        constants: integers that the CUDA source is compiled for.

    Attributes:
        name, backend, items: as given.
        launches: number of launches since the last reset.
    """

    def __init__(self, name: str, backend: Backend, items: int, constants: dict[str, int]):
        self.name, self.backend, self.items, self.launches = name, backend, items, 0
        self._kernel = getattr(backend.kernels(__name__, constants=constants), name)
        self._arguments: tuple[Any, ...] = ()
        self._result: Any = None

    def launch(self) -> None:
        """Launch the kernel once; on a device, without waiting for it.

        Under a profiler: `with one.backend.profiled(): one.launch()`.
        """
        self._kernel(self.items, *self._arguments)
        self.launches += 1

    def reset(self) -> None:
        """Overwrite the result by -1 (on a device by NaN), which is never right."""
        self.backend.fill(self._result, -1)
        self.launches = 0

    @abstractmethod
    def check(self) -> float:
        """Compare the result of the launches since the last reset with the expected one.

        Returns:
            The largest difference: of integers 0, of a product with a matrix as `Spmv` says.

        Raises:
            WrongResultError: it is larger than that.
        """

    def time(self, samples: int = SAMPLES) -> float:
        """Time launches as `sample` does, and check their result.

        Raises:
            TypeError, ValueError: as `sample`.
            WrongResultError: a wrong result, as `check` finds.
        """
        found = self.sample(samples)
        self.check()
        return found

    def sample(self, samples: int = SAMPLES) -> float:
        """Time launches one by one, each with the caches as the launch before left them; check nothing.

        Args:
            samples: number of launches, after one that is not timed: 1 to 63.

        Returns:
            Median time of a launch, in ms.

        Raises:
            TypeError: a number that is no integer.
            ValueError: a number out of range.
        """
        samples = checks.integer("samples", samples, 1, LAUNCHES - 1, unit="launches")
        times = []
        self.reset()
        with self.backend.delay_device(DELAY):
            for _ in range(samples + 1):
                with self.backend.stopwatch() as elapsed:
                    self.launch()
                times.append(elapsed[0])
        return float(np.median(times[1:]))


class Gather(IndexKernel):
    """y[i] = sum over k of x[index[i, k]], a thread for each i; x has integers from 0 to 255 as float32.

    Args:
        backend: of the arrays.
        index: (n, k) integers, numbers of rows of x, from 0 on; k up to 65536. On the backend it lies column
            by column, as int32, so that neighbouring threads load neighbouring entries.
        row_bytes: of a row of x and of y: 4, 8 or 16.
        seed: of x, which has as many rows as the index names.

    Raises:
        TypeError: no integers.
        ValueError: an index that is empty or out of range, other bytes, or more than the memory holds.
    """

    def __init__(self, backend: Backend, index: Any, row_bytes: int = 4, seed: int = 0):
        size = row_size("row_bytes", row_bytes, REGISTERS["gather"])
        index = indices("index", index, ("n", "k"))
        checks.integer("reads = k of the index", index.shape[1], 1, EXACT[4] // (LARGEST + 1))
        super().__init__("gather", backend, len(index), {"NUMBERS": size // 4})
        rows = int(index.max()) + 1
        needed = 4 * index.size + size * (rows + len(index))
        checks.require_allocatable("a gather", needed, "take fewer rows", backend.free_memory)
        self._index, self._x = index, _drawn((rows, size // 4), LARGEST, seed).astype(np.float32)
        by_column, x = (backend.upload(one.ravel()) for one in (np.ascontiguousarray(index.T), self._x))
        self._result = backend.empty(len(index) * size // 4, np.float32)
        self._arguments = index.shape[1], by_column, x, self._result
        self.reset()

    def check(self) -> float:
        """Compare y with numpy's sums, which are exact.

        Raises:
            WrongResultError: they differ.
        """
        expected = sum(self._x[column] for column in self._index.T)
        return _differing(self.backend.download(self._result).reshape(-1, self._x.shape[1]), expected, "y")


class Scatter(IndexKernel):
    """sum[index[i]] += value[i] by atomic operations, a thread for each i; on the CPU one after the other.

    The values are integers from 1 to 255, or to fewer, so that the sums are exact in any order. They add up
    from launch to launch.

    Args:
        backend: of the arrays.
        index: (n,) integers, numbers of sums, from 0 on.
        size: bytes of a float: 4 or 8.
        seed: of the values.

    Raises:
        TypeError: no integers.
        ValueError: an index that is empty or out of range, other bytes, more than the memory holds, or so
            many items of one sum that it is not exact.
    """

    def __init__(self, backend: Backend, index: Any, size: int = 4, seed: int = 0):
        size = row_size("size", size, REGISTERS["scatter"])
        index = indices("index", index, ("n",))
        counts = np.bincount(index)
        most, allowed = int(counts.max()), EXACT[size] // LAUNCHES
        remedy = "spread them over more sums" if size == 8 else "take size 8, or spread them over more sums"
        checks.integer("items of one sum", most, 0, allowed, remedy=remedy)
        super().__init__("scatter", backend, len(index), {})
        needed = 4 * len(index) + size * (len(index) + len(counts))
        checks.require_allocatable("a scatter", needed, "take fewer items", backend.free_memory)
        dtype = np.dtype(f"f{size}")
        values = 1 + _drawn(len(index), min(LARGEST, allowed // most) - 1, seed)
        self._expected = np.bincount(index, values)
        self._result = backend.zeros(len(counts), dtype)
        self._arguments = backend.upload(index), backend.upload(values.astype(dtype)), self._result

    def reset(self) -> None:
        """Set the sums to zero."""
        self.backend.fill(self._result, 0)
        self.launches = 0

    def check(self) -> float:
        """Compare the sums with numpy's, times the launches.

        Raises:
            ValueError: more launches since the last reset than the sums are exact for.
            WrongResultError: they differ.
        """
        checks.integer("launches since the reset", self.launches, 0, LAUNCHES, remedy="reset() before them")
        expected = max(1, self.launches) * self._expected  # of no launch none is right
        return _differing(self.backend.download(self._result), expected, "sums")


class Spmv(IndexKernel):
    """y = A x with A in CSR, a thread for each row; x has integers from 0 to 255.

    Args:
        backend: of the arrays.
        matrix: A, of float32 or float64, as x and y are then too.
        seed: of x.

    Raises:
        TypeError: no matrix of that format.
        ValueError: a matrix that is empty, with other values, or with more than the memory holds.
    """

    def __init__(self, backend: Backend, matrix: csr_array, seed: int = 0):
        checks.instance("matrix", matrix, csr_array, "a scipy.sparse.csr_array", "make csr_array(matrix)")
        if str(matrix.dtype) not in ("float32", "float64"):
            raise ValueError(f"matrix of {matrix.dtype}; allowed: float32 or float64; take matrix.astype")
        rows, columns = matrix.shape
        checks.integer("rows of the matrix", rows, 1, MOST - 1)
        checks.integer("entries of the matrix", len(matrix.data), 0, MOST)
        super().__init__("spmv", backend, rows, {})
        needed = (4 + matrix.dtype.itemsize) * (len(matrix.data) + rows) + matrix.dtype.itemsize * columns
        checks.require_allocatable("a matrix", needed, "take fewer rows", backend.free_memory)
        self._matrix, self._x = matrix, _drawn(columns, LARGEST, seed).astype(matrix.dtype)
        places = (backend.upload(one.astype(np.int32, copy=False)) for one in (matrix.indptr, matrix.indices))
        self._result = backend.empty(rows, matrix.dtype)
        self._arguments = *places, backend.upload(matrix.data), backend.upload(self._x), self._result
        self.reset()

    def check(self) -> float:
        """Compare y with scipy's product in float64.

        Returns:
            The largest difference, over the sum of the magnitudes of a row's terms; up to the number of its
            entries times the spacing of floats at 1 it is rounding.

        Raises:
            WrongResultError: it is larger in a row.
        """
        matrix, x = self._matrix.astype(np.float64), self._x.astype(np.float64)
        found = self.backend.download(self._result).astype(np.float64)
        error, terms = np.abs(found - matrix @ x), abs(matrix) @ x
        share = np.divide(error, terms, out=error.copy(), where=terms > 0)  # without terms y is 0
        limit = np.diff(matrix.indptr) * np.finfo(self._matrix.dtype).eps
        wrong = int((~(share <= limit)).sum())
        check_error("y of a matrix differs from scipy's", wrong, 0, f" of {len(found)} rows")
        return float(share.max())


def indices(name: str, values: Any, shape: tuple[str, ...]) -> np.ndarray:
    """Return an index as int32.

    Args:
        name: of the argument.
        values: integers from 0 to 2**31 - 2, one or more.
        shape: its sides, each a letter.

    Raises:
        TypeError: no array.
        ValueError: no integers, another shape, no entry or more than 2**31 - 1, or one out of range.
    """
    outside = "number the elements from 0 on"
    found = checks.array(name, values, "iu", INDEX, shape, low=0, high=MOST - 1, outside=outside)
    checks.integer(f"entries of {name}", found.size, 1, MOST, remedy="give some, and so many at a time")
    return found.astype(np.int32, copy=False)


def row_size(name: str, value: Any, known: dict[int, int]) -> int:
    """Return bytes that a kernel is made for.

    Args:
        name: of the argument.
        value: bytes.
        known: those allowed, as keys.

    Raises:
        TypeError: no integer.
        ValueError: other bytes.
    """
    size = checks.integer(name, value, unit="bytes")
    if size not in known:
        raise ValueError(f"{name} = {size} bytes; allowed: {', '.join(map(str, known))}; split or pad it")
    return size


def _drawn(shape: Any, largest: int, seed: int) -> np.ndarray:
    """Draw integers from 0 to the largest."""
    seed = checks.integer("seed", seed, 0, 2**63)
    return np.random.default_rng(seed).integers(0, largest + 1, shape)


def _differing(found: np.ndarray, expected: Any, what: str) -> float:
    """Check that no number differs; NaN does."""
    wrong = int((~(found == expected)).sum())
    return check_error(f"{what} differ from numpy's", wrong, 0, f" of {found.size} numbers")


@OnDevice(threads=BLOCK)
@kernel(parallel=True)
def gather(n, reads, index, x, y):
    """Add up rows of x.

    Args:
        n: number of rows of y.
        reads: number of rows of x for each.
        index: (reads * n,) int32: entry k of row i at k * n + i.
        x: (rows * numbers,) float32.
        y: (n * numbers,) float32, filled.
    """
    numbers = len(y) // n
    for i in numba.prange(n):
        for one in range(numbers):
            y[numbers * i + one] = 0
        for k in range(reads):
            row = index[k * n + i]
            for one in range(numbers):
                y[numbers * i + one] += x[numbers * row + one]


@OnDevice(threads=BLOCK)
@kernel
def scatter(n, index, value, sums):
    """Add values to sums.

    Args:
        n: number of values.
        index: (n,) int32 number of the sum of each.
        value: (n,) floats.
        sums: (sums,) floats, added to.
    """
    for i in range(n):
        sums[index[i]] += value[i]


@OnDevice(threads=BLOCK)
@kernel(parallel=True)
def spmv(n, begin, column, value, x, y):
    """Multiply a matrix by a vector.

    Args:
        n: number of rows.
        begin: (n + 1,) int32; the entries of row i are begin[i] .. begin[i + 1] - 1.
        column: (entries,) int32.
        value: (entries,) floats.
        x: (columns,) floats.
        y: (n,) floats, filled.
    """
    for i in numba.prange(n):
        y[i] = 0
        for entry in range(begin[i], begin[i + 1]):
            y[i] += value[entry] * x[column[entry]]

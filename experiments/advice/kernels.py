"""Compiled loops that stand for a user's own code: what they read is renumbered with the items.

Each is what a C or Fortran program does in one thread; memory order changes nothing but where things lie.
`DeviceKernels` has the same functions for arrays on a device (kernels.cu), with a thread for each item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from md.backend.base import Array, Backend
from sfc.compile import kernel


@kernel
def cutoff_sums(points, radii, lower, lengths, periodic, shape, heads, nexts, cutoff, out):
    """Build linked lists of cells, and sum 1 - r / range over the neighbours of each point.

    Args:
        points: (n, 3) positions.
        radii: (n,), the range of two points is the sum of theirs; empty if it is the cutoff.
        lower: (3,) corner of the box of the cells; points outside are in the cells of its border.
        lengths: (3,) sides of this box.
        periodic: (3,) bools.
        shape: (3,) cells along each axis, each as wide as the cutoff or wider.
        heads: (cells,) integers, first point of each list, which are written.
        nexts: (n,) integers, next point of the same list, which are written.
        cutoff: largest range.
        out: (n,) sums, which are written.
    """
    heads[:] = -1
    for i in range(len(points)):
        cell = 0
        for axis in range(3):
            at = int((points[i, axis] - lower[axis]) / lengths[axis] * shape[axis])
            cell = cell * shape[axis] + min(max(at, 0), shape[axis] - 1)
        nexts[i] = heads[cell]
        heads[cell] = i
    for i in range(len(points)):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        cx = min(max(int((x - lower[0]) / lengths[0] * shape[0]), 0), shape[0] - 1)
        cy = min(max(int((y - lower[1]) / lengths[1] * shape[1]), 0), shape[1] - 1)
        cz = min(max(int((z - lower[2]) / lengths[2] * shape[2]), 0), shape[2] - 1)
        total = 0.0
        for dx in range(-1, 2):
            ax = cx + dx
            if periodic[0] and shape[0] > 2:
                ax = (ax + shape[0]) % shape[0]
            if ax < 0 or ax >= shape[0]:
                continue
            for dy in range(-1, 2):
                ay = cy + dy
                if periodic[1] and shape[1] > 2:
                    ay = (ay + shape[1]) % shape[1]
                if ay < 0 or ay >= shape[1]:
                    continue
                for dz in range(-1, 2):
                    az = cz + dz
                    if periodic[2] and shape[2] > 2:
                        az = (az + shape[2]) % shape[2]
                    if az < 0 or az >= shape[2]:
                        continue
                    j = heads[(ax * shape[1] + ay) * shape[2] + az]
                    while j >= 0:
                        px, py, pz = x - points[j, 0], y - points[j, 1], z - points[j, 2]
                        if periodic[0]:
                            px -= lengths[0] * round(px / lengths[0])
                        if periodic[1]:
                            py -= lengths[1] * round(py / lengths[1])
                        if periodic[2]:
                            pz -= lengths[2] * round(pz / lengths[2])
                        square = px * px + py * py + pz * pz
                        reach = radii[i] + radii[j] if len(radii) else cutoff
                        if square < reach * reach and j != i:
                            total += 1 - square**0.5 / reach
                        j = nexts[j]
        out[i] = total


@kernel
def neighbour_sums(points, index, out):
    """Sum the distances of each point to its listed neighbours.

    Args:
        points: (n, dim) positions.
        index: (n, k) integers.
        out: (n,) sums, which are written.
    """
    for i in range(len(index)):
        total = 0.0
        for k in range(index.shape[1]):
            square = 0.0
            for axis in range(points.shape[1]):
                apart = points[index[i, k], axis] - points[i, axis]
                square += apart * apart
            total += square**0.5
        out[i] = total


@kernel
def cell_sums(values, cells, out):
    """Gather the numbers of the items of each cell or edge, and scatter the mean of their sums to them.

    Args:
        values: (n, numbers) of the items.
        cells: (m, k) integers, items of each cell.
        out: (n,) sums, which are written.
    """
    out[:] = 0.0
    for c in range(len(cells)):
        total = 0.0
        for k in range(cells.shape[1]):
            for number in range(values.shape[1]):
                total += values[cells[c, k], number]
        total /= cells.shape[1]
        for k in range(cells.shape[1]):
            out[cells[c, k]] += total


@kernel
def matrix_product(indptr, indices, data, values, out):
    """Multiply a sparse matrix in rows with a vector.

    Args:
        indptr: (rows + 1,) first entry of each row.
        indices: (entries,) columns.
        data: (entries,) values.
        values: (columns,) vector.
        out: (rows,) product, which is written.
    """
    for i in range(len(indptr) - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * values[indices[k]]
        out[i] = total


@kernel
def trace_sums(table, trace, out):
    """Read the items of a table as a trace says, and sum the numbers of each into those of the program.

    Args:
        table: (n, numbers) of the items.
        trace: (m,) integers.
        out: (numbers,) sums, which are written.
    """
    out[:] = 0.0
    for t in range(len(trace)):
        for k in range(table.shape[1]):
            out[k] += table[trace[t], k]


class DeviceKernels:
    """The functions of this module for arrays of a device; indices are int32, those of a trace int64.

    Args:
        backend: of the device.
    """

    def __init__(self, backend: Backend):
        self._backend, self._kernels = backend, backend.kernels(__name__)
        self._boxes: dict[bytes, tuple[Array, Array]] = {}  # on the device

    def cutoff_sums(
        self, points: Array, radii: Array, lower: Any, lengths: Any, periodic: Any, shape: Any, heads: Array,
        nexts: Array, cutoff: float, out: Array,
    ) -> None:  # fmt: skip
        """Build linked lists of cells by atomic exchanges, and sum as `cutoff_sums` of the host.

        Points of a cell are in lists of another order at each call, so that sums differ by rounding.
        """
        sides = np.concatenate([lower, lengths]).astype(np.float64)
        cells_along = np.concatenate([shape, periodic]).astype(np.int32)
        key = sides.tobytes() + cells_along.tobytes()
        if key not in self._boxes:
            self._boxes[key] = self._backend.upload(sides), self._backend.upload(cells_along)
        box, cells = self._boxes[key]
        self._backend.fill(heads, -1)
        n, flat = len(points), points.ravel()
        self._kernels.link_cells(n, flat, box, cells, heads, nexts)
        self._kernels.cutoff_sums(n, len(radii), flat, radii, box, cells, heads, nexts, cutoff, out)

    def neighbour_sums(self, points: Array, index: Array, out: Array) -> None:
        """Sum the distances of each point to its listed neighbours, as `neighbour_sums` of the host."""
        n, k = index.shape
        self._kernels.neighbour_sums(n, points.shape[1], k, points.ravel(), index.ravel(), out)

    def cell_sums(self, values: Array, cells: Array, out: Array) -> None:
        """Gather and scatter by atomic additions, as `cell_sums` of the host."""
        self._backend.fill(out, 0)
        self._kernels.cell_sums(*cells.shape, values.shape[1], values.ravel(), cells.ravel(), out)

    def matrix_product(self, indptr: Array, indices: Array, data: Array, values: Array, out: Array) -> None:
        """Multiply a sparse matrix in rows with a vector, as `matrix_product` of the host."""
        self._kernels.matrix_product(len(out), indptr, indices, data, values, out)

    def trace_sums(self, table: Array, trace: Array, out: Array) -> None:
        """Sum the numbers of the item of each read into an entry for each read, (m,), of `out`."""
        self._kernels.trace_sums(len(trace), table.shape[1], table.ravel(), trace, out)


def add_on_device(out: Array, items: Array, numbers: Array) -> None:
    """Add numbers to those of items by cupy, as `np.add.at`; items may be named several times."""
    import cupy

    cupy.add.at(out, items, numbers)


def product_on_device() -> Callable[..., Array]:
    """Return a function that multiplies a sparse matrix with a vector by cuSPARSE.

    It takes the arrays of `matrix_product` but the last; the matrix is made once for the same memory.
    """
    from cupyx.scipy.sparse import csr_matrix

    made: dict[int, Any] = {}

    def product(indptr: Array, indices: Array, data: Array, values: Array) -> Array:
        place = data.data.ptr
        if place not in made:
            made.clear()
            made[place] = csr_matrix((data, indices, indptr), (len(values),) * 2)
        return made[place] @ values

    return product

"""Code that a user writes with Numba: plain loops over items, cells, rows or a trace, on one thread.

`OnGpu` has the same functions in CUDA (compiled_code.cu), for arrays of cupy.
"""

from typing import Any

import numpy as np

import md
from sfc.compile import kernel

PART = 64  # reads of a trace that are summed together


@kernel
def pair_energies(points, radii, cutoff):
    """Sum (1 - distance / range)**2 over the neighbours of each particle, by linked lists of cells.

    Args:
        points: (n, 3) float64.
        radii: (n,) float64; the range of a pair is the sum of its radii. Empty for one range, the cutoff.
        cutoff: largest range; a cell is at least as wide.

    Returns:
        (n,) float64.
    """
    n = len(points)
    low, cells = np.empty(3), np.empty(3, np.int64)
    width = np.empty(3)
    for axis in range(3):
        low[axis] = points[:, axis].min()
        extent = points[:, axis].max() - low[axis]
        cells[axis] = min(max(1, int(extent / cutoff)), 1000)
        width[axis] = max(extent / cells[axis], cutoff)
    head, following = np.full(cells[0] * cells[1] * cells[2], -1), np.empty(n, np.int64)
    place = np.empty((n, 3), np.int64)
    for i in range(n):
        for axis in range(3):
            place[i, axis] = min(int((points[i, axis] - low[axis]) / width[axis]), cells[axis] - 1)
        cell = (place[i, 0] * cells[1] + place[i, 1]) * cells[2] + place[i, 2]
        following[i] = head[cell]
        head[cell] = i
    energy = np.zeros(n)
    for i in range(n):
        for x in range(max(place[i, 0] - 1, 0), min(place[i, 0] + 2, cells[0])):
            for y in range(max(place[i, 1] - 1, 0), min(place[i, 1] + 2, cells[1])):
                for z in range(max(place[i, 2] - 1, 0), min(place[i, 2] + 2, cells[2])):
                    j = head[(x * cells[1] + y) * cells[2] + z]
                    while j >= 0:
                        dx = points[i, 0] - points[j, 0]
                        dy = points[i, 1] - points[j, 1]
                        dz = points[i, 2] - points[j, 2]
                        square = dx * dx + dy * dy + dz * dz
                        reach = radii[i] + radii[j] if len(radii) else cutoff
                        if square < reach * reach and i != j:
                            energy[i] += (1 - np.sqrt(square) / reach) ** 2
                        j = following[j]
    return energy


@kernel
def edge_forces(points, values, edges):
    """Sum the forces of springs on each point; a spring's constant is the mean value of its ends.

    Args:
        points: (n, dim) float64.
        values: (n,) float64.
        edges: (m, 2) int32.

    Returns:
        (n, dim) float64.
    """
    dim = points.shape[1]
    forces = np.zeros_like(points)
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        constant = 0.5 * (values[i] + values[j])
        for axis in range(dim):
            force = constant * (points[j, axis] - points[i, axis])
            forces[i, axis] += force
            forces[j, axis] -= force
    return forces


@kernel
def cell_loads(points, values, cells):
    """Add to each corner of a cell the mean value of the cell, times the distance from the cell's centre.

    Args:
        points: (n, dim) float64.
        values: (n,) float64.
        cells: (c, corners) int32.

    Returns:
        (n,) float64.
    """
    dim, corners = points.shape[1], cells.shape[1]
    loads, centre = np.zeros(len(points)), np.empty(dim)
    for c in range(len(cells)):
        centre[:] = 0
        mean = 0.0
        for k in range(corners):
            corner = cells[c, k]
            mean += values[corner] / corners
            for axis in range(dim):
                centre[axis] += points[corner, axis] / corners
        for k in range(corners):
            corner = cells[c, k]
            square = 0.0
            for axis in range(dim):
                square += (points[corner, axis] - centre[axis]) ** 2
            loads[corner] += mean * np.sqrt(square)
    return loads


@kernel
def matrix_product(data, columns, begin, values):
    """Multiply a sparse matrix with a vector, row by row.

    Args:
        data: (entries,) float64.
        columns: (entries,) int32.
        begin: (n + 1,) int32, first entry of each row.
        values: (n,) float64.

    Returns:
        (n,) float64.
    """
    product = np.empty(len(begin) - 1)
    for row in range(len(product)):
        total = 0.0
        for entry in range(begin[row], begin[row + 1]):
            total += data[entry] * values[columns[entry]]
        product[row] = total
    return product


@kernel
def trace_sums(values, trace):
    """Sum the entries that a program reads, for each `PART` reads in turn.

    Args:
        values: (n, m) of any float dtype.
        trace: (t,) int64.

    Returns:
        (ceil(t / PART),) float64.
    """
    sums = np.zeros((len(trace) + PART - 1) // PART)
    for k in range(len(trace)):
        item = trace[k]
        total = 0.0
        for column in range(values.shape[1]):
            total += values[item, column]
        sums[k // PART] += total
    return sums


class OnGpu:
    """The functions of this module in CUDA, a thread for each item, cell, row or read.

    Arguments and results are those of the functions above, as arrays of cupy; sums of several threads are
    added by atomic additions, and differ by rounding.
    """

    def __init__(self) -> None:
        self._backend = md.backend.get("cuda")
        self._kernels = self._backend.kernels(__name__)
        self._boxed: Any = None  # points that are in the box
        self._box = np.empty(0), np.empty(0)

    def pair_energies(self, points: Any, radii: Any, cutoff: float) -> Any:
        """Sum as `pair_energies`, by linked lists of cells that are filled by atomic exchanges."""
        low, high = self._box_of(points)
        cells = np.clip(((high - low) / cutoff).astype(np.int64), 1, 1000)
        width = np.maximum((high - low) / cells, cutoff)
        head, following = (self._backend.empty(size, np.int32) for size in (int(cells.prod()), len(points)))
        energy = self._backend.empty(len(points), np.float64)
        self._backend.fill(head, -1)
        box, shape = (*map(float, low), *map(float, width)), tuple(map(int, cells))
        n, flat = len(points), points.ravel()
        self._kernels.fill_lists(n, flat, *box, *shape, head, following)
        self._kernels.pair_energies(
            n, int(len(radii) > 0), flat, radii, *box, *shape, float(cutoff), head, following, energy
        )
        return energy

    def _box_of(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of the box of points, once for the same array, as if of the program."""
        if self._boxed is not points:
            found = points.get()
            self._boxed, self._box = points, (found.min(axis=0), found.max(axis=0))
        return self._box

    def edge_forces(self, points: Any, values: Any, edges: Any) -> Any:
        """Sum as `edge_forces`."""
        forces = self._backend.zeros(points.shape, np.float64)
        self._kernels.edge_forces(
            len(edges), points.shape[1], points.ravel(), values, edges.ravel(), forces.ravel()
        )
        return forces

    def cell_loads(self, points: Any, values: Any, cells: Any) -> Any:
        """Sum as `cell_loads`."""
        loads = self._backend.zeros(len(points), np.float64)
        (n, corners), axes = cells.shape, points.shape[1]
        self._kernels.cell_loads(n, axes, corners, points.ravel(), values, cells.ravel(), loads)
        return loads

    def matrix_product(self, data: Any, columns: Any, begin: Any, values: Any) -> Any:
        """Multiply as `matrix_product`, a thread for each row."""
        product = self._backend.empty(len(begin) - 1, np.float64)
        self._kernels.matrix_product(len(product), data, columns, begin, values, product)
        return product

    def trace_sums(self, values: Any, trace: Any) -> Any:
        """Sum as `trace_sums`, a thread for each read."""
        sums = self._backend.zeros(-(-len(trace) // PART), np.float64)
        is_single = values.dtype == np.float32
        launch = self._kernels.trace_sums_of_singles if is_single else self._kernels.trace_sums
        launch(len(trace), values.shape[1], PART, values.ravel(), trace, sums)
        return sums

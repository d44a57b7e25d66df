"""Search by matrix products: sums over all partners within radii, on the tensor cores of a CUDA device.

The particles are sorted by cell, row by row. A block of threads takes 4 x 2 x 2 cells (4 x 4 in 2D) and
stages the particles of these and of the cells around them in shared memory, as high and low parts in half
precision. For 16 particles and 16 staged ones at a time a first matrix product gives the squares of 256
distances, and a second one, of 0 or 1 for each pair and the staged numbers, the sums of count, position and
velocity. Where a distance is too close to a radius for half precision, the count or a sum of integer weights
is no integer, and the particle is summed again in float32. So the sums are those of the other searches, in
another order.

Only for laws with `windows` (`md.laws.pair`), in float32 on a CUDA device of compute capability 8.0 or later.
Otherwise the search computes what `Coherent` does, by the same kernel. A block with more particles around it
than fit in shared memory, or with some far beyond an open side, is summed in float32 from memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from md import checks
from md.backend import OnDevice
from md.backend.base import Array
from md.particles.capabilities import SearchCapabilities
from md.particles.cell_grid import MAX_CELLS
from md.particles.cell_sort import CellSort
from md.particles.system import System
from md.search.base import Search, SearchConfig
from md.search.grid import coherent

PARTS = 4  # of each cell along axis 0, so that few particles beyond the cutoff are compared; as in tensor.cu
BLOCK = {3: (4, 2, 2), 2: (4, 4)}  # cells of a block, by dim; as in tensor.cu
THREADS = 256  # of a block
CAPACITIES = 2176, 3392, 6912  # staged particles with 3, 2 and 1 blocks on a multiprocessor of an H200
FIXED = 4096  # most bytes of shared memory of a block besides, with those of CUDA
ENTRY = 32  # bytes of a staged particle, with those of the lists of the warps
PADDING = 15  # entries after each row of staged cells; as in tensor.cu
OFFSET = 0.4140625  # of the masks: those of pairs exactly at a radius do not add up to an integer
ROUNDING = 2.0**-22  # of a number in two parts, of a product of matrices, and of half of half precision

force = OnDevice(THREADS, shared=lambda bytes: bytes)


@dataclass(frozen=True)
class Tensor(SearchConfig):
    """Configuration of the search by matrix products on tensor cores, for laws with `windows`.

    Other laws, float64, and devices without tensor cores get the kernel of `Coherent`
    (`TensorSearch.uses_tensor_cores`). In float32 on a device the particles are in any case sorted by
    quarters of cells, so that `coherent` is faster for other laws. `accesses` returns the partners that its
    kernel compares, particle by particle.

    Args:
        cell_order: order of the cells in memory, "row".

    Raises:
        TypeError: an order that is no word.
        ValueError: another order.
    """

    name = "tensor"
    capabilities = SearchCapabilities(fusable=True, capturable=True, moves_particles=True)
    cell_order: str = "row"

    def __post_init__(self):
        self._check("cell_order", checks.word, ("row",), "or search 'coherent', which sorts along any")

    @classmethod
    def cell_orders(cls, dim: int) -> tuple[str, ...]:
        """Return "row", the only order of the cells."""
        return ("row",)

    def build(self, system: System) -> TensorSearch:
        """Make the search for a system.

        Raises:
            ValueError: more cells than fit in memory.
        """
        return TensorSearch(self, system)


class TensorSearch(Search):
    """Search by matrix products over the particles of a system, sorted by cell."""

    def __init__(self, config: Tensor, system: System):
        super().__init__(config, system)
        grid, p = self.grid, self.particles
        block = BLOCK[grid.box.dim]
        self._blocks = [-(-cells // size) for cells, size in zip(grid.shape, block, strict=True)]
        self._capacity = self._suitable_capacity(block)
        self._parts = PARTS if self._capacity else 1
        self._finer = grid.with_finer_rows(self._parts)
        self._sort = CellSort(config.cell_order, p.n, self._finer, self.backend)
        self._start = self.backend.empty(grid.size + 1, np.int32)
        self._unranked = self.backend.empty(0, np.int32)
        self._records: dict[tuple[float, ...], np.ndarray] = {}

    def _suitable_capacity(self, block: tuple[int, ...]) -> int:
        """Return how many particles a block stages; 0 where the kernel of `Coherent` is used."""
        grid = self.grid
        too_many = max(THREADS * math.prod(self._blocks), PARTS * grid.size) > MAX_CELLS
        free = 0 if too_many or grid.precision != np.float32 else self.backend.staging_memory
        around = math.prod(size + 2 for size in block)
        mean = around * self.particles.n / grid.size
        expected = mean + 4 * math.sqrt(mean) + PADDING * around // (block[0] + 2)
        rooms = [room for room in CAPACITIES if ENTRY * room + FIXED <= free]
        return next((room for room in rooms if room >= expected), max(rooms, default=0))

    @property
    def uses_tensor_cores(self) -> bool:
        """Whether laws with `windows` are summed on tensor cores: in float32, on a device that has them."""
        return self._capacity > 0

    def __repr__(self) -> str:
        way = "on tensor cores" if self.uses_tensor_cores else "by the kernel of coherent"
        return f"<{type(self).__name__} of {self.config!r} on {self.particles.n} particles, {way}>"

    def build(self) -> None:
        """Sort the particles by the number of their cell, in memory."""
        self._sort.apply(self.particles)

    def structure(self) -> tuple[Array, Array]:
        """Return the first slot of each cell of the system's grid, by number, and no ranks of cells: (0,)."""
        if self._parts == 1:
            return self._sort.start, self._unranked
        self._sort.store_starts(self._parts, self._start)
        return self._start, self._unranked

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        p, windows = self.particles, getattr(law, "windows", ())
        if not (windows and self._capacity):
            kernels = self.backend.kernels(coherent.__name__, law)
            kernels.force(p.n, p.pos, p.vel, *self.structure(), self.grid.record, parameters, out)
            return
        blocks, record = math.prod(self._blocks), self._record(windows)
        self.backend.kernels(__name__, law).force(
            THREADS * blocks, p.n, p.pos, p.vel, self._sort.start, *self._blocks[:2], self._capacity,
            ENTRY * self._capacity, record, self._finer.record, parameters, out,
        )  # fmt: skip

    def _record(self, windows: tuple[float, ...]) -> np.ndarray:
        """Return the record of the radii and scales that the kernel takes."""
        if windows not in self._records:
            self._records[windows] = self._new_record(windows)
        return self._records[windows]

    def _new_record(self, windows: tuple[float, ...]) -> np.ndarray:
        grid, real, remedy = self.grid, np.float32, "the cutoff of a law is its largest window"
        for radius in windows:
            checks.number("window of the law", radius, above=0, high=grid.cutoff, unit="d", remedy=remedy)
        radii = sorted({real(radius) for radius in windows}, reverse=True)
        scale = 2.0 ** (2 - math.floor(math.log2(radii[0])))  # the largest radius becomes 4 to 8
        sides, half = np.divide(grid.box.lengths, grid.shape), np.divide(BLOCK[grid.box.dim], 2)
        # Squares of the largest distances from the centre: of particles of the block, and of those around it.
        distances = ((half + more) * sides * scale + 0.5 for more in (0, 1))
        own2, farthest2 = (1.01 * (distance**2).sum() for distance in distances)
        # Errors of a squared distance. The square of the own distance is rounded, and its two halves meet the
        # product and the offset; the other square is rounded; and so is the sum of the products.
        error = ROUNDING * (3 * own2 + 2 * farthest2)
        sharpness = np.float16(OFFSET / error)
        scaled2 = [radius * radius * real(scale * scale) for radius in radii]
        window_of = [radii.index(real(radius)) for radius in windows]
        dtype = np.dtype(
            [
                ("radius2", real, (len(radii),)),  # in units of the scale, the largest first
                ("offset", real),
                ("window_of", np.int32, (len(windows),)),  # index of each radius of the law
                ("scale", real),
                ("unit", real),  # 1 / scale
                ("sharpness", real),
                ("farthest2", real),
            ],
            align=True,
        )
        return np.array([(scaled2, OFFSET, window_of, scale, 1 / scale, sharpness, farthest2)], dtype)

"""Sums over the particles, in float64 where they are."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from md import checks
from md.backend.base import Backend
from md.backend.prelude import cell_number, home_cell, load
from md.observe.pair_tally import PairTally
from md.simulation.device_view import DeviceView
from sfc.compile import kernel

MOST_BINS = 1000  # as in sums.cu
THREADS = 2**17  # of a device, in whole blocks; each takes a particle after the other


def cells_of(cells: Any, most: int) -> int | tuple[int, ...]:
    """Cells as Python integers, so that no product of them wraps: one an axis, or one for all axes.

    Args:
        cells: an integer, or a sequence of them, of any width.
        most: in all.

    Raises:
        TypeError: something else.
        ValueError: a number below 1, or more cells than allowed.
    """
    if checks.is_integer(cells):
        return checks.integer("cells", cells, 1, most, unit="cells along each axis")
    axes = len(checks.sequence("cells", cells, "integers, or one integer for all axes"))
    if axes not in (2, 3):
        raise checks.refuse_value("cells", cells, "an integer, or one for each of two or three axes")
    return cells_along(cells, axes, most)


def cells_along(cells: Any, dim: int, most: int) -> tuple[int, ...]:
    """Cells along each axis of a box.

    Args:
        cells: as of `cells_of`.
        dim: axes of the box.
        most: in all.

    Raises:
        TypeError: as `cells_of`.
        ValueError: likewise, or another number of them than axes.
    """
    along = checks.per_axis("cells", cells, dim, 1, most)
    if math.prod(along) > most:
        raise checks.refuse_value("cells", cells, f"at most {most} cells together, not {math.prod(along)}")
    return along


def binned(inside: DeviceView, bins: tuple[int, ...]) -> np.ndarray:
    """Sums over the particles in each part of the box; those beyond an open side are in none.

    Args:
        inside: of a simulation.
        bins: parts along each axis, all alike; at most `MOST_BINS` in all.

    Returns:
        (bins of axis 0, ... of the last, 3 + dim) float64: the number of particles, the sums of the speed
        and of its square, and that of each component of the velocity.
    """
    p, backend = inside.particles, inside.backend
    record = inside.search.grid.record.copy()  # its cells are the bins
    record["cells"][0] = (*bins, 1)[:3]
    record["per_side"][0] = np.array(bins) / p.box.lengths
    sums = backend.zeros(math.prod(bins) * (3 + p.box.dim), np.float64)
    backend.kernels(__name__).tally(_threads(p.n), p.n, p.pos, inside.vel, record, 4 * backend.workers, sums)
    sums = backend.download(sums).reshape(*bins[::-1], -1)  # axis 0 is the fastest in a cell's number
    return sums.transpose(*range(len(bins))[::-1], len(bins))


def total(measure: PairTally, backend: Backend) -> tuple[float, int, int]:
    """What a fold has measured, over all particles.

    Returns:
        Energy of the pairs, number of touching pairs, number of contacts begun in the last step.
    """
    n = len(measure.energy)
    sums = backend.zeros(3, np.float64)
    backend.kernels(__name__).add_up(
        _threads(n), n, measure.energy, measure.touching, measure.begun, 4 * backend.workers, sums
    )
    energy, touching, begun = backend.download(sums).tolist()
    return energy, int(touching) // 2, int(begun) // 2


def _threads(n: int) -> int:
    return min(-(-n // 256) * 256, THREADS)


@kernel(parallel=True)
def tally(threads, n, pos, vel, grid, parts, sums):
    """Raise the sums of each bin, a cell of `grid`: count, speed, its square, each component of the velocity.

    `threads` are those of a device; here each part takes a stretch of the particles.
    """
    columns = 3 + pos.shape[1]
    partial = np.zeros((parts, len(sums)))
    for p in numba.prange(parts):
        g = grid[0]
        for i in range(p * n // parts, (p + 1) * n // parts):
            r, out = load(pos, i, g), False
            for axis in range(pos.shape[1]):
                out |= r[axis] < 0 or r[axis] > g.length[axis]
            if out:
                continue
            at = columns * cell_number(g, home_cell(g, r))
            v2 = 0.0
            for axis in range(pos.shape[1]):
                v = np.float64(vel[i, axis])  # `float` leaves a float32 what it is
                v2 += v * v
                partial[p, at + 3 + axis] += v
            partial[p, at] += 1
            partial[p, at + 1] += math.sqrt(v2)
            partial[p, at + 2] += v2
    for p in range(parts):
        sums += partial[p]


@kernel(parallel=True)
def add_up(threads, n, energy, touching, begun, parts, sums):
    """Raise three sums by those of three arrays."""
    partial = np.zeros((parts, 3))
    for p in numba.prange(parts):
        for i in range(p * n // parts, (p + 1) * n // parts):
            partial[p, 0] += energy[i]
            partial[p, 1] += touching[i]
            partial[p, 2] += begun[i]
    for p in range(parts):
        sums += partial[p]

"""Sums over the particles in float64, computed on the device."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from md import checks
from md.backend.base import Array
from md.backend.prelude import cell_number, home_cell, load
from md.observe.pair_tally import PairTally
from md.simulation.device_view import DeviceView
from sfc.compile import in_parts, inlined, kernel

MOST_BINS = 1000  # as in sums.cu
THREADS = 2**17  # at most, on a device, in whole blocks; each sums several particles


def cells_of(cells: Any, most: int) -> int | tuple[int, ...]:
    """Convert numbers of cells to Python integers, so that products do not wrap: one an axis, or one for all.

    Args:
        cells: an integer, or a sequence of them, of any width.
        most: largest number of cells in all.

    Raises:
        TypeError: neither an integer nor a sequence of integers.
        ValueError: a number below 1, or more cells than allowed.
    """
    if checks.is_integer(cells):
        return checks.integer("cells", cells, 1, most, unit="cells along each axis")
    axes = len(checks.sequence("cells", cells, "integers, or one integer for all axes"))
    if axes not in (2, 3):
        raise checks.refuse_value("cells", cells, "an integer, or one for each of two or three axes")
    return cells_along(cells, axes, most)


def cells_along(cells: Any, dim: int, most: int) -> tuple[int, ...]:
    """Return the number of cells along each axis of a box.

    Args:
        cells: as for `cells_of`.
        dim: axes of the box.
        most: largest number of cells in all.

    Raises:
        TypeError: neither an integer nor a sequence of integers.
        ValueError: a number below 1, more cells than allowed, or another number of entries than axes.
    """
    along = checks.per_axis("cells", cells, dim, 1, most)
    if math.prod(along) > most:
        raise checks.refuse_value("cells", cells, f"at most {most} cells together, not {math.prod(along)}")
    return along


def binned(view: DeviceView, bins: tuple[int, ...], pos: Array | None = None) -> np.ndarray:
    """Sum over the particles in each bin of the box; particles beyond an open side are in none.

    Args:
        view: of a simulation.
        bins: bins of equal width along each axis; at most `MOST_BINS` in all.
        pos: (n, dim) positions by which bins are found, in the layout of the particles; None for their own.

    Returns:
        (bins of axis 0, ... of the last, 3 + dim) float64: the number of particles, the sums of the speed
        and of its square, and the sum of each component of the velocity.
    """
    n, backend, pos = view.particles.n, view.backend, view.particles.pos if pos is None else pos
    add = partial(backend.kernels(__name__).tally, _threads(n), n, pos, view.vel)
    return sums_of_cells(view, bins, lambda grid, sums: add(grid, 4 * backend.workers, sums))


def sums_of_cells(view: DeviceView, cells: tuple[int, ...], add: Callable[..., None]) -> np.ndarray:
    """Sum over the particles in each cell of a grid over the box.

    Args:
        view: of a simulation.
        cells: along each axis.
        add: takes the record of a grid of these cells, and an array of the backend to which it adds the sums.

    Returns:
        (cells of axis 0, ... of the last, 3 + dim) float64.
    """
    dim, grid = len(cells), view.search.grid.record.copy()
    grid["cells"][0] = (*cells, 1)[:3]
    grid["per_side"][0] = np.array(cells) / view.particles.box.lengths
    sums = view.backend.zeros(math.prod(cells) * (3 + dim), np.float64)
    add(grid, sums)
    found = view.across(view.backend.download(sums))
    sums = found.reshape(*cells[::-1], -1)  # axis 0 is the fastest in a cell's number
    return sums.transpose(*range(dim)[::-1], dim)


def summed(view: DeviceView, sums: np.ndarray) -> np.ndarray:
    """Sum over all particles, those beyond open sides of the box included.

    Args:
        view: of a simulation.
        sums: from `binned`; without open sides every particle is in a bin.

    Returns:
        (3 + dim,) float64, as in each bin of `binned`.
    """
    if any(view.particles.box.open):
        pos = view.particles.spare[0]
        # All particles are in one bin: a tally reads positions to find the bin alone.
        pos[: view.particles.n] = 0
        sums = binned(view, (1,) * view.particles.box.dim, pos)
    return sums.reshape(-1, sums.shape[-1]).sum(axis=0)


def total(tally: PairTally, view: DeviceView) -> tuple[float, int, int]:
    """Sum a pair tally over all particles.

    Args:
        tally: of the particles of a view.
        view: of the simulation.

    Returns:
        Energy of the pairs, number of touching pairs, number of contacts started in the last step.
    """
    n, backend = len(tally.energy), view.backend
    sums = backend.zeros(3, np.float64)
    backend.kernels(__name__).add_up(
        _threads(n), n, tally.energy, tally.touching, tally.started, 4 * backend.workers, sums
    )
    energy, touching, started = view.across(backend.download(sums)).tolist()
    return energy, int(touching) // 2, int(started) // 2


def _threads(n: int) -> int:
    """Return the number of device threads for n particles."""
    return min(-(-n // 256) * 256, THREADS)


def tally(threads, n, pos, vel, grid, parts, sums):
    """Add to the sums of each bin, a cell of `grid`: count, speed, its square, components of the velocity.

    `threads` is the number of threads on a device; here each part sums a range of the particles.
    """
    by_part = np.zeros((parts, len(sums)))
    in_parts(lambda part: _tally(part.start, part.stop, n, pos, vel, grid, by_part), parts, rows=n)
    for one in by_part:
        sums += one


@inlined
def cell_of(grid, r):
    """Return the number of the cell of a position; -1 for one beyond an open side of the box."""
    for axis in range(len(r)):
        if r[axis] < 0 or r[axis] > grid.length[axis]:
            return -1
    return cell_number(grid, home_cell(grid, r))


@kernel
def _tally(first, last, n, pos, vel, grid, partial):
    """Add the particles of parts first .. last - 1 to their sums of `tally`."""
    columns, parts, g = 3 + pos.shape[1], len(partial), grid[0]
    for p in range(first, last):
        for i in range(p * n // parts, (p + 1) * n // parts):
            at, v2 = columns * cell_of(g, load(pos, i, g)), 0.0
            if at < 0:
                continue
            for axis in range(pos.shape[1]):
                v = np.float64(vel[i, axis])  # float() leaves a float32 as it is
                v2 += v * v
                partial[p, at + 3 + axis] += v
            partial[p, at] += 1
            partial[p, at + 1] += math.sqrt(v2)
            partial[p, at + 2] += v2


def add_up(threads, n, energy, touching, started, parts, sums):
    """Add the sums of three arrays to three sums; `threads` is the number of threads on a device."""
    by_part, given = np.zeros((parts, 3)), (energy, touching, started)
    in_parts(lambda part: _add_up(part.start, part.stop, n, *given, by_part), parts, rows=n)
    for one in by_part:
        sums += one


@kernel
def _add_up(first, last, n, energy, touching, started, partial):
    """Add the entries of parts first .. last - 1 to their sums of `add_up`."""
    parts = len(partial)
    for p in range(first, last):
        for i in range(p * n // parts, (p + 1) * n // parts):
            partial[p, 0] += energy[i]
            partial[p, 1] += touching[i]
            partial[p, 2] += started[i]

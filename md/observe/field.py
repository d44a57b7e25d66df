"""Fields on a grid of cells: density, velocity, temperature, pressure. Summed where the particles are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from md.backend.jit import kernel
from md.backend.prelude import cell_number, home_cell, load
from md.box import Box
from md.laws.virial import Virial
from md.reporter import checked
from md.simulation import Simulation

MOST_CELLS = 2**24


class Field(NamedTuple):
    """What is in each cell of a grid over the box; a particle is in the cell that its centre is in.

    Attributes:
        step: steps taken.
        time: passed, in time units.
        centres: for each axis the (cells,) middles of the cells, in d.
        particles: (cells of axis 0, ... of the last) number of particles.
        number_density: likewise, in 1 / d^dim.
        velocity: (..., dim) mean, in d per time unit; NaN in an empty cell.
        temperature: m <(v - velocity)^2> / dim, in d^2 / time^2; NaN in an empty cell. Of k particles it
            misses a share of 1 / k, which the cell's own mean takes along.
        contact_pressure: of the pairs of particles (`md.laws.virial`), in m d^(2 - dim) / time^2.
        pressure: that, and number density times temperature.
    """

    step: int
    time: float
    centres: tuple[np.ndarray, ...]
    particles: np.ndarray
    number_density: np.ndarray
    velocity: np.ndarray
    temperature: np.ndarray
    contact_pressure: np.ndarray
    pressure: np.ndarray


def field(simulation: Simulation, cells: Sequence[int]) -> Field:
    """The fields of a simulation now, without changing its run.

    Takes about as long as two steps. A particle out of an open side of the box is in no cell.

    Args:
        simulation: the simulation.
        cells: along each axis, up to 2^24 in all.

    Raises:
        ValueError: cells that do not fit the box.
        SimulationFault: the run has ended with it.
    """
    inside = simulation.inside()
    box = inside.particles.box
    whole = all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) and c >= 1 for c in cells)
    if not whole or len(cells) != box.dim or math.prod(cells) > MOST_CELLS:
        raise ValueError(
            f"cells = {cells!r}; allowed in this box: {box.dim} integers of at least 1, together at most "
            f"{MOST_CELLS}"
        )
    p, backend, dim = inside.particles, inside.backend, box.dim
    if len(p.radius):
        raise ValueError("a field of particles of given radius; allowed: State(radius=None), all of 0.5")
    law = Virial(inside.law, p.n, backend)
    inside.search.force(law, p.spare[0])
    record = inside.search.grid.record.copy()
    record["cells"][0] = (*cells, 1)[:3]
    record["per_side"][0] = np.array(cells) / box.lengths
    sums = backend.zeros(math.prod(cells) * (3 + dim), np.float64)
    backend.kernels(__name__).collect(p.n, p.pos, inside.vel, law.virial, record, sums)
    sums = backend.download(sums).reshape(*cells[::-1], -1)  # axis 0 is the fastest in a cell's number
    return _field(inside.step, inside.time, sums.transpose(*range(dim)[::-1], dim), box)


class Fields:
    """A reporter that takes fields; for `Simulation.run(reporters=[fields])`.

    Args:
        interval: in steps, at least 1.
        cells: as of `field`.

    Attributes:
        seen: a `Field` for each look, in order.

    Raises:
        ValueError: an interval that is none.
    """

    def __init__(self, interval: int, cells: Sequence[int]):
        self.interval, self.cells = interval, tuple(cells)
        checked([self])
        self.seen: list[Field] = []

    def report(self, simulation: Simulation) -> None:
        """Take the fields of a simulation."""
        self.seen.append(field(simulation, self.cells))

    def mean(self) -> Field:
        """The mean over all looks, at the last one's time; of velocities where there was anybody.

        Raises:
            ValueError: nothing was seen.
        """
        if not self.seen:
            raise ValueError("no field was seen yet; run the simulation for at least one interval")
        of_cells = [name for name in Field._fields if name not in ("step", "time", "centres")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a cell in which there never was anybody
            means = {
                name: np.nanmean([getattr(seen, name) for seen in self.seen], axis=0) for name in of_cells
            }
        return self.seen[-1]._replace(**means)


def _field(step: int, time: float, sums: np.ndarray, box: Box) -> Field:
    """The fields from (..., 3 + dim) sums of 1, v^2, the virial and the velocity."""
    cells, dim = sums.shape[:-1], box.dim
    volume = box.volume / math.prod(cells)
    count = sums[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        velocity = sums[..., 3:] / count[..., None]
        temperature = np.maximum(sums[..., 1] / count - np.square(velocity).sum(axis=-1), 0) / dim
    density, contact = count / volume, sums[..., 2] / (dim * volume)
    centres = tuple((np.arange(c) + 0.5) * side / c for c, side in zip(cells, box.lengths, strict=True))
    motion = density * np.nan_to_num(temperature)
    return Field(
        step, time, centres, count.astype(np.int64), density, velocity, temperature, contact, motion + contact
    )


@kernel
def collect(n, pos, vel, virial, grid, sums):
    """Raise the sums of each cell: 1, v^2, the virial, and each component of the velocity."""
    dim, g = pos.shape[1], grid[0]
    for i in range(n):
        r = load(pos, i, g)
        out = False
        for axis in range(dim):
            out |= r[axis] < 0 or r[axis] > g.length[axis]
        if out:
            continue
        at, v2 = (3 + dim) * cell_number(g, home_cell(g, r)), 0.0
        for axis in range(dim):
            v = np.float64(vel[i, axis])
            v2 += v * v
            sums[at + 3 + axis] += v
        sums[at] += 1
        sums[at + 1] += v2
        sums[at + 2] += virial[i]

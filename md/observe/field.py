"""Fields on a grid of cells: density, velocity, temperature, pressure. Summed where the particles are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from md import checks
from md.backend.base import Array
from md.backend.prelude import cell_number, home_cell, load
from md.observe.sums import cells_along, cells_of
from md.observe.virial import Virial
from md.particles.box import Box
from md.simulation import Simulation
from md.simulation.device_view import DeviceView
from sfc.compile import kernel

MOST_CELLS = 2**24


class Field(NamedTuple):
    """What is in each cell of a grid over the box; a particle is in the cell that its centre is in.

    Attributes:
        step: steps taken.
        time: passed, in time units.
        centres: for each axis the (cells,) middles of the cells, in d.
        particles: (cells of axis 0, ... of the last) number of particles, float64.
        number_density: likewise, in 1 / d^dim.
        velocity: (..., dim) mean, in d per time unit; NaN in an empty cell.
        temperature: m <(v - velocity)^2> / dim, in d^2 / time^2; NaN in an empty cell. Of k particles it
            misses a share of 1 / k, which the cell's own mean takes along.
        contact_pressure: of the pairs of particles (`md.observe.virial`), in m d^(2 - dim) / time^2.
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


def field(simulation: Simulation, cells: int | Sequence[int]) -> Field:
    """The fields of a simulation now, without changing its run.

    Takes about as long as two steps. A particle out of an open side of the box is in no cell. Where a cell
    has few particles take the mean of many looks (`Fields`): its own mean velocity takes 1 / k of the
    temperature of k particles along, and with it of the pressure.

    Args:
        simulation: the simulation.
        cells: along each axis, or one number for all axes; up to 2^24 in all.

    Raises:
        TypeError: no `md.Simulation`, or cells that are no integers.
        ValueError: cells that do not fit the box, particles of given radius, or a law that sums other things
            than forces.
        SimulationFault: the run has ended with it.
    """
    inside = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
    return _field(inside.step, inside.time, _sums(inside, cells), 1, inside.particles.box)


def virial(simulation: Simulation) -> np.ndarray:
    """What the contacts of each particle press with (`md.observe.virial`): (n,) float64 in order of id.

    In m d^2 / time^2; over dim times the area that a particle has (in 3D volume) it is the pressure on it.

    Raises:
        TypeError: no `md.Simulation`.
        ValueError: particles of given radius, or a law that sums other things than forces.
        SimulationFault: the run has ended with it.
    """
    inside = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
    law, slots = _pressed(inside)
    found, slots, id = map(inside.backend.download, (law.virial, slots, inside.particles.id))
    return found[np.argsort(id[slots] if len(slots) else id)]


class Fields:
    """A reporter that adds up fields; for `Simulation.run(reporters=[fields])` of one simulation.

    Args:
        interval: in steps, at least 1.
        cells: as of `field`.

    Raises:
        TypeError: an interval or cells that are no integers.
        ValueError: an interval below 1, or cells out of range.
    """

    def __init__(self, interval: int, cells: int | Sequence[int]):
        self.interval = checks.integer("interval of Fields", interval, unit="steps")
        self.cells = cells_of(cells, MOST_CELLS)
        self._looks, self._seen = 0, None

    def report(self, simulation: Simulation) -> None:
        """Add the fields of a simulation as it is."""
        inside = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
        sums = _sums(inside, self.cells)
        self._sums = sums if self._looks == 0 else self._sums + sums
        self._looks += 1
        self._seen = inside.step, inside.time, inside.particles.box

    def mean(self) -> Field:
        """The mean over all looks, at the last one's step and time.

        Velocity and temperature are those of all particles that were in a cell at any look, so that a cell
        need not have many at one; `particles` are a mean of numbers.

        Raises:
            ValueError: nothing was seen.
        """
        if self._seen is None:
            raise ValueError("no field was seen yet; run the simulation for at least one interval")
        step, time, box = self._seen
        return _field(step, time, self._sums, self._looks, box)


def _pressed(inside: DeviceView) -> tuple[Virial, Array]:
    """The virial by rows of the search's kernel, and the slot of each row, (0,) where it is the same."""
    p = inside.particles
    if len(p.radius):
        raise ValueError("a field of particles of given radius; allowed: State(radius=None), all of 0.5")
    law = Virial(inside.law, p.n, inside.backend)
    inside.search.force(law, p.spare[0])
    return law, inside.search.slots


def _sums(inside: DeviceView, cells: int | Sequence[int]) -> np.ndarray:
    """(cells of axis 0, ... of the last, 3 + dim) sums of 1, v^2, the virial and the velocity."""
    p, backend, box = inside.particles, inside.backend, inside.particles.box
    cells = cells_along(cells, box.dim, MOST_CELLS)
    law, slots = _pressed(inside)
    record = inside.search.grid.record.copy()
    record["cells"][0] = (*cells, 1)[:3]
    record["per_side"][0] = np.array(cells) / box.lengths
    sums = backend.zeros(math.prod(cells) * (3 + box.dim), np.float64)
    backend.kernels(__name__).collect(p.n, p.pos, inside.vel, slots, law.virial, record, sums)
    sums = backend.download(sums).reshape(*cells[::-1], -1)  # axis 0 is the fastest in a cell's number
    return sums.transpose(*range(box.dim)[::-1], box.dim)


def _field(step: int, time: float, sums: np.ndarray, looks: int, box: Box) -> Field:
    """The fields from the sums of some looks."""
    cells, dim = sums.shape[:-1], box.dim
    volume = looks * box.volume / math.prod(cells)
    count = sums[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        velocity = sums[..., 3:] / count[..., None]
        temperature = np.maximum(sums[..., 1] / count - np.square(velocity).sum(axis=-1), 0) / dim
    density, contact = count / volume, sums[..., 2] / (dim * volume)
    centres = tuple((np.arange(c) + 0.5) * side / c for c, side in zip(cells, box.lengths, strict=True))
    motion = density * np.nan_to_num(temperature)
    return Field(
        step, time, centres, count / looks, density, velocity, temperature, contact, motion + contact
    )


@kernel
def collect(n, pos, vel, slots, virial, grid, sums):
    """Raise the sums of each cell: 1, v^2, the virial (row k is of slot slots[k]), and the velocity."""
    dim, g = pos.shape[1], grid[0]
    for row in range(n):
        i = np.int64(slots[row]) if len(slots) else row
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
        sums[at + 2] += virial[row]

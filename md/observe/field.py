"""Fields on a grid of cells: density, velocity, temperature, pressure. Sums are computed on the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from md import checks
from md.backend.base import Array
from md.backend.prelude import load
from md.domain.together import of_all_ranks
from md.observe.profile import mean_velocity, thermal_energy
from md.observe.sums import cell_of, cells_along, cells_of, sums_of_cells
from md.observe.virial import Virial
from md.particles.box import Box
from md.simulation import Simulation
from md.simulation.device_view import DeviceView
from sfc.compile import kernel

MOST_CELLS = 2**24


class Field(NamedTuple):
    """Density, velocity, temperature and pressure in each cell of a grid over the box.

    A particle counts for the cell of its centre.

    Attributes:
        step: steps taken.
        time: time since step 0, in time units.
        centres: for each axis the (cells,) centres of the cells, in d.
        particles: (cells of axis 0, ... of the last) number of particles, float64.
        number_density: (cells of axis 0, ... of the last), in 1 / d^dim.
        velocity: (..., dim) mean, in d per time unit; NaN in an empty cell.
        temperature: m <(v - velocity)^2> / dim, in d^2 / time^2; NaN in an empty cell. For k particles it is
            too low by a fraction of 1 / k, because the mean velocity is that of the same particles.
        contact_pressure: of the pairs of particles (`md.observe.virial`), in m d^(2 - dim) / time^2.
        pressure: contact pressure plus number density times temperature.
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


@of_all_ranks
def field(simulation: Simulation, cells: int | Sequence[int]) -> Field:
    """Compute the fields of a simulation at its step, without changing the run.

    Takes about as long as two steps. A particle beyond an open side of the box is in no cell. For cells with
    few particles take the mean of many reports (`Fields`): the mean velocity of k particles makes their
    temperature, and with it the pressure, too low by a fraction of 1 / k.

    Args:
        simulation: the simulation.
        cells: along each axis, or one number for all axes; up to 2^24 in all.

    Returns:
        The fields.

    Raises:
        TypeError: no `md.Simulation`, or cells that are not integers.
        ValueError: cells that do not fit the box, particles of given radius, or a law that sums other values
            than forces.
        SimulationFault: the fault that ended the run.
    """
    view = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
    return _field(view.step, view.time, _sums(view, cells), 1, view.particles.box)


@of_all_ranks
def virial(simulation: Simulation) -> np.ndarray:
    """Compute the virial of the contacts of each particle (`md.observe.virial`).

    Divided by dim times the volume of a particle (in 2D its area), it is the pressure on the particle.

    Args:
        simulation: the simulation.

    Returns:
        (n,) float64 in order of id, in m d^2 / time^2.

    Raises:
        TypeError: no `md.Simulation`.
        ValueError: particles of given radius, or a law that sums other values than forces.
        SimulationFault: the fault that ended the run.
    """
    view = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
    law, slots = _virial_of(view)
    found, slots, id = map(view.backend.download, (law.virial, slots, view.particles.id))
    id = id[slots] if len(slots) else id[: len(found)]
    if view.domain is not None:
        found, id = view.domain.communicator.concatenated(found, id)
    return found[np.argsort(id)]


class Fields:
    """A reporter that averages fields; for `Simulation.run(reporters=[fields])` of one simulation.

    Args:
        interval: in steps, at least 1.
        cells: as for `field`.

    Raises:
        TypeError: an interval or cells that are not integers.
        ValueError: an interval below 1, or cells out of range.
    """

    def __init__(self, interval: int, cells: int | Sequence[int]):
        self.interval = checks.integer("interval of Fields", interval, unit="steps")
        self.cells = cells_of(cells, MOST_CELLS)
        self._reports = 0
        self._sums: Any = 0.0
        self._last: tuple[int, float, Box] | None = None  # step, time, box of the last report

    def __repr__(self) -> str:
        return f"<Fields(interval={self.interval}, cells={self.cells}), {self._reports} added>"

    def report(self, simulation: Simulation) -> None:
        """Add the fields of a simulation at its step."""
        view = checks.instance("simulation", simulation, Simulation, "an md.Simulation").device_view()
        self._sums = self._sums + _sums(view, self.cells)
        self._reports += 1
        self._last = view.step, view.time, view.particles.box

    def mean(self) -> Field:
        """Compute the mean over all reports, with the step and time of the last one.

        Velocity and temperature are those of all particles that were in a cell at any report, so that a cell
        need not have many at one; `particles` is a mean of numbers.

        Raises:
            ValueError: no report yet.
        """
        if self._last is None:
            raise ValueError("no field was seen yet; run the simulation for at least one interval")
        step, time, box = self._last
        return _field(step, time, self._sums, self._reports, box)


def _virial_of(view: DeviceView) -> tuple[Virial, Array]:
    """Compute the virial by rows of the search's kernel, and the slot of each row; (0,) for equal ones."""
    p = view.particles
    if len(p.radius):
        raise ValueError("a field of particles of given radius; allowed: State(radius=None), all of 0.5")
    law = Virial(view.law, p.n, view.backend)
    view.search.force(law, p.spare[0])
    return law, view.search.slots


def _sums(view: DeviceView, cells: int | Sequence[int]) -> np.ndarray:
    """Sum 1, v^2, the virial and the velocity in each cell: (cells of axis 0, ... of the last, 3 + dim)."""
    p, cells = view.particles, cells_along(cells, view.particles.box.dim, MOST_CELLS)
    law, slots = _virial_of(view)
    add = partial(view.backend.kernels(__name__).collect, p.n, p.pos, view.vel, slots, law.virial)
    return sums_of_cells(view, cells, add)


def _field(step: int, time: float, sums: np.ndarray, reports: int, box: Box) -> Field:
    """Compute the fields from the sums of some reports."""
    cells, dim = sums.shape[:-1], box.dim
    volume = reports * box.volume / math.prod(cells)
    count, temperature = sums[..., 0], thermal_energy(sums, squares=1) * 2 / dim
    density, contact = count / volume, sums[..., 2] / (dim * volume)
    centres = tuple((np.arange(c) + 0.5) * side / c for c, side in zip(cells, box.lengths, strict=True))
    motion = density * np.nan_to_num(temperature)
    flow = mean_velocity(sums)
    return Field(step, time, centres, count / reports, density, flow, temperature, contact, motion + contact)


@kernel
def collect(n, pos, vel, slots, virial, grid, sums):
    """Add to the sums of each cell: 1, v^2, the virial (row k is of slot slots[k]), and the velocity."""
    dim, g = pos.shape[1], grid[0]
    for row in range(n):
        i = np.int64(slots[row]) if len(slots) else row
        at, v2 = (3 + dim) * cell_of(g, load(pos, i, g)), 0.0
        if at < 0:
            continue
        for axis in range(dim):
            v = np.float64(vel[i, axis])
            v2 += v * v
            sums[at + 3 + axis] += v
        sums[at] += 1
        sums[at + 1] += v2
        sums[at + 2] += virial[row]

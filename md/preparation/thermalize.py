"""Randomisation of positions: an elastic run in a periodic box, then relaxation of overlaps.

There are three regimes of the filling fraction. In a light gas a run over a lattice spacing removes the
lattice. In a dense gas it does not, and from about 0.55 in 3D a crystal persists in any run. There the run is
hot and longer: spheres of that temperature overlap so far that their effective filling fraction is that of a
fluid, and the lattice melts. After relaxation the positions are random too, as long as the filling fraction
is well below that at which random packings jam, 0.64 in 3D (O'Hern et al., Phys. Rev. E 68 (2003) 011306).
Above, only a crystal fits: the run disturbs it, but does not melt it.

Measured in 3D (two to four thousand spheres, runs over a lattice spacing): the structure factor has no
significant peak; its largest value is 25 or less, where that of the lattice was n. The steps of relaxation:
40 at a filling fraction of 0.4, 100 at 0.5, 180 at 0.55, 400 at 0.58 and 1100 at 0.6; at 0.62 they are 7000
and more.
"""

import math

import numpy as np

from md.backend import Backend, get
from md.checks import number
from md.laws import SpringDashpot
from md.particles.box import Box
from md.particles.state import State, sphere_volume
from md.reorder import Reorder
from md.reorder.triggers import Every
from md.scenes.maxwell import maxwell_velocities
from md.search import Linked
from md.simulation import Simulation

# Largest filling fractions by dim: for which a run over a lattice spacing is enough, and for which random
# packings relax quickly.
LIGHT = {2: 0.6, 3: 0.35}
RANDOM = {2: 0.8, 3: 0.61}

# The elastic run: as stiff as the benchmark gas at its temperature, a dozen steps a contact.
_LAW = SpringDashpot(stiffness=1e4, damping=0.0)
_DT = _LAW.contact_time / 12
_TEMPERATURE = 16.0
_HOT, _LONGER = 64.0, 4  # temperature at which spheres overlap by 0.1 d, and factor of the path

_MARGIN = 2e-3  # overlaps are relaxed for spheres this much larger, so that none is left at diameter 1
_BATCH, _BATCHES = 20, 250
MOST_MIXING = 1000.0  # lattice spacings; one is enough to remove the lattice
THINNEST = 2 * (1 + _MARGIN)  # side of a box for the relaxing law


def mixing_path(mixing: float) -> float:
    """Check the mean path of the elastic run, in lattice spacings.

    Returns:
        The mean path as a Python float.

    Raises:
        TypeError: not a number.
        ValueError: a negative number, or one above `MOST_MIXING`.
    """
    return number(
        "mixing",
        mixing,
        0,
        MOST_MIXING,
        unit="lattice spacings",
        remedy="1 is enough to remove the lattice, 0 keeps it; for more run a simulation of the state",
    )


def least_spacing(filling_fraction: float, dim: int) -> float:
    """Return the least lattice spacing in d for `randomised`; a crystal that does not melt needs a margin."""
    return 1.0 if filling_fraction <= RANDOM[dim] else 1 + _MARGIN


def randomised(
    pos: np.ndarray, box: Box, path: float, generator: np.random.Generator, backend: str | Backend
) -> np.ndarray:
    """Randomise positions by an elastic run, so that no two are closer than a diameter.

    Args:
        pos: (n, dim) in d, n at least 2, on a lattice of at least `least_spacing`.
        box: periodic along every axis, at least `THINNEST` on a side.
        path: mean path of the run in d; `_LONGER` times as long to melt a lattice.
        generator: of the velocities.
        backend: of the run.

    Returns:
        (n, dim) float64, in the order of `pos`.

    Raises:
        ValueError: a packing that still overlaps after the last relaxation step.
    """
    n, dim = pos.shape
    filling = n * sphere_volume(dim) / box.volume
    melts = LIGHT[dim] < filling <= RANDOM[dim]
    vel = maxwell_velocities(n, dim, _HOT if melts else _TEMPERATURE, generator)
    sim = _simulation(State(pos, vel, box), _LAW, _DT, "velocity_verlet", backend)
    mean_speed = np.linalg.norm(vel, axis=1).mean()
    sim.run(math.ceil(path * (_LONGER if melts else 1) / (mean_speed * _DT)), phases=False)
    return _relaxed(sim.state.by_id(), backend)


def _relaxed(state: State, backend: str | Backend) -> np.ndarray:
    """Relax overlapping spheres until no overlap is left; return positions by id, (n, dim) float64."""
    law = SpringDashpot(stiffness=0.45, damping=0.0, diameter=1 + _MARGIN)
    still = State(state.pos, np.zeros_like(state.vel), state.box)
    sim = _simulation(still, law, 1.0, "steepest_descent", backend)
    for _ in range(_BATCHES):
        if not len(sim.pairs(1 + _MARGIN / 4)):
            return sim.state.by_id().pos.astype(np.float64)
        sim.run(_BATCH, phases=False)
    raise ValueError(
        f"{len(state)} spheres still overlap after {_BATCH * _BATCHES} relaxation steps: they fill "
        f"{state.filling_fraction:.3f} of {state.box}, the box without a diameter between walls; "
        f"lower the filling fraction, or take mixing = 0"
    )


def _simulation(
    state: State, law: SpringDashpot, dt: float, integrator: str, backend: str | Backend
) -> Simulation:
    """Make a simulation that is reproducible bit for bit on its backend, so that a seed gives one state."""
    device = get(backend)
    search, reorder = "coherent", None
    if device.name in Linked.capabilities.bitwise_on:
        search, reorder = "linked", Reorder("row", Every(20))
    return Simulation(
        state, law, search=search, integrator=integrator, dt=dt, reorder=reorder, backend=device,
        precision="float32",
    )  # fmt: skip

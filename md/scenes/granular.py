"""Granular gases: a randomised start at any filling fraction, and the benchmark case of the peers."""

import math

import numpy as np

from md.backend import get
from md.box import Box
from md.laws import SpringDashpot
from md.reorder import Reorder
from md.scenes.lattice import lattice_sites
from md.schedule import Every
from md.search import Linked
from md.simulation import Simulation
from md.state import State, sphere_volume

MEMORY_ORDERS = ("lattice", "shuffled")
MAX_FILLING = 0.5

# The benchmark gas: contacts of 50 steps, the fastest particle moving about 0.0095 d a step.
SHARED_LAW = SpringDashpot(stiffness=1e4, damping=5.0)
SHARED_DT = 4.4e-4
SHARED_TEMPERATURE = 16.0

# The elastic run that randomises: as stiff as the benchmark gas at its temperature, a dozen steps a contact.
_MIXING_LAW = SpringDashpot(stiffness=1e4, damping=0.0)
_MIXING_DT = _MIXING_LAW.contact_time / 12
_MARGIN = 2e-3  # overlaps are relaxed for spheres this much larger, so that none is left at diameter 1
_RELAX_BATCH, _RELAX_BATCHES = 20, 100


def box_for(n: int, filling_fraction: float, dim: int = 3, periodic=True) -> Box:
    """The cubic (square) box in which n spheres have a filling fraction.

    Args:
        n: particles, at least 1.
        filling_fraction: volume of the spheres over that of the box, positive.
        dim: 2 or 3.
        periodic: one flag, or one an axis.

    Raises:
        ValueError: a value outside its range.
    """
    if n < 1 or not (math.isfinite(filling_fraction) and filling_fraction > 0) or dim not in (2, 3):
        raise ValueError(
            f"n = {n}, filling_fraction = {filling_fraction}, dim = {dim}; allowed: n >= 1, > 0, 2 or 3"
        )
    return Box(((n * sphere_volume(dim) / filling_fraction) ** (1 / dim),) * dim, periodic)


def granular_gas(
    filling_fraction: float,
    box: Box,
    temperature: float = SHARED_TEMPERATURE,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str = "auto",
) -> State:
    """A gas without overlaps: a lattice, randomised by an elastic run, relaxed, with Maxwell velocities.

    Args:
        filling_fraction: of the box, positive and at most 0.5; n is the nearest whole number of spheres.
        box: the box; all its axes periodic if it is to be randomised.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; met exactly, with zero total momentum.
        seed: of the velocities, of which sites stay empty, and of the shuffle.
        memory_order: "lattice" (site by site, axis 0 fastest) or "shuffled".
        mixing: mean path of the elastic run in units of the lattice spacing; 0 keeps the lattice.
        backend: where the elastic run is done. A seed names one state on each backend, not the same on both:
            the gas is chaotic, and they sum forces in different orders.

    Returns:
        The state in float64; ids number the lattice sites whatever the memory order.

    Raises:
        ValueError: a filling fraction that cannot be packed, or another value outside its range.
    """
    if not (math.isfinite(filling_fraction) and 0 < filling_fraction <= MAX_FILLING):
        raise ValueError(f"filling_fraction = {filling_fraction}; allowed: 0 < phi <= {MAX_FILLING}")
    if not (math.isfinite(mixing) and mixing >= 0):
        raise ValueError(f"mixing = {mixing}; allowed: finite and not negative")
    n = round(filling_fraction * box.volume / sphere_volume(box.dim))
    if n < 1:
        raise ValueError(
            f"filling_fraction = {filling_fraction} in {box} is less than half a sphere; raise it, or take a "
            f"larger box"
        )
    if mixing and min(box.lengths) < 2 * (1 + _MARGIN):
        raise ValueError(
            f"{box} is too thin to randomise; allowed: at least {2 * (1 + _MARGIN)} d on a side; enlarge it, "
            f"or take mixing = 0"
        )
    sites, spacing = lattice_sites(box, n)
    if spacing < 1:
        raise ValueError(
            f"filling_fraction = {filling_fraction} cannot be packed in {box}: the best lattice of {n} "
            "sites has a "
            f"spacing of {spacing:.4f} d; allowed: at least 1; lower the filling fraction or enlarge the box"
        )
    generator = np.random.default_rng(seed)
    kept = np.sort(generator.choice(len(sites), n, replace=False))
    pos = sites[kept]
    if mixing and n > 1:
        vel = maxwell_velocities(n, box.dim, SHARED_TEMPERATURE, generator)
        pos = _relaxed(_mixed(State(pos, vel, box), mixing * spacing, backend), backend)
    state = State(box.wrap(pos), maxwell_velocities(n, box.dim, temperature, generator), box)
    return in_memory_order(state, memory_order, seed)


def shared_gas(n: int, filling_fraction: float, seed: int = 0, memory_order: str = "shuffled") -> State:
    """The gas on which peers are compared: a jittered simple-cubic lattice in a cubic periodic box.

    Its temperature is 16. To be run with `SHARED_LAW` and `SHARED_DT`.

    Args:
        n: particles, at least 1.
        filling_fraction: positive, and low enough for a simple-cubic lattice with room to jitter.
        seed: of jitter, velocities and shuffle.
        memory_order: "shuffled" or "lattice".

    Raises:
        ValueError: a filling fraction whose simple-cubic lattice has no room.
    """
    box = box_for(n, filling_fraction)
    side = math.ceil(round(n ** (1 / 3), 9))
    spacing = box.lengths[0] / side
    if spacing <= 1:
        raise ValueError(
            f"filling_fraction = {filling_fraction} with n = {n}: a simple-cubic lattice of {side} sites a "
            "side has a "
            f"spacing of {spacing:.4f} d; allowed: more than 1; lower it, or take granular_gas"
        )
    generator = np.random.default_rng(seed)
    numbers = np.arange(n)
    cells = np.column_stack(np.unravel_index(numbers, (side,) * 3, order="F"))
    jitter = generator.uniform(-0.5, 0.5, (n, 3)) * (spacing - 1)
    pos = box.wrap(cells * spacing + jitter)
    state = State(pos, maxwell_velocities(n, 3, SHARED_TEMPERATURE, generator), box)
    return in_memory_order(state, memory_order, seed)


def maxwell_velocities(n: int, dim: int, temperature: float, generator: np.random.Generator) -> np.ndarray:
    """Maxwell-distributed velocities with zero sum and exactly this temperature.

    Args:
        n: particles; a single one is at rest.
        dim: 2 or 3.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more.
        generator: source of randomness.

    Returns:
        (n, dim) float64.

    Raises:
        ValueError: a negative or infinite temperature.
    """
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(f"temperature = {temperature}; allowed: finite and not negative, in d^2 / time^2")
    vel = generator.standard_normal((n, dim))
    vel -= vel.mean(axis=0)
    mean_square = np.square(vel).sum() / (n * dim)
    return vel * math.sqrt(temperature / mean_square) if mean_square > 0 else vel


def in_memory_order(state: State, memory_order: str, seed: int) -> State:
    """A state whose memory starts in the order of its ids ("lattice") or in a random one ("shuffled").

    Raises:
        ValueError: another order.
    """
    if memory_order not in MEMORY_ORDERS:
        raise ValueError(f"memory_order = {memory_order!r}; allowed: {', '.join(MEMORY_ORDERS)}")
    state = state.by_id()
    if memory_order == "lattice":
        return state
    return state.take(np.random.default_rng([seed, 1]).permutation(len(state)))


def _mixed(state: State, path: float, backend: str) -> State:
    """The state after an elastic run over a mean path in d."""
    if not all(state.box.periodic):
        raise ValueError(
            f"a box with periodic = {state.box.periodic} has no walls to hold the elastic run; mixing = 0"
        )
    sim = _simulation(state, _MIXING_LAW, _MIXING_DT, "velocity_verlet", backend)
    mean_speed = np.linalg.norm(state.vel, axis=1).mean()
    sim.run(math.ceil(path / (mean_speed * _MIXING_DT)), phases=False)
    return sim.state.by_id()


def _relaxed(state: State, backend: str) -> np.ndarray:
    """Positions by id after pushing overlapping spheres apart until none is left: (n, dim) float64."""
    law = SpringDashpot(stiffness=0.45, damping=0.0, diameter=1 + _MARGIN)
    still = State(state.pos, np.zeros_like(state.vel), state.box)
    sim = _simulation(still, law, 1.0, "steepest_descent", backend)
    for _ in range(_RELAX_BATCHES):
        if not len(sim.pairs(1 + _MARGIN / 4)):
            return sim.state.by_id().pos.astype(np.float64)
        sim.run(_RELAX_BATCH, phases=False)
    raise ValueError(
        f"the packing still overlaps after {_RELAX_BATCH * _RELAX_BATCHES} relaxation steps at filling "
        "fraction "
        f"{state.filling_fraction:.3f}; lower it, or take mixing = 0"
    )


def _simulation(state: State, law: SpringDashpot, dt: float, integrator: str, backend: str) -> Simulation:
    """A simulation that repeats bit for bit on its backend, so that a seed names one state."""
    options = {"dt": dt, "integrator": integrator, "backend": get(backend), "precision": "float32"}
    if options["backend"].name in Linked.repeats_on:
        return Simulation(state, law, search="linked", reorder=Reorder("row", Every(20)), **options)
    return Simulation(state, law, search="coherent", **options)

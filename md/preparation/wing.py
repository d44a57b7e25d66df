"""Stream of discs around a wing in a tunnel, and the lift case of [lift]."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from md.backend import Backend
from md.boundaries import Walls
from md.boundaries.airfoil import Airfoil, naca
from md.boundaries.base import RADIUS
from md.boundaries.wing import Wing
from md.checks import instance, integer, numbers
from md.laws import SpringDashpot
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES, State
from md.preparation.granular import granular_gas
from md.scenes.lattice import require_room
from md.scenes.spheres import checked_seed

SOURCE_RADIUS, SOURCE_PARTICLES = 0.002, 2**21
SOURCE_BLOCK = (-4.0, -1.25, -1.0, 1.0)  # sides of the block of discs: left, right, lower, upper
SOURCE_CHORD, SOURCE_ANGLE, SOURCE_SPEED, SOURCE_PULL = 0.5, 10.0, 1.0, 0.5
SOURCE_STIFFNESS, SOURCE_DAMPING, SOURCE_WING_STIFFNESS = 1e4, 50.0, 5e4
SOURCE_LONGEST_STEP = 1e-3
ROOM = 4.0  # in lengths of the source: from the block's left side to that of the box, and behind the wing


def wing_tunnel(
    filling_fraction: float,
    box: Box,
    wing: Wing,
    velocity: tuple[float, float],
    temperature: float,
    seed: int = 0,
    backend: str | Backend = "auto",
) -> State:
    """Make a stream of discs without overlaps that fills a tunnel around a wing.

    Args:
        filling_fraction: of the box without a wing, up to 0.8.
        box: in 2D.
        wing: no centre is nearer than half a diameter to its outline.
        velocity: (2,) of the stream, in d per time unit.
        temperature: of the stream, m <(v - velocity)^2> / 2.
        seed: of `md.preparation.granular_gas`.
        backend: of the elastic run of `md.preparation.granular_gas`.

    Returns:
        The state in float64.

    Raises:
        TypeError: an argument of another class.
        ValueError: a box in 3D, or a value for which `granular_gas` raises one.
    """
    instance("box", box, Box, "an md.Box")
    instance("wing", wing, Wing, "an md.Wing")
    stream = np.asarray(numbers("velocity", velocity, 2, unit="d per time unit"), np.float64)
    if box.dim != 2:
        raise ValueError(f"a wing in a box of {box.dim} axes; allowed: 2")
    gas = granular_gas(filling_fraction, box, temperature, seed, backend=backend)
    clear = np.flatnonzero(wing.distance(gas.pos) > RADIUS)
    return State(gas.pos[clear], gas.vel[clear] + stream, box)


class LiftCase(NamedTuple):
    """Arguments of a simulation of lift.

    Attributes:
        state: the start, in which discs overlap.
        law: between discs.
        wing: the wing.
        options: other arguments of `md.Simulation`, by name.
    """

    state: State
    law: SpringDashpot
    wing: Wing
    options: dict[str, Any]


def newtonian_lift(n: int = SOURCE_PARTICLES, airfoil: Airfoil | None = None, seed: int = 0) -> LiftCase:
    """Make the case of [lift]: a block of discs that moves towards a wing, in a box with open sides.

    Lengths are in units of the disc's diameter. For other numbers of discs the diameter is such that as many
    overlap; times and accelerations are those of [lift]. [lift] does not describe its walls: here they are as
    stiff as the wing, and discs pressed through them come back.

    Args:
        n: number of discs.
        airfoil: the section of the wing; None for NACA 2412.
        seed: of the positions of the discs, uniform in the block.

    Returns:
        The arguments of the simulation.

    Raises:
        TypeError: an argument of another class.
        ValueError: less than one disc, or a negative seed.
    """
    n, seed = integer("n", n, 1, MAX_PARTICLES, unit="discs"), checked_seed(seed)
    require_room(n)
    if airfoil is not None:
        instance("airfoil", airfoil, Airfoil, "an md.Airfoil, or None", "md.naca('2412') makes one")
    unit = 1 / (2 * SOURCE_RADIUS * math.sqrt(SOURCE_PARTICLES / n))  # unit length of the source in d
    left, right, down, up = SOURCE_BLOCK
    box = Box(((2 * ROOM - left) * unit, (up - down) * unit), periodic=(False,), open=(True,))
    pos = np.random.default_rng(seed).random((n, 2)) * [(right - left) * unit, (up - down) * unit]
    pos += [ROOM * unit, 0.0]
    velocity = np.tile([SOURCE_SPEED * unit, 0.0], (n, 1))
    rate = SOURCE_DAMPING / 2
    duration = math.pi / math.sqrt(SOURCE_WING_STIFFNESS - rate**2)
    walls = Walls(restitution=math.exp(-rate * duration), contact_time=duration, sides=(1,))
    wing = Wing(
        airfoil=airfoil or naca("2412"),
        chord=SOURCE_CHORD * unit,
        at=((ROOM - left) * unit, box.lengths[1] / 2),
        angle=SOURCE_ANGLE,
        stiffness=SOURCE_WING_STIFFNESS,
        damping=SOURCE_DAMPING,
    )
    options = {
        "integrator": "adaptive_euler",
        "dt": SOURCE_LONGEST_STEP,
        "walls": walls,
        "gravity": (SOURCE_PULL * unit, 0.0),
        "surroundings": (wing,),
        "allow_overlap": True,
    }
    return LiftCase(State(pos, velocity, box), SpringDashpot(SOURCE_STIFFNESS, SOURCE_DAMPING), wing, options)

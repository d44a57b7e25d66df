"""Discs in a stream round a wing, and the source's own case of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from md.boundaries import Walls
from md.boundaries.airfoil import Airfoil, naca
from md.boundaries.walls import RADIUS
from md.boundaries.wing import Wing
from md.checks import instance, integer, numbers
from md.laws import SpringDashpot
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES, State
from md.scenes.granular import checked_seed, granular_gas
from md.scenes.lattice import require_room

SOURCE_RADIUS, SOURCE_PARTICLES = 0.002, 2**21
SOURCE_BLOCK = (-4.0, -1.25, -1.0, 1.0)  # where the discs are: left, right, down, up
SOURCE_CHORD, SOURCE_ANGLE, SOURCE_SPEED, SOURCE_PULL = 0.5, 10.0, 1.0, 0.5
SOURCE_STIFFNESS, SOURCE_DAMPING, SOURCE_WING_STIFFNESS = 1e4, 50.0, 5e4
SOURCE_LONGEST_STEP = 1e-3
ROOM = 4.0  # lengths of the source from the block's left side to that of the box, and behind the wing


def wing_tunnel(
    filling_fraction: float,
    box: Box,
    wing: Wing,
    velocity: tuple[float, float],
    temperature: float,
    seed: int = 0,
    backend: str = "auto",
) -> State:
    """A stream of discs without overlaps that fills a tunnel, but for the wing in it.

    Args:
        filling_fraction: of the box without a wing, up to 0.8.
        box: in 2D.
        wing: no centre is nearer than half a diameter to its outline.
        velocity: (2,) of the stream, in d per time unit.
        temperature: of the stream, m <(v - velocity)^2> / 2.
        seed: of `md.scenes.granular_gas`.
        backend: where that is made.

    Raises:
        TypeError: an argument of another class.
        ValueError: a box in 3D, or what `granular_gas` refuses.
    """
    instance("box", box, Box, "an md.Box")
    instance("wing", wing, Wing, "an md.Wing")
    velocity = numbers("velocity", velocity, 2, unit="d per time unit")
    if box.dim != 2:
        raise ValueError(f"a wing in a box of {box.dim} axes; allowed: 2")
    gas = granular_gas(filling_fraction, box, temperature, seed, backend=backend)
    clear = np.flatnonzero(wing.distance(gas.pos) > RADIUS)
    return State(gas.pos[clear], gas.vel[clear] + np.asarray(velocity, np.float64), box)


class LiftCase(NamedTuple):
    """A case with all that goes into a simulation of it.

    Attributes:
        state: the start, in which discs overlap.
        law: between discs.
        wing: in their way.
        options: for `md.Simulation`, by name.
    """

    state: State
    law: SpringDashpot
    wing: Wing
    options: dict


def newtonian_lift(n: int = SOURCE_PARTICLES, airfoil: Airfoil | None = None, seed: int = 0) -> LiftCase:
    """The case of the article on Newtonian lift: a block of discs that flies at a wing, by open sides.

    Its lengths are in units of the disc's diameter here, which for other numbers of discs is such that as
    many overlap; times and accelerations are the source's. The source tells nothing of its walls: they are as
    stiff as its wing, and what is pressed through them comes back.

    Args:
        n: discs.
        airfoil: the wing's section; None for NACA 2412.
        seed: of the places of the discs, anywhere in the block.

    Raises:
        TypeError: an argument of another class.
        ValueError: less than one disc, or a negative seed.
    """
    n, seed = integer("n", n, 1, MAX_PARTICLES, unit="discs"), checked_seed(seed)
    require_room(n)
    if airfoil is not None:
        instance("airfoil", airfoil, Airfoil, "an md.Airfoil, or None", "md.naca('2412') makes one")
    unit = 1 / (2 * SOURCE_RADIUS * math.sqrt(SOURCE_PARTICLES / n))  # d in a length of the source
    left, right, down, up = SOURCE_BLOCK
    box = Box(((2 * ROOM - left) * unit, (up - down) * unit), periodic=False, open=True)
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

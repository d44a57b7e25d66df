"""Gas of copies: a small randomised gas repeated along every axis, with velocities drawn for all particles.

To randomise positions takes most of the time in which a gas is made (`md.scenes.granular`), and that time
grows with the number of spheres. Here only the spheres of one copy are randomised. Positions then repeat with
the side of a copy, which is far above the distance at which spheres touch; velocities do not repeat.
"""

import itertools

import numpy as np

from md.backend import Backend
from md.checks import integer, word
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES, State
from md.scenes.granular import (
    MEMORY_ORDERS,
    SHARED_TEMPERATURE,
    checked_seed,
    checked_temperature,
    in_memory_order,
    mixed_sites,
    number_of_spheres,
)
from md.scenes.lattice import require_room
from md.scenes.maxwell import maxwell_velocities

LEAST = 2**16  # spheres of a copy, of `copies_for`
MOST_COPIES = 1024  # along an axis


def copies_for(n: int, dim: int = 3, least: int = LEAST) -> int:
    """Choose the number of copies along each axis for a gas of n spheres.

    Args:
        n: number of spheres, at least 1.
        dim: 2 or 3.
        least: number of spheres that a copy holds at least, 1 or more.

    Returns:
        The largest number whose power `dim` divides n into copies of `least` spheres or more; 1 if there is
        none above, so that the gas is that of `granular_gas`.

    Raises:
        TypeError: an argument that is no integer.
        ValueError: an integer outside its range.
    """
    n, dim = integer("n", n, 1, MAX_PARTICLES, unit="particles"), integer("dim", dim, 2, 3)
    least = integer("least", least, 1, unit="particles of a copy")
    allowed = (k for k in range(MOST_COPIES, 1, -1) if n % k**dim == 0 and n // k**dim >= least)
    return next(allowed, 1)


def tiled_gas(
    filling_fraction: float,
    box: Box,
    copies: int,
    temperature: float = SHARED_TEMPERATURE,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str | Backend = "auto",
) -> State:
    """Make a gas without overlaps of copies of a small one, with Maxwell velocities drawn for all particles.

    Args:
        filling_fraction: of the box, positive and at most 0.6 (in 2D 0.8); n is the nearest whole number of
            spheres, and a multiple of the number of copies.
        box: the box, periodic along every axis.
        copies: number of copies along each axis, 1 to 1024; 1 gives the state of `granular_gas`.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; exact, with zero total momentum.
        seed: of the small gas, of all velocities, and of the shuffle.
        memory_order: "lattice" (site by site, axis 0 fastest over the whole box) or "shuffled".
        mixing: as in `granular_gas`.
        backend: of the elastic run of the small gas, as in `granular_gas`.

    Returns:
        The state in float64; ids number the lattice sites of the whole box in any memory order.

    Raises:
        TypeError: an argument of another class.
        ValueError: a box with walls, a number of spheres that is no multiple of the number of copies, a
            filling fraction that cannot be packed, or another value outside its range.
    """
    n, copies = number_of_spheres(filling_fraction, box), integer("copies", copies, 1, MOST_COPIES)
    temperature, seed = checked_temperature(temperature), checked_seed(seed)
    word("memory_order", memory_order, MEMORY_ORDERS)
    _check_copies(n, box, copies)
    require_room(n)
    generator = np.random.default_rng(seed)
    small = Box(tuple(length / copies for length in box.lengths), box.periodic)
    sites, pos = mixed_sites(filling_fraction, small, mixing, generator, backend)
    if copies > 1:
        pos = _repeated(sites, pos, small, box, copies)
    state = State(pos, maxwell_velocities(n, box.dim, temperature, generator), box)
    return in_memory_order(state, memory_order, seed)


def _check_copies(n: int, box: Box, copies: int) -> None:
    """Check that a gas can be made of copies.

    Raises:
        ValueError: a box with walls, or spheres that do not divide into the copies.
    """
    if copies == 1:
        return
    if not all(box.periodic):
        raise ValueError(
            f"copies = {copies} in {box}; allowed: 1 in a box with walls, for a copy has none inside; take a "
            "box that is periodic along every axis, or granular_gas"
        )
    if n % copies**box.dim:
        raise ValueError(
            f"copies = {copies} of {n} spheres; allowed: a number of spheres that is a multiple of "
            f"{copies**box.dim}, for all copies are equal; take another number of spheres, or fewer copies"
        )


def _repeated(sites: np.ndarray, pos: np.ndarray, small: Box, box: Box, copies: int) -> np.ndarray:
    """Repeat positions along every axis, in the order of the sites of the whole box.

    A particle that left its copy is beside its site, not at the other side of the copy, so that the order of
    the sites means as much as in a gas that is made as a whole.

    Args:
        sites: (m, dim) of the small gas, axis 0 fastest.
        pos: (m, dim) of the small gas.
        small: its box.
        box: the whole box.
        copies: number of copies along each axis.

    Returns:
        (m copies**dim, dim) float64.
    """
    moved = small.nearest(pos - sites)
    corners = np.array(list(itertools.product(range(copies), repeat=box.dim))) * np.array(small.lengths)
    every = (corners[:, None] + sites).reshape(-1, box.dim)
    order = np.lexsort(tuple(every.T))  # sites of a row have equal coordinates, bit for bit
    return box.wrap((every + np.tile(moved, (len(corners), 1)))[order])

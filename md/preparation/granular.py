"""Granular gas: randomised, at filling fractions up to 0.6 (0.8 in 2D), as a whole or in copies.

To randomise positions takes most of the time in which a gas is made, and grows with the number of spheres. In
a gas of copies only the spheres of one copy are randomised. Its positions repeat with the side of a copy,
which is far above the distance at which spheres touch; its velocities do not repeat.
"""

import itertools

import numpy as np

from md.backend import Backend
from md.backend import checked as checked_backend
from md.checks import integer, word
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES, State, sphere_volume
from md.preparation.thermalize import THINNEST, least_spacing, mixing_path, randomised
from md.scenes.benchmark import BENCHMARK_TEMPERATURE
from md.scenes.lattice import lattice_sites, require_room
from md.scenes.maxwell import maxwell_velocities
from md.scenes.parts import ids_of, part_of, rows_of_part
from md.scenes.spheres import (
    MEMORY_ORDERS,
    checked_seed,
    checked_temperature,
    in_memory_order,
    number_of_spheres,
)

LEAST_COPY = 2**16  # spheres, of `copies_for`
MOST_COPIES = 1024  # along an axis


def granular_gas(
    filling_fraction: float,
    box: Box,
    temperature: float = BENCHMARK_TEMPERATURE,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str | Backend = "auto",
) -> State:
    """Make a gas without overlaps: a lattice, randomised by an elastic run, relaxed, with Maxwell velocities.

    Positions are random up to a filling fraction of 0.61 (in 2D 0.8). From about 0.55 (0.7) on they are those
    of a glass, where an equilibrium would contain a crystal. With walls these are filling fractions of the
    box without the half diameter between the centres and each wall. Above, as in a flat box between walls,
    the lattice persists, disturbed and with empty sites; in the flattest boxes even a lattice does not fit.

    Args:
        filling_fraction: of the box, positive and at most 0.6 (in 2D 0.8); n is the nearest whole number of
            spheres.
        box: the box; axes that are not periodic end in walls.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; exact, with zero total momentum.
        seed: of the velocities, of the choice of empty sites, and of the shuffle.
        memory_order: "lattice" (site by site, axis 0 fastest) or "shuffled".
        mixing: mean path of the elastic run in units of the lattice spacing, four times as long in a dense
            gas (`md.preparation.thermalize`); 0 keeps the lattice.
        backend: of the elastic run. A seed gives one state on each backend, but different states on the two:
            the gas is chaotic, and backends sum forces in different orders.

    Returns:
        The state in float64; ids number the lattice sites in any memory order.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction that cannot be packed, or another value outside its range.
    """
    return tiled_gas(filling_fraction, box, 1, temperature, seed, memory_order, mixing, backend)


def mixed_sites(
    filling_fraction: float, box: Box, mixing: float, generator: np.random.Generator, backend: str | Backend
) -> tuple[np.ndarray, np.ndarray]:
    """Put spheres on the sites of a lattice, and randomise their positions without overlaps.

    Args:
        filling_fraction: as in `granular_gas`.
        box: the box.
        mixing: as in `granular_gas`.
        generator: of the empty sites, and of the elastic run.
        backend: of the elastic run.

    Returns:
        Sites and positions, each (n, dim) float64 in d, axis 0 of the sites fastest. Positions are wrapped.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction that cannot be packed, or another value outside its range.
    """
    n = number_of_spheres(filling_fraction, box)
    mixing, backend = mixing_path(mixing), checked_backend(backend)
    mixing = mixing if n > 1 else 0.0
    room, corner = _room_for_mixing(box) if mixing else (box, np.zeros(box.dim))
    sites, spacing = lattice_sites(room, n)
    allowed = least_spacing(n * sphere_volume(box.dim) / room.volume, box.dim) if mixing else 1.0
    if spacing < allowed:
        lattice_alone = ", or take mixing = 0 if a lattice will do" if mixing else ""
        raise ValueError(
            f"filling_fraction = {filling_fraction} cannot be packed in {box}: the best lattice of {n} sites "
            f"has a spacing of {spacing:.4f} d; allowed: at least {allowed:g}; lower the filling fraction or "
            f"enlarge the box{lattice_alone}"
        )
    sites = sites[np.sort(generator.choice(len(sites), n, replace=False))]
    pos = randomised(sites, room, mixing * spacing, generator, backend) if mixing else sites
    return sites + corner, room.wrap(pos) + corner


def copies_for(n: int, dim: int = 3, least: int = LEAST_COPY) -> int:
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
    temperature: float = BENCHMARK_TEMPERATURE,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str | Backend = "auto",
    part: tuple[int, int] = (0, 1),
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
        part: number of a part, from 0 on, and number of parts: only its particles are kept, in the order of
            the lattice, and their ids. Each rank of several makes one, for `md.Division(is_part=True)`; each
            makes the small gas. Velocities are those of the whole to rounding.

    Returns:
        The state in float64; ids number the lattice sites of the whole box in any memory order. The lattice
        and the direction of its rows are those that fit a copy best; `granular_gas` may choose others.

    Raises:
        TypeError: an argument of another class.
        ValueError: a box with walls, a number of spheres that is no multiple of the number of copies, a
            filling fraction that cannot be packed, a part in shuffled order, or another value outside its
            range.
    """
    n, copies = number_of_spheres(filling_fraction, box), integer("copies", copies, 1, MOST_COPIES)
    temperature, seed = checked_temperature(temperature), checked_seed(seed)
    word("memory_order", memory_order, MEMORY_ORDERS)
    _check_copies(n, box, copies)
    rows = rows_of_part(part, n)
    if len(rows) < n and memory_order != "lattice":
        raise ValueError(
            f"memory_order = {memory_order!r} of part {part}; allowed: 'lattice': ranks sort their particles"
        )
    require_room(min(n, len(rows) + n // copies))
    generator = np.random.default_rng(seed)
    if copies == 1:
        _, pos = mixed_sites(filling_fraction, box, mixing, generator, backend)
        pos = pos[rows.start : rows.stop]
    else:
        small = Box(tuple(length / copies for length in box.lengths), box.periodic)
        one = mixed_sites(filling_fraction, small, mixing, generator, backend)
        pos = _repeated(*one, small, box, copies, rows)
    vel = maxwell_velocities(n, box.dim, temperature, generator, rows)
    state = State(pos, vel, box, ids_of(rows, n))
    return state if len(rows) < n else in_memory_order(state, memory_order, seed)


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


def _repeated(
    sites: np.ndarray, pos: np.ndarray, small: Box, box: Box, copies: int, rows: range
) -> np.ndarray:
    """Repeat positions along every axis, in the order of the sites of the whole box, layer by layer.

    A particle that left its copy is beside its site, not at the other side of the copy, so that the order of
    the sites means as much as in a gas that is made as a whole.

    Args:
        sites: (m, dim) of the small gas, axis 0 fastest.
        pos: (m, dim) of the small gas.
        small: its box.
        box: the whole box.
        copies: number of copies along each axis.
        rows: which of the m copies**dim positions are returned.

    Returns:
        (rows, dim) float64.
    """
    moved, found = small.nearest(pos - sites), []
    of_layer = len(sites) * copies ** (box.dim - 1)
    for layer in range(rows.start // of_layer, -(-rows.stop // of_layer)):
        places = [(*place, layer) for place in itertools.product(range(copies), repeat=box.dim - 1)]
        corners = np.array(places) * np.array(small.lengths)
        every = (corners[:, None] + sites).reshape(-1, box.dim)
        order = np.lexsort(tuple(every.T))  # sites of a row have equal coordinates, bit for bit
        ordered = (every + np.tile(moved, (len(corners), 1)))[order]
        found.append(box.wrap(part_of(ordered, layer * of_layer, rows)))
    return np.concatenate(found)


def _room_for_mixing(box: Box) -> tuple[Box, np.ndarray]:
    """Make a periodic box for the centres, and the position of its corner in the box.

    Between walls it is a diameter shorter, because centres keep half a diameter from each wall. It needs no
    walls: a centre that leaves at one side comes back at the other, so that all stay between the walls.
    Spheres that do not overlap in the periodic box do not overlap in `box`: the image of a partner may be
    nearer than the partner itself, but never farther. The cost is some volume: spheres at one wall do not
    overlap the images of those at the other.
    """
    walls = ~np.array(box.periodic)
    lengths = np.array(box.lengths) - walls
    if min(lengths) < THINNEST:
        raise ValueError(
            f"{box} is too thin to randomise; allowed: at least {THINNEST} d on a side, {THINNEST + 1} d "
            f"between walls; enlarge it, or take mixing = 0"
        )
    return Box(tuple(lengths)), walls / 2

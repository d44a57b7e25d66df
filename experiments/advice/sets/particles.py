"""Particles in a box: gases in random order, in the order of a file, and reordered some time ago.

Every function takes the number of particles and a seed, and returns the same arrays for the same two. The
unit of length is the diameter of a particle; boxes have a corner at the origin.
"""

import numpy as np

from experiments.advice.sets.data import SetData

DENSITY = 0.38  # particles in d^3: a fifth of the volume is filled
CUTOFF = 1.5  # d


def _box(n: int) -> float:
    """Return the side of a cubic box, in d."""
    return float((n / DENSITY) ** (1 / 3))


def random_gas(n: int, seed: int) -> SetData:
    """Make a gas of uniform density in random order.

    Args:
        n: number of particles.
        seed: of the positions.

    Returns:
        `points` and `cutoff`.
    """
    points = np.random.default_rng(seed).random((n, 3)) * _box(n)
    return SetData(points=points, cutoff=CUTOFF)


def clustered_gas(n: int, seed: int, waves: int = 24, bending: float = 0.8) -> SetData:
    """Make a cooled gas in random order: walls and strands of particles between voids.

    Uniform positions are displaced along plane waves of random direction, which gathers particles where the
    displacements converge (Zel'dovich, 1970).

    Args:
        n: number of particles.
        seed: of the positions and the waves.
        waves: number of plane waves.
        bending: about the displacement in wavelengths over 2 pi at which particles overtake each other.

    Returns:
        `points` and `cutoff`.
    """
    rng = np.random.default_rng(seed)
    side = _box(n)
    points = rng.random((n, 3)) * side
    moved = points.copy()
    for _ in range(waves):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        number = 2 * np.pi / (side * rng.uniform(0.04, 0.25))
        amplitude = bending / number * np.sqrt(2 / waves)
        moved += direction * (amplitude * np.sin(points @ (number * direction) + rng.random() * 6.3))[:, None]
    return SetData(points=np.mod(moved, side), cutoff=CUTOFF)


def lattice_gas(n: int, seed: int, filled: float = 0.6) -> SetData:
    """Make particles on some sites of a cubic lattice, listed row by row, as a program that fills it does.

    Args:
        n: number of particles.
        seed: of the sites that are filled.
        filled: about the share of the sites with a particle.

    Returns:
        `points`, near the sites, and `cutoff`.
    """
    rng = np.random.default_rng(seed)
    side = int(np.ceil((n / filled) ** (1 / 3)))
    sites = np.sort(rng.choice(side**3, n, replace=False))
    cells = np.stack(np.unravel_index(sites, (side,) * 3), axis=1)  # the last axis is the fastest
    points = (cells + 0.5 + rng.uniform(-0.05, 0.05, (n, 3))) * 1.05
    return SetData(points=points, cutoff=CUTOFF)


def two_sizes(n: int, seed: int, ratio: float = 2.0, large: float = 0.05) -> SetData:
    """Make spheres of two sizes in random order; two of them are neighbours if they overlap.

    Args:
        n: number of spheres.
        seed: of the positions and sizes.
        ratio: of the two diameters, the smaller being 1.
        large: share of the larger spheres.

    Returns:
        `points`, `radii`, and as `cutoff` the largest distance of neighbours.
    """
    rng = np.random.default_rng(seed)
    radii = np.where(rng.random(n) < large, ratio / 2, 0.5)
    points = rng.random((n, 3)) * _box(n)
    return SetData(points=points, radii=radii, cutoff=ratio)


def aged_gas(n: int, seed: int, flown: float = 3.0, cell: float = 1.5) -> SetData:
    """Make a gas that was sorted along the Morton curve of its cells, and has moved since.

    Args:
        n: number of particles.
        seed: of the positions and the way flown.
        flown: d, standard deviation of the displacement along each axis.
        cell: d, side of a cell of that sort.

    Returns:
        `points` and `cutoff`.
    """
    rng = np.random.default_rng(seed)
    side = _box(n)
    points = rng.random((n, 3)) * side
    cells = (points / cell).astype(np.int64)
    keys = np.zeros(n, np.int64)
    for bit in range(int(cells.max()).bit_length()):
        for axis in range(3):
            keys |= (cells[:, axis] >> bit & 1) << (3 * bit + axis)
    points = points[np.argsort(keys, kind="stable")]
    return SetData(points=np.mod(points + rng.normal(0, flown, (n, 3)), side), cutoff=CUTOFF)

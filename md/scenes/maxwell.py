"""Maxwell-distributed velocities of a gas in equilibrium."""

import math

import numpy as np

from md.checks import instance, integer, number
from md.particles.state import MAX_PARTICLES
from md.scenes.lattice import require_room
from md.scenes.parts import BLOCK, blocks_of, part_of

HOTTEST = 1e150  # d^2 / time^2: squares of speeds, and their sums, are finite


def maxwell_velocities(
    n: int, dim: int, temperature: float, generator: np.random.Generator, kept: range | None = None
) -> np.ndarray:
    """Draw Maxwell-distributed velocities with zero sum and an exact temperature.

    Args:
        n: number of particles, at least 1; a single one is at rest.
        dim: 2 or 3.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more.
        generator: source of randomness.
        kept: particles of which the velocities are returned, without memory for the others; None for all.

    Returns:
        (n, dim) float64; of some particles those of all of them, to rounding.

    Raises:
        TypeError: an argument of another class.
        ValueError: a negative or infinite temperature, or another number outside its range.
    """
    n, dim = integer("n", n, 1, MAX_PARTICLES, unit="particles"), integer("dim", dim, 2, 3)
    require_room(n if kept is None else min(n, len(kept) + BLOCK))
    temperature = number("temperature", temperature, 0, HOTTEST, unit="d^2 / time^2")
    instance(
        "generator", generator, np.random.Generator, "a numpy.random.Generator", "numpy.random.default_rng"
    )
    if kept is None or len(kept) == n:
        vel = generator.standard_normal((n, dim))
        vel -= vel.mean(axis=0)
        mean_square = np.square(vel).sum() / (n * dim)
    else:
        vel, mean_square = _some(n, dim, generator, kept)
    return vel * math.sqrt(temperature / mean_square) if mean_square > 0 else vel


def _some(n: int, dim: int, generator: np.random.Generator, kept: range) -> tuple[np.ndarray, float]:
    """Draw n velocities of zero sum, and return some of them, and the mean square of a component of all."""
    sums, squares, found = np.zeros(dim), 0.0, []
    for begin, rows in blocks_of(lambda count: generator.standard_normal((count, dim)), n):
        sums += rows.sum(axis=0)
        squares += float(np.square(rows).sum())
        found.append(part_of(rows, begin, kept))
    mean = sums / n
    return np.concatenate(found) - mean, (squares - n * float(np.square(mean).sum())) / (n * dim)

"""Maxwell-distributed velocities of a gas in equilibrium."""

import math

import numpy as np

from md.checks import instance, integer, number
from md.particles.state import MAX_PARTICLES
from md.scenes.lattice import require_room

HOTTEST = 1e150  # d^2 / time^2: squares of speeds, and their sums, are finite


def maxwell_velocities(n: int, dim: int, temperature: float, generator: np.random.Generator) -> np.ndarray:
    """Draw Maxwell-distributed velocities with zero sum and an exact temperature.

    Args:
        n: number of particles, at least 1; a single one is at rest.
        dim: 2 or 3.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more.
        generator: source of randomness.

    Returns:
        (n, dim) float64.

    Raises:
        TypeError: an argument of another class.
        ValueError: a negative or infinite temperature, or another number outside its range.
    """
    n, dim = integer("n", n, 1, MAX_PARTICLES, unit="particles"), integer("dim", dim, 2, 3)
    require_room(n)
    temperature = number("temperature", temperature, 0, HOTTEST, unit="d^2 / time^2")
    instance(
        "generator", generator, np.random.Generator, "a numpy.random.Generator", "numpy.random.default_rng"
    )
    vel = generator.standard_normal((n, dim))
    vel -= vel.mean(axis=0)
    mean_square = np.square(vel).sum() / (n * dim)
    return vel * math.sqrt(temperature / mean_square) if mean_square > 0 else vel

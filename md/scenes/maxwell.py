"""Velocities of a gas in equilibrium."""

import math

import numpy as np


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

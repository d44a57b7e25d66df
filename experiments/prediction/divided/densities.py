"""Gases of other densities: uniform, in clusters, and under gravity; each is valid, without a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import md

UNIFORM, CLUSTERS, GRAVITY = "uniform", "clusters", "gravity"
DENSITIES = (UNIFORM, CLUSTERS, GRAVITY)
ROOM = 8.0  # volume of the box over that of the clusters
HEIGHTS = 4.0  # height of the box over the scale height
SITES = HEIGHTS / -np.expm1(-HEIGHTS)  # of the whole box, over those that are kept


class Scene(NamedTuple):
    """Gas with its surroundings.

    Attributes:
        state: particles.
        options: walls and gravity, for `md.Simulation`.
    """

    state: md.State
    options: dict[str, Any]


def scene_of(density: str, n: int, filling_fraction: float, seed: int) -> Scene:
    """Make a gas.

    Args:
        density: uniform, the benchmark gas; clusters, the same in eight clusters with as much empty space
            between them along each axis; gravity, over a floor.
        n: number of particles.
        filling_fraction: volume of the spheres over that of the box, where it is full: in the clusters, at
            the floor.
        seed: of all random numbers.
    """
    if density == GRAVITY:
        return _over_floor(n, filling_fraction, seed)
    gas = md.scenes.benchmark_gas(n, filling_fraction, seed=seed, backend="cpu")
    return Scene(md.scenes.in_clusters(gas, ROOM) if density == CLUSTERS else gas, {})


def _over_floor(n: int, filling_fraction: float, seed: int) -> Scene:
    """Make a gas with the density of an ideal gas of this temperature over a floor.

    A site of a benchmark gas at height z keeps its particle with a chance proportional to exp(-z / h), where
    the box is `HEIGHTS` scale heights h high. The acceleration is temperature / h.
    """
    gas = md.scenes.benchmark_gas(round(SITES * n), filling_fraction, seed=seed, backend="cpu")
    high = gas.box.lengths[2]
    chance = np.exp(-gas.pos[:, 2] * HEIGHTS / high)
    kept = np.argsort(np.random.default_rng([seed, 7]).random(len(gas)) / chance)[:n]
    box = md.Box(gas.box.lengths, (True, True, False))
    gravity = (0.0, 0.0, -md.scenes.BENCHMARK_TEMPERATURE * HEIGHTS / high)
    return Scene(md.State(gas.pos[kept], gas.vel[kept], box), {"walls": md.Walls(), "gravity": gravity})

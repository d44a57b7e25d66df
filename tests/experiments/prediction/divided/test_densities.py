"""Gases of other densities start without overlaps, and keep their density."""

import numpy as np
import pytest

import md
from experiments.prediction.divided.densities import (
    CLUSTERS,
    DENSITIES,
    GRAVITY,
    HEIGHTS,
    ROOM,
    UNIFORM,
    scene_of,
)


@pytest.mark.parametrize("density", DENSITIES)
def test_a_gas_is_valid(density):
    state, options = scene_of(density, 3000, 0.4, seed=2)
    assert len(state) == len(np.unique(state.id)) == 3000
    sim = md.Simulation(state, md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend="cpu", **options)
    assert len(sim.pairs()) == 0  # none overlap
    sim.run(20)


def test_clusters_are_as_dense_in_a_wider_box():
    even, apart = (scene_of(density, 3000, 0.2, seed=2).state for density in (UNIFORM, CLUSTERS))
    assert np.prod(apart.box.lengths) == pytest.approx(ROOM * np.prod(even.box.lengths))
    cells = np.unique(np.floor(8 * apart.pos / np.array(apart.box.lengths)).astype(int) // 2 % 2, axis=0)
    assert len(cells) > 1


def test_density_falls_with_height_as_under_gravity():
    state, options = scene_of(GRAVITY, 40_000, 0.2, seed=2)
    high = state.box.lengths[2]
    assert options["gravity"] == pytest.approx((0, 0, -16 * HEIGHTS / high))
    counts = np.histogram(state.pos[:, 2], bins=8, range=(0, high))[0]
    slope = np.polyfit(np.arange(8) * high / 8, np.log(counts), 1)[0]
    assert slope == pytest.approx(-HEIGHTS / high, rel=0.05)
    lowest = state.pos[:, 2] < high / 16
    volume = lowest.sum() * np.pi / 6 / (high**2 * high / 16)
    assert volume == pytest.approx(0.2 * (1 - np.exp(-HEIGHTS / 16)) / (HEIGHTS / 16), rel=0.1)


def test_another_seed_gives_another_gas():
    one, other = (scene_of(GRAVITY, 500, 0.2, seed).state.pos for seed in (1, 2))
    assert not np.array_equal(one, other)

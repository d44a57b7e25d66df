"""What the lister of a tree finds out about the particles: usual density, usual cutoff, crowded places."""

import numpy as np
import pytest

import md
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.lists.lister import mean_power
from md.search.tree_listing import TreeLister

CPU = md.backend.get("cpu")
RANDOM = np.random.default_rng(8)


def lister_of(pos, length: float, radius=None) -> TreeLister:
    """A lister of particles in a periodic cube or square."""
    box = md.Box((length,) * np.shape(pos)[1])
    particles = ParticleArrays(md.State(pos, np.zeros_like(pos), box, radius=radius), np.dtype(float), CPU)
    grid = CellGrid(box, particles.widest, float, CPU)
    return TreeLister("hilbert", grid, particles.widest, particles, CPU)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_density_of_a_gas_is_that_of_the_box(dim):
    n, length = 20_000, 20_000 ** (1 / dim) * 1.3
    density, cutoff = lister_of(RANDOM.random((n, dim)) * length, length).usual()
    assert density == pytest.approx(n / length**dim, rel=0.1)
    assert cutoff == 1


def test_few_particles_have_the_density_of_the_box():
    assert lister_of(RANDOM.random((100, 3)) * 10, 10.0).usual() == (0.1, 1.0)


def test_the_density_is_that_of_clusters_only_if_most_particles_are_in_some():
    n, length = 20_000, 60.0
    for share, expected in ((0.05, 0.95 * n / length**3), (0.95, 0.95 * n / 30**3)):
        pos = RANDOM.random((n, 3)) * length
        pos[: int(share * n)] = 20 + RANDOM.random((int(share * n), 3)) * 30
        assert lister_of(pos, length).usual()[0] == pytest.approx(expected, rel=0.25)


def test_unequal_spheres_have_the_cutoff_of_equal_ones_with_as_many_partners():
    n, length = 20_000, 30.0
    radius = np.where(RANDOM.random(n) < 0.1, 0.5, 0.2)
    pos = RANDOM.random((n, 3)) * length
    density, cutoff = lister_of(pos, length, radius).usual()
    mean = np.mean((radius[: n // 2] + radius[n // 2 :]) ** 3)
    assert density * cutoff**3 == pytest.approx(n / length**3 * mean, rel=0.1)


@pytest.mark.parametrize("dim", [2, 3])
def test_mean_power_is_that_of_all_pairs(dim):
    rows = RANDOM.random((3, 50))
    expected = [np.mean((row[:, None] + row) ** dim) for row in rows]
    np.testing.assert_allclose(mean_power(rows, dim), expected)


def test_the_crowded_slot_is_in_the_densest_place():
    pos = RANDOM.random((2000, 3)) * 30
    pos[500:540] = 10 + RANDOM.random((40, 3)) * 0.2
    lister = lister_of(pos, 30.0)
    lister.allocate(lister._keys._grid)
    lister.sort(keep_roles=False)
    lister._tree.fit(lister._particles.pos, lister._particles.radius, 1.0)
    assert 500 <= lister._particles.id[lister.crowded_slot()] < 540

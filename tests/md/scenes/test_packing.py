"""Dense scenes and scenes between walls: no overlap, no contact with walls, no lattice below jamming."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md import preparation, scenes
from tests import tiers
from tests.md.scenes.test_scenes import SPHERE, least_distance, same

FLAT = (True, True, False)
NEVER = lambda *_: False  # noqa: E731 - of a case that it is kept
BOXES = {
    "cubic": md.Box((8, 8, 8)),
    "flat": md.Box((14, 14, 4)),
    "uneven": md.Box((11.3, 7.1, 5.9)),
    "2D": md.Box((20, 18)),
}
WALLED = {
    "flat": md.Box((12, 12, 6), FLAT),
    "slit": md.Box((12.5, 6.2, 7.3), (False, True, False)),
    "closed": md.Box((9, 8, 10), False),
    "2D": md.Box((16, 12), (True, False)),
}


def structure_factor(pos: np.ndarray, box: md.Box) -> np.ndarray:
    """Compute S(k) = |sum exp(i k r)|^2 / n of a periodic box, for wavelengths from 0.6 to 1.7 d."""
    waves = [np.arange(-int(1.6 * side), int(1.6 * side) + 1) for side in box.lengths]
    waves[0] = waves[0][waves[0] >= 0]
    phases = [  # (waves, n) of an axis; their product is that of a wave across all axes
        np.exp(2j * np.pi * np.outer(k, x / side))
        for k, x, side in zip(waves, pos.T, box.lengths, strict=True)
    ]
    last = phases[-1] if box.dim == 2 else np.einsum("kn,ln->kln", *phases[1:]).reshape(-1, len(pos))
    factor = np.abs(phases[0] @ last.T) ** 2 / len(pos)
    size = np.linalg.norm(
        np.meshgrid(*[k / a for k, a in zip(waves, box.lengths, strict=True)], indexing="ij"), axis=0
    )
    return factor.reshape(size.shape)[(size > 0.6) & (size < 1.6)]


def to_walls(state: md.State) -> np.ndarray:
    """Compute the distance of each centre to the nearer wall: (n, walled axes)."""
    walled = ~np.array(state.box.periodic)
    pos, lengths = state.pos[:, walled], np.array(state.box.lengths)[walled]
    return np.minimum(pos, lengths - pos)


class TestDense:
    @pytest.mark.parametrize(
        ("phi", "name"),
        [
            (0.6, "cubic"),
            (0.6, "2D"),
            (0.55, "uneven"),
            tiers.full(0.6, "flat"),
            *tiers.by_default([(0.55, "cubic"), (0.55, "flat"), (0.55, "2D"), (0.6, "uneven")], NEVER),
        ],
    )
    def test_a_packing_has_no_overlap_and_the_exact_temperature(self, phi, name, backend):
        box = BOXES[name]
        state = preparation.granular_gas(phi, box, temperature=9.0, seed=3, backend=backend)
        assert len(state) == round(phi * box.volume / SPHERE[box.dim])
        assert not box.outside(state.pos).any()
        assert least_distance(state.pos, box) >= 1
        assert md.observe.temperature(state) == pytest.approx(9.0, rel=1e-12)
        assert np.abs(md.observe.momentum(state)).max() < 1e-12 * np.abs(state.vel).sum()

    @pytest.mark.parametrize(
        ("phi", "name"),
        tiers.by_default(
            product([0.2, 0.35, 0.36, 0.5, 0.6], ["cubic", "flat", "2D"]),
            lambda phi, name: (phi, name) in ((0.35, "cubic"), (0.6, "flat"), (0.36, "2D")),
            tiers.full,
        ),
    )
    def test_the_lattice_is_removed(self, phi, name, backend):
        box = BOXES[name]
        lattice = preparation.granular_gas(phi, box, seed=1, mixing=0, backend=backend)
        mixed = preparation.granular_gas(phi, box, seed=1, backend=backend)
        n = len(mixed)
        assert structure_factor(lattice.pos, box).max() > 0.3 * n
        assert structure_factor(mixed.pos, box).max() < max(0.06 * n, 16)

    def test_a_seed_gives_one_packing(self, backend):
        one, again, other = (
            preparation.granular_gas(0.57, BOXES["cubic"], seed=seed, backend=backend) for seed in (1, 1, 2)
        )
        assert same(one, again)
        assert not np.array_equal(one.pos, other.pos)

    def test_a_packing_runs(self, backend):
        state = preparation.granular_gas(0.6, BOXES["flat"], seed=1, backend=backend)
        simulation = md.Simulation(state, scenes.BENCHMARK_LAW, dt=scenes.BENCHMARK_DT, backend=backend)
        simulation.run(100)
        assert md.observe.temperature(simulation.state) < scenes.BENCHMARK_TEMPERATURE


class TestLatticesOfDenseBoxes:
    @given(lengths=st.lists(st.floats(4.2, 60.0), min_size=3, max_size=3), phi=st.floats(0.3, 0.6))
    def test_a_periodic_box_of_any_shape_has_a_lattice_for_every_filling_fraction(self, lengths, phi):
        scale = min(1.0, (4000 / np.prod(lengths)) ** (1 / 3) * 2)  # sites enough, seconds few
        box = md.Box(tuple(max(4.2, scale * side) for side in lengths))
        n = round(phi * box.volume / SPHERE[3])
        sites, spacing = scenes.lattice_sites(box, n)
        assert len(sites) >= n
        assert spacing >= 1

    def test_a_rotated_lattice_fits_a_flat_box_where_no_other_does(self):
        n = round(0.6 * 40 * 40 * 10 / SPHERE[3])
        sites, spacing = scenes.lattice_sites(md.Box((40, 40, 9)), n)
        assert len(sites) >= n
        assert spacing > 1.01


class TestBetweenWalls:
    @pytest.mark.parametrize(
        ("phi", "name"),
        tiers.by_default(
            product([0.1, 0.3, 0.4], WALLED),
            lambda phi, name: phi == {"flat": 0.1, "slit": 0.3}.get(name, 0.4),
        ),
    )
    def test_a_gas_has_no_overlap_with_itself_or_a_wall(self, phi, name, backend):
        box = WALLED[name]
        state = preparation.granular_gas(phi, box, seed=4, backend=backend)
        assert len(state) == round(phi * box.volume / SPHERE[box.dim])
        assert least_distance(state.pos, box) >= 1
        assert to_walls(state).min() >= 0.5 - 1e-12
        assert not box.outside(state.pos).any()

    def test_centres_spread_evenly_from_wall_to_wall(self, backend):
        state = preparation.granular_gas(0.3, md.Box((20, 20, 5), FLAT), seed=1, backend=backend)
        share = np.histogram(state.pos[:, 2], bins=8, range=(0.5, 4.5))[0] / len(state)
        assert np.abs(share - 1 / 8).max() < 0.04
        assert to_walls(state).min() < 0.52

    def test_the_elastic_run_moves_particles_from_their_sites(self, backend):
        box = WALLED["flat"]
        short, long = (
            preparation.granular_gas(0.2, box, seed=1, mixing=m, backend=backend) for m in (0.01, 1)
        )
        moved = (long.pos - short.pos)[:, :2]
        moved -= 12 * np.round(moved / 12)
        assert np.median(np.linalg.norm(moved, axis=1)) > 0.2

    def test_a_box_too_full_for_a_glass_keeps_a_disturbed_lattice(self, backend):
        box = md.Box((14, 14, 10), FLAT)
        state = preparation.granular_gas(0.6, box, seed=1, backend=backend)
        assert least_distance(state.pos, box) >= 1
        assert to_walls(state).min() >= 0.5
        room = md.Box((14, 14, 9))
        sites, spacing = scenes.lattice_sites(room, len(state))
        kept = np.sort(np.random.default_rng(1).choice(len(sites), len(state), replace=False))
        shift = state.pos - [0, 0, 0.5] - sites[kept]
        shift -= np.array(room.lengths) * np.round(shift / np.array(room.lengths))
        moved = np.linalg.norm(shift - np.median(shift, axis=0), axis=1)
        assert 0.01 < np.median(moved) < 0.3 * spacing


class TestShakenBox:
    def test_has_the_lengths_of_the_thesis_by_default(self):
        assert preparation.THESIS_LENGTHS == (512, 512, 10)
        state = preparation.shaken_box(0.002, mixing=0)
        assert state.box == md.Box((512, 512, 10), FLAT)
        assert len(state) == round(0.002 * 512 * 512 * 10 / SPHERE[3])

    @pytest.mark.parametrize("lengths", [(16, 14, 10), (9.3, 8.1, 7.7), (20, 10)])
    @pytest.mark.parametrize("phi", [0.05, 0.4, 0.55])
    def test_has_no_overlap_and_the_exact_temperature(self, lengths, phi, backend):
        state = preparation.shaken_box(phi, lengths, temperature=2.5, seed=1, backend=backend)
        assert state.box.periodic == (True,) * (len(lengths) - 1) + (False,)
        assert state.filling_fraction == pytest.approx(phi, abs=0.5 * SPHERE[len(lengths)] / state.box.volume)
        assert least_distance(state.pos, state.box) >= 1
        assert to_walls(state).min() >= 0.5 - 1e-12
        assert md.observe.temperature(state) == pytest.approx(2.5, rel=1e-12)
        assert np.abs(md.observe.momentum(state)).max() < 1e-12 * np.abs(state.vel).sum()

    def test_is_fixed_by_its_seed_and_has_the_given_memory_order(self, backend):
        shuffled, again, lattice = (
            preparation.shaken_box(0.2, (12, 12, 8), seed=7, memory_order=order, backend=backend)
            for order in ("shuffled", "shuffled", "lattice")
        )
        assert same(shuffled, again)
        assert same(shuffled.by_id(), lattice)
        assert not np.array_equal(shuffled.id, lattice.id)

    def test_stays_between_its_walls_when_shaken(self, backend):
        state = preparation.shaken_box(0.3, (10, 10, 8), temperature=100.0, seed=1, backend=backend)
        law = md.laws.SpringDashpot.from_restitution(0.8, contact_time=2e-3)
        walls = md.ShakenWalls(amplitude=1.8, frequency=5, restitution=0.9)
        simulation = md.Simulation(state, law, walls=walls, backend=backend)
        simulation.run(500)
        assert to_walls(simulation.state).min() > 0.3


class TestCoolingGas:
    @pytest.mark.parametrize("dim", [2, 3])
    @pytest.mark.parametrize(("n", "phi"), [(1, 0.1), (2, 0.01), (500, 0.05), (777, 0.3), (600, 0.6)])
    def test_has_n_particles_no_momentum_and_the_exact_temperature(self, n, phi, dim, backend):
        state = preparation.cooling_gas(n, phi, temperature=3.0, dim=dim, seed=2, backend=backend)
        assert len(state) == n
        assert state.filling_fraction == pytest.approx(phi, rel=1e-12)
        assert state.box.periodic == (True,) * dim
        assert len(set(state.box.lengths)) == 1
        if n > 1:
            assert least_distance(state.pos, state.box) >= 1
            assert md.observe.temperature(state) == pytest.approx(3.0, rel=1e-12)
            assert np.abs(md.observe.momentum(state)).max() < 1e-12 * np.abs(state.vel).sum()

    def test_has_no_lattice_and_no_correlation_of_position_and_velocity(self, backend):
        state = preparation.cooling_gas(1000, 0.2, seed=1, backend=backend)
        assert structure_factor(state.pos, state.box).max() < 20
        speed = np.square(state.vel).sum(axis=1)
        assert np.abs(np.corrcoef(np.column_stack([state.pos, speed]).T)[3, :3]).max() < 0.1
        other = preparation.cooling_gas(1000, 0.2, seed=2, backend=backend)
        assert not np.array_equal(state.pos, other.pos)

    def test_cools(self, backend):
        state = preparation.cooling_gas(500, 0.3, seed=1, backend=backend)
        simulation = md.Simulation(state, scenes.BENCHMARK_LAW, dt=scenes.BENCHMARK_DT, backend=backend)
        simulation.run(300)
        assert md.observe.temperature(simulation.state) < 0.8 * scenes.BENCHMARK_TEMPERATURE

"""Scenes: no overlap, the given temperature, no momentum, the given memory order."""

import numpy as np
import pytest

import md
from md import preparation, scenes

BOXES = {
    "cubic": md.Box((10, 10, 10)),
    "flat": md.Box((20, 20, 4)),
    "uneven": md.Box((11.3, 7.1, 5.9)),
    "2D": md.Box((24, 24)),
    "2D uneven": md.Box((31.7, 12.4)),
}
in_every_box = pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
SPHERE = {2: np.pi / 4, 3: np.pi / 6}


def least_distance(pos: np.ndarray, box: md.Box) -> float:
    """Smallest distance between two centres, nearest images included."""
    least = np.inf
    for i in range(len(pos) - 1):
        apart = pos[i + 1 :] - pos[i]
        apart -= np.array(box.periodic) * np.array(box.lengths) * np.round(apart / np.array(box.lengths))
        least = min(least, (apart**2).sum(axis=1).min())
    return float(np.sqrt(least))


def same(one: md.State, other: md.State) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("pos", "vel", "id"))


class TestGranularGas:
    @pytest.mark.parametrize("phi", [0.05, 0.3, 0.5])
    @in_every_box
    def test_has_no_overlap_the_exact_temperature_and_no_momentum(self, phi, box, backend):
        state = preparation.granular_gas(phi, box, temperature=9.0, seed=3, backend=backend)
        assert len(state.pos) == round(phi * box.volume / SPHERE[box.dim])
        assert state.filling_fraction == pytest.approx(phi, abs=0.5 * SPHERE[box.dim] / box.volume)
        assert not box.outside(state.pos).any()
        assert least_distance(state.pos, box) >= 1
        assert md.observe.temperature(state) == pytest.approx(9.0, rel=1e-12)
        magnitudes = np.linalg.norm(state.vel, axis=1).sum()
        assert np.abs(md.observe.momentum(state)).max() < 1e-12 * magnitudes

    @pytest.mark.parametrize("memory_order", ["lattice", "shuffled"])
    def test_is_the_same_from_the_same_seed_and_another_from_another(self, memory_order, backend):
        box = BOXES["cubic"]
        one, again, other = (
            preparation.granular_gas(0.2, box, seed=seed, memory_order=memory_order, backend=backend)
            for seed in (1, 1, 2)
        )
        assert same(one, again)
        assert not np.array_equal(one.by_id().vel, other.by_id().vel)
        assert not np.array_equal(one.by_id().pos, other.by_id().pos)

    def test_memory_order_moves_the_same_particles(self, backend):
        box = BOXES["cubic"]
        lattice, shuffled = (
            preparation.granular_gas(0.3, box, seed=1, memory_order=order, backend=backend)
            for order in ("lattice", "shuffled")
        )
        assert (np.diff(lattice.id) > 0).all()
        assert same(lattice, shuffled.by_id())
        moved = np.abs(np.argsort(shuffled.id) - np.arange(len(shuffled.id)))
        assert moved.mean() > len(moved) / 4

    @in_every_box
    def test_the_elastic_run_takes_particles_off_their_sites(self, box, backend):
        ordered = preparation.granular_gas(0.3, box, seed=1, mixing=0, backend=backend)
        mixed = preparation.granular_gas(0.3, box, seed=1, backend=backend)
        apart = mixed.by_id().pos - ordered.by_id().pos
        apart -= np.array(box.lengths) * np.round(apart / np.array(box.lengths))
        assert np.median(np.linalg.norm(apart, axis=1)) > 0.2

    def test_without_mixing_particles_stand_on_distinct_sites_axis_0_fastest(self, backend):
        box = BOXES["flat"]
        state = preparation.granular_gas(0.3, box, mixing=0, backend=backend)
        sites, spacing = scenes.lattice_sites(box, len(state.pos))
        places = {tuple(site): k for k, site in enumerate(sites.round(9).tolist())}
        numbers = [places[tuple(pos)] for pos in state.pos.round(9).tolist()]
        assert (np.diff(numbers) > 0).all()
        assert least_distance(state.pos, box) == pytest.approx(spacing)

    def test_without_mixing_walls_are_kept(self, backend):
        box = md.Box((9, 8, 7), (True, False, False))
        state = preparation.granular_gas(0.3, box, mixing=0, backend=backend)
        assert least_distance(state.pos, box) >= 1
        assert state.pos[:, 1:].min() >= 0.5
        assert (np.array(box.lengths) - state.pos)[:, 1:].min() >= 0.5

    def test_a_cold_gas_is_at_rest(self, backend):
        state = preparation.granular_gas(0.3, BOXES["cubic"], temperature=0.0, backend=backend)
        assert not state.vel.any()


class TestTiledGas:
    @pytest.mark.parametrize("phi", [0.05, 0.4])
    @pytest.mark.parametrize(("dim", "copies"), [(3, 2), (2, 3)])
    def test_has_no_overlap_at_the_seams_all_spheres_and_the_exact_moments(self, phi, dim, copies, backend):
        n = 60 * copies**dim
        box = scenes.box_for(n, phi, dim)
        state = preparation.tiled_gas(phi, box, copies, temperature=9.0, seed=3, backend=backend)
        assert len(state) == n
        assert least_distance(state.pos, box) >= 1
        assert not box.outside(state.pos).any()
        assert md.observe.temperature(state) == pytest.approx(9.0, rel=1e-12)
        magnitudes = np.linalg.norm(state.vel, axis=1).sum()
        assert np.abs(md.observe.momentum(state)).max() < 1e-12 * magnitudes
        assert len(np.unique(state.vel[:, 0])) == n

    def test_repeats_the_positions_of_one_copy(self, backend):
        box, copies = scenes.box_for(8 * 50, 0.2), 2
        state = preparation.tiled_gas(0.2, box, copies, seed=4, backend=backend)
        side = box.lengths[0] / copies
        apart = state.pos[:, None] - state.pos  # zero for the copies of a particle, up to a side
        apart -= side * np.round(apart / side)
        assert ((np.abs(apart).max(axis=2) < 1e-9).sum(axis=1) == copies**3).all()

    def test_ids_number_the_sites_of_the_whole_box_axis_0_fastest(self, backend):
        box = scenes.box_for(8 * 50, 0.2)
        sites = preparation.tiled_gas(0.2, box, 2, mixing=0, seed=4, backend=backend).pos
        assert (np.lexsort(sites.T) == np.arange(400)).all()
        mixed = preparation.tiled_gas(0.2, box, 2, seed=4, backend=backend)
        assert (np.diff(mixed.id) > 0).all()
        moved = np.linalg.norm(box.nearest(mixed.pos - sites), axis=1)
        assert 0.2 < np.median(moved)
        assert moved.max() < box.lengths[0] / 4 * np.sqrt(3)  # beside its site, also beyond the seam

    @pytest.mark.parametrize(("dim", "copies", "parts"), [(3, 2, 3), (2, 3, 2), (3, 1, 2)])
    def test_parts_are_those_of_the_whole(self, dim, copies, parts, backend, monkeypatch):
        monkeypatch.setattr("md.scenes.parts.BLOCK", 64)
        n = 51 * copies**dim
        options = {"seed": 4, "backend": backend}
        given = 0.2, scenes.box_for(n, 0.2, dim), copies
        whole = preparation.tiled_gas(*given, **options)
        some = [preparation.tiled_gas(*given, **options, part=(k, parts)) for k in range(parts)]
        assert max(map(len, some)) <= n // parts + 1
        assert np.array_equal(np.concatenate([one.pos for one in some]), whole.pos)
        assert np.array_equal(np.concatenate([one.id for one in some]), whole.id)
        np.testing.assert_allclose(np.concatenate([one.vel for one in some]), whole.vel, rtol=0, atol=1e-12)

    def test_one_copy_is_a_granular_gas(self, backend):
        box = BOXES["uneven"]
        options = {"seed": 5, "memory_order": "shuffled", "backend": backend}
        assert same(
            preparation.tiled_gas(0.2, box, 1, **options), preparation.granular_gas(0.2, box, **options)
        )

    def test_is_the_same_from_the_same_seed_and_another_from_another(self, backend):
        box = scenes.box_for(8 * 50, 0.2)
        one, again, other = (
            preparation.tiled_gas(0.2, box, 2, seed=seed, backend=backend) for seed in (1, 1, 2)
        )
        assert same(one, again)
        assert not np.array_equal(one.pos, other.pos)
        assert not np.array_equal(one.vel, other.vel)

    @pytest.mark.quick
    @pytest.mark.parametrize(
        ("n", "least", "copies"),
        [
            (2**19, 2**16, 2),
            (2**22, 2**16, 4),
            (2**19 + 1, 2**16, 1),
            (2**18, 2**16, 1),
            (27 * 4, 4, 3),
            (1, 1, 1),
        ],
    )
    def test_the_number_of_copies_is_the_largest_that_divides_into_large_ones(self, n, least, copies):
        assert preparation.copies_for(n, least=least) == copies


class TestLattice:
    @in_every_box
    @pytest.mark.parametrize("walls", [False, True])
    def test_sites_stand_apart_by_the_spacing_inside_the_box(self, box, walls):
        box = md.Box(box.lengths, not walls)
        n = round(0.4 * box.volume / SPHERE[box.dim])
        sites, spacing = scenes.lattice_sites(box, n)
        assert len(sites) >= n
        assert spacing >= 1
        assert least_distance(sites, box) == pytest.approx(spacing, rel=1e-9)
        assert not box.outside(sites).any()
        if walls:
            assert sites.min() >= 0.5 - 1e-12
            assert (np.array(box.lengths) - sites).min() >= 0.5 - 1e-12

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_few_sites_fit(self, n):
        sites, _ = scenes.lattice_sites(md.Box((4, 4, 4)), n)
        assert len(sites) >= n


class TestVelocities:
    @pytest.mark.parametrize("dim", [2, 3])
    @pytest.mark.parametrize("n", [2, 3, 1000])
    def test_have_zero_sum_and_the_exact_temperature(self, dim, n):
        vel = scenes.maxwell_velocities(n, dim, 7.0, np.random.default_rng(0))
        assert vel.shape == (n, dim)
        assert np.abs(vel.sum(axis=0)).max() < 1e-12 * np.abs(vel).sum()
        assert (vel**2).sum() / n / dim == pytest.approx(7.0, rel=1e-12)

    def test_of_one_particle_are_zero(self):
        assert not scenes.maxwell_velocities(1, 3, 7.0, np.random.default_rng(0)).any()

    def test_are_normal_in_every_component(self):
        vel = scenes.maxwell_velocities(100_000, 3, 16.0, np.random.default_rng(0))
        assert np.abs(vel.std(axis=0) - 4).max() < 0.05
        assert np.abs((vel**4).mean(axis=0) / 3 / 256 - 1).max() < 0.05
        assert np.abs(np.corrcoef(vel.T) - np.eye(3)).max() < 0.02


class TestBoxFor:
    @pytest.mark.parametrize("dim", [2, 3])
    def test_holds_n_spheres_at_the_filling_fraction(self, dim):
        box = scenes.box_for(1000, 0.2, dim=dim)
        assert len(set(box.lengths)) == 1
        assert box.dim == dim
        assert 1000 * SPHERE[dim] / box.volume == pytest.approx(0.2, rel=1e-12)
        assert scenes.box_for(10, 0.1, dim=dim, periodic=False).periodic == (False,) * dim


class TestBenchmarkGas:
    def test_is_the_case_of_the_peers_page(self):
        state = scenes.benchmark_gas(4096, 0.2)
        assert state.pos.shape == (4096, 3)
        assert len(set(state.box.lengths)) == 1
        assert state.box.periodic == (True, True, True)
        assert state.filling_fraction == pytest.approx(0.2, rel=1e-12)
        assert md.observe.kinetic_energy(state) == pytest.approx(24, rel=1e-12)
        assert md.observe.temperature(state) == pytest.approx(scenes.BENCHMARK_TEMPERATURE, rel=1e-12)
        assert np.abs(md.observe.momentum(state)).max() < 1e-12 * np.abs(state.vel).sum()
        assert least_distance(state.pos, state.box) >= 1
        law = scenes.BENCHMARK_LAW
        assert (law.stiffness, law.damping, law.cutoff, scenes.BENCHMARK_DT) == (1e4, 5, 1, 4.4e-4)

    def test_is_shuffled_unless_asked_otherwise_and_fixed_by_its_seed(self):
        state = scenes.benchmark_gas(1000, 0.3, seed=4)
        assert same(state, scenes.benchmark_gas(1000, 0.3, seed=4))
        assert not np.array_equal(state.by_id().pos, scenes.benchmark_gas(1000, 0.3, seed=5).by_id().pos)
        assert np.abs(np.argsort(state.id) - np.arange(1000)).mean() > 250
        lattice = scenes.benchmark_gas(1000, 0.3, seed=4, memory_order="lattice")
        assert same(lattice, state.by_id())
        assert (np.diff(lattice.id) == 1).all()

    @pytest.mark.parametrize("phi", [0.05, 0.4])
    def test_jitters_its_lattice_without_overlap(self, phi):
        state = scenes.benchmark_gas(729, phi, memory_order="lattice")
        spacing = state.box.lengths[0] / 9
        offsets = state.pos / spacing % 1
        assert least_distance(state.pos, state.box) >= 1
        assert offsets.std(axis=0).min() > 0.001


@pytest.mark.quick
def test_former_names_are_the_same_objects():
    """Names until version 0.3, which a user's file may have: of the benchmark gas, and of prepared scenes."""
    assert scenes.shared_gas is scenes.benchmark_gas
    for name in ("LAW", "DT", "TEMPERATURE"):
        assert getattr(scenes, f"SHARED_{name}") is getattr(scenes, f"BENCHMARK_{name}")
    for name in preparation.__all__:
        assert getattr(scenes, name) is getattr(preparation, name)
    with pytest.raises(AttributeError, match=r"'md\.scenes' has no attribute 'granular_gass'"):
        scenes.granular_gass  # noqa: B018

"""Radii in states, checkpoints, trajectories, faults, observables and time steps."""

import gsd.hoomd
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.laws import SpringDashpot
from md.observe.section import section
from tests.md.particles.test_radii import LAW, gas, loose, plain_pairs, simulated
from tests.md.search.test_contract import separations
from tests.tiers import full

BOX = md.Box((8.0, 8.0, 8.0))


def pair(distance: float, radius, vel=(0.0, 0.0, 0.0), **options) -> md.State:
    """Two particles on a line."""
    pos = [[2.0, 4.0, 4.0], [2.0 + distance, 4.0, 4.0]]
    return md.State(pos, [vel, vel], BOX, radius=radius, **options)


class TestState:
    @given(seed=st.integers(0, 99))
    def test_radii_follow_their_particles(self, seed):
        state = gas(seed=seed)
        moved = state.take(np.random.default_rng(seed).permutation(len(state)))
        assert not np.array_equal(moved.radius, state.radius)
        assert np.array_equal(moved.by_id().radius, state.by_id().radius)
        assert len(state.take([3]).radius) == 1

    def test_they_fill_the_box_by_their_volumes(self):
        state = pair(3.0, [0.5, 1.5])
        assert state.filling_fraction == pytest.approx(4 / 3 * np.pi * (0.125 + 3.375) / 512, rel=1e-14)
        assert pair(3.0, [0.5, 0.5]).filling_fraction == pytest.approx(pair(3.0, None).filling_fraction)

    def test_there_are_none_where_none_are_given_and_of_nobody(self):
        assert pair(3.0, None).radius is None
        assert md.State(np.empty((0, 3)), np.empty((0, 3)), BOX, radius=[]).radius is None

    @pytest.mark.parametrize(
        ("radius", "message"),
        [
            ([0.5], r"radius of shape \(1,\); allowed: \(2,\)"),
            ([0.5, 0.0], r"radius\[1\] = 0.0; allowed: 1e-09 to 1e\+09"),
            ([-1, 0.5], r"radius\[0\] = -1.0; allowed"),
            ([0.5, np.nan], r"radius\[1\] = nan; allowed"),
            ([np.inf, 0.5], r"radius\[0\] = inf; allowed"),
            (["a", "b"], "radius of dtype .*; allowed: real numbers"),
        ],
    )
    def test_what_is_no_radius_is_refused(self, radius, message):
        with pytest.raises(ValueError, match=message):
            pair(3.0, radius)

    def test_a_box_too_narrow_for_the_largest_is_refused(self, backend):
        with pytest.raises(ValueError, match=r"box length 8.0 along axis 0 with cutoff 4.2; .* at least 8.4"):
            simulated(pair(3.0, [2.1, 0.1]), "lbvh", backend)

    @pytest.mark.parametrize("precision", ["float32", "float64"])
    def test_a_simulation_gives_them_back_in_its_precision(self, precision, backend):
        found = simulated(gas(), "coherent", backend, precision=precision)
        found.search.build()  # sorts the memory
        assert not np.array_equal(found.state.id, gas().id)
        assert found.state.radius.dtype == precision
        assert np.array_equal(found.state.by_id().radius, gas().by_id().radius.astype(precision))


@pytest.mark.parametrize(
    ("search", "reorder"),
    [("lbvh", None), ("linked", md.Reorder("zigzag", md.Every(20), mode="shadow"))],
)
def test_a_run_goes_on_from_a_checkpoint_to_the_bit(search, reorder, backend, tmp_path):
    if backend not in md.search.SEARCHES[search].capabilities.bitwise_on:
        pytest.skip("sums round differently from run to run")
    run = simulated(loose(), search, backend, dt=2e-4, reorder=reorder)
    run.run(60)
    run.save(tmp_path / "run.npz")
    other = md.Simulation.load(tmp_path / "run.npz")
    assert np.array_equal(other.state.radius, run.state.radius)
    for simulation in (run, other):
        simulation.run(60)
    for name in ("id", "pos", "vel", "radius"):
        assert np.array_equal(getattr(run.state, name), getattr(other.state, name))
    assert np.array_equal(run.pairs(), other.pairs())


@pytest.mark.parametrize(("sized", "version"), [(False, 2), (True, 4)])
def test_a_checkpoint_says_whether_it_has_radii(sized, version, backend, tmp_path):
    state = loose() if sized else md.scenes.benchmark_gas(27, 0.1)
    simulated(state, "linked", backend).save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        assert int(file["version"]) == version
        assert ("radius" in file) == sized


def test_a_checkpoint_of_the_former_law_of_unequal_spheres_is_refused(backend, tmp_path):
    path = tmp_path / "run.npz"
    simulated(loose(), "linked", backend).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | {"version": np.array(3)}))
    with pytest.raises(md.CheckpointError, match=r"radii .*version 3, .*allowed: version 4; .*make a Simul"):
        md.Simulation.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("radius"), "is damaged"),
        (lambda arrays: arrays.update(radius=-arrays["radius"]), "radius.*the file is damaged"),
        (lambda arrays: arrays.update(radius=arrays["radius"].astype(np.float32)), "dtype of radius"),
    ],
)
def test_a_checkpoint_whose_radii_are_none_is_refused(change, message, backend, tmp_path):
    path = tmp_path / "run.npz"
    simulated(loose(), "linked", backend).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    change(arrays)
    np.savez(path, **arrays)
    with pytest.raises(md.CheckpointError, match=message):
        md.Simulation.load(path)


class TestTrajectory:
    def test_frames_have_diameters(self, backend, tmp_path):
        run = simulated(gas(), "lbvh", backend)
        run.write(tmp_path / "run.gsd")
        run.run(2)
        run.write(tmp_path / "run.gsd")
        with gsd.hoomd.open(tmp_path / "run.gsd") as file:
            for frame in file:
                expected = (2 * gas().by_id().radius).astype(np.float32)
                assert np.array_equal(frame.particles.diameter, expected)

    @pytest.mark.parametrize("radii", [(None, [1.0, 0.5]), ([1.0, 0.5], None), ([1.0, 0.5], [1.0, 0.7])])
    def test_a_frame_of_other_radii_is_refused(self, radii, backend, tmp_path):
        first, then = (simulated(pair(3.0, radius), "linked", backend) for radius in radii)
        first.write(tmp_path / "run.gsd")
        then.run(1)
        with pytest.raises(ValueError, match=r"holds other particles: id . of diameter"):
            then.write(tmp_path / "run.gsd")

    def test_radii_of_a_half_are_as_none(self, backend, tmp_path):
        for steps, radius in ((0, None), (1, [0.5, 0.5])):
            run = simulated(pair(3.0, radius), "linked", backend)
            run.run(steps)
            run.write(tmp_path / "run.gsd")


class TestStart:
    @pytest.mark.parametrize(("distance", "deep"), [(1.3, False), (1.2, True)])
    def test_overlaps_are_deep_by_the_sum_of_radii(self, distance, deep, backend):
        run = simulated(pair(distance, [2.0, 0.5]), "linked", backend, allow_overlap=False)
        if not deep:
            run.run(1)
            return
        with pytest.raises(md.OverlappingStart, match=r"at 1.2 d, .* allowed: 1.25 d for its radii") as fault:
            run.run(1)
        assert fault.value.distance == pytest.approx(1.2)
        assert fault.value.state.radius.tolist() == [2.0, 0.5]

    def test_of_two_pairs_the_one_closer_for_its_radii_is_named(self, backend):
        pos = [[1, 1, 4], [1.2, 1, 4], [4, 4, 4], [4.4, 4, 4]]
        state = md.State(pos, np.zeros((4, 3)), BOX, radius=[0.25, 0.25, 2.0, 2.0])
        with pytest.raises(
            md.OverlappingStart, match=r"particles 2 and 3 overlap deeply, at 0.4 d, .*; 2 in all"
        ):
            simulated(state, "linked", backend, allow_overlap=False).run(1)

    @pytest.mark.parametrize(("height", "deep"), [(1.1, False), (0.9, True)])
    def test_so_are_those_in_walls(self, height, deep, backend):
        box = md.Box((8.0, 8.0, 8.0), (True, False, True))
        state = md.State([[4.0, height, 4.0], [4.0, 5.0, 4.0]], np.zeros((2, 3)), box, radius=[2.0, 0.5])
        run = simulated(state, "linked", backend, walls=md.Walls(), allow_overlap=False)
        if not deep:
            run.run(1)
            return
        with pytest.raises(
            md.OverlappingStart, match=r"particle 0 is deep in a wall, at 0.9 d, .* allowed: 1 d"
        ):
            run.run(1)

    def test_the_snapshot_of_a_fault_has_radii(self, backend, tmp_path):
        box = md.Box((8.0, 8.0, 8.0), (True, False, True))
        pos, vel = [[4.0, 7.0, 4.0], [4.0, 2.0, 4.0]], [[0.0, 9.0, 0.0], [0.0, 0.0, 0.0]]
        state = md.State(pos, vel, box, radius=[0.3, 0.7])
        run = simulated(state, "linked", backend, dt=0.01, post_mortem=tmp_path)
        with pytest.raises(md.ParticleEscaped) as fault:
            run.run(30)
        with np.load(fault.value.saved) as file:
            assert file["radius"].tolist() == [0.3, 0.7]


class TestEnergy:
    def stored(self, state: md.State) -> float:
        """Sum K (s - r)^2 / 2 over all pairs."""
        s = state.radius[:, None] + state.radius[None]
        overlap = np.maximum(s - np.linalg.norm(separations(state), axis=2), 0)
        return float(np.triu(LAW.stiffness * overlap**2 / 2, 1).sum())

    def test_is_what_is_stored_in_the_springs(self, backend, start_energy):
        state = gas()
        run = simulated(state, "lbvh", backend)
        expected = self.stored(state)
        seen = md.observe.look(run)
        assert seen.contact_energy_per_particle * len(state) == pytest.approx(expected, rel=1e-12)
        assert seen.touching_pairs == len(plain_pairs(state))
        plain = md.observe.contact_energy(run.state, run.pairs(), LAW) * len(state)
        assert plain == pytest.approx(expected, rel=1e-12)
        run.run(1)
        kinetic = np.square(state.vel).sum() / 2
        assert start_energy(run) == pytest.approx(expected + kinetic, rel=1e-12)

    @pytest.mark.parametrize("search", ["lbvh", full("verlet")])
    def test_stays_in_an_elastic_gas(self, search, backend):
        elastic = SpringDashpot(2e4, 0.0)
        run = simulated(loose(), search, backend, elastic, dt=1e-4, fused=True, allow_overlap=False)
        energies = []
        for _ in range(15):
            run.run(60, phases=False)
            seen = md.observe.look(run)
            energies.append(seen.kinetic_energy_per_particle + seen.contact_energy_per_particle)
        assert max(energies) - min(energies) < 0.01 * energies[0]
        assert seen.contact_energy_per_particle > 0.01 * energies[0]

    @pytest.mark.parametrize("mode", ["data", "shadow"])
    def test_contacts_begin_when_pairs_start_to_touch(self, mode, backend):
        reorder = md.Reorder("morton", md.Every(5), mode=mode)
        run = simulated(loose(), "linked", backend, dt=1e-3, reorder=reorder)
        before, count = {tuple(row) for row in run.pairs().tolist()}, 0
        for _ in range(60):
            run.run(1)
            now = {tuple(row) for row in run.pairs().tolist()}
            assert md.observe.look(run).contacts_begun == len(now - before)
            count, before = count + len(now - before), now
        assert count > 20

    def test_is_balanced_between_walls(self, backend):
        state = loose(4, periodic=(True, True, False))
        balance = md.observe.EnergyBalance()
        walls = md.Walls(restitution=0.9, contact_time=0.01)
        run = simulated(state, "linked", backend, SpringDashpot(1e4, 20.0), dt=1e-4, walls=walls)
        run.run(1000, reporters=[balance])
        table = balance.table()
        assert table["energy_lost_at_walls"][-1] > 0.01 * table["kinetic_energy"][0]
        assert np.abs(table["energy_missing"]).max() < 0.01 * table["kinetic_energy"][0]

    def test_values_of_a_look_for_particles_of_several_sizes(self, backend):
        seen = md.observe.look(simulated(gas(), "linked", backend), [md.Profile(0, 4)])
        rate = (
            2 * seen.touching_pairs / len(gas()) / LAW.contact_time
        )  # contacts of all sizes last equally long
        assert seen.collision_rate_by_touching == pytest.approx(rate)
        assert np.isnan(seen.profiles[0].filling_fraction).all()
        assert seen.profiles[0].particles.sum() == len(gas())


def test_the_time_step_is_a_fiftieth_of_a_contact_of_any_sizes(backend):
    elastic = SpringDashpot(1e4, 0.0)
    found = simulated(pair(3.0, [0.1, 2.0]), "linked", backend, elastic, dt=None)
    assert found.dt == elastic.contact_time / 50


def test_adaptive_steps_go_no_farther_than_the_smallest_radius(backend):
    state = pair(3.0, [0.1, 2.0], vel=(4.0, 0.0, 0.0))
    run = simulated(state, "linked", backend, SpringDashpot(0.0, 0.0), 1.0, integrator="adaptive_euler")
    run.run(10)
    assert run.time == pytest.approx(10 * 0.1 / 4)


def test_a_section_cuts_each_sphere_by_its_radius():
    pos = [[2.0, 4.0, 1.0], [5.0, 4.3, 1.0], [6.0, 5.0, 5.0]]
    state = md.State(pos, np.zeros((3, 3)), md.Box((8.0,) * 3), radius=[0.2, 0.5, 2.0])
    found = section(state, axis=1, at=4.0)
    assert found.radius == pytest.approx([0.2, 0.4, np.sqrt(3)])
    assert section(state, axis=1, at=4.25).id.tolist() == [1, 2]

"""Contacts begun: in float64 exactly the pairs that are new from one step to the next."""

import math

import numpy as np
import pytest

import md
from md.observe import look
from md.observe.kinetic_theory import collision_rate
from tests.md.observe.test_observation import crowd, every_search, new_contacts, simulated
from tests.tiers import full

ELASTIC = md.laws.SpringDashpot(stiffness=1e4, damping=0.0)


class TestContactsBegun:
    @pytest.mark.parametrize("dim", [full(2), 3])
    @pytest.mark.parametrize("across_a_side", [False, True])
    def test_of_two_bodies_are_one_a_collision(self, dim, across_a_side, backend):
        pos = np.full((2, dim), 2.5)
        pos[:, 0] += [-0.6, 0.6]
        if across_a_side:
            pos[:, 0] = [4.4, 0.6]  # contact at 0
        vel = np.zeros((2, dim))
        vel[:, 0] = [3.0, -3.0]
        state = md.State(pos, vel, md.Box((5.0,) * dim))
        simulation, found, expected = simulated(state, backend, ELASTIC), [], []
        for _ in range(200):
            expected.append(new_contacts(simulation))
            found.append(look(simulation).contacts_begun)
        assert sum(found) == 1
        assert found == expected

    @every_search
    @pytest.mark.parametrize("fused", [full(False), True])
    def test_of_a_gas_are_counted_step_by_step(self, search, fused, backend):
        if fused and not md.search.SEARCHES[search].capabilities.fusable:
            pytest.skip(f"{search} as it is by name cannot be fused")
        simulation = simulated(
            md.scenes.benchmark_gas(216, 0.35), backend, md.scenes.BENCHMARK_LAW, search=search, fused=fused
        )
        found, expected = [], []
        for _ in range(150):
            expected.append(new_contacts(simulation))
            found.append(look(simulation).contacts_begun)
        assert sum(expected) > 100
        assert found == expected

    def test_of_a_gas_in_two_dimensions_and_shaken_walls(self, backend):
        walls = md.ShakenWalls(amplitude=0.5, frequency=5.0, restitution=0.9, contact_time=0.02)
        sites, _ = md.scenes.lattice_sites(box := md.Box((15.0, 13.0), (True, False)), 120)
        inside = (sites[:, 1] > 0.5) & (sites[:, 1] < 12.5)
        vel = md.scenes.maxwell_velocities(inside.sum(), 2, 16.0, np.random.default_rng(1))
        state = md.State(sites[inside], vel, box)
        simulation = simulated(state, backend, walls=walls, gravity=(0.0, -9.0))
        found, expected = [], []
        for _ in range(150):
            expected.append(new_contacts(simulation))
            found.append(look(simulation).contacts_begun)
        assert sum(expected) > 30
        assert found == expected

    def test_are_counted_with_a_variable_step(self, backend):
        state = md.scenes.benchmark_gas(216, 0.35)
        simulation = simulated(
            md.State(state.pos, 30 * state.vel, state.box), backend, integrator="adaptive_euler", dt=2e-3
        )
        found, expected, times = [], [], [0.0]
        for _ in range(40):
            expected.append(new_contacts(simulation))
            seen = look(simulation)
            found.append(seen.contacts_begun)
            times.append(seen.time)
            rate = 2 * seen.contacts_begun / len(state) / (times[-1] - times[-2])
            assert seen.collision_rate_per_particle == pytest.approx(rate, rel=1e-9)
        assert min(np.diff(times)) < 1.9e-3
        assert sum(expected) > 100
        assert found == expected

    @pytest.mark.parametrize("integrator", ["velocity_verlet", "adaptive_euler"])
    def test_are_right_in_a_run_that_is_loaded(self, integrator, backend, tmp_path):
        simulation = simulated(crowd(3, (True,) * 3), backend, integrator=integrator)
        simulation.run(9)
        simulation.save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        one, other = look(simulation), look(loaded)
        assert one.touching_pairs == other.touching_pairs
        assert other.kinetic_energy_per_particle == pytest.approx(one.kinetic_energy_per_particle, rel=1e-9)
        if integrator == "velocity_verlet":
            assert one.contacts_begun == other.contacts_begun
        else:
            assert math.isnan(other.collision_rate_per_particle)
        new = new_contacts(loaded)
        assert look(loaded).contacts_begun == new

    @pytest.mark.parametrize("integrator", ["position_verlet", "steepest_descent"])
    def test_are_unknown_without_the_velocity_of_the_last_drift(self, integrator, backend):
        simulation = simulated(crowd(3, (True,) * 3), backend, integrator=integrator)
        simulation.run(2)
        seen = look(simulation)
        assert seen.contacts_begun == 0
        assert math.isnan(seen.collision_rate_per_particle)
        assert math.isnan(seen.mean_free_path_d)
        assert seen.touching_pairs == len(simulation.pairs())

    def test_are_unknown_at_step_0(self, backend):
        seen = look(simulated(crowd(3, (True,) * 3), backend))
        assert seen.contacts_begun == 0
        assert seen.touching_pairs > 0
        assert math.isnan(seen.collision_rate_per_particle)

    def test_of_a_dilute_gas_are_as_many_as_kinetic_theory_says(self, backend):
        start = md.scenes.benchmark_gas(512, 0.1)
        state = md.State(start.pos, start.vel / 4, start.box)
        simulation = simulated(state, backend, ELASTIC)
        simulation.run(1000, phases=False)
        observer = md.Observer(interval=5)
        simulation.run(2000, phases=False, reporters=[observer])
        table = observer.table()
        rate = collision_rate(state.filling_fraction, table["temperature"].mean())
        assert table["collision_rate_per_particle"].mean() == pytest.approx(rate, rel=0.15)
        assert table["collision_rate_by_touching"].mean() == pytest.approx(rate, rel=0.15)

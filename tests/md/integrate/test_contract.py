"""One contract for every integrator of the registry: free flight, faults, fused steps, resumed runs."""

import numpy as np
import pytest

import md
from md.integrate import INTEGRATORS

FREE, LAW = md.laws.SpringDashpot(0.0, 0.0), md.laws.SpringDashpot(1e4, 5.0)
UNMOVED = md.laws.Boids(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
FLOCK = md.laws.Boids(1.5, 1.0, 1.5)
DT, BOX = 1e-3, md.Box((6.0, 6.0, 6.0), (False, True, True))
INCREMENTS = [name for name, kind in INTEGRATORS.items() if kind.capabilities.takes_increments]
MOVING = [name for name, kind in INTEGRATORS.items() if not kind.capabilities.relaxes]
FUSABLE = [name for name, kind in INTEGRATORS.items() if kind.capabilities.fusable]


def simulated(backend, integrator, law=LAW, state=None, **options) -> md.Simulation:
    state = md.scenes.benchmark_gas(125, 0.3) if state is None else state
    if getattr(integrator, "name", integrator) in INCREMENTS:
        law = {LAW: FLOCK, FREE: UNMOVED}[law]
        integrator = md.integrate.Flight(max_speed=1e4)
    options = {"dt": DT} | options
    return md.Simulation(state, law, integrator=integrator, backend=backend, **options)


def lone(vel) -> md.State:
    return md.State([[2.0, 3.0, 3.0]], [vel], BOX, id=[5])


@pytest.mark.quick
@pytest.mark.parametrize("integrator", INTEGRATORS)
class TestEveryIntegrator:
    def test_is_taken_by_name_or_as_an_object(self, integrator, backend):
        law = FLOCK if integrator in INCREMENTS else LAW
        for choice in (integrator, INTEGRATORS[integrator]()):
            state = md.scenes.benchmark_gas(125, 0.3)
            run = md.Simulation(state, law, integrator=choice, dt=DT, backend=backend)
            assert run.config.integrator == INTEGRATORS[integrator]()
            assert run.config.integrator.name == run.device_view().integrator == integrator

    def test_starts_from_the_state_and_takes_time_forward(self, integrator, backend):
        run, start = simulated(backend, integrator), md.scenes.benchmark_gas(125, 0.3)
        assert run.time == 0
        assert np.array_equal(run.state.vel, start.vel)
        times = []
        for _ in range(3):
            run.run(5)
            times.append(run.time)
        assert 0 < times[0] < times[1] < times[2] <= 15 * DT * (1 + 1e-12)
        assert run.step == 15

    def test_moves_nothing_at_rest_without_a_force(self, integrator, backend):
        run = simulated(backend, integrator, FREE, lone((0.0, 0.0, 0.0)))
        run.run(10)
        assert run.state.pos.tolist() == [[2.0, 3.0, 3.0]]
        assert not run.state.vel.any()

    def test_resumes_from_a_file_to_the_last_bit(self, integrator, backend, tmp_path):
        run = simulated(backend, integrator, dt=4e-4)
        run.run(17)
        run.save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        for one in (run, loaded):
            one.run(20)
        assert run.time == loaded.time
        if backend in run.search.capabilities.bitwise_on:
            assert np.array_equal(run.state.pos, loaded.state.pos)
            assert np.array_equal(run.state.vel, loaded.state.vel)

    def test_is_fused_where_it_can_be_and_refused_elsewhere(self, integrator, backend):
        if integrator not in FUSABLE:
            with pytest.raises(ValueError, match=rf"integrator '{integrator}' cannot be fused .*fused=False"):
                simulated(backend, integrator, fused=True)
            return
        runs = [
            simulated(backend, integrator, search="naive", dt=4e-4, fused=fused) for fused in (False, True)
        ]
        for run in runs:
            run.run(40, phases=False)
        np.testing.assert_allclose(*(run.state.by_id().pos for run in runs), atol=1e-10)


@pytest.mark.quick
@pytest.mark.parametrize("integrator", MOVING)
class TestEveryIntegratorThatMovesByVelocity:
    def test_a_free_particle_flies_straight(self, integrator, backend):
        run = simulated(backend, integrator, FREE, lone((1.0, -0.5, 0.25)))
        run.run(200)
        expected = np.array([2.0, 3.0, 3.0]) + run.time * np.array([1.0, -0.5, 0.25])
        np.testing.assert_allclose(run.state.pos[0], expected, atol=1e-12)
        assert run.state.vel.tolist() == [[1.0, -0.5, 0.25]]

    def test_a_particle_that_leaves_the_box_is_a_fault_with_its_step_and_id(self, integrator, backend):
        run = simulated(backend, integrator, FREE, lone((97.0, 0.0, 0.0)))
        with pytest.raises(md.ParticleEscaped) as caught:
            run.run(500)
        assert caught.value.particle == 5
        left = 2.0 + 97.0 * DT * (caught.value.step + 1)
        if integrator != "adaptive_euler":  # whose steps are shorter
            assert 6.0 <= left <= 6.0 + 97.0 * DT


@pytest.mark.quick
@pytest.mark.parametrize("integrator", [name for name in MOVING if name not in INCREMENTS])
def test_momentum_stays(integrator, backend):
    run = simulated(backend, integrator, dt=4e-4)
    before = run.state.vel.sum(axis=0)
    run.run(50)
    np.testing.assert_allclose(run.state.vel.sum(axis=0), before, atol=1e-9)


def test_a_stepper_has_to_tell_its_velocities_at_the_time_of_the_positions():
    class Silent(md.integrate.Stepper):
        def advance(self, force, step, fault):
            """Take no step."""

    system = simulated("cpu", "velocity_verlet").system
    with pytest.raises(TypeError, match=r"abstract.*velocity_now"):
        Silent(md.integrate.integrator("velocity_verlet"), system, None)

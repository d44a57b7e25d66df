"""What a smaller step buys: the order of integrators on a pair that turns, the energy of an elastic gas."""

import numpy as np
import pytest

import md
from tests.tiers import full, nightly

SpringDashpot, Frictional = md.laws.SpringDashpot, md.laws.FrictionalSpringDashpot
ELASTIC = SpringDashpot(stiffness=1e4, damping=0.0)
LAWS = {  # with the order that velocities half a step off leave to it
    "elastic": (ELASTIC, 2),
    "sliding": (Frictional(1e4, 0.0, friction=0.2, tangential_damping=1e6), 2),
    "damped": (SpringDashpot(1e4, damping=20.0), 1),
    "viscous": (Frictional(1e4, 0.0, friction=1e6, tangential_damping=20.0), 1),
    "damped and sliding": (Frictional(1e4, 5.0, friction=0.2, tangential_damping=1e6), 1),
}


def turned(law, steps: int, dim: int, integrator: str, backend: str) -> tuple[np.ndarray, np.ndarray]:
    """Relative position and velocity of a pair that turns as it is squeezed, in contact all the while."""
    apart, relative = np.zeros(dim), np.zeros(dim)
    apart[0], relative[:2] = 0.97, (-1.0, 15.0)
    middle = np.full(dim, 2.5)
    pos, vel = np.array([middle - apart / 2, middle + apart / 2]), np.array([-relative / 2, relative / 2])
    simulation = md.Simulation(
        md.State(pos, vel, md.Box((5.0,) * dim)),
        law,
        search="naive",
        integrator=integrator,
        dt=0.4 * ELASTIC.contact_time / steps,
        backend=backend,
    )
    for _ in range(4):
        simulation.run(steps // 4, phases=False)
        assert len(simulation.pairs()) == 1
    end = simulation.state.by_id()
    return end.pos[1] - end.pos[0], end.vel[1] - end.vel[0]


class TestStepHalving:
    @pytest.mark.parametrize("dim", [3, full(2)])
    @pytest.mark.parametrize("integrator", ["velocity_verlet", "position_verlet"])
    @pytest.mark.parametrize(("law", "order"), LAWS.values(), ids=LAWS)
    def test_shrinks_the_change_by_two_to_the_order(self, law, order, integrator, dim, backend):
        ends = [turned(law, steps, dim, integrator, backend) for steps in (80, 160, 320, 640)]
        place, speed = np.array([end[0] for end in ends]), np.array([end[1] for end in ends])
        assert np.arctan2(place[-1, 1], place[-1, 0]) > 0.1
        for values in (place, speed):
            changes = np.linalg.norm(np.diff(values, axis=0), axis=1)
            observed = np.log2(changes[:-1] / changes[1:])
            assert np.abs(observed - order).max() < 0.15, observed


def strays(steps_a_contact: int, backend: str) -> np.ndarray:
    """How far the energy of an elastic gas is from that at the start, as a share of it, in 10 000 steps."""
    state = md.preparation.cooling_gas(2000, 0.1, seed=1, backend=backend)
    dt = ELASTIC.contact_time / steps_a_contact
    simulation = md.Simulation(state, ELASTIC, search="verlet", dt=dt, backend=backend, fused=True)
    found = []
    for k in range(41):
        simulation.run(250 if k else 0, phases=False)
        stored = md.observe.contact_energy(simulation.state, simulation.pairs(), ELASTIC)
        found.append(md.observe.kinetic_energy(simulation.state) + stored)
    return np.array(found) / found[0] - 1


@pytest.mark.parametrize(("steps_a_contact", "limit"), [(50, 1e-4), nightly(200, 1e-5)])
def test_energy_of_an_elastic_gas_strays_in_10_000_steps_by_less_than(steps_a_contact, limit, backend):
    """Every contact errs a little, up or down, so the energy walks at random.

    What 10 000 steps stray by thus grows with the root of the contacts and falls with that of n. Six gases
    like this one strayed by 5e-5 at most, at 200 steps a contact by 3e-6. Of gases twice as dense, which have
    nearly three times the contacts, four strayed by up to 1.4e-4 and 3e-6, and six of 216 particles by 2.2e-4
    and 1.4e-5.
    """
    found = strays(steps_a_contact, backend)
    assert 1e-9 < np.abs(found).max() < limit


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_in_an_adaptive_step_the_fastest_goes_no_farther_than_its_radius(backend, precision):
    vel = np.zeros((3, 3))
    vel[:2] = [[3.0, 0.0, -4.0], [1.0, 2.0, 2.0]]
    state = md.State([[1, 1, 1], [3, 5, 3], [6, 6, 6]], vel, md.Box((9.0, 9.0, 9.0)))
    free = md.laws.SpringDashpot(0.0, 0.0)
    run = md.Simulation(
        state, free, dt=7.0, integrator="adaptive_euler", precision=precision, backend=backend
    )
    run.run(3)
    assert run.time == pytest.approx(3 * 0.5 / 5.0, rel=1e-6)
    moved = state.box.nearest(run.state.by_id().pos - state.pos)
    assert moved == pytest.approx(vel * run.time, abs=1e-5)
    still = md.State(state.pos, 0 * vel, state.box)
    run = md.Simulation(still, free, dt=7.0, integrator="adaptive_euler", backend=backend)
    run.run(2)
    assert run.time == 14.0


@pytest.mark.quick
def test_adaptive_euler_is_of_first_order(backend):
    """A pair held in contact, seen after a given time: half the step is half the error."""
    state = md.State([[2.0, 2.0], [2.95, 2.0]], np.zeros((2, 2)), md.Box((5.0, 5.0)))
    law = md.laws.SpringDashpot(stiffness=100.0, damping=0.0)
    errors = []
    for steps in (200, 400, 800):
        dt = 0.1 / steps
        run = md.Simulation(state, law, dt=dt, integrator="adaptive_euler", backend=backend)
        run.run(steps, phases=False)
        assert run.time == pytest.approx(0.1)
        exact = 0.05 * np.cos(np.sqrt(200.0) * 0.1)  # of the overlap
        errors.append(abs(1 - np.diff(run.state.by_id().pos[:, 0])[0] - exact))
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.05)

"""The flock in numpy: ten steps are those of `md`, in each number of dimensions and with any radii."""

import numpy as np
import pytest

import md
from experiments.peers.numpy_flock import numpy_flock_step
from tests.tiers import full, nightly

LAW = md.laws.Boids()
RADII = md.laws.Boids(cohesion_radius=2.5, separation_radius=4.0, alignment_radius=3.0, separation=0.02)


@pytest.mark.parametrize(("law", "dim"), [nightly(LAW, 3), (RADII, 3), full(LAW, 2)])
def test_ten_steps_are_those_of_md(law, dim):
    state = md.scenes.flock(2000, md.Box((25.0, 27.0, 23.0)[:dim]), clusters=0 if dim == 3 else 8)
    flock = md.Simulation(
        state, law, search="coherent", integrator="flight", dt=0.2, backend="cpu", precision="float64"
    )
    flock.run(10)
    pos, vel = state.pos, state.vel
    for _ in range(10):
        pos, vel = numpy_flock_step(pos, vel, np.array(state.box.lengths), law, 1.0, 0.2)
    end = flock.state.by_id()
    apart = pos - end.pos
    apart -= np.array(state.box.lengths) * np.rint(apart / state.box.lengths)
    assert np.abs(apart).max() < 1e-10
    assert np.abs(vel - end.vel).max() < 1e-10
    assert ((pos >= 0) & (pos < state.box.lengths)).all()
    assert np.abs(end.vel - state.vel).max() > 0.1


def test_no_neighbours():
    pos, vel = np.array([[1.0, 1, 1], [7, 7, 7]]), np.array([[1.0, 0, 0], [0, 3, 4]])
    after, turned = numpy_flock_step(pos, vel, np.full(3, 12.0), LAW, 2.0, 0.5)
    assert np.allclose(turned, [[1, 0, 0], [0, 1.2, 1.6]], rtol=0, atol=1e-15)
    assert np.allclose(after, [[1.5, 1, 1], [7, 7.6, 7.8]], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"lengths": np.full(3, 9.9)}, ValueError, r"lengths.*9\.9.*allowed: .*10.*enlarge the box"),
        ({"pos": np.full((2, 3), 12.0)}, ValueError, "pos outside the box.*wrap"),
        ({"pos": np.zeros((2, 3), int)}, ValueError, "pos.*allowed: floats"),
        ({"vel": np.zeros((3, 3))}, ValueError, "vel"),
        ({"law": md.laws.SpringDashpot(1.0, 1.0)}, TypeError, "law.*allowed: an md.laws.Boids"),
    ],
)
def test_wrong_input_is_refused(wrong, error, message):
    given = {"pos": np.ones((2, 3)), "vel": np.zeros((2, 3)), "lengths": np.full(3, 12.0), "law": LAW}
    with pytest.raises(error, match=message):
        numpy_flock_step(**given | wrong, max_speed=1.0, dt=0.2)

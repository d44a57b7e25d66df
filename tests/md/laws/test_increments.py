"""Laws of increments of one's own: taken by flight alone, and by no observable of forces."""

from dataclasses import dataclass

import numpy as np
import pytest

import md
from md.laws import add_scaled, load, pair_function, sub
from md.laws.pair import gives_increments, kernel_law
from tests.tiers import nightly

BOX = md.Box((9.1, 7.3, 8.2))


@dataclass(frozen=True)
class Drag:
    """Increments towards the velocity of each neighbour; both of a pair get opposite ones."""

    rate: float
    cutoff: float = 1.5


@pair_function(Drag, increments=True, reciprocal=True)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add the share of one neighbour."""
    if r2 >= law.cutoff * law.cutoff:
        return acc
    return add_scaled(acc, law.rate, sub(load(vel, j, dr), vi))


class Wrapped:
    """Boids by another name."""

    cutoff = 2.0

    def kernel_law(self, precision):
        return kernel_law(md.laws.Boids(2.0, 2.0, 2.0), precision)


LAW = Drag(0.05)


def simulated(law=LAW, integrator="flight", search="naive", **options) -> md.Simulation:
    state = md.scenes.flock(200, BOX, seed=1)
    return md.Simulation(state, law, search, integrator, dt=0.2, backend="cpu", **options)


def test_a_law_of_forces_does_not_give_increments():
    laws = md.laws.SpringDashpot(1.0, 1.0), md.laws.Boids(), LAW, Wrapped()
    assert [gives_increments(law) for law in laws] == [False, True, True, True]


@pytest.mark.parametrize("search", ["linked", nightly("reflexive")])
def test_flight_takes_it_under_a_search_that_visits_a_pair_twice_or_once(search):
    runs = simulated(), simulated(search=search)
    start = runs[0].state.by_id()
    apart = BOX.nearest((start.pos[:, None] - start.pos).reshape(-1, 3)).reshape(200, 200, 3)
    close = np.linalg.norm(apart, axis=-1) < LAW.cutoff
    expected = LAW.rate * (close[..., None] * (start.vel - start.vel[:, None])).sum(axis=1)
    for run in runs:
        np.testing.assert_allclose(run.forces(), expected, rtol=0, atol=1e-14)
        run.run(10)
    ends = [run.state.by_id() for run in runs]
    np.testing.assert_allclose(ends[0].vel, ends[1].vel, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ends[0].vel.sum(axis=0), start.vel.sum(axis=0), rtol=0, atol=1e-11)


@pytest.mark.parametrize("law", [LAW, Wrapped()])
def test_other_integrators_and_observables_of_forces_refuse_it(law):
    with pytest.raises(
        ValueError, match="gives increments of velocity, and integrator 'velocity_verlet' takes"
    ):
        simulated(law, "velocity_verlet")
    run = simulated(law)
    for see in (md.observe.virial, lambda run: md.observe.field(run, 2)):
        with pytest.raises(ValueError, match=r"the virial under .*, which gives forces"):
            see(run)
    with pytest.raises(ValueError, match="no energy balance of "):
        run.run(1, reporters=[md.observe.EnergyBalance()])


def test_a_checkpoint_takes_it_from_the_caller(tmp_path):
    run = simulated()
    run.run(3)
    run.save(tmp_path / "run.npz")
    with pytest.raises(md.CheckpointError, match=r"test_increments\.Drag.*load\(\.\.\., law="):
        md.Simulation.load(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz", law=LAW)
    for one in (run, loaded):
        one.run(3)
    assert np.array_equal(run.state.pos, loaded.state.pos)


@pytest.mark.parametrize("wrong", [1, None, "yes"])
def test_increments_are_a_flag(wrong):
    with pytest.raises(TypeError, match=r"^increments = .* of class .*; allowed: True or False"):
        pair_function(Drag, increments=wrong)

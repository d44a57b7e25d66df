"""Blocks of particles that move freely on the CPU, beside the moves of each by itself."""

import itertools
from dataclasses import dataclass

import numba
import numpy as np
import pytest

import md
from md.laws.pair import kernel_law, pair_function
from md.laws.polydisperse import PolydisperseLaw, ScaledLaw
from md.laws.spring_dashpot import FIELDS, interact, spring_energy
from md.particles.free_flight import FreeFlight, fastest_of, fly, free_flight
from tests import tiers

BLOCK = 64


@numba.njit
def flown(flight, lowest, highest):
    return fly(flight, lowest, highest)


@numba.njit
def fastest(flight):
    return fastest_of(flight)


@numba.njit
def has_flight(out, grid, law, pos, vel):
    return free_flight(out, grid[0], law, pos, vel, BLOCK) is not None


def flies(run: md.Simulation, law) -> bool:
    """Whether blocks of a simulation on the CPU fly."""
    out = run._stepper.fused_output(0, run.system.status.fault, run.search.policy.guard)
    p, grid = run.system.particles, run.search.grid
    return has_flight(out, grid.record, kernel_law(law, grid.precision), p.pos, p.vel)


def flight_of(pos: np.ndarray, vel: np.ndarray, corner: tuple, drift: float) -> FreeFlight:
    real = pos.dtype.type
    corner = tuple(real(side) for side in corner)
    upper, squares = np.tile(np.array(corner), BLOCK), np.zeros(len(corner) * BLOCK, real)
    new = np.full(pos.size, -1, real), np.full(pos.size, -1, real)
    return FreeFlight(pos.ravel(), vel.ravel(), *new, real(drift), corner, upper, squares)


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
@pytest.mark.parametrize("real", [tiers.full(np.float32), np.float64])
def test_a_block_moves_by_its_velocities_and_no_other_does(dim, real):
    generator, corner = np.random.default_rng(1), (20.0, 30.0, 40.0)[:dim]
    pos = (1 + generator.random((200, dim)) * (np.array(corner) - 2)).astype(real)
    vel = generator.normal(size=(200, dim)).astype(real)
    flight = flight_of(pos, vel, corner, 0.1)
    assert flown(flight, 64, 128)
    assert flown(flight, 192, 200)
    moved = np.r_[64:128, 192:200]
    still = np.setdiff1d(np.arange(200), moved)
    new_pos, new_vel = flight.new_pos.reshape(-1, dim), flight.new_vel.reshape(-1, dim)
    np.testing.assert_array_equal(new_pos[moved], (pos + real(0.1) * vel)[moved])
    np.testing.assert_array_equal(new_vel[moved], vel[moved])
    assert (new_pos[still] == -1).all()
    assert fastest(flight) == pytest.approx((vel[moved].astype(float) ** 2).sum(axis=1).max(), rel=1e-6)


@pytest.mark.parametrize("dim", [tiers.full(2), 3])
def test_a_block_stays_if_a_particle_of_it_would_not_be_well_inside(dim):
    corner = (5.0, 6.0, 7.0)[:dim]
    for axis, velocity in itertools.product(range(dim), (-60.0, 60.0, np.nan, np.inf)):
        pos, vel = np.full((BLOCK, dim), 2.5), np.zeros((BLOCK, dim))
        flight = flight_of(pos, vel, corner, 0.1)
        assert flown(flight, 0, BLOCK)
        vel[37, axis] = velocity
        flight = flight_of(pos, vel, corner, 0.1)
        assert not flown(flight, 0, BLOCK), (axis, velocity)
        assert flown(flight, 0, 37)
        assert fastest(flight) == 0


def test_without_a_flight_no_block_moves():
    assert not flown(None, 0, BLOCK)
    assert fastest(None) == 0


@dataclass(frozen=True)
class Springs(md.laws.SpringDashpot):
    """Springs of a law with a `result` of its own, so that each particle moves by itself."""


def unchanged(law, ri, vi, acc):
    return acc


pair_function(Springs, fields=FIELDS, potential=spring_energy, result=unchanged)(interact)
PLAIN = md.laws.SpringDashpot(500.0, 0.0)


@pytest.mark.parametrize(
    ("dim", "precision", "is_open", "fused"),
    [
        (3, "float64", True, False),
        *(
            (tiers.full if case[1:] == ("float64", True) else tiers.nightly)(*case, True)
            for case in itertools.product((2, 3), ("float32", "float64"), (False, True))
        ),
    ],
    ids=str,
)
def test_steps_with_free_flights_are_those_of_particles_one_by_one(dim, precision, is_open, fused):
    """Those of fused steps under a law with a result, or those that are not fused."""
    generator, n, side = np.random.default_rng(2), 900, 1.4
    cells = int(np.ceil(n ** (1 / dim)))
    sites = np.stack(np.meshgrid(*dim * [np.arange(cells)], indexing="ij"), -1).reshape(-1, dim)[:n]
    pos = (sites + 0.5 + generator.uniform(-0.1, 0.1, sites.shape)) * side
    box = md.Box((cells * side,) * dim, periodic=not is_open, open=is_open)
    state, ends = md.State(pos, generator.normal(scale=2, size=pos.shape), box), []
    reference = (Springs(500.0, 0.0), {"fused": True}) if fused else (PLAIN, {"fused": False})
    for law, options in (reference, (PLAIN, {"fused": True})):
        run = md.Simulation(state, law, "verlet", dt=2e-3, backend="cpu", precision=precision, **options)
        assert not options["fused"] or flies(run, law) == (law is PLAIN)
        run.run(300, phases=False)
        ends.append((run.state.by_id(), run.builds))
    (one, builds), (other, same) = ends
    assert np.abs(one.vel - state.by_id().vel).max() > 1
    left = (one.pos < 0).any() or (one.pos > cells * side).any()
    assert left == is_open
    np.testing.assert_array_equal(one.pos, other.pos)
    np.testing.assert_array_equal(one.vel, other.vel)
    assert builds == same


def test_a_law_with_a_result_and_one_scaled_to_radii_have_no_free_flight():
    pos, vel, box, law = np.full((1, 3), 2.0), np.ones((1, 3)), md.Box((4.0,) * 3), PLAIN
    plain = md.Simulation(md.State(pos, vel, box), law, "verlet", dt=0.1, backend="cpu", fused=True)
    assert flies(plain, law)
    assert not flies(plain, Springs(500.0, 0.0))
    assert not flies(plain, PolydisperseLaw(law, np.array([0.3])))
    assert not ScaledLaw.zero_alone


@pytest.mark.full
def test_a_law_scaled_to_radii_moves_particles_one_by_one():
    state = md.State(np.full((1, 3), 2.0), np.ones((1, 3)), md.Box((4.0,) * 3), radius=np.array([0.3]))
    run = md.Simulation(state, PLAIN, "verlet", dt=0.1, backend="cpu", fused=True)
    run.run(3, phases=False)
    np.testing.assert_allclose(run.state.pos, 2.3)

"""A copied simulation is a simulation of its own: it sees its own faults, and leaves the other alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import md


@pytest.mark.quick
@pytest.mark.parametrize("search", ["linked", "verlet"])
def test_a_copy_sees_its_own_faults_only(search):
    state = md.scenes.benchmark_gas(125, 0.2)
    first = md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search=search, dt=md.scenes.BENCHMARK_DT, backend="cpu"
    )
    first.run(2)
    second = copy.deepcopy(first)
    second.system.particles.vel[7] = np.nan
    with pytest.raises(md.NonFiniteState):
        second.run(50)
    first.run(50)
    assert np.isfinite(first.state.pos).all()


@pytest.mark.quick
def test_configurations_of_equal_choices_are_equal_and_check_what_is_replaced():
    state, law = md.scenes.benchmark_gas(27, 0.2), md.scenes.BENCHMARK_LAW
    one, other = (md.Simulation(state, law, dt=1e-3, backend="cpu") for _ in range(2))
    assert one.config == other.config
    assert hash(one.backend) == hash(other.backend)
    assert one.config != md.Simulation(state, law, dt=1e-3, backend="cpu", layout="soa").config
    relaxes = md.integrate.SteepestDescent()
    with pytest.raises(ValueError, match="cannot be fused into the force kernel; take fused=False"):
        replace(one.config, fused=True, integrator=relaxes)
    with pytest.raises(TypeError, match=r"fused = 'nope' .*allowed: True or False"):
        replace(one.config, fused="nope")


@pytest.mark.quick
def test_a_search_or_a_stepper_at_work_stands_for_its_choice():
    state, law = md.scenes.benchmark_gas(27, 0.2), md.scenes.BENCHMARK_LAW
    one = md.Simulation(state, law, search=md.search.Verlet("hilbert", 0.2), dt=1e-3, backend="cpu")
    other = md.Simulation(state, law, search=one.search, integrator=one._stepper, dt=1e-3, backend="cpu")
    assert other.config.search == md.search.Verlet("hilbert", 0.2)
    assert other.config == one.config

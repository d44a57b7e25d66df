"""Polls of ranks on the CPU: they meet once in several steps, and a fault is still that of one rank."""

from collections import Counter

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.communicator.in_turn import InTurn
from md.simulation.energy_monitor import INTERVAL
from md.simulation.step_loop import STEPS_OF_RANKS


def made(state: md.State, ranks=None) -> md.Simulation:
    return md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search="verlet", fused=True, dt=md.scenes.BENCHMARK_DT, backend="cpu",
        communicator=ranks,
    )  # fmt: skip


def test_all_ranks_wait_for_each_other_once_a_poll_and_at_migrations(monkeypatch):
    real, calls = InTurn.all_of, Counter()  # reductions are made of it

    def counted(self, value):
        calls[self.rank] += 1
        return real(self, value)

    monkeypatch.setattr(InTurn, "all_of", counted)
    polls = 20 + 20 * STEPS_OF_RANKS // INTERVAL  # some are for the energy

    def work(ranks):
        run = made(md.scenes.benchmark_gas(4000, 0.2), ranks)
        run.run(INTERVAL)  # the energy is summed more often before
        before, migrations = calls[ranks.rank], run.system.domain.migrations
        run.run(20 * STEPS_OF_RANKS)
        return calls[ranks.rank] - before, run.system.domain.migrations - migrations

    for found, migrations in in_turn(3, work):
        assert migrations > 2
        assert found <= 2 * (polls + 2) + 5 * migrations


@pytest.mark.parametrize("speed", [np.nan, np.inf, 1e30, 1e12])
def test_a_particle_that_goes_too_far_ends_ranks_with_the_fault_of_one(speed):
    state = md.scenes.benchmark_gas(500, 0.2)
    state.vel[77] = speed
    with pytest.raises(md.SimulationFault) as right:
        made(state).run(STEPS_OF_RANKS)
    faults = []

    def work(ranks):
        with pytest.raises(type(right.value)) as found:
            made(state, ranks).run(STEPS_OF_RANKS)
        faults.append((found.value.step, found.value.particle))

    in_turn(3, work)
    assert faults == 3 * [(right.value.step, right.value.particle)]


@pytest.mark.parametrize("pull", [0.3, 0.9])
@pytest.mark.parametrize(
    ("search", "fused"), [("verlet", True), (md.search.Coherent(division=2), False)], ids=["lists", "cells"]
)
def test_particles_that_leave_the_region_of_their_rank_end_it_with_an_error(search, fused, pull):
    """From rest, so that much time is planned until a migration; a step later they are past all ghosts."""
    gas, dt = md.scenes.benchmark_gas(20000, 0.2), md.scenes.BENCHMARK_DT
    state = md.State(gas.pos, 1e-3 * gas.vel, gas.box)
    gravity = (0.0, 0.0, pull * gas.box.lengths[2] / dt**2)
    errors = []

    def work(ranks):
        run = md.Simulation(
            state, md.scenes.BENCHMARK_LAW, search=search, fused=fused, dt=dt, backend="cpu", gravity=gravity,
            communicator=ranks, division=md.Division("row"),
        )  # fmt: skip
        with pytest.raises((md.HaloOutrun, md.SimulationFault)) as found:
            run.run(50)
        errors.append(type(found.value))

    in_turn(4, work)
    assert len(errors) == 4
    assert len(set(errors)) == 1

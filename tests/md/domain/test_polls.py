"""Polls of ranks on the CPU: they meet once in several steps, and a fault is still that of one rank."""

from collections import Counter

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.domain.communicator.in_turn import InTurn
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
    polls = 20

    def work(ranks):
        run = made(md.scenes.benchmark_gas(4000, 0.2), ranks)
        run.run(1)
        before, migrations = calls[ranks.rank], run.system.domain.migrations
        run.run(polls * STEPS_OF_RANKS)
        return calls[ranks.rank] - before, run.system.domain.migrations - migrations

    for found, migrations in in_turn(3, work):
        assert migrations > 2
        assert found <= 2 * (polls + 1) + 5 * migrations


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

"""Work of ranks in turn: its parts, its counts, and that waiting is none of it."""

import itertools
import time

import numpy as np
import pytest

import md
from experiments.measurement import ranks as measured
from experiments.measurement.ranks import work_of_ranks
from experiments.prediction.divided.divisions import bricks

N, STEPS = 1500, 12
STATE = md.scenes.benchmark_gas(N, 0.2, seed=3)


def make(ranks, search="linked", **more) -> md.Simulation:
    options = {"dt": md.scenes.BENCHMARK_DT, "backend": "cpu", "fused": True, "communicator": ranks}
    return md.Simulation(STATE, md.scenes.BENCHMARK_LAW, search=search, **options | more)


def test_counts_are_those_of_the_ranks():
    found = work_of_ranks(3, make, warmup=2, steps=STEPS)
    assert sum(one.owned for one in found) == N
    for one in found:
        assert one.ghosts > 0
        assert one.peers == 2
        assert one.diameter == 1
        assert one.migrations == 0
        assert one.builds == STEPS  # linked cells are built in each step
        assert one.messages == 2
    rows = sum(one.ghosts + one.peers for one in found)  # a message has a row before those of the ghosts
    assert sum(one.bytes for one in found) == rows * 6 * 8


def test_the_gas_is_that_of_one_rank():
    (one,) = work_of_ranks(1, make, warmup=2, steps=STEPS)
    assert one.owned == N
    assert (one.ghosts, one.peers, one.messages, one.bytes, one.exchange_ms) == (0, 0, 0, 0, 0)
    several = work_of_ranks(3, make, warmup=2, steps=STEPS)
    assert sum(each.motion for each in several) == pytest.approx(one.motion, rel=1e-12)
    simulation = make(None)
    simulation.run(2 + STEPS)
    assert np.square(simulation.system.particles.vel).sum() == pytest.approx(one.motion, rel=1e-12)


def test_work_is_the_sum_of_the_phases_but_for_the_cut():
    def fast(ranks):
        return make(ranks, "verlet", division=md.Division(travel=0.3, owners=bricks))  # uneven: always cut

    for one in work_of_ranks(3, fast, warmup=1, steps=60):
        assert one.migrations > 0
        phases = one.build_ms, one.force_ms, one.exchange_ms, one.migrate_ms
        assert min(phases) > 0
        assert one.work_ms == pytest.approx(sum(phases))
        assert one.cut_ms > 0


def test_waiting_for_other_ranks_is_no_work(monkeypatch):
    """A clock of the process, which goes on while another rank works, stands in calls of the communicator."""
    monkeypatch.setattr(measured.time, "thread_time", time.perf_counter)

    def slow(ranks):
        simulation = make(ranks)
        if ranks.rank == 1:
            build = simulation.search.rebuild
            simulation.search.rebuild = lambda *given: (time.sleep(0.02), build(*given))
        return simulation

    first, second = work_of_ranks(2, slow, warmup=1, steps=4)
    assert second.build_ms > 20
    assert first.work_ms < 20


def test_a_call_has_its_own_time_without_those_within(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(measured.time, "thread_time", lambda: float(next(ticks)))

    class Parts:
        def outer(self):
            self.inner()
            self.inner()

        def inner(self):
            pass

    parts, clock = Parts(), measured._Clock()
    clock.add(parts, "outer", "outside")
    clock.add(parts, "inner", "inside")
    parts.outer()  # ticks 0 to 5: the inner calls from 1 to 2, and from 3 to 4
    assert clock.seconds == {"outside": 3, "inside": 2}

"""The program that a profiler runs: forces in memory orders, and steps from one build to the next."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import md
from experiments.measurement import profiler_target
from experiments.measurement.profiler_target import LEAST_STEPS, CycleJob, Job, gas, ordered, profile
from experiments.measurement.step_times import benchmark_simulation
from tests import tiers

JOB = Job(512, 0.2, "linked", "float64", "cpu", 0, ("shuffled", "lattice", "hilbert"))
WARM_UP = 20


def simulation(search: str = "verlet", fused: bool = False) -> md.Simulation:
    """Make the shared gas after its warm-up."""
    state = md.scenes.benchmark_gas(512, 0.2, seed=0, backend="cpu")
    sim = benchmark_simulation(state, JOB, search, fused=fused)
    sim.run(WARM_UP)
    return sim


def test_memory_orders_are_those_of_their_names():
    state = gas(JOB)
    assert len(state) == 512
    assert np.array_equal(ordered(JOB, state, "lattice").state.id, np.arange(512))
    assert np.array_equal(ordered(JOB, state, "shuffled").state.id, state.id)
    assert not np.array_equal(state.id, np.arange(512))
    along = ordered(JOB, state, "hilbert").state
    again = md.Simulation(
        along, md.scenes.BENCHMARK_LAW, dt=1e-12, backend="cpu", reorder=md.Reorder("hilbert", md.Every(1))
    )
    again.run(1)
    assert np.array_equal(again.state.id, along.id)  # it was reordered after its last step


def profiled_steps(sim, monkeypatch) -> list[tuple[int, int]]:
    """Steps and builds at the start and at the end of each profile."""
    seen = []

    @contextmanager
    def profiled():
        seen.append((sim.step, sim.builds))
        yield
        seen.append((sim.step, sim.builds))

    monkeypatch.setattr(sim.backend, "profiled", profiled)
    return seen


@pytest.mark.parametrize("fused", [False, tiers.full(True)])
def test_a_profile_has_a_build_and_the_steps_after_it(fused, monkeypatch):
    sim = simulation(fused=fused)
    seen = profiled_steps(sim, monkeypatch)
    cycle = profile(sim)
    (first, built), (last, builds) = seen
    assert cycle == (last - first, builds - built)
    assert cycle.builds == 1
    assert cycle.steps > LEAST_STEPS


def test_a_search_that_is_built_at_every_step_gets_several(monkeypatch):
    sim = simulation("linked")
    profiled_steps(sim, monkeypatch)
    assert profile(sim) == (LEAST_STEPS, LEAST_STEPS)


def test_the_program_prints_its_cycle(tmp_path, monkeypatch, capsys):
    simulation().save(tmp_path / "start.npz")
    job = CycleJob(str(tmp_path / "start.npz"))
    monkeypatch.setattr(sys, "argv", ["cycle", json.dumps(job._asdict())])
    profiler_target.main()
    assert json.loads(capsys.readouterr().out)["builds"] == 1


@pytest.mark.full
def test_a_process_prints_its_cycle(tmp_path):
    simulation().save(tmp_path / "start.npz")
    job = CycleJob(str(tmp_path / "start.npz"))
    done = subprocess.run(
        [sys.executable, "-m", "experiments.measurement.profiler_target", json.dumps(job._asdict())],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["builds"] == 1

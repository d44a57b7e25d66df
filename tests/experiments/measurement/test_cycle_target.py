"""The program that a profiler runs: from one build of the search to the next."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.measurement import cycle_target
from experiments.measurement.cycle_target import LEAST_STEPS, CycleJob, profile, simulation, write_start
from tests import tiers

JOB = CycleJob(512, 0.2, "verlet", "float64", False, "cpu", 0, 20)


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
    sim = simulation(JOB._replace(fused=fused))
    sim.run(JOB.warm_up)
    seen = profiled_steps(sim, monkeypatch)
    cycle = profile(sim)
    (first, built), (last, builds) = seen
    assert cycle == (last - first, builds - built)
    assert cycle.builds == 1
    assert cycle.steps > LEAST_STEPS


def test_a_search_that_is_built_at_every_step_gets_several(monkeypatch):
    sim = simulation(JOB._replace(search="linked"))
    sim.run(JOB.warm_up)
    profiled_steps(sim, monkeypatch)
    assert profile(sim) == (LEAST_STEPS, LEAST_STEPS)


def test_the_program_prints_its_cycle(tmp_path, monkeypatch, capsys):
    sim = simulation(JOB)
    sim.run(JOB.warm_up)
    write_start(tmp_path / "start.npz", sim.state)
    job = JOB._replace(start=str(tmp_path / "start.npz"))
    monkeypatch.setattr(sys, "argv", ["cycle", json.dumps(job._asdict())])
    cycle_target.main()
    assert json.loads(capsys.readouterr().out)["builds"] == 1


@pytest.mark.full
def test_a_process_prints_its_cycle(tmp_path):
    sim = simulation(JOB)
    sim.run(JOB.warm_up)
    write_start(tmp_path / "start.npz", sim.state)
    job = JOB._replace(start=str(tmp_path / "start.npz"))
    done = subprocess.run(
        [sys.executable, "-m", "experiments.measurement.cycle_target", json.dumps(job._asdict())],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["builds"] == 1

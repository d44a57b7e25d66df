"""Simulations and cavities in children of a fork, and in Python threads."""

import pytest

from tests.sfc.compile.test_forks import run
from tests.tiers import full

CODE = """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
import md
from tests.md.backend.test_threads import BOX, LAW, SPACE, WALLS, crowd

def gas():
    options = {"search": "naive", "dt": 1e-4, "walls": WALLS, "allow_overlap": True, "backend": "cpu"}
    return md.Simulation(crowd(SPACE, 1000), LAW, **options)

def cavity():
    return md.Cavity((19, 23), viscosity=0.02, sweeps=7, strategy="threads", backend="cpu")

def end(run):
    run.run(2)
    fields = [run.state.pos, run.state.vel] if isinstance(run, md.Simulation) else [run.u, run.v, run.p]
    return [field.tobytes() for field in fields]

def made(kind):
    run = kind()
    return run.backend.workers if kind is gas else 1, end(run)

def older(k):
    return 1, end(runs[k])

expected = [end(gas()), end(cavity())]
assert gas().backend.workers == 2
runs = [gas(), cavity()]
"""


def test_a_child_of_a_fork_ends_with_the_bits_of_its_parent():
    """Runs that were made before the fork, and runs made in the child."""
    pool = "with ProcessPoolExecutor(2, mp_context=get_context('fork')) as pool:"
    found = "found = [*pool.map(older, range(2)), *pool.map(made, [gas, cavity])]"
    run(f"{CODE}\n{pool}\n    {found}\nassert found == [(1, e) for e in expected] * 2")


@pytest.mark.parametrize("layer", [full("omp"), full("workqueue")])
def test_runs_in_python_threads_end_with_the_bits_of_one(layer):
    pool = "with ThreadPoolExecutor(4) as pool:"
    found = "found = [e for _, e in pool.map(made, [gas, cavity] * 2)]"
    run(f"{CODE}\n{pool}\n    {found}\nassert found == expected * 2", NUMBA_THREADING_LAYER=layer)

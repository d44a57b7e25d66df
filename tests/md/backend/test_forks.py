"""Simulations and cavities in children of a fork, and in Python threads."""

import pytest

from tests.sfc.compile.test_forks import run
from tests.tiers import full

CODE = """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
import md
from tests.md.backend.test_threads import LAW, SPACE, crowd

def gas():
    options = {"search": "linked", "dt": 1e-4, "allow_overlap": True, "backend": "cpu"}
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

def older(_):
    return 1, end(before)
"""


@pytest.mark.parametrize("kind", [full("gas"), full("cavity")])
def test_a_child_of_a_fork_ends_with_the_bits_of_its_parent(kind):
    """A run that was made before the fork, and one made in the child."""
    run(f"""{CODE}
expected, before = end({kind}()), {kind}()
assert gas().backend.workers == 2
with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
    found = [pool.submit(older, 0).result(), pool.submit(made, {kind}).result()]
assert found == [(1, expected)] * 2
""")


@pytest.mark.parametrize("layer", [full("omp"), full("workqueue")])
def test_runs_in_python_threads_end_with_the_bits_of_one(layer):
    run(
        f"""{CODE}
expected = [end(gas()), end(cavity())]
with ThreadPoolExecutor(4) as pool:
    found = [e for _, e in pool.map(made, [gas, cavity] * 2)]
assert found == expected * 2
""",
        NUMBA_THREADING_LAYER=layer,
    )

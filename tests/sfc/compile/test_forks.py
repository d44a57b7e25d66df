"""A child of a fork computes on one thread; Python threads may call kernels on any layer of Numba."""

import os
import signal
import subprocess
import sys

import pytest

from tests.processes import LIMIT
from tests.tiers import full

POINTS = """
import os, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
import numba, numpy as np, sfc
from sfc.compile import thread_count
from sfc.radix_sort import MANY

fork = get_context("fork")

def order(seed=0):
    return sfc.argsort(np.random.default_rng(seed).random((MANY + 1, 2)), bits=16).tobytes()

def seen(_=None):
    return thread_count(), order()
"""
FORKS = """
def by_os():
    read, write = os.pipe()
    if not os.fork():
        count, found = seen()
        os.write(write, bytes([count, found == expected]))
        os._exit(0)
    assert os.wait()[1] == 0
    return [(os.read(read, 1)[0], expected if os.read(read, 1)[0] else b"")]

def by_pool():
    with fork.Pool(2) as pool:
        return pool.map(seen, range(2))

def by_executor(work=seen):
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        return list(pool.map(work, range(2)))

def in_a_child(_):
    seen()
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        return pool.submit(seen).result()

early = by_executor()  # no threads have started
expected = order()
assert thread_count() == 2
assert early == [(2, expected)] * 2, "before threads"
for found in (by_os(), by_pool(), by_executor(), by_executor(in_a_child)):
    assert found and all(one == (1, expected) for one in found), [one[0] for one in found]
"""


def run(code: str, **environment: str) -> str:
    """The output of a Python with two threads for kernels; TimeoutExpired if the code hangs."""
    own = os.environ | {"NUMBA_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [sys.executable, "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=own, start_new_session=True, **pipes) as process:
        try:
            output, errors = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the children of its pool
            raise
    assert process.returncode == 0, errors
    return output


def test_a_child_of_a_fork_computes_on_one_thread_unless_none_had_started():
    """GNU OpenMP ends a child that enters a parallel loop, and a pool begins another, without end."""
    run(f"{POINTS}\n{FORKS}")


def test_a_child_of_a_fork_compiles_though_another_thread_of_the_parent_did():
    code = """
import os, threading, time
from numba.core.compiler_lock import global_compiler_lock
from sfc.compile import kernel, kernel_cache

@kernel
def twice(x):
    return 2 * x

def hold():
    with global_compiler_lock:
        held.set()
        time.sleep(0.3)

held = threading.Event()
threading.Thread(target=hold).start()
held.wait()
if not os.fork():
    os._exit(twice(21))
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert run(code) == "42\n"


@pytest.mark.parametrize("layer", [full("omp"), "workqueue"])
def test_python_threads_call_parallel_kernels_at_once(layer):
    """The layer `workqueue` ends a process that enters two parallel loops at once."""
    code = """
expected = [order(seed) for seed in range(3)]
assert numba.threading_layer() == sys.argv[1]
with ThreadPoolExecutor(3) as pool:
    for _ in range(4):
        assert list(pool.map(order, range(3))) == expected
"""
    run(f"{POINTS}\nsys.argv[1:] = [{layer!r}]\n{code}", NUMBA_THREADING_LAYER=layer)

"""A child of a fork computes on one thread; Python threads may call kernels on any layer of Numba."""

import os
import signal
import subprocess
import sys

import pytest

from sfc.compile import forks
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


def test_a_child_of_a_fork_computes_though_another_thread_was_at_its_first_call():
    """Numba is imported then, its threads start, and dispatchers are made; each is met halfway."""
    code = """
import os, sys, threading, time

late = threading.Event()  # set by the fork, once it holds the locks
os.register_at_fork(before=lambda: late.set() or time.sleep(0.2))  # first registered, last to run

import numpy as np, sfc
from sfc.compile import kernel

assert "numpy.ma" in sys.modules  # which numpy imports at its first use
points = np.random.default_rng(0).random((2**17, 2))
twice, thrice = kernel(lambda x: 2 * x), kernel(lambda x: 3 * x)
sys.unraisablehook = lambda error: os._exit(3)  # an error of what runs at a fork

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name in halfway:
            halfway[name].set()
            time.sleep(0.3)

def code_of_child(work):
    child = os.fork()
    if not child:
        work()
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

codes, names = [], ("numba.core", "numba.cpython.hashing", "numba.np.ufunc.workqueue")
halfway = {name: threading.Event() for name in names}
sys.meta_path.insert(0, Slow())
call = lambda: sfc.argsort(points, bits=16)
thread = threading.Thread(target=call)
thread.start()
for event in halfway.values():
    event.wait()
    code_of_child(call)
thread.join()
late.clear()
thread = threading.Thread(target=lambda: late.wait() and twice(1))
thread.start()
code_of_child(lambda: thrice(1))
thread.join()
print(codes)
"""
    assert run(code, NUMBA_THREADING_LAYER="workqueue") == "[7, 7, 7, 7]\n"


def test_a_lock_that_is_registered_while_a_fork_waits_for_another_is_held_too(monkeypatch):
    class Lock:
        held, inner = 0, None

        def __enter__(self):
            self.held += 1
            if self.inner:
                forks.hold_across_forks(self.inner)
                self.inner = None

        def __exit__(self, *error):
            self.held -= 1

    outer, inner = Lock(), Lock()
    outer.inner = inner
    monkeypatch.setattr(forks, "_locks", [outer])
    forks._acquire()
    assert (outer.held, inner.held) == (1, 1)
    forks._release()
    assert (outer.held, inner.held) == (0, 0)

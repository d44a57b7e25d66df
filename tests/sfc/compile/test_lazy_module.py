"""Numba is imported at the first call of a kernel; then a kernel is what it would be without the delay."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np

import sfc
from sfc.compile import LazyModule, kernel, numba
from sfc.compile.fingerprint import fingerprint


def printed(script: str, *arguments: str, **environment: str) -> object:
    """What a script prints as JSON in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [sys.executable, "-c", script, *arguments]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


def test_no_library_but_numpy_is_imported_before_the_first_call_of_a_kernel():
    script = """
import json, sys
import sfc
libraries = {"llvmlite", "numba", "scipy"}
for dim in (2, 3):
    for name in set(sfc.orderings(dim)) - {"pancake"}:  # a kernel makes its lists
        sfc.ordering(name, (16,) * dim)
    for name in sfc.curves(dim):
        sfc.curve(name, dim).is_continuous
before = sorted(libraries & set(sys.modules))
sfc.curve("hilbert", 2).encode([[1, 2]], 3)
print(json.dumps([before, "numba" in sys.modules]))
"""
    assert printed(script) == [[], True]


def test_a_stored_kernel_refers_to_no_symbol_that_only_a_compilation_adds(tmp_path):
    script = """
import json, sys
import llvmlite.binding as llvm, numpy as np
import sfc
from sfc.compile.kernel_cache import counts
sfc.curve("hilbert", 2).encode([[1, 2]], 3)
added = []
llvm.add_symbol = lambda name, address: added.append(name)
llvm.load_library_permanently = added.append
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()
print(json.dumps([len(counts.compiled), len(counts.found), added]))
"""
    assert printed(script, NUMBA_CACHE_DIR=str(tmp_path))[:2] == [2, 0]
    assert printed(script, NUMBA_CACHE_DIR=str(tmp_path)) == [0, 1, []]


def test_without_a_place_for_the_disk_cache_kernels_are_compiled_after_one_warning(tmp_path):
    script = """
import json, warnings
import numba.core.caching
del numba.core.caching._Cache
import sfc
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    key = sfc.curve("hilbert", 2).encode([[1, 2]], 3)
    sfc.curve("morton", 2).encode([[1, 2]], 3)
print(json.dumps([key.tolist(), [str(one.message) for one in seen]]))
"""
    key, warned = printed(script, NUMBA_CACHE_DIR=str(tmp_path))
    assert key == sfc.curve("hilbert", 2).encode([[1, 2]], 3).tolist()
    assert len(warned) == 1
    assert warned[0].startswith(f"compiled kernels cannot be stored with Numba {numba.__version__} (cannot")
    assert not list(tmp_path.rglob("*.kernel"))


@kernel
def doubled(x):
    return 2 * x


@kernel
def calls_doubled(x, n):
    return doubled(x) if n == 0 else calls_doubled(x, n - 1)


@kernel(parallel=True)
def fill_with_threads(by):
    for i in numba.prange(len(by)):
        by[i] = doubled(numba.get_thread_id())


def test_a_kernel_calls_others_and_itself():
    assert calls_doubled(4, 3) == 8
    assert calls_doubled(1.5, n=0) == 3.0
    assert doubled.__name__ == "doubled"


def test_a_loop_is_shared_by_threads_and_its_file_then_holds_numba_itself():
    numba.set_num_threads(2)
    by = np.full(1000, -1)
    fill_with_threads(by)
    assert sorted(set(by.tolist())) == [0, 2]
    assert globals()["numba"] is sys.modules["numba"]


def test_kernels_are_pickled_by_name():
    for one in (doubled, fill_with_threads):
        assert pickle.loads(pickle.dumps(one)) is one


def test_options_of_a_kernel_that_another_calls_count():
    def calling(inner):
        return lambda x: inner(x)

    found = {
        fingerprint([calling(kernel(doubled.py_func, **options))]) for options in ({}, {"fastmath": True})
    }
    assert len(found) == 2


def test_a_module_is_imported_when_an_attribute_is_read(tmp_path, monkeypatch):
    (tmp_path / "read_late.py").write_text("value = 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    late = LazyModule("read_late")
    assert "read_late" not in sys.modules
    assert late.value == 5
    assert sys.modules["read_late"] is late.load()
    monkeypatch.delitem(sys.modules, "read_late")

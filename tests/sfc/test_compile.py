"""The disk cache of kernels: never stale after an edit, never missed without one (trap 5 of the design)."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sfc.compile import KEPT_FOLDERS, cache_folder, compiler, source_hash

ROOT = Path(__file__).parents[2]
FORCE_ON_A_TOUCHING_PAIR = """
import json, md, sys
state = md.State([[1.0, 1.0, 1.0], [1.75, 1.0, 1.0]], [[0.0] * 3] * 2, md.Box((4, 4, 4)))
law = md.laws.SpringDashpot(stiffness=100.0, damping=0.0)
simulation = md.Simulation(state, law, search="naive", dt=1e-3, backend="cpu")
print(json.dumps([md.__file__, simulation.forces()[:, 0].tolist()]))
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of the sources, with a cache of its own and a way to run a script on it."""
    for package in ("sfc", "md"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / "tree" / package, ignore=unwanted)
    return tmp_path / "tree"


def force_from_another_process(tree: Path) -> list[float]:
    environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(tree.parent / "kernels")}
    done = subprocess.run(
        [sys.executable, "-c", FORCE_ON_A_TOUCHING_PAIR],
        cwd=tree.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    file, force = json.loads(done.stdout)
    assert Path(file).is_relative_to(tree)
    return force


def cached_kernels(tree: Path) -> dict[str, int]:
    """When each file of the cache was written."""
    files = (tree.parent / "kernels").rglob("*.nb*")
    return {str(file): file.stat().st_mtime_ns for file in files}


def test_an_edited_law_acts_at_once_and_an_unedited_tree_compiles_nothing_again(tree):
    assert force_from_another_process(tree) == [-25.0, 25.0]
    compiled = cached_kernels(tree)
    assert any("naive" in file for file in compiled)

    assert force_from_another_process(tree) == [-25.0, 25.0]
    assert cached_kernels(tree) == compiled

    law = tree / "md" / "laws" / "contact.py"
    text = law.read_text()
    force = "return p.spring * (p.diameter - r) / r"
    assert text.count(force) == 1
    law.write_text(text.replace(force, force.replace("p.spring", "3 * p.spring")))
    assert force_from_another_process(tree) == [-75.0, 75.0]
    assert len(cached_kernels(tree)) > len(compiled)


SHARED = """
import json, numba, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from probe_package.inner import total
numba.set_num_threads(int(sys.argv[2]))
by = np.empty(1000, np.int64)
found = [total(by), len(set(by.tolist()))]
stats = total.alone.stats, total.shared.stats
print(json.dumps([*found, *[[len(s.cache_hits), len(s.cache_misses)] for s in stats]]))
"""


def test_a_kernel_for_one_thread_and_the_one_that_threads_share_are_kept_apart(package, tmp_path):
    (package / "inner.py").write_text(
        "import numba\nfrom sfc.compile import compiler\n"
        "@compiler('probe_package')(parallel=True)\n"
        "def total(by):\n    count = 0\n    for i in numba.prange(len(by)):\n"
        "        by[i] = numba.get_thread_id()\n        count += i\n    return count\n"
    )

    def told(threads: int) -> list:
        command = [sys.executable, "-c", SHARED, str(tmp_path), str(threads)]
        return json.loads(
            subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        )

    assert told(1) == [499500, 1, [0, 1], [0, 0]]
    assert told(2) == [499500, 2, [0, 0], [0, 1]]
    assert told(1) == [499500, 1, [1, 0], [0, 0]]
    assert told(2) == [499500, 2, [0, 0], [1, 0]]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package with one kernel that calls into another module of it."""
    folder = tmp_path / "probe_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    importlib.invalidate_caches()
    return folder


def test_the_hash_follows_every_source_file(package):
    seen = [source_hash("probe_package")]
    assert len(seen[0]) == 16
    assert int(seen[0], 16) >= 0
    assert source_hash("probe_package") == seen[0]
    (package / "inner.py").write_text("VALUE = 2\n")
    seen.append(source_hash("probe_package"))
    (package / "deep").mkdir()
    (package / "deep" / "more.py").write_text("")
    seen.append(source_hash("probe_package"))
    (package / "deep" / "more.py").rename(package / "deep" / "other.py")
    seen.append(source_hash("probe_package"))
    assert len(set(seen)) == 4


def test_the_hash_covers_every_package_named():
    assert len({source_hash("sfc"), source_hash("md"), source_hash("sfc", "md")}) == 3


def test_a_package_that_is_not_there_is_named():
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        source_hash("no_such_package")


def test_the_cache_lies_where_numba_is_told_and_moves_with_the_sources(package, tmp_path):
    before = cache_folder("probe_package")
    assert before.is_dir()
    assert before.parent == tmp_path / "kernels"
    assert cache_folder("probe_package") == before
    (package / "inner.py").write_text("VALUE = 3\n")
    after = cache_folder("probe_package")
    assert after.is_dir()
    assert after != before


def test_old_source_states_are_removed_and_the_present_one_kept(package, tmp_path):
    for value in range(KEPT_FOLDERS + 4):
        (package / "inner.py").write_text(f"VALUE = {value}\n")
        latest = cache_folder("probe_package")
        os.utime(latest, (1e9 + value, 1e9 + value))
    assert cache_folder("probe_package") == latest
    assert len(list((tmp_path / "kernels").iterdir())) <= KEPT_FOLDERS


def test_a_cache_that_cannot_be_written_becomes_a_temporary_folder(package, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    folder = cache_folder("probe_package")
    assert folder.is_dir()
    assert not folder.is_relative_to(tmp_path / "file")
    folder.rmdir()


def reciprocal(x):
    return 1.0 / x


def test_a_kernel_divides_by_zero_as_numpy_does(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiler("sfc")(reciprocal)(0.0) == float("inf")
    assert compiler("sfc")(parallel=False)(reciprocal)(4.0) == 0.25
    assert list(tmp_path.rglob("*reciprocal*"))

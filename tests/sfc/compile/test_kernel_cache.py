"""Kernels on disk: never stale after an edit, never compiled again without one, found by every checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.misc.appdirs import user_cache_dir

from sfc.compile import kernel
from sfc.compile.kernel_cache import ABANDONED, cache_folder, remove_old

ROOT = Path(__file__).parents[3]
PROBE = """
import json, sys, warnings
import md, sfc.compile.kernel_cache
found = {}
state = md.State([[1.0, 1.0, 1.0], [1.75, 1.0, 1.0]], [[0.0] * 3] * 2, md.Box((4, 4, 4)))
law = md.laws.SpringDashpot(stiffness=100.0, damping=0.0)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for search in sys.argv[1:]:
        simulation = md.Simulation(state, law, search=search, dt=1e-3, backend="cpu")
        found[search] = simulation.forces()[:, 0].tolist()
counts = sfc.compile.kernel_cache.counts
warned = [str(t.message) for t in warned]
print(json.dumps([md.__file__, found, sorted(counts.compiled), sorted(counts.found), warned]))
"""
FORCES = {"naive": [-25.0, 25.0], "linked": [-25.0, 25.0]}
KERNELS = [
    "md.search.grid.linked.force",
    "md.search.grid.linked.link",
    "md.search.grid.naive.force",
]
ONE = {"naive": [-25.0, 25.0]}, ["md.search.grid.naive.force"]  # search alone: its forces and its kernel


class Checkout:
    """A copy of the sources; `run` takes two particles through two searches in another process."""

    def __init__(self, folder: Path, cache: Path):
        self.folder, self.cache = folder, cache
        for package in ("sfc", "md"):
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, folder / package, ignore=unwanted)

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new))

    def start(self, *searches: str) -> subprocess.Popen:
        own = {"PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": str(self.cache), "NUMBA_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-c", PROBE, *(searches or FORCES)],
            cwd=self.folder.parent,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *searches: str) -> tuple[dict, list[str], list[str], list[str]]:
        """Forces by search, kernels compiled, kernels found on disk, warnings; of both searches, or some."""
        return self.outcome_of(self.start(*searches))

    def outcome_of(self, process: subprocess.Popen) -> tuple[dict, list[str], list[str], list[str]]:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        file, *outcome = json.loads(output)
        assert Path(file).is_relative_to(self.folder)
        return tuple(outcome)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """A cache that holds the kernels of the sources as they are."""
    folder = tmp_path_factory.mktemp("first")
    forces, compiled, found, warned = Checkout(folder / "checkout", folder / "kernels").run()
    assert (forces, compiled, found, warned) == (FORCES, KERNELS, [], [])
    return folder / "kernels"


@pytest.fixture
def checkout(tmp_path, cache) -> Checkout:
    """A second copy of the sources, elsewhere, with a copy of that cache."""
    shutil.copytree(cache, tmp_path / "kernels")
    return Checkout(tmp_path / "another" / "checkout", tmp_path / "kernels")


@pytest.mark.full
def test_another_checkout_finds_the_kernels_of_the_first(checkout):
    assert checkout.run() == (FORCES, [], KERNELS, [])


LOOP = "    for item in numba.prange(n):\n"


UNREACHED = [
    ("md/search/grid/linked.py", LOOP, f"    # all\n{LOOP}"),
    ("md/search/grid/linked.py", "folded over the lists of", "summed over the lists of"),
    ("md/backend/prelude.py", "the inner product of two vectors", "the scalar product of two vectors"),
    (
        "md/simulation/simulation.py",
        "first, last, taken, ms = ",
        "one = 1\n        first, last, taken, ms = ",
    ),
    ("md/search/policy.py", "MANY_STEPS = 2**30", "MANY_STEPS = 2**29"),
    ("md/search/grid/linked.py", "backend.fill(self._head, -1)", "backend.fill(self._head, 1 - 2)"),
    ("md/observe/observation.py", "def _ratio(", "def _more():\n    return 2\n\n\ndef _ratio("),
    ("md/scenes/maxwell.py", "import numpy as np\n", "import numpy as np\n\nMORE = 3\n"),
]


def test_edits_that_no_kernel_can_reach_compile_nothing_in_another_checkout(checkout):
    """Of comments, of docstrings and of code that no kernel calls."""
    for edit in UNREACHED:
        checkout.edit(*edit)
    assert checkout.run() == (FORCES, [], KERNELS, [])


@pytest.mark.nightly
def test_an_edit_of_one_search_compiles_its_own_kernels_alone(checkout):
    checkout.edit("md/search/grid/naive.py", "            if j != i:\n", "            if i != j:\n")
    forces, compiled, found, _ = checkout.run()
    assert forces == FORCES
    assert compiled == ["md.search.grid.naive.force"]
    assert found == [name for name in KERNELS if name not in compiled]


LAW = "return p.spring * (p.diameter - r) / r"
LOAD = "(array[i, 0], array[i, 1], array[i, 2])"


@pytest.mark.parametrize(
    ("file", "old", "new", "force"),
    [
        pytest.param(
            "md/laws/spring_dashpot.py", LAW, LAW.replace("p.spring", "3 * p.spring"), 75.0, id="a law"
        ),
        pytest.param(
            "md/backend/prelude.py",
            LOAD,
            LOAD.replace("0]", "0] / 1.5"),
            50.0,
            id="an accessor",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_an_edit_that_a_kernel_reaches_acts_at_once(checkout, file, old, new, force):
    checkout.edit(file, old, new)
    forces, compiled, _, _ = checkout.run("naive")
    assert compiled == ONE[1]
    assert forces["naive"] == pytest.approx([-force, force], rel=1e-12)


@pytest.mark.nightly
def test_a_constant_of_a_module_without_kernels_acts_at_once(checkout):
    law = "md/laws/spring_dashpot.py"
    checkout.edit(law, LAW, LAW.replace("p.spring", "MANY * p.spring"))
    checkout.edit(
        law,
        "from sfc.compile import inlined\n",
        "from md.errors import MANY\nfrom sfc.compile import inlined\n",
    )
    constants = checkout.folder / "md/errors.py"
    text = constants.read_text()
    for factor in (2, 3):
        constants.write_text(f"{text}\nMANY = {factor}\n")
        force = 25.0 * factor
        assert checkout.run("naive")[:2] == ({"naive": [-force, force]}, ONE[1])


@pytest.mark.nightly
def test_two_processes_that_compile_at_once_leave_whole_kernels_and_nothing_else(checkout, tmp_path):
    checkout.cache = tmp_path / "empty"
    both = [checkout.start("naive") for _ in range(2)]
    for process in both:
        assert checkout.outcome_of(process)[0] == ONE[0]
    assert checkout.run("naive") == (ONE[0], [], ONE[1], [])
    (file,) = [path for path in checkout.cache.rglob("*") if path.is_file()]
    assert file.suffix == ".kernel"


@pytest.mark.nightly
def test_damaged_kernels_are_compiled_again(checkout):
    damages = {
        "md.search.grid.naive.force": lambda data: data[:-100],
        "md.search.grid.linked.force": lambda data: data[:-9] + b"?" + data[-8:],
        "md.search.grid.linked.link": lambda data: b"",
    }
    for name, damaged in damages.items():
        (path,) = checkout.cache.rglob(f"{name}/*.kernel")
        path.write_bytes(damaged(path.read_bytes()))
    assert checkout.run() == (FORCES, sorted(damages), [], [])
    assert checkout.run() == (FORCES, [], KERNELS, [])


TWO = """
import json, warnings
from sfc.compile import kernel
from sfc.compile.kernel_cache import counts

@kernel
def doubled(x):
    return 2 * x

@kernel
def halved(x):
    return x / 2

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    numbers = [doubled(3), halved(3.0)]
print(json.dumps([numbers, sorted(counts.compiled), sorted(counts.found), [str(t.message) for t in warned]]))
"""


def test_a_cache_that_cannot_be_written_is_warned_of_once_and_leaves_no_litter(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "two.py").write_text(TWO)
    kernels = tmp_path / "file" / "kernels"
    places = {"PYTHONPATH": ROOT, "NUMBA_CACHE_DIR": kernels, "TMPDIR": tmp_path / "temporary"}
    done = subprocess.run(
        [sys.executable, tmp_path / "two.py"],
        env=os.environ | {name: str(path) for name, path in places.items()},
        capture_output=True,
        text=True,
        check=True,
    )
    numbers, compiled, found, warned = json.loads(done.stdout)
    assert (numbers, compiled, found) == ([6, 1.5], ["__main__.doubled", "__main__.halved"], [])
    assert len(warned) == 1
    assert str(kernels) in warned[0]
    assert "NUMBA_CACHE_DIR" in warned[0]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_kernel_that_no_other_process_could_find_is_warned_of_once(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    applied, called = kernel(lambda function, x: function(x)), kernel(reciprocal).dispatcher
    with pytest.warns(
        RuntimeWarning, match="lambda.* is not stored on disk, so that .*: it is called with"
    ) as met:
        assert [applied(called, x) for x in (2.0, 4.0)] == [0.5, 0.25]
    assert len(met) == 1
    assert [path.parent.name for path in tmp_path.rglob("*.kernel")] == [f"{__name__}.reciprocal"]


def test_the_entries_used_longest_ago_are_removed_and_what_killed_writers_left(tmp_path):
    for age in range(5):
        path = tmp_path / "kernel" / f"{age}.kernel"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    for name, age in (("old.tmp", 2 * ABANDONED), ("new.tmp", 0.0)):
        path = tmp_path / "kernel" / name
        path.write_bytes(bytes(100))
        now = path.stat().st_mtime
        os.utime(path, (now - age, now - age))
    (tmp_path / "kernel" / "other").write_text("of another program")
    remove_old(tmp_path, most_bytes=300)
    left = {path.name for path in (tmp_path / "kernel").iterdir()}
    assert left == {"0.kernel", "1.kernel", "2.kernel", "new.tmp", "other"}


def test_the_cache_is_in_the_folder_of_numba(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path / "spatial-locality"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert cache_folder() == Path(user_cache_dir("spatial-locality")) / "kernels"


THREADED = """
import json, numba, sys
import numpy as np
from sfc.compile import kernel
from sfc.compile.kernel_cache import counts
@kernel(parallel=True)
def total(by):
    count = 0
    for i in numba.prange(len(by)):
        by[i] = numba.get_thread_id()
        count += i
    return count
numba.set_num_threads(int(sys.argv[1]))
by = np.empty(1000, np.int64)
print(json.dumps([total(by), len(set(by.tolist())), len(counts.found), len(counts.compiled)]))
"""


@pytest.mark.nightly
def test_a_kernel_for_one_thread_and_the_one_that_threads_share_are_kept_apart(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_NUM_THREADS": "2"}

    def counted(threads: int) -> list:
        command = [sys.executable, "-c", THREADED, str(threads)]
        return json.loads(
            subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            ).stdout
        )

    assert counted(1) == [499500, 1, 0, 1]
    assert counted(2) == [499500, 2, 0, 1]
    assert counted(1) == [499500, 1, 1, 0]
    assert counted(2) == [499500, 2, 1, 0]


def reciprocal(x):
    return 1.0 / x


def test_a_kernel_divides_by_zero_as_numpy_does(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert kernel(reciprocal)(0.0) == float("inf")
    assert kernel(parallel=False)(reciprocal)(4.0) == 0.25
    assert list(tmp_path.rglob("*reciprocal*/*.kernel"))


RECORDS = """
import sys
import numpy as np
from sfc.compile import callee, kernel

@callee
def last_of(record):
    total = 0.0
    for k in range(200):  # too long to be inlined
        total += record.last * (1 + k % 3) - record.last * (k % 3)
    return total / 200

@kernel
def read(records):
    return last_of(records[0])

for width in map(int, sys.argv[1:]):
    record = np.zeros(1, [("first", np.float64, (width,)), ("last", np.float64)])
    record["first"], record["last"] = -1, width
    print(read(record))
"""


def test_kernels_of_two_processes_keep_their_own_records(tmp_path):
    """Their callees have names of their own, although both processes give their records the same number."""
    (tmp_path / "records.py").write_text(RECORDS)

    def printed(*widths: int) -> list[float]:
        out = subprocess.run(
            [sys.executable, tmp_path / "records.py", *map(str, widths)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return [float(line) for line in out.stdout.split()]

    assert [printed(2), printed(3)] == [[2], [3]]
    assert printed(3, 2) == [3, 2]

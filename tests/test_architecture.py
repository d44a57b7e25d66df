"""Imports only go down; one idea is one stem; nothing is a grab bag. Read off the sources."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("sfc", "md", "experiments")
FLOORS = [
    ("sfc",),
    ("md.checks", "md.interrupt"),
    ("md.airfoil", "md.box", "md.images", "md.reporter", "md.whole"),
    ("md.faults", "md.frozen"),
    ("md.backend",),
    ("md.grid", "md.state", "md.laws", "md.pace"),
    ("md.tuning", "md.kinetics", "md.foresight", "md.watching", "md.curvekeys"),
    ("md.decayed",),
    ("md.cellsort", "md.search.strategy", "md.skin", "md.outside", "md.outline", "md.tree"),
    ("md.surrounding",),
    ("md.inflow", "md.wing"),
    ("md.shadow", "md.treesearch", "md.walks"),
    ("md.reactions",),
    ("md.search.*", "md.reorder", "md.schedule", "md.integrate", "md.pieces"),
    ("md.watch",),
    ("md.choices", "md.inside", "md.lookout", "md.start", "md.together", "md.trajectory"),
    ("md.checkpoint", "md.loop"),
    ("md.simulation",),
    ("md.scenes", "md.observe"),
    ("=md",),  # the package itself, for what stands above it
    ("experiments.core",),
    ("experiments.peers", "experiments.prediction", "experiments.measured"),
    ("experiments.*",),
]
SIDEWAYS = {("md.reorder", "md.schedule")}  # for the type of a schedule
SFC_MAY_KNOW = {"numpy", "numba", "llvmlite", "platformdirs"}
DRAWING = {"pandas", "seaborn", "matplotlib", "pyarrow"}
CUPY_MAY_BE_IN = {"sfc.device", "md.backend.cuda"}
GSD_MAY_BE_IN = {"md.trajectory"}
GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "misc"}
LONGEST = 400  # lines of code: docstrings, comments and blank lines are not counted
STANDARD = frozenset(sys.stdlib_module_names)


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(root: Path) -> dict[str, Path]:
    """Every module of the project by name."""
    found = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return {module_name(path, root): path for path in found}


def imports(path: Path, name: str, known: set[str]) -> Iterator[tuple[str, bool]]:
    """What a module imports, down to the submodule, and whether it does so at module level."""
    tree = ast.parse(path.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        at_top = id(node) not in inside
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name if path.stem == "__init__" else name.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield (submodule if submodule in known else base), at_top


def place(name: str) -> tuple[int, str] | None:
    """Floor of a module, and the subpackage it belongs to there: in `x.*` every module is its own."""
    entries = [(entry, floor) for floor, row in enumerate(FLOORS) for entry in row]
    for entry, floor in entries:
        if entry[-1] != "*" and (name == entry.lstrip("=") or (name + ".").startswith(entry + ".")):
            return floor, entry
    for entry, floor in entries:
        if entry[-1] == "*" and (name + ".").startswith(entry[:-1]):
            return floor, name
    return None


def is_package(name: str, known: dict[str, Path]) -> bool:
    return name in known and known[name].stem == "__init__"


def wrong_arrows(root: Path) -> list[str]:
    """Imports within the project that do not go down."""
    known = sources(root)
    wrong = []
    for name, path in known.items():
        for target, _ in imports(path, name, set(known)):
            if target.split(".")[0] not in PACKAGES or target == name:
                continue
            if is_package(name, known) and target.startswith(name + "."):
                continue
            here, there = place(name), place(target)
            if here is None or there is None:
                wrong.append(f"{name} -> {target}: on no floor")
            elif there[0] < here[0] or there[1] == here[1] or (name, target) in SIDEWAYS:
                continue
            else:
                way = "up" if there[0] > here[0] else "sideways"
                wrong.append(f"{name} -> {target}: {way}")
    return wrong


def wrong_libraries(root: Path) -> list[str]:
    """Imports of libraries a package may not know."""
    known = sources(root)
    wrong = []
    for name, path in known.items():
        package = name.split(".")[0]
        for target, at_top in imports(path, name, set(known)):
            library = target.split(".")[0]
            if library in PACKAGES or library in STANDARD:
                continue
            if library == "cupy":
                if name not in CUPY_MAY_BE_IN or at_top:
                    wrong.append(f"{name} imports cupy{' at module level' if at_top else ''}")
            elif package == "sfc" and library not in SFC_MAY_KNOW:
                wrong.append(f"{name} imports {library}")
            elif library == "gsd" and name not in GSD_MAY_BE_IN:
                wrong.append(f"{name} imports gsd")
            elif package == "md" and library in DRAWING:
                wrong.append(f"{name} imports {library}")
    return wrong


def includes(root: Path) -> list[str]:
    """CUDA includes of project files that go up or sideways, by the modules of the same stems."""
    wrong = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.cu*")):
            name = module_name(path, root)
            for header in re.findall(r'#include\s+"([^"]+)"', path.read_text()):
                from_root = header.split("/")[0] in PACKAGES
                file = root / header if from_root else (path.parent / header).resolve()
                target = module_name(file, root)
                here, there = place(name), place(target)
                if here is None or there is None or (there[0] >= here[0] and there[1] != here[1]):
                    wrong.append(f"{name} includes {target}")
    return wrong


def lines_of_code(path: Path) -> int:
    """Lines of a file that are neither blank nor comments nor in a docstring."""
    text = path.read_text()
    described = set()
    for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is str
        ):
            described |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    return sum(bool(line) and not line.startswith(("#", "//")) and k not in described for k, line in lines)


def wrong_files(root: Path) -> list[str]:
    """CUDA kernels without their strategy, grab bags, and files too long to read in one sitting."""
    wrong = []
    for path in sorted((root / "md" / "search").glob("*.cu")):
        if not path.with_suffix(".py").exists():
            wrong.append(f"{path.name} has no {path.stem}.py beside it")
    for folder in (*PACKAGES, "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".cu", ".cuh"):
                continue
            if {path.stem, path.parent.name} & GRAB_BAGS:
                wrong.append(f"{path.relative_to(root)} is a grab bag")
            if (lines := lines_of_code(path)) > LONGEST:
                wrong.append(f"{path.relative_to(root)} has {lines} lines of code; allowed: {LONGEST}")
    return wrong


def test_every_module_is_found():
    assert {"sfc.curve", "md", "md.search.linked", "experiments.core"} <= set(sources(ROOT))


def test_imports_only_go_down():
    assert wrong_arrows(ROOT) == []


def test_each_package_knows_only_its_libraries():
    assert wrong_libraries(ROOT) == []


def test_cuda_includes_only_go_down():
    assert includes(ROOT) == []


def test_stems_are_paired_and_files_have_one_subject():
    assert wrong_files(ROOT) == []


@pytest.fixture
def sound(tmp_path):
    """A small tree that breaks no rule, to plant a fault in."""
    files = {
        "sfc/__init__.py": "from sfc import curve\n",
        "sfc/curve.py": "import numpy as np\n",
        "md/__init__.py": "from md import search\nfrom md.simulation import Simulation\n",
        "md/box.py": "",
        "md/state.py": "from md.box import Box\n",
        "md/schedule.py": "",
        "md/reorder.py": "from .schedule import Schedule\nimport sfc\n",
        "md/search/__init__.py": "from md.search.naive import Naive\nfrom .linked import Linked\n",
        "md/search/strategy.py": "from md.state import State\n",
        "md/search/naive.py": "from md.search.strategy import Search\nfrom sfc.curve import Curve\n",
        "md/search/linked.py": "from md.search.strategy import Search\n",
        "md/search/linked.cu": '#include "md/state.cuh"\n#include "../box.cuh"\n#include <math.h>\n',
        "md/backend/__init__.py": "def get():\n    from md.backend.cuda import Cuda\n",
        "md/backend/cuda.py": "def device():\n    import cupy\n",
        "md/simulation.py": "from md.search import search\nfrom md.state import State\n",
        "md/scenes/__init__.py": "from md.scenes.granular import gas\n",
        "md/scenes/granular.py": "from md.simulation import Simulation\n",
        "experiments/__init__.py": "",
        "experiments/core/__init__.py": "import pandas\n",
        "experiments/timing.py": "import md\nfrom experiments import core\nimport seaborn\n",
    }
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def all_faults(root: Path) -> list[str]:
    return wrong_arrows(root) + wrong_libraries(root) + includes(root) + wrong_files(root)


def test_the_checker_finds_nothing_in_a_sound_tree(sound):
    assert all_faults(sound) == []


@pytest.mark.parametrize(
    ("file", "line", "report"),
    [
        ("sfc/curve.py", "import md.box", "sfc.curve -> md.box: up"),
        ("sfc/curve.py", "from md import box", "sfc.curve -> md.box: up"),
        ("md/state.py", "from md.simulation import Simulation", "md.state -> md.simulation: up"),
        ("md/state.py", "from .simulation import Simulation", "md.state -> md.simulation: up"),
        ("md/state.py", "def f():\n    import md.scenes", "md.state -> md.scenes: up"),
        ("md/search/strategy.py", "from md.search.naive import Naive", "strategy -> md.search.naive: up"),
        ("md/search/naive.py", "from md.search.linked import Linked", "naive -> md.search.linked: sideways"),
        ("md/search/naive.py", "from .linked import Linked", "naive -> md.search.linked: sideways"),
        ("md/search/naive.py", "from md.search import Linked", "md.search.naive -> md.search: sideways"),
        ("md/search/naive.py", "from md import reorder", "md.search.naive -> md.reorder: sideways"),
        ("md/search/__init__.py", "from md import simulation", "md.search -> md.simulation: up"),
        ("md/schedule.py", "import md.reorder", "md.schedule -> md.reorder: sideways"),
        ("md/scenes/granular.py", "import md", "md.scenes.granular -> md: up"),
        ("md/scenes/granular.py", "from experiments import core", "granular -> experiments.core: up"),
        ("md/extra.py", "import md.box", "md.extra -> md.box: on no floor"),
        ("experiments/core/__init__.py", "import experiments.timing", "experiments.timing: up"),
        ("experiments/curves.py", "import experiments.timing", "experiments.timing: sideways"),
        ("sfc/curve.py", "import scipy.spatial", "sfc.curve imports scipy"),
        ("md/box.py", "from pandas import DataFrame", "md.box imports pandas"),
        ("md/state.py", "def f():\n    import matplotlib.pyplot", "md.state imports matplotlib"),
        ("md/state.py", "def f():\n    import cupy", "md.state imports cupy"),
        ("md/state.py", "import gsd.hoomd", "md.state imports gsd"),
        ("md/backend/cuda.py", "import cupy as cp", "md.backend.cuda imports cupy at module level"),
        ("md/search/tiles.cu", "", "tiles.cu has no tiles.py"),
        ("md/search/linked.cu", '#include "md/simulation.cuh"', "linked includes md.simulation"),
        ("md/search/linked.cu", '#include "naive.cuh"', "md.search.linked includes md.search.naive"),
        ("md/utils.py", "", "md/utils.py is a grab bag"),
        ("sfc/common/__init__.py", "", "sfc/common/__init__.py is a grab bag"),
        ("md/box.py", '"""Much."""\n\n# more\n' + "x = 1\n" * 401, "md/box.py has 401 lines of code"),
    ],
)
def test_the_checker_reports_a_planted_fault(sound, file, line, report):
    path = sound / file
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + line)
    assert any(report in fault for fault in all_faults(sound)), all_faults(sound)

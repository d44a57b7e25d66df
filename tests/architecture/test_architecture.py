"""Imports only go down, rooms are small, words are those of the field: rules checked on the sources."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.rooms import FOUNDATION_OF, REGISTRIES, ROWS

ROOT = Path(__file__).parents[2]
PACKAGES = ("sfc", "md", "experiments")
SFC_MAY_KNOW = {"numpy", "numba", "llvmlite"}
DRAWING = {"pandas", "seaborn", "matplotlib", "pyarrow"}
CUPY_MAY_BE_IN = {"sfc.automaton.device", "sfc.device", "md.backend.cuda",
    "experiments.advice.kernels", "experiments.advice.sets.numpy_code",  # which stand for code of cupy
}  # fmt: skip
NUMBA_PRIVATE = ("numba.core", "numba.misc", "numba.cpython", "numba.np")
GSD_MAY_BE_IN = {"md.io.trajectory", "md.io.gsd_file"}
GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "misc"}
LONGEST_FILE, LONGEST_FUNCTION = 400, 70  # lines of code: no docstrings, no comments, no blank lines
MOST_FILES, MOST_AT_TOP = 14, 5  # of a room (a stem's .py, .cu and .cuh are one); of md that are in no room
ONE_FILE_AN_ENTRY = {"experiments", "sfc/curves", "tests/experiments"}  # rooms of a registry, or of commands
DIALECT = {  # in no identifier, and in no first line of a docstring
    "who", "whom", "whose", "whoever", "somebody", "nobody", "everybody", "anew", "heed", "heeds", "told",
    "tells", "everyone", "anyone", "lookout", "foresight", "enlist", "pressing", "watching", "remember",
    "forget", "gone", "wants", "knows", "asks", "meet",
}  # fmt: skip
PRONOUNS = {"who", "whom", "whose", "whoever", "somebody", "nobody", "heed", "heeds", "anew"}
STANDARD = frozenset(sys.stdlib_module_names)


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(root: Path) -> dict[str, Path]:
    """Every module of the project by name."""
    found = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return {module_name(path, root): path for path in found}


class Outline(NamedTuple):
    """What the rules need of a source, for which it is parsed once.

    Attributes:
        imports: the statements, and whether each is at module level.
        functions: name, first line and last line of each.
        described: numbers of the lines of statements that are strings, as docstrings are.
    """

    imports: list[tuple[ast.Import | ast.ImportFrom, bool]]
    functions: list[tuple[str, int, int]]
    described: set[int]


@cache
def outline(text: str) -> Outline:
    """Read the statements of a source, and no expression."""
    found = Outline([], [], set())
    rest: list[tuple[ast.AST, bool]] = [(statement, True) for statement in ast.parse(text).body]
    for node, at_top in rest:  # which grows
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append((node, at_top))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.name, node.lineno, node.end_lineno))
            at_top = False  # what is in it
        elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            found.described.update(range(node.lineno, node.end_lineno + 1))
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            rest += [(inner, at_top) for inner in getattr(node, block, ())]
    return found


def imports(path: Path, name: str, known: set[str]) -> Iterator[tuple[str, bool]]:
    """What a module imports, down to the submodule, and whether it does so at module level."""
    for node, at_top in outline(path.read_text()).imports:
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_top) for alias in node.names)
        else:
            package = name if path.stem == "__init__" else name.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield (submodule if submodule in known else base), at_top


@cache
def place(name: str) -> tuple[int, str] | None:
    """Row of a module, and the innermost room it belongs to: in `x.*` every module is its own."""
    entries = [(entry, floor) for floor, row in enumerate(ROWS) for entry in row]
    for entry, floor in sorted(entries, key=lambda pair: -len(pair[0])):
        if entry[-1] == "*" and (name + ".").startswith(entry[:-1]):
            return floor, name
        if name == entry.lstrip("=") or (name + ".").startswith(entry + "."):
            return floor, entry
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
                wrong.append(f"{name} -> {target}: in no room")
            elif there[0] < here[0] or there[1] == here[1]:
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
            if target.startswith(NUMBA_PRIVATE) and name != "sfc.compile.numba_internals":
                wrong.append(f"{name} imports {target}")
            elif library == "cupy":
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


def circles(root: Path) -> list[str]:
    """Circles of imports between modules, or folders, of one room; faces (`__init__`) are left out."""
    known = sources(root)
    arrows: dict[str, set[str]] = {}
    between: dict[str, set[str]] = {}
    for name, path in known.items():
        here = place(name)
        for target, _ in imports(path, name, set(known)):
            there = place(target)
            inner = here and there and here[1] == there[1] and target != name
            if inner and not is_package(name, known) and not is_package(target, known):
                arrows.setdefault(name, set()).add(target)
                folders = (part_of(one, here[1]) for one in (name, target))
                if len(ends := list(dict.fromkeys(folders))) == 2:
                    between.setdefault(ends[0], set()).add(ends[1])
    return loops(arrows) or loops(between)


def part_of(name: str, room: str) -> str:
    """The folder of a room that a module is in; the module itself if it is in none."""
    return ".".join(name.split(".")[: room.count(".") + 2])


def loops(arrows: dict[str, set[str]]) -> list[str]:
    """Circles of a graph, each once."""
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append("circle: " + " -> ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for target in sorted(arrows.get(name, ())):
                visit(target, (*path, name))
            done.add(name)

    for name in sorted(arrows):
        visit(name, ())
    return found


def strategies(room: str, known: dict[str, Path]) -> set[str]:
    """Modules whose classes or functions a room's face has in a registry."""
    if room not in known:
        return set()
    tree = ast.parse(known[room].read_text())
    named: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            named |= {alias.asname or alias.name: node.module for alias in node.names}
    groups = [getattr(node, group, ()) for node in ast.walk(tree) for group in ("values", "elts")]
    values = [value for group in groups for value in group]
    values += [
        argument
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("register")
        for argument in node.args
    ]
    return {
        named[v.id] for v in values if isinstance(v, ast.Name) and named.get(v.id, "").startswith(room + ".")
    }


def linked_strategies(root: Path) -> list[str]:
    """Strategies of one registry that import each other."""
    known, wrong = sources(root), []
    for room in REGISTRIES:
        entries = strategies(room, known)
        for name in sorted(entries & known.keys()):
            targets = {target for target, _ in imports(known[name], name, set(known))}
            others = targets & entries - {name} - FOUNDATION_OF.get(name, set())
            wrong += [f"{name} -> {target}: strategies of one registry" for target in sorted(others)]
    return wrong


def crowded_rooms(root: Path) -> list[str]:
    """Rooms of too many files, and too many modules of md in no room."""
    wrong = []
    for package in (*PACKAGES, "tests"):
        for folder in sorted({path.parent for path in (root / package).rglob("*.py")}):
            stems = {p.stem for p in folder.iterdir() if p.suffix in (".py", ".cu", ".cuh")}
            name = folder.relative_to(root).as_posix()
            if len(stems) > MOST_FILES and name not in ONE_FILE_AN_ENTRY:
                wrong.append(f"{name} has {len(stems)} files; allowed: {MOST_FILES}")
    top = [path for path in (root / "md").iterdir() if path.is_file() and path.suffix != ".md"]
    if len(top) > MOST_AT_TOP:
        wrong.append(f"md has {len(top)} modules at its top; allowed: {MOST_AT_TOP}")
    return wrong


def words_of(identifier: str) -> set[str]:
    """The words of an identifier, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def dialect(root: Path) -> list[str]:
    """Words of `DIALECT` in identifiers and in first lines of docstrings, of Python and CUDA files."""
    wrong = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            place, text = path.relative_to(root).as_posix(), ""
            if path.suffix in (".cu", ".cuh"):
                text = re.sub(r"//.*", "", path.read_text())
                found = {name for name in re.findall(r"[A-Za-z_]\w*", text) if words_of(name) & DIALECT}
                wrong += [f"{place}: identifier {name}" for name in sorted(found)]
            if path.suffix != ".py" or not words_of(text := path.read_text()) & DIALECT:
                continue
            for node in ast.walk(ast.parse(text)):
                names = [getattr(node, field, None) for field in ("name", "id", "attr", "arg")]
                for name in names:
                    if isinstance(name, str) and words_of(name) & DIALECT:
                        wrong.append(f"{place}: identifier {name}")
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    first = (ast.get_docstring(node) or "").partition("\n")[0]
                    if words := {w.lower() for w in re.findall(r"[A-Za-z]+", first)} & DIALECT:
                        wrong.append(f"{place}: first line {first!r} has {', '.join(sorted(words))}")
    return wrong


def pronouns(root: Path) -> int:
    """How often the words of `PRONOUNS` stand anywhere in the packages."""
    files = [p for package in PACKAGES for p in (root / package).rglob("*")]
    texts = (p.read_text() for p in files if p.suffix in (".py", ".cu", ".cuh", ".md"))
    return sum(len(re.findall(rf"\b(?:{'|'.join(PRONOUNS)})\b", text, re.IGNORECASE)) for text in texts)


def lines_of_code(path: Path) -> int:
    """Lines of a file that are neither blank nor comments nor in a docstring."""
    return len(code_of(path))


def long_functions(path: Path) -> list[str]:
    """Functions of a file with more lines of code than allowed."""
    lines, found = code_of(path), []
    for name, first, last in outline(path.read_text()).functions:
        count = len(lines.intersection(range(first, last + 1)))
        if count > LONGEST_FUNCTION:
            found.append(f"{name} has {count} lines of code; allowed: {LONGEST_FUNCTION}")
    return found


def code_of(path: Path) -> set[int]:
    """Numbers of the lines that are neither blank nor comments nor in a docstring."""
    return lines_of_text(path.read_text(), path.suffix == ".py")


@cache
def lines_of_text(text: str, is_python: bool) -> set[int]:
    """Numbers of the lines of code of a source."""
    described = outline(text).described if is_python else set()
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    return {k for k, line in lines if line and not line.startswith(("#", "//")) and k not in described}


def wrong_files(root: Path) -> list[str]:
    """CUDA files without their module, grab bags, and files and functions too long to read in one sitting."""
    wrong = []
    for path in sorted((root / "md").rglob("*.cu")):
        if not path.with_suffix(".py").exists():
            wrong.append(f"{path.name} has no {path.stem}.py beside it")
    for folder in (*PACKAGES, "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".cu", ".cuh"):
                continue
            here = path.relative_to(root).as_posix()
            if {path.stem, path.parent.name} & GRAB_BAGS:
                wrong.append(f"{here} is a grab bag")
            if (lines := lines_of_code(path)) > LONGEST_FILE:
                wrong.append(f"{here} has {lines} lines of code; allowed: {LONGEST_FILE}")
            if path.suffix == ".py":
                wrong += [f"{here}: {report}" for report in long_functions(path)]
    return wrong


def test_every_module_is_found():
    assert {"sfc.automaton.curve", "md", "md.search.grid.linked", "experiments.core"} <= set(sources(ROOT))


def test_imports_only_go_down():
    assert wrong_arrows(ROOT) == []


def test_each_package_knows_only_its_libraries():
    assert wrong_libraries(ROOT) == []


def test_cuda_includes_only_go_down():
    assert includes(ROOT) == []


def test_stems_are_paired_and_files_have_one_subject():
    assert wrong_files(ROOT) == []


def test_no_room_has_a_circle_of_imports():
    assert circles(ROOT) == []


def test_strategies_of_one_registry_do_not_import_each_other():
    assert linked_strategies(ROOT) == []
    assert len(strategies("md.search", sources(ROOT))) == 11


def test_rooms_are_not_crowded():
    assert crowded_rooms(ROOT) == []


def test_the_words_are_those_of_the_field():
    assert dialect(ROOT) == []
    assert pronouns(ROOT) <= 40


@pytest.fixture
def sound(tmp_path):
    """A small tree that breaks no rule, to plant a fault in."""
    files = {
        "sfc/__init__.py": "from sfc.automaton import curve\n",
        "sfc/automaton/__init__.py": "",
        "sfc/automaton/curve.py": "import numpy as np\n",
        "md/__init__.py": "from md import search\nfrom md.simulation import Simulation\n",
        "md/errors.py": "",
        "md/checks.py": "import sfc\n",
        "md/particles/__init__.py": "",
        "md/particles/box.py": "",
        "md/particles/state.py": "from md.particles.box import Box\n",
        "md/reorder/__init__.py": "",
        "md/reorder/triggers.py": "",
        "md/reorder/reorder.py": "from .triggers import Trigger\nimport sfc\n",
        "md/search/__init__.py": (
            "from md.search.naive import Naive\nfrom .linked import Linked\n"
            "from md.search.linked import Linked\nSEARCHES = {'naive': Naive, 'linked': Linked}\n"
        ),
        "md/search/base.py": "from md.particles.state import State\n",
        "md/search/naive.py": "from md.search.base import Search\nfrom sfc.automaton.curve import Curve\n",
        "md/search/linked.py": "from md.search.base import Search\n",
        "md/search/linked.cu": '#include "md/particles/state.cuh"\n#include "../particles/box.cuh"\n',
        "md/backend/__init__.py": "def get():\n    from md.backend.cuda import Cuda\n",
        "md/backend/cuda.py": "def device():\n    import cupy\n",
        "md/backend/a/one.py": "",
        "md/backend/a/two.py": "",
        "md/backend/b/one.py": "from md.backend.a.two import x\n",
        "md/simulation/__init__.py": "from md.simulation.simulation import Simulation\n",
        "md/simulation/simulation.py": "from md.search import search\nfrom md.particles.state import State\n",
        "md/preparation/__init__.py": "from md.preparation.granular import gas\n",
        "md/preparation/granular.py": "from md.simulation import Simulation\n",
        "experiments/__init__.py": "",
        "experiments/core/__init__.py": "import pandas\n",
        "experiments/timing.py": "import md\nfrom experiments import core\nimport seaborn\n",
    }
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def all_faults(root: Path) -> list[str]:
    found = wrong_arrows(root) + wrong_libraries(root) + includes(root) + wrong_files(root)
    return found + circles(root) + linked_strategies(root) + crowded_rooms(root) + dialect(root)


def test_the_checker_finds_nothing_in_a_sound_tree(sound):
    assert all_faults(sound) == []
    assert pronouns(sound) == 0


@pytest.mark.parametrize(
    ("file", "line", "report"),
    [
        ("sfc/automaton/curve.py", "import md.particles.box", "sfc.automaton.curve -> md.particles.box: up"),
        ("sfc/automaton/curve.py", "from md.particles import box", "-> md.particles.box: up"),
        ("md/particles/state.py", "from md.simulation import Simulation", "state -> md.simulation: up"),
        ("md/particles/state.py", "from ..simulation import Simulation", "state -> md.simulation: up"),
        ("md/particles/state.py", "def f():\n    import md.scenes", "md.particles.state -> md.scenes: up"),
        ("md/search/naive.py", "from md.reorder import reorder", "naive -> md.reorder.reorder: up"),
        ("md/search/__init__.py", "from md import simulation", "md.search -> md.simulation: up"),
        ("md/laws/pair.py", "from md.particles import box", "md.laws.pair -> md.particles.box: sideways"),
        ("md/preparation/granular.py", "import md", "md.preparation.granular -> md: up"),
        ("md/preparation/granular.py", "from experiments import core", "granular -> experiments.core: up"),
        ("md/extra.py", "import md.particles.box", "md.extra -> md.particles.box: in no room"),
        ("experiments/core/__init__.py", "import experiments.timing", "experiments.timing: up"),
        ("experiments/curves.py", "import experiments.timing", "experiments.timing: sideways"),
        ("sfc/automaton/curve.py", "import scipy.spatial", "sfc.automaton.curve imports scipy"),
        ("md/particles/box.py", "from pandas import DataFrame", "md.particles.box imports pandas"),
        ("md/particles/state.py", "def f():\n    import matplotlib.pyplot", "state imports matplotlib"),
        ("md/particles/state.py", "def f():\n    import cupy", "md.particles.state imports cupy"),
        ("md/particles/state.py", "import gsd.hoomd", "md.particles.state imports gsd"),
        ("md/particles/state.py", "from numba.core import cgutils", "state imports numba.core"),
        ("md/backend/cuda.py", "import cupy as cp", "md.backend.cuda imports cupy at module level"),
        ("md/search/tiles.cu", "", "tiles.cu has no tiles.py"),
        ("md/particles/arrays.cu", "", "arrays.cu has no arrays.py"),
        ("md/search/linked.cu", '#include "md/simulation/x.cuh"', "linked includes md.simulation.x"),
        ("md/search/base.py", "from md.search.naive import Naive", "md.search.base -> md.search.naive: up"),
        ("md/particles/box.py", "import md.particles.state", "circle: md.particles.box -> md.particles.st"),
        ("md/search/naive.py", "from md.search.linked import Linked", "linked: strategies of one registry"),
        ("md/backend/a/one.py", "import md.backend.b.one", "circle: md.backend.a -> md.backend.b -> md.back"),
        ("md/utils.py", "", "md/utils.py is a grab bag"),
        ("sfc/common/__init__.py", "", "sfc/common/__init__.py is a grab bag"),
        ("md/particles/box.py", '"""Much."""\n\n# more\n' + "x = 1\n" * 401, "box.py has 401 lines of code"),
        ("md/particles/box.py", "def f():\n" + "    x = 1\n" * 70, "box.py: f has 71 lines of code"),
        ("md/particles/box.py", "def told(x):\n    pass\n", "identifier told"),
        ("md/particles/box.py", "x = told_so = 1\n", "identifier told_so"),
        ("md/particles/box.py", "class A:\n    def f(self, whom):\n        pass\n", "identifier whom"),
        ("md/particles/box.py", 'def f():\n    """Who stands where."""\n', "first line 'Who stands where.'"),
        ("md/search/linked.cu", "int anew = 1;  // anew\n", "identifier anew"),
    ],
)
def test_the_checker_reports_a_planted_fault(sound, file, line, report):
    path = sound / file
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + line)
    assert any(report in fault for fault in all_faults(sound)), all_faults(sound)


@pytest.mark.parametrize(("folder", "files"), [("md", 3), ("md/laws", 15), ("experiments/core", 14)])
def test_the_checker_reports_a_crowded_room(sound, folder, files):
    (sound / folder).mkdir(exist_ok=True)
    for k in range(files):
        (sound / folder / f"file{k}.py").write_text("")
    assert len([fault for fault in crowded_rooms(sound) if fault.startswith(f"{folder} has")]) == 1
    (sound / folder / "file0.py").unlink()
    assert not any(fault.startswith(f"{folder} has") for fault in crowded_rooms(sound))


def test_the_checker_counts_pronouns_in_any_text(sound):
    (sound / "md" / "README.md").write_text("Whoever reads, somebody wrote.\n")
    (sound / "md" / "search" / "linked.cu").write_text("// whom and nobody\n")
    assert pronouns(sound) == 4

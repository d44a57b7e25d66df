"""User-defined laws: distinguished by type, in every search, never stale; errors for what is not a law."""

import importlib.util
import itertools
import json
import os
import re
import runpy
import subprocess
import sys
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.backend import BackendUnavailableError
from md.backend.kernels.launcher import Launcher, functor_of
from md.laws import add_scaled, pair_function
from md.laws.pair import EnergyLaw, KernelLaw, flat, is_reciprocal, kernel_law
from md.laws.polydisperse import PolydisperseLaw
from md.search import Reflexive
from tests import tiers
from tests.kernel_calls import call
from tests.md.laws.alignment import Alignment

ROOT = Path(__file__).parents[3]
IN_EVERY_SEARCH = Path(__file__).with_name("hertz_in_every_search.py")
PAIR = md.State([[1.0, 1.0, 1.0], [1.75, 1.0, 1.0]], [[0.0] * 3] * 2, md.Box((4, 4, 4)))


def readme_blocks() -> tuple[str, str, str]:
    """Read the law of the README: the file, the example that uses the law; and its CUDA file."""
    (section,) = re.findall(r"### Your own law\n.*?\n### ", (ROOT / "README.md").read_text(), re.DOTALL)
    file, use = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (functor,) = re.findall(r"```cpp\n(.*?)```", (ROOT / "md" / "EXTENDING.md").read_text(), re.DOTALL)
    return file, use, functor


def check_in_searches(folder: Path, power: float, backend: str, searches: Sequence[str]) -> None:
    """Run the law of a folder in another process, and check its difference from the closed form."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "NUMBA_NUM_THREADS": "1",
    }
    command = [sys.executable, str(IN_EVERY_SEARCH), str(power), ",".join(searches), backend]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    strongest, found = json.loads(done.stdout)
    assert strongest > 100
    assert len(found) == 2 * len(searches)
    for force, position, velocity in found.values():
        assert force < 1e-10
        assert position < 1e-12
        assert velocity < 1e-11


@pytest.mark.parametrize(
    ("where", "searches", "edited"),
    [
        ("cpu", ("linked",), False),
        pytest.param("cpu", ("linked",), True, marks=pytest.mark.full),
        pytest.param("cpu", tuple(md.search.SEARCHES), True, marks=pytest.mark.nightly),
        pytest.param("cuda", tuple(md.search.SEARCHES), True, marks=pytest.mark.gpu),
    ],
    ids=["one", "edited", "every", "device"],
)
def test_the_law_of_the_readme_acts_in_searches_and_so_does_an_edit_of_it(
    tmp_path, where, searches, edited, request
):
    file, _, functor = readme_blocks()
    assert file.count("1.5") == 1
    if where == "cuda":
        request.getfixturevalue("device")
        (tmp_path / "hertz.cuh").write_text(functor)
    (tmp_path / "hertz.py").write_text(file)
    check_in_searches(tmp_path, 1.5, where, searches)
    if not edited:
        return
    (tmp_path / "hertz.py").write_text(file.replace("1.5", "2.5"))
    if where == "cuda":
        power = functor.replace("* overlap * sqrt(overlap)", "* overlap * overlap * sqrt(overlap)")
        assert power != functor
        (tmp_path / "hertz.cuh").write_text(power)
    check_in_searches(tmp_path, 2.5, where, searches)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of no device
def test_the_use_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    file, use, _ = readme_blocks()
    (tmp_path / "hertz.py").write_text(file)
    (tmp_path / "use.py").write_text(use)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "hertz", raising=False)
    runpy.run_path(str(tmp_path / "use.py"), run_name="__main__")
    monkeypatch.delitem(sys.modules, "hertz")
    printed = capsys.readouterr()
    assert printed.out.startswith("[[")
    assert printed.err == ""


@dataclass(frozen=True)
class Impostor:
    """A law with the field names of the built-in law."""

    spring: float
    damping: float
    diameter: float

    @property
    def cutoff(self) -> float:
        return self.diameter


@pair_function(Impostor)
def repel(law, vel, i, j, r2, dr, vi, acc):
    return add_scaled(acc, 7 * law.spring, dr) if 0 < r2 < law.diameter * law.diameter else acc


def forces(law, search="naive", state=PAIR, backend="cpu", **options) -> np.ndarray:
    options = {"dt": 1e-3, "allow_overlap": True} | options
    return md.Simulation(state, law, search=search, backend=backend, **options).forces()


@pytest.mark.parametrize("precision", [tiers.full("float32"), "float64"])
def test_a_law_with_the_names_of_anothers_numbers_has_its_own_force(precision):
    built_in = md.laws.SpringDashpot(100.0, 0.0, 1.0)
    assert forces(built_in, precision=precision)[:, 0].tolist() == [-25.0, 25.0]
    assert forces(Impostor(100.0, 0.0, 1.0), precision=precision)[:, 0].tolist() == [-525.0, 525.0]


def test_two_classes_of_one_name_are_two_laws_and_the_order_of_their_fields_matters():
    def law(factor, names):
        made = make_dataclass("Twin", [(name, float) for name in names], frozen=True)

        @pair_function(made)
        def push(law, vel, i, j, r2, dr, vi, acc):
            return add_scaled(acc, factor * law.strength, dr)

        return made(strength=100.0, cutoff=1.0)

    names = "strength", "cutoff"
    laws = [law(1.0, names), law(2.0, names), law(2.0, names[::-1]), law(1.0, names)]
    assert [forces(law)[0, 0] for law in laws] == [-75.0, -150.0, -150.0, -75.0]


COPIED = Reflexive(stack="none", data="shadow", rebuild_every=4)
TWICE = Reflexive(met="twice", atomics="none")
FUSED_IN_FULL = ("coherent", "float64"), ("verlet", "float32")


@pytest.mark.parametrize(
    "search",
    [
        *tiers.searches(md.search.SEARCHES, ("naive", "linked"), tiers.full),
        pytest.param(COPIED, id="copied", marks=pytest.mark.full),
    ],
)
def test_a_law_may_sum_other_values_than_a_force(backend, search):
    generator = np.random.default_rng(1)
    box = md.Box((5.1, 4.3, 4.7), periodic=(True, False, True))
    pos, vel = generator.random((80, 3)) * box.lengths, generator.normal(0, 1, (80, 3))
    law = Alignment(rate=2.0, push=0.5)
    dr = pos[:, None] - pos
    dr -= np.where(box.periodic, box.lengths * np.round(dr / box.lengths), 0)
    near = (np.linalg.norm(dr, axis=2) < 1) & ~np.eye(80, dtype=bool)
    count = np.maximum(near.sum(axis=1), 1)[:, None]
    turn = (near[..., None] * (vel - vel[:, None])).sum(axis=1) / count
    expected = law.rate * turn + law.push * (near[..., None] * dr).sum(axis=1)
    assert near.sum() > 100
    assert not is_reciprocal(law)
    found = forces(law, search, md.State(pos, vel, box), backend)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("search", "precision"),
    tiers.by_default(
        itertools.product([*sorted(set(md.search.SEARCHES) - {"reflexive"}), TWICE], ("float64", "float32")),
        lambda search, precision: (search, precision) == ("linked", "float64"),
        lambda search, precision: (tiers.full if (search, precision) in FUSED_IN_FULL else tiers.nightly)(
            search, precision
        ),
    ),
    ids=lambda value: value if isinstance(value, str) else "each pair twice",
)
def test_a_fused_step_uses_the_result_of_a_law(backend, search, precision):
    state = md.scenes.benchmark_gas(125, 0.4)
    options = {"dt": 1e-3, "backend": backend, "precision": precision}
    plain, fused = (
        md.Simulation(state, Alignment(rate=2.0, push=0.5), search=chosen, fused=chosen is search, **options)
        for chosen in ("naive", search)
    )
    plain.run(10)
    fused.run(10)
    close = {"rtol": 1e-12, "atol": 1e-12} if precision == "float64" else {"rtol": 1e-4, "atol": 1e-5}
    assert np.abs(plain.forces()).max() > 0.1
    assert np.allclose(fused.forces(), plain.forces(), **close)


@pytest.mark.parametrize("mode", ["threads", tiers.full("shadow")])
def test_a_law_may_sum_other_values_than_a_force_under_a_reorder(mode):
    state = md.scenes.benchmark_gas(125, 0.4)
    law = Alignment(rate=2.0, push=0.5)
    runs = [
        md.Simulation(state, law, search="linked", dt=1e-3, backend="cpu", reorder=reorder)
        for reorder in (None, md.Reorder("hilbert", md.Every(2), mode=mode))
    ]
    for run in runs:
        run.run(5)
    assert np.allclose(runs[0].forces(), runs[1].forces(), rtol=1e-12, atol=1e-12)


OPPOSITE = -1.0


def hold(law, vel, i, j, r2, dr, vi, acc):
    return add_scaled(acc, OPPOSITE * law.rate, vi)


@dataclass(frozen=True)
class Drag:
    """A force against the particle's own velocity for each neighbour, with no force on the neighbour.

    Its function reads a global.
    """

    rate: float
    cutoff: float = 1.0


pair_function(Drag)(hold)


@pytest.mark.parametrize("search", ["naive", tiers.full("reflexive")])
def test_a_law_that_is_not_reciprocal_gives_no_force_on_the_partner(search):
    state = md.State(PAIR.pos, [[1.0, 0, 0], [0, 0, 0]], PAIR.box)
    assert forces(Drag(3.0), search, state)[:, 0].tolist() == [-3.0, 0.0]


def test_a_global_that_changes_is_refused(monkeypatch):
    state = md.State(PAIR.pos, [[1.0, 0, 0], [0, 0, 0]], PAIR.box)
    assert forces(Drag(3.0), state=state)[0, 0] == -3.0
    monkeypatch.setitem(globals(), "OPPOSITE", 20.0)
    with pytest.raises(ValueError, match=r"hold reads has changed since.*define the function again"):
        forces(Drag(3.0), state=state)


def in_a_module(folder: Path, name: str, source: str, functor: str):
    (folder / f"{name}.py").write_text(source)
    (folder / f"{name}.cuh").write_text(functor)
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestARefusal:
    """Errors for laws that cannot be distinguished, and for what is not a law."""

    def test_of_two_functions_for_one_class(self):
        with pytest.raises(
            ValueError, match=r"second pair function, repel, for Impostor; allowed: one for each"
        ):
            pair_function(Impostor)(repel)

    def test_of_a_field_that_is_no_number(self):
        law = make_dataclass("Named", [("cutoff", float), ("name", str)], frozen=True)
        with pytest.raises(
            TypeError, match=r"field name: .*str.* of Named is no number.*allowed: int or float"
        ):
            pair_function(law)

    def test_of_a_value_that_is_no_number(self):
        message = r"spring of Impostor\(.*\) = .* of class .*; allowed: a number"
        for value in ("soft", None, [1.0], True, 1j):
            with pytest.raises(TypeError, match=message):
                forces(Impostor(value, 0.0, 1.0))

    def test_of_a_number_that_float32_has_no_room_for(self):
        with pytest.raises(
            ValueError, match=r"spring = 1e\+300 .*allowed: up to 3.403e\+38; take precision="
        ):
            md.Simulation(PAIR, Impostor(1e300, 0.0, 1.0), backend="cpu", dt=1.0, precision="float32")
        with pytest.raises(ValueError, match=r"spring = 10+\.\.\. of .*allowed: up to 1.798e\+308"):
            forces(Impostor(10**400, 0.0, 1.0))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"initial": 5},
                r"initial = 5 of class int; allowed: a function of \(law, ri\), see md.laws.pair",
            ),
            ({"potential": "stored"}, "potential = 'stored' of class str; allowed: a function"),
            ({"fields": "abc"}, "fields = 'abc' of class str; allowed: a sequence of words"),
            ({"fields": (1,)}, "field = 1 of class int; allowed: a str"),
            ({"reciprocal": "no"}, "reciprocal = 'no' of class str; allowed: True or False"),
        ],
    )
    def test_of_arguments_of_another_class(self, options, message):
        law = make_dataclass("Short", [("cutoff", float)], frozen=True)
        with pytest.raises(TypeError, match=message):
            pair_function(law, **options)(repel)
        with pytest.raises(TypeError, match=r"interact = 5 of class int; allowed: a function of \(law, vel"):
            pair_function(law)(5)

    def test_of_a_class_that_can_be_changed(self):
        with pytest.raises(TypeError, match=r"pair_function\('Loose'\); allowed: .*frozen=True"):
            pair_function(make_dataclass("Loose", [("cutoff", float)]))

    def test_of_a_function_of_other_parameters(self):
        law = make_dataclass("Short", [("cutoff", float)], frozen=True)
        with pytest.raises(
            TypeError, match=r"\(law, r\) for Short; allowed: a function of \(law, vel, i, j, r2"
        ):
            pair_function(law)(lambda law, r: r)

    @pytest.mark.parametrize(
        ("name", "parameters"), [("result", "law, acc"), ("initial", "law"), ("potential", "r")]
    )
    def test_of_other_functions_of_other_parameters(self, name, parameters):
        law = make_dataclass("Short", [("cutoff", float)], frozen=True)
        wrong = eval(f"lambda {parameters}: 0")
        with pytest.raises(TypeError, match=rf"{name}: .*\({parameters}\) for Short; allowed: a function of"):
            pair_function(law, **{name: wrong})(repel)

    @pytest.mark.parametrize("name", ["stifness", "_stiffness"])
    def test_of_a_field_that_the_class_has_not(self, name):
        law = make_dataclass("Fields", [("cutoff", float)], frozen=True)
        with pytest.raises(ValueError, match=rf"field '{name}' of Fields; allowed: fields and attributes"):
            pair_function(law, fields=(name,))

    def test_of_two_named_tuples_of_one_name(self):
        first, second = (namedtuple("Numbers", ["cutoff"]) for _ in range(2))
        pair_function(first)(repel)
        with pytest.raises(
            ValueError, match=r"a second NamedTuple class .* is called Numbers; .* another name"
        ):
            pair_function(second)

    def test_of_two_laws_in_one_module_on_a_device(self, tmp_path, monkeypatch):
        file, _, functor = readme_blocks()
        second = file[file.index("@dataclass") :].replace("Hertz", "Other")
        module = in_a_module(tmp_path, "two_laws", file + second, functor)
        monkeypatch.delitem(sys.modules, "two_laws", raising=False)
        monkeypatch.setitem(sys.modules, "two_laws", module)
        with pytest.raises(
            BackendUnavailableError, match=r"two_laws.cuh cannot hold .* of Hertz and of Other"
        ):
            functor_of(module.Hertz)

    def test_of_a_functor_without_the_functions_of_the_law(self, tmp_path, monkeypatch):
        file, _, functor = readme_blocks()
        source = file.replace("reciprocal=True", "result=lambda law, ri, vi, acc: acc")
        module = in_a_module(tmp_path, "half_a_law", source, functor)
        monkeypatch.setitem(sys.modules, "half_a_law", module)
        with pytest.raises(
            BackendUnavailableError,
            match=r"half_a_law.cuh defines interact, and half_a_law.py interact, result; allowed: the same",
        ):
            functor_of(module.Hertz)

    def test_of_a_class_derived_from_a_law(self):
        derived = make_dataclass("Derived", [], bases=(Impostor,), frozen=True)
        with pytest.raises(TypeError, match=r"Derived, which has no pair function; allowed: .*SpringDashpot"):
            forces(derived(100.0, 0.0, 1.0))

    @pytest.mark.parametrize(
        "law", ["spring_dashpot", None, md.laws.SpringDashpot, SimpleNamespace(cutoff=1.0)]
    )
    def test_of_what_is_no_law(self, law):
        with pytest.raises(
            TypeError, match=r"has no pair function; allowed: .*SpringDashpot.*, or a class of your"
        ):
            forces(law)

    def test_of_an_object_without_a_repr(self):
        class Strange:
            def __repr__(self):
                raise RuntimeError("no repr")

        with pytest.raises(TypeError, match=r"law = an object of class Strange is of .*; allowed: .*Spring"):
            forces(Strange())

    @pytest.mark.parametrize(("cutoff", "error"), [("1", TypeError), (0.0, ValueError), (np.inf, ValueError)])
    def test_of_a_cutoff_that_is_none(self, cutoff, error):
        with pytest.raises(error, match=r"cutoff of Impostor\(.*\) = .*; allowed: a finite number above 0"):
            forces(Impostor(1.0, 0.0, cutoff))

    def test_of_an_energy_without_a_function_for_kernels(self):
        def potential(self, distance):
            return 0 * distance

        names = {"cutoff": 1.0, "closest_start": 0.0, "potential": potential}
        law = make_dataclass("Partial", [("strength", float)], frozen=True, namespace=names)
        pair_function(law)(repel)
        with pytest.raises(
            TypeError, match=r"Partial\(.* has an energy in part; allowed: a method `potential`"
        ):
            forces(law(1.0))

    def test_of_a_reciprocal_law_that_sums_more_than_the_force(self):
        law = make_dataclass("Both", [("cutoff", float)], frozen=True)
        with pytest.raises(ValueError, match=r"reciprocal=True for Both with an `initial`"):
            pair_function(law, initial=lambda law, ri: 0, reciprocal=True)(repel)

    def test_of_the_pressure_under_a_law_that_sums_other_things_than_forces(self):
        run = md.Simulation(PAIR, Alignment(rate=1.0, push=1.0), dt=1e-3, backend="cpu")
        with pytest.raises(
            ValueError, match=r"the virial under Alignment\(.*allowed: a law without an `initial`"
        ):
            md.observe.field(run, (2, 2, 2))

    def test_of_a_law_without_a_file_for_a_device(self):
        with pytest.raises(
            BackendUnavailableError,
            match=r"law Impostor runs on the CPU only: test_pair.cuh is not beside test_pair.py; .* use back",
        ):
            functor_of(Impostor)

    @pytest.mark.gpu
    def test_of_such_a_law_on_a_device_is_at_once(self, device):
        with pytest.raises(BackendUnavailableError, match=r"test_pair\.cuh is not beside"):
            md.Simulation(PAIR, Impostor(1.0, 0.0, 1.0), dt=1e-3, backend=device)


def test_the_cuda_source_of_a_law_holds_its_file_and_what_that_includes(tmp_path):
    file, _, functor = readme_blocks()
    sources = []
    for power in ("power A", "power B"):
        (tmp_path / "power.cuh").write_text(f"// {power}\n")
        law = in_a_module(tmp_path, "hertz_on_device", file, '#include "power.cuh"\n' + functor).Hertz(3.0)
        rows = SimpleNamespace(
            dtype=np.dtype(np.float32), ndim=2, shape=(7, 3), size=21, data=SimpleNamespace(ptr=16)
        )
        none = SimpleNamespace(
            dtype=np.dtype(np.int32), ndim=1, shape=(0,), size=0, data=SimpleNamespace(ptr=0)
        )
        grid = md.particles.cell_grid.CellGrid(md.Box((5, 5, 5)), 1.0, np.float32, md.backend.Cpu())

        def compiled(code):
            sources.append(code)
            return SimpleNamespace(get_function=lambda name: lambda *call: None)

        launcher = Launcher("md.search.grid.naive", law, "aos4", compiled, None, call)
        launcher.force(7, rows, rows, none, grid.record, kernel_law(law, np.float32), rows)
        del sys.modules["hertz_on_device"]
    assert sources[0] != sources[1]
    assert sources[0].replace("// power A", "// power B") == sources[1]
    assert "struct Law {\n    float stiffness;\n    float cutoff;\n};" in sources[0]
    assert str(tmp_path) not in sources[0]


def test_a_run_under_a_user_defined_law_is_loaded_with_it(tmp_path):
    options = {"search": "naive", "dt": 1e-3, "backend": "cpu", "allow_overlap": True}
    run = md.Simulation(PAIR, Impostor(100.0, 0.0, 1.0), **options)
    run.run(3)
    run.save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"Impostor.*give another: load\(..., law="):
        md.Simulation.load(tmp_path / "run.npz")
    again = md.Simulation.load(tmp_path / "run.npz", law=Impostor(100.0, 0.0, 1.0))
    again.run(2)
    run.run(2)
    assert np.array_equal(again.state.pos, run.state.pos)


def test_a_potential_of_narrow_distances_is_computed_in_double_precision():
    law, narrow = md.laws.SpringDashpot(1000.0, 1.0), np.array([0.5, 0.9], np.float16)
    assert np.array_equal(law.potential(narrow), law.potential(narrow.astype(float)))
    assert law.potential(np.array([0, 1], np.uint8)).tolist() == [500.0, 0.0]


@pytest.mark.quick
def test_the_protocols_of_a_law_tell_its_parameters_and_its_energy():
    spring = md.laws.SpringDashpot(1e4, 5.0)
    laws = {spring: (False, True), md.laws.Boids(): (False, False)}
    laws[PolydisperseLaw(spring, np.ones(2))] = True, False
    assert {law: (isinstance(law, KernelLaw), isinstance(law, EnergyLaw)) for law in laws} == laws


@pytest.mark.quick
def test_only_a_named_tuple_at_the_end_of_a_law_is_flattened():
    outer, inner = namedtuple("Outer", "a b"), namedtuple("Inner", "x y")
    kept = outer(1.0, (2.0, 3.0))
    assert flat(kept) is kept
    assert flat(outer(1.0, inner(2.0, 3.0)))._asdict() == {"a": 1.0, "pair_x": 2.0, "pair_y": 3.0}


def test_a_class_of_tuples_without_fields_is_no_law():
    with pytest.raises(TypeError, match="or a NamedTuple class"):
        pair_function(type("Bare", (tuple,), {}))

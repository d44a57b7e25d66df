"""Every warning of the packages comes in a run that brings it, and none in healthy runs.

A healthy run: any scene between any sides, with the default time step, saved, loaded and resumed.
"""

import ast
import builtins
import warnings
from collections import Counter
from pathlib import Path

import gsd.hoomd
import numpy as np
import pytest

import md
import sfc.compile.kernel_cache
from md.io.trajectory import append_frame
from tests import tiers
from tests.md.io.test_trajectory import Now

ROOT = Path(md.__file__).parents[1]
PACKAGES = ("md", "experiments", "sfc")
CONTACT = 0.02  # time of a contact, in time units
LAW = md.laws.SpringDashpot.from_restitution(0.8, contact_time=CONTACT)
LENGTHS = (9.0, 8.0, 10.0)
N = 272  # spheres; eight copies of 34
FILLING = N * np.pi / 6 / np.prod(LENGTHS)


def sources():
    """Syntax trees of the packages' modules, by path from the root."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def name_of(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def classes_of_warnings() -> set[str]:
    """Names of the classes that are derived from a warning."""
    found: set[str] = set()
    every = [node for _, tree in sources() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while True:
        more = {
            c.name
            for c in every
            if any(name_of(b).endswith("Warning") or name_of(b) in found for b in c.bases)
        }
        if more == found:
            return found
        found = more


def calls_that_warn() -> Counter[str]:
    """Number of calls of `warnings.warn`, by class and module."""
    found = []
    for path, tree in sources():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and name_of(call.func) == "warn":
                named = {key.arg: key.value for key in call.keywords}
                category = call.args[1] if len(call.args) > 1 else named.get("category")
                found.append(f"{name_of(category) if category else 'UserWarning'} in {path}")
    return Counter(found)


def slow_in_float32(*_):
    state = md.State([[1, 1, 1]], [[1e-6, 0, 0]], md.Box((9, 8, 7)))
    md.Simulation(state, LAW, precision="float32", backend="cpu").run(1)


def accesses_before_any_reorder(*_):
    reorder = md.Reorder("hilbert", md.Never())
    md.Simulation(gas("periodic"), LAW, reorder=reorder, backend="cpu").accesses()


def long_step_of_a_cavity(*_):
    md.Cavity((9, 9), viscosity=0.1, dt=1.0, backend="cpu")


def flow_faster_than_its_sides(*_):
    sides = {"top": md.cavity.Inlet(1.0), "bottom": md.cavity.Inlet(1.0), "right": md.cavity.Outlet()}
    md.Cavity((9, 41), size=4.0, viscosity=0.05, sides=sides, strategy="numpy", backend="cpu").run(16)


def no_device(_, monkeypatch):
    monkeypatch.setattr(md.backend, "_warned", False)
    monkeypatch.setattr(md.backend, "why_not", lambda: "no device")
    md.backend.get("auto")


def another_run_in_a_trajectory(tmp_path, _):
    append_frame(tmp_path / "run.gsd", gas("periodic"), 5)
    md.Trajectory(tmp_path / "run.gsd", 5, append=True).report(Now(gas("periodic", 9.0), 5))


def contact_that_never_ends(folder, monkeypatch):
    law = md.laws.SpringDashpot(1e4, 150.0)
    md.Simulation(gas("periodic"), law, dt=1e-3, backend="cpu")


def text_in_an_airfoil_file(folder, monkeypatch):
    points = "".join(f"{x:.6f} {y:.6f}\n" for x, y in md.naca("2412").outline)
    path = folder / "foil.dat"
    path.write_text(f"NACA 2412\n{points}measured in a tunnel\n")
    md.read_airfoil(path)


def points_in_mm(*_):
    md.State.from_points([[3.0, 4.0, 5.0]], box=(20, 20, 20), diameter=2)


def points_of_a_file(folder, _):
    np.save(folder / "p.npy", [[3.0, 4.0, 5.0]])
    md.read(folder / "p.npy", diameter=2)


def point_outside_a_grid(*_):
    sfc.keys([[9, 9]], bits=3, clip=True)


def kernel_called_with_a_function(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    sfc.compile.kernel(lambda function, x: function(x))(sfc.compile.kernel(abs_of).dispatcher, 1.0)


def cache_below_a_file(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(sfc.compile.kernel_cache, "_has_warned", False)
    sfc.compile.kernel(abs_of)(1.0)


def numba_without_a_place_for_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(sfc.compile.numba_internals, "missing", ImportError("no _Cache"))
    monkeypatch.setattr(sfc.compile.decorators, "_stores", True)
    sfc.compile.kernel(abs_of)(1.0)


def abs_of(x):
    return abs(x)


RUNS = {  # class and module of the calls that warn -> a run for each of the calls
    "ConvertedPoints in md/io/read.py": [points_of_a_file],
    "ConvertedPoints in md/particles/state.py": [points_in_mm],
    "FrozenPrecision in md/simulation/energy_monitor.py": [slow_in_float32],
    "NotYetReordered in md/simulation/simulation.py": [accesses_before_any_reorder],
    "OverdampedContact in md/simulation/time_step.py": [contact_that_never_ends],
    "SkippedText in md/boundaries/airfoil_file.py": [text_in_an_airfoil_file],
    "UnstableTimeStep in md/cavity/cavity.py": [long_step_of_a_cavity, flow_faster_than_its_sides],
    "RuntimeWarning in md/backend/__init__.py": [no_device],
    "RuntimeWarning in md/io/trajectory.py": [another_run_in_a_trajectory],
    "RuntimeWarning in sfc/compile/decorators.py": [numba_without_a_place_for_the_cache],
    "RuntimeWarning in sfc/compile/kernel_cache.py": [kernel_called_with_a_function, cache_below_a_file],
    "UserWarning in sfc/point_keys/grid.py": [point_outside_a_grid],
}


def test_every_warning_is_in_the_table():
    assert calls_that_warn() == {name: len(runs) for name, runs in RUNS.items()}
    assert classes_of_warnings() <= {name.split()[0] for name in RUNS}


@pytest.mark.parametrize(("name", "run"), [(name, run) for name, runs in RUNS.items() for run in runs])
def test_the_warning_comes(name, run, tmp_path, monkeypatch):
    category = name.split()[0]
    kind = getattr(md, category, None) or getattr(builtins, category)
    with pytest.warns(kind) as caught:
        run(tmp_path, monkeypatch)
    assert len(caught) == 1


# --- healthy runs ---


@pytest.fixture(autouse=True)
def _no_warning():
    """Make each warning that a test does not expect an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def box_of(sides: str) -> md.Box:
    """A box with such sides of the last axis."""
    periodic = (True, True, sides == "periodic")
    return md.Box(LENGTHS, periodic, open=(False, False, sides == "open"))


def gas(sides: str, temperature: float = 16.0) -> md.State:
    return md.preparation.granular_gas(
        FILLING, box_of(sides), temperature, mixing=float(temperature > 0), backend="cpu"
    )


def opened(state: md.State, sides: str) -> md.State:
    """A state of a periodic box, with such sides of the last axis."""
    flags = [(True, True, sides == "periodic"), (False, False, sides == "open")]
    return md.State(state.pos, state.vel, md.Box(state.box.lengths, *flags), state.id, state.radius)


def at_rest(sides):
    return gas(sides, 0.0)


def large_spheres(sides):
    return md.preparation.with_large_spheres(gas(sides), 0.05, 2.0, backend="cpu")


def tiled(sides):
    return opened(md.preparation.tiled_gas(FILLING, box_of("periodic"), copies=2, backend="cpu"), sides)


def benchmark(sides):
    return opened(md.scenes.benchmark_gas(N, FILLING, backend="cpu"), sides)


def cooling(sides):
    return opened(md.preparation.cooling_gas(N, FILLING, backend="cpu"), sides)


def clusters(sides):
    thin = md.preparation.granular_gas(0.05, md.Box((16.0, 16.0, 16.0)), backend="cpu")
    return opened(md.scenes.in_clusters(thin, 3.0), sides)


def shaken(_):
    return md.preparation.shaken_box(0.15, LENGTHS, temperature=1.0, backend="cpu")


SIDES = {
    "periodic": {},
    "open": {},
    "walls": {"walls": md.Walls(contact_time=CONTACT)},
    "shaken": {"walls": md.ShakenWalls(amplitude=0.1, frequency=5, contact_time=CONTACT)},
}
WALLS = ("walls", "shaken")
NO_WALLS = ("periodic", "open")
SCENES = {  # name of a scene in `md.scenes`, or of a kind of it -> state, and the sides that it can have
    "granular_gas": (gas, SIDES),
    "at rest": (at_rest, SIDES),
    "with_large_spheres": (large_spheres, SIDES),
    "tiled_gas": (tiled, NO_WALLS),
    "benchmark_gas": (benchmark, NO_WALLS),
    "cooling_gas": (cooling, NO_WALLS),
    "in_clusters": (clusters, NO_WALLS),
    "shaken_box": (shaken, WALLS),
}
CASES = [(scene, sides) for scene, (_, allowed) in SCENES.items() for sides in allowed]
OWN_TESTS = {"wing_tunnel", "newtonian_lift", "flock"}
PARTS = {  # of scenes
    "LiftCase", "box_for", "copies_for", "in_memory_order", "lattice_sites", "maxwell_velocities",
}  # fmt: skip
GRAVITY = (0.0, 0.0, -10.0)


def test_every_scene_is_in_the_table():
    former = {"shared_gas", "SHARED_LAW"}  # names of the benchmark gas until version 0.3
    every = {
        name for room in (md.scenes, md.preparation) for name in room.__all__ if callable(getattr(room, name))
    }
    assert every - {"BENCHMARK_LAW"} - former == (SCENES.keys() - {"at rest"}) | OWN_TESTS | PARTS


def check_with_restart(simulation: md.Simulation, folder: Path) -> None:
    """Run, resume from a checkpoint over frames that are in the trajectory, and save, load, write again."""
    frames, saved = folder / "run.gsd", folder / "run.npz"
    simulation.run(170, reporters=[md.Trajectory(frames, 50), md.Checkpoint(saved, 100)])
    resumed = md.Simulation.load(saved, "cpu")
    assert resumed.step == 100
    resumed.run(110, reporters=[md.Trajectory(frames, 50, append=True), md.Checkpoint(saved, 100)])
    resumed.write(frames)
    resumed.save(saved)
    md.Simulation.load(saved, "cpu").run(10)
    with gsd.hoomd.open(frames) as file:
        assert [frame.configuration.step for frame in file] == [0, 50, 100, 150, 200, 210]


@pytest.mark.parametrize(
    ("scene", "sides", "precision"),
    tiers.by_default(
        [(*case, precision) for case in CASES for precision in ("float64", "float32")],
        lambda scene, sides, precision: precision == "float64" or (scene, sides) == ("at rest", "walls"),
        tiers.full,
    ),
)
def test_no_scene_warns_between_any_sides(scene, sides, precision, tmp_path):
    """Half of the cases with gravity, those of the tier full with one of three searches each."""
    nth, (make, _) = CASES.index((scene, sides)), SCENES[scene]
    search = "linked" if precision == "float64" or scene == "at rest" else tiers.BY_DEFAULT[nth % 3]
    simulation = md.Simulation(
        make(sides), LAW, search, precision=precision, backend="cpu",
        gravity=GRAVITY if nth // 2 % 2 else None, **SIDES[sides],
    )  # fmt: skip
    check_with_restart(simulation, tmp_path)


@pytest.mark.parametrize("precision", ["float64", tiers.full("float32")])
@pytest.mark.parametrize("name", [n for n in md.integrate.INTEGRATORS if n != "flight"])
def test_no_integrator_warns(name, precision, tmp_path):
    simulation = md.Simulation(gas("periodic"), LAW, integrator=name, precision=precision, backend="cpu")
    check_with_restart(simulation, tmp_path)


@pytest.mark.parametrize("is_driven", [True, tiers.full(False)])
def test_a_flock_does_not_warn(is_driven, tmp_path):
    flock = md.scenes.flock(500, clusters=3 * is_driven)
    simulation = md.Simulation(flock, md.laws.Boids(), integrator="flight", dt=0.2, backend="cpu")
    check_with_restart(simulation, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("temperature", [2.0, 0.0])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_wing_in_a_stream_does_not_warn(temperature, is_open, tmp_path):
    box = md.Box((40.0, 20.0), periodic=(True, False))
    wing = md.Wing(airfoil=md.naca("2412"), chord=10, angle=10, at=(12, 10), stiffness=1e4)
    stream = {"velocity": (10.0, 0.0), "temperature": temperature}
    state = md.preparation.wing_tunnel(0.1, box, wing, backend="cpu", **stream)
    around = [wing, md.Inflow(**stream)]
    if is_open:
        box, around = md.Box(box.lengths, periodic=False, open=(True, False)), [wing]
        state = md.State(state.pos, state.vel, box, state.id)
    law, walls = md.laws.SpringDashpot.from_restitution(1.0, contact_time=0.03), md.Walls(contact_time=0.03)
    simulation = md.Simulation(state, law, "lbvh", walls=walls, surroundings=around, backend="cpu")
    check_with_restart(simulation, tmp_path)


@pytest.mark.full
def test_the_wing_of_the_thesis_does_not_warn(tmp_path):
    case = md.preparation.newtonian_lift(2000)
    check_with_restart(md.Simulation(case.state, case.law, backend="cpu", **case.options), tmp_path)


@pytest.mark.parametrize("trigger", [md.Every(20), md.Moved(0.1), md.Decayed(), md.Never()], ids=repr)
@pytest.mark.parametrize("mode", md.reorder.MODES)
def test_accesses_after_a_reorder_do_not_warn(mode, trigger, tmp_path):
    """The first reorder by the trigger, or on request; then loaded, and reordered again."""
    simulation = md.Simulation(
        gas("periodic"), LAW, reorder=md.Reorder("hilbert", trigger, mode), backend="cpu"
    )
    simulation.run(40)
    if not simulation.reordering.is_applied:
        simulation.reorder()
    for _ in range(2):
        simulation.accesses()
        assert simulation.access_count() > 0
        simulation.save(tmp_path / "run.npz")
        simulation = md.Simulation.load(tmp_path / "run.npz", "cpu")
        assert simulation.access_count() > 0
        simulation.run(20)
        simulation.reorder()


CAVITIES = {
    "lid": {"viscosity": 0.01},
    "two lids": {"viscosity": 0.01, "sides": {"top": md.cavity.Wall(1.0), "bottom": md.cavity.Wall(-1.0)}},
    "channel": {
        "shape": (11, 31), "size": 3.0, "viscosity": 0.1,
        "sides": {"left": md.cavity.Inlet(0.5), "right": md.cavity.Outlet()},
    },
}  # fmt: skip


@pytest.mark.parametrize("precision", ["float64", tiers.full("float32")])
@pytest.mark.parametrize("longest", [False, True])
@pytest.mark.parametrize("name", CAVITIES)
def test_a_cavity_does_not_warn(name, longest, precision, tmp_path):
    """With the default time step, and with the longest that is allowed."""
    options = {"shape": (17, 17), "strategy": "numpy", "precision": precision, "backend": "cpu"} | CAVITIES[
        name
    ]
    cavity = md.Cavity(**options)
    if longest:
        cavity = md.Cavity(**options, dt=cavity.scheme.bound)
    cavity.run(200)
    cavity.save(tmp_path / "run.npz")
    md.Cavity.load(tmp_path / "run.npz").run(50)

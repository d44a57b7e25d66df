"""The class `Cavity`: time step, warnings, faults, refusals, and what "auto" takes."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import md
import sfc
from md.cavity import STRATEGIES, Inlet, Outlet, Wall
from md.cavity import config as choices
from md.cavity.sides import Side, driven
from md.cavity.strategies import Blocked, Numpy, Spectral
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda

USING = Path(md.__file__).parent / "USING.md"


def cavity(shape=(9, 9), **options) -> md.Cavity:
    return md.Cavity(shape, **{"viscosity": 0.1, "backend": "cpu"} | options)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "dt"),
    [
        ({}, 0.8 * 0.125**2 / 0.4),
        ({"viscosity": 0.001}, 0.8 * 0.002),
        ({"viscosity": 0.001, "lid": 2.0}, 0.8 * 0.0005),
        ({"viscosity": 0.001, "size": 0.01}, 0.8 * 0.00125**2 / 0.004),
        ({"shape": (3, 9)}, 0.8 * 0.125**2 / 0.4),
        ({"shape": (9, 3), "lid": 0.1}, 0.8 * 0.5**2 / 0.4),
        ({"lid": 0.0, "viscosity": 0.001}, 0.8 * 0.125**2 / 0.004),
        ({"viscosity": 0.001, "sides": {"left": Inlet(2.0), "right": Outlet()}}, 0.8 * 0.0005),
        ({"viscosity": 0.001, "sides": {"left": Wall(-2.0)}}, 0.8 * 0.0005),
        ({"dt": 0.01}, 0.01),
    ],
)
def test_the_default_time_step_is_0_8_of_the_bound(options, dt):
    assert cavity(**options).scheme.dt == pytest.approx(dt, rel=1e-12)


@pytest.mark.quick
def test_a_time_step_above_the_bound_warns_of_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cavity(dt=0.125**2 / 0.4)
    with pytest.warns(md.UnstableTimeStep, match=r"dt = 0.0390\d+ .*; allowed: up to 0.0390625, .*dt=None"):
        cavity(dt=0.125**2 / 0.4 * (1 + 1e-9))


@pytest.mark.quick
def test_steps_and_time_are_counted():
    one = cavity(dt=0.01)
    assert (one.step, one.time) == (0, 0.0)
    one.run(3)
    one.run(0)
    one.run(np.int32(2))
    assert (one.step, one.time) == (5, 5 * 0.01)
    assert repr(one) == "<Cavity of 9 x 9 points, viscosity 0.1, strategy 'blocked', step 5>"


@pytest.mark.quick
def test_arrays_are_copies():
    one = cavity()
    one.run(3)
    for name in "uvp":
        found = getattr(one, name)
        assert (found.shape, found.dtype) == ((9, 9), np.float64)
        found[...] = 7.0
        assert not (getattr(one, name) == 7.0).any()


def test_long_runs_are_cut_into_pieces(monkeypatch):
    expected = cavity()
    expected.run(25)
    monkeypatch.setattr(md.cavity.Strategy, "work", 4 * 2**16)  # a small step counts for 2**16 updates
    one, pieces = cavity(), []
    advance = one._solver.advance
    monkeypatch.setattr(one._solver, "advance", lambda steps: (pieces.append(steps), advance(steps))[1])
    one.run(25)
    assert pieces == [1, 1, 2, 4, 4, 4, 4, 4, 1]
    np.testing.assert_array_equal(one.p, expected.p)


def first_bad_step(dt: float) -> int:
    """Step after which a field of the reference is not finite, looked for after every step."""
    one = Numpy().build(cavity(dt=dt, strategy="numpy").scheme, "arrays", "row", md.backend.Cpu())
    step = 0
    while all(np.isfinite(field).all() for field in one.fields()):
        one._step()
        step += 1
    return step


@pytest.mark.filterwarnings("ignore::md.UnstableTimeStep", "ignore::RuntimeWarning")
@pytest.mark.parametrize("strategy", ["numpy", "serial", "threads", "blocked", Blocked(3)])
def test_a_field_that_is_not_finite_is_a_fault_with_step_and_cell(strategy):
    one = cavity(dt=0.5, strategy=strategy)
    with pytest.raises(md.NonFiniteField) as caught:
        one.run(1000)
    fault = caught.value
    assert fault.step == one.step == first_bad_step(0.5)
    bad = ~(np.isfinite(one.u) & np.isfinite(one.v) & np.isfinite(one.p))
    assert fault.cell == tuple(np.argwhere(bad)[0])
    assert f"step {fault.step}: {fault.field} = " in str(fault)
    assert f"at row {fault.cell[0]}, column {fault.cell[1]}; dt = 0.5; allowed: " in str(fault)
    again = pickle.loads(pickle.dumps(fault))
    assert (str(again), repr(vars(again))) == (str(fault), repr(vars(fault)))


@pytest.mark.quick
@pytest.mark.parametrize("strategy", ["numpy", "serial", Blocked(3)])
@pytest.mark.parametrize("field", "uvp")
def test_one_value_that_is_not_finite_is_found_after_the_step(field, strategy):
    one = cavity(strategy=strategy)
    fields = dict(zip("uvp", np.zeros((3, 9, 9)), strict=True))
    fields[field][4, 4] = np.inf
    one._solver.load(*fields.values())
    with np.errstate(all="ignore"), pytest.raises(md.NonFiniteField, match="step 1: "):
        one.run(5)


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("strategy", "order"), [("numpy", "row"), ("serial", "row"), ("serial", "hilbert"), (Blocked(3), "row")]
)
def test_a_pressure_alone_that_is_not_finite_is_found(strategy, order):
    fixed = Wall(0.0, "dirichlet")
    sides = {"left": Inlet(2.0, "dirichlet"), "right": Outlet(), "top": fixed, "bottom": fixed}
    one = cavity((3, 3), dt=0.01, density=5e306, sides=sides, strategy=strategy, order=order)
    with pytest.raises(md.NonFiniteField, match="p = inf at row 1, column 1") as caught:
        one.run(5)
    assert np.isfinite(one.u).all()
    assert np.isfinite(one.v).all()
    assert caught.value.step == 2


def test_the_stream_function_gives_the_velocities():
    one = cavity((41, 41))
    one.run(300)
    psi, h = one.stream_function(), one.scheme.h
    assert psi.min() < -0.05
    assert np.abs(psi[0]).max() == 0
    np.testing.assert_allclose(
        (psi[2:] - psi[:-2]) / (2 * h),
        (one.u[2:] + 2 * one.u[1:-1] + one.u[:-2]) / 4,
        atol=1e-12,
    )


@pytest.mark.quick
def test_the_stream_function_of_an_inflow_from_below():
    one = cavity((5, 9), size=2.0, sides={"bottom": Inlet(0.5), "top": Outlet()})
    one.run(1)
    x = np.linspace(0, 2, 9)
    flux = 0.5 * (x - 0.125)
    flux[0], flux[-1] = 0.0, 0.5 * (x[-1] - 0.25)
    np.testing.assert_allclose(one.stream_function()[0], -flux, atol=1e-15)


BAD = [
    ({"shape": (2, 9)}, ValueError, r"shape\[0\] = 2; allowed: an integer of at least 3 \(points\)"),
    ({"shape": (9,)}, ValueError, r"shape = \(9,\) has 1 entries"),
    ({"shape": 9}, TypeError, "shape = 9 of class int"),
    ({"shape": (9.0, 9)}, TypeError, r"shape\[0\] = 9.0"),
    ({"shape": (2**16, 2**16)}, ValueError, "allowed: up to 2147483647 points"),
    ({"viscosity": -0.1}, ValueError, "viscosity = -0.1; allowed: a finite number above 0"),
    ({"viscosity": 0.0}, ValueError, "viscosity = 0.0; allowed: a finite number above 0"),
    ({"viscosity": "water"}, TypeError, "viscosity = 'water'"),
    ({"density": 0}, ValueError, "density = 0; allowed: a finite number above 0"),
    ({"dt": 0.0}, ValueError, "dt = 0.0; allowed: a finite number above 0"),
    ({"dt": np.nan}, ValueError, "dt = nan"),
    ({"lid": np.inf}, ValueError, "lid = inf"),
    ({"size": -1.0}, ValueError, "size = -1.0"),
    ({"size": 1e-200}, ValueError, "size = 1e-200: points .* allowed: a larger size"),
    *(
        (options, ValueError, r"viscosity = .*, lid = .*, size = .*, density = .*, dt = .*; allowed: .*dt")
        for options in (
            {"lid": 1e200},
            {"lid": 1e200, "dt": 0.01, "precision": "float32"},
            {"viscosity": 1e308},
            {"viscosity": 1e308, "dt": 0.01},
            {"viscosity": 1e-320, "lid": 0.0},
            {"density": 1e-320, "size": 1e-20, "dt": 1.0},
            {"density": 1e40, "precision": "float32"},
            {"density": 1e308, "dt": 1e-5, "grid": "staggered", "pressure": "converged"},
        )
    ),
    ({"size": 1e200}, ValueError, "size = 1e\\+200: points .* allowed: a smaller size"),
    (
        {"sweeps": 2**63},
        ValueError,
        "sweeps = 9223372036854775808; allowed: an integer of at least 1, up to 2147483647",
    ),
    (
        {"sides": {"top": Side()}},
        TypeError,
        r"sides\['top'\] = .*of class Side; .*a Wall, an Inlet or an Outlet",
    ),
    ({"sweeps": 0}, ValueError, "sweeps = 0; allowed: an integer of at least 1, up to 2147483647"),
    ({"sweeps": 1.5}, TypeError, "sweeps = 1.5"),
    ({"strategy": "openmp"}, ValueError, "unknown strategy 'openmp'; allowed: one of auto, numpy, serial, "),
    ({"strategy": 3}, TypeError, "strategy = 3 of class int; .*or a md.cavity.Strategy"),
    ({"order": "hilbrt"}, ValueError, "unknown ordering 'hilbrt'.*hilbert"),
    ({"order": sfc.curve("hilbert", 3)}, ValueError, "curve 'hilbert' is 3D"),
    ({"pressure": "exact"}, ValueError, "unknown pressure 'exact'; allowed: one of jacobi, converged, sor"),
    ({"grid": "cubic"}, ValueError, "unknown grid 'cubic'; allowed: one of collocated, staggered"),
    ({"layout": "soa"}, ValueError, "unknown layout 'soa'; allowed: one of arrays, structs"),
    ({"precision": "float16"}, ValueError, "unknown precision 'float16'; allowed: one of float64, float32"),
    ({"backend": "gpu"}, ValueError, "unknown backend 'gpu'"),
    (
        {"strategy": "blocked", "order": "hilbert"},
        ValueError,
        "strategy 'blocked' does not support order='hilbert'; allowed: row; take strategy='serial'",
    ),
    (
        {"strategy": "numpy", "layout": "structs"},
        ValueError,
        "strategy 'numpy' does not support layout='structs'; allowed: arrays; take strategy='serial'",
    ),
    (
        {"strategy": "serial", "pressure": "converged"},
        ValueError,
        "strategy 'serial' does not support pressure='converged'; allowed: jacobi; ",
    ),
    (
        {"strategy": "serial", "grid": "staggered"},
        ValueError,
        "strategy 'serial' does not support grid='staggered'; allowed: collocated; ",
    ),
]


@pytest.mark.quick
@pytest.mark.parametrize(("options", "kind", "message"), BAD)
def test_bad_arguments_are_refused_by_name(options, kind, message):
    with pytest.raises(kind, match=message):
        cavity(**options)


@pytest.mark.quick
@pytest.mark.parametrize("lid", [1e-200, 5e-324])
def test_a_lid_so_slow_that_its_square_is_0_has_the_bound_of_diffusion(lid):
    assert cavity(lid=lid).scheme.bound == cavity(lid=0.0).scheme.bound


@pytest.mark.quick
def test_sides_that_are_those_of_the_driven_cavity_are_taken_as_such():
    assert isinstance(cavity(sides=driven(1.0), strategy="spectral").strategy, Spectral)
    with pytest.raises(ValueError, match="strategy 'spectral' does not support sides; allowed: "):
        cavity(sides={"top": Wall(1.0)}, strategy="spectral")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"grid": "staggered"},
            "no strategy supports grid='staggered' with pressure='jacobi'; allowed: pressure='converged' or "
            "pressure='sor'",
        ),
        (
            {"pressure": "sor", "layout": "structs"},
            "no strategy supports pressure='sor' with layout='structs'; "
            "allowed: pressure='jacobi' or layout='arrays'",
        ),
        (
            {"pressure": "converged", "order": "hilbert"},
            "no strategy supports pressure='converged' with order='hilbert'; "
            "allowed: pressure='jacobi' or order='row'",
        ),
    ],
)
def test_choices_that_no_strategy_supports_are_refused_with_one_that_helps(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cavity(**options)


@pytest.mark.quick
def test_a_strategy_of_a_device_that_is_not_there_is_refused_with_auto(monkeypatch):
    def missing(name):
        raise md.BackendUnavailableError("CUDA cannot run: no device")

    monkeypatch.setattr(md.backend, "get", missing)
    with pytest.raises(md.BackendUnavailableError, match=r"no device; take strategy='auto'$"):
        md.Cavity((9, 9), viscosity=0.1, strategy="cuda")


@pytest.mark.quick
@pytest.mark.parametrize(("steps", "kind"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_steps_that_are_no_number_of_steps_are_refused(steps, kind):
    with pytest.raises(kind, match=re.escape(f"steps = {steps}")):
        cavity().run(steps)


@pytest.mark.quick
@pytest.mark.parametrize("depth", [0, 1.5, "two"])
def test_a_depth_that_is_none_is_refused(depth):
    with pytest.raises((TypeError, ValueError), match=re.escape(f"depth = {depth!r}")):
        Blocked(depth)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "blocked"),
        ({"layout": "structs"}, "threads"),
        ({"order": "hilbert"}, "threads"),
        ({"strategy": Numpy()}, "numpy"),
    ],
)
def test_auto_takes_the_first_of_the_cpu_that_supports_all_choices(options, name):
    assert cavity(**options).strategy.name == name


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "spectral"),
        ({"shape": (90, 90)}, "persistent"),
        ({"shape": (2000, 2000)}, "cuda"),
        ({"order": "hilbert"}, "cuda"),
        ({"pressure": "sor"}, "numpy"),
        ({"grid": "staggered", "pressure": "converged"}, "staggered"),
        ({"backend": "cpu"}, "blocked"),
    ],
)
def test_auto_takes_the_device_where_it_supports_all_choices(monkeypatch, options, name):
    device, get = EmulatedCuda(), md.backend.get
    monkeypatch.setattr(md.backend, "why_not", lambda: None)
    monkeypatch.setattr(md.backend, "get", lambda choice: device if choice == "cuda" else get(choice))
    made = md.Cavity(**{"shape": (9, 9), "viscosity": 0.1} | options)
    assert made.strategy.name == name
    assert made.backend.name == ("cuda" if name in ("spectral", "persistent", "cuda") else "cpu")


@pytest.mark.quick
def test_a_strategy_of_the_cpu_alone_does_not_warn_of_the_backend():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = cavity(strategy="serial", backend="auto")
    assert one.backend.name == "cpu"


@pytest.mark.quick
def test_a_strategy_of_ones_own_can_be_registered(monkeypatch):
    class Own(Numpy):
        name = "own"

    monkeypatch.setattr(STRATEGIES, "_classes", dict(STRATEGIES._classes))
    md.cavity.register("own", Own)
    one = cavity(strategy="own")
    one.run(2)
    assert one.strategy.name == "own"
    with pytest.raises(TypeError, match="allowed: a subclass of Strategy"):
        md.cavity.register("other", int)


@pytest.mark.quick
def test_every_row_of_what_strategies_support_is_reached():
    problem = choices.Problem((9, 9), 0.1, None, 1.0, 1.0, 1.0, 5, "jacobi", "collocated", None, "float64")
    good = choices.Choice(Numpy, problem.checked(), "arrays", "row", md.backend.Cpu())
    assert choices._lacking(good) == ""

    class Narrow(Numpy):
        any_sides = False

    class Small(Numpy):
        @classmethod
        def allowed_shapes(cls, shape, backend):
            return "at most 8 points a side" if max(shape) > 8 else ""

    with_sides = choices.Choice(
        Narrow, choices.replace(problem, sides={"top": Wall(1.0)}).checked(), "arrays", "row", good.backend
    )
    bad = [
        good._replace(problem=choices.replace(problem, grid="staggered")),
        good._replace(problem=choices.replace(problem, pressure="unheard of")),
        good._replace(layout="structs"),
        good._replace(order="hilbert"),
        with_sides,
        good._replace(backend=EmulatedCuda()),
        good._replace(strategy=Small),
    ]
    assert [choices._lacking(one).split("=")[0].split(";")[0] for one in bad] == [
        "grid",
        "pressure",
        "layout",
        "order",
        "sides",
        "backend",
        "shape",
    ]


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", USING.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = (one for one in examples if "md.Cavity(" in one)
    found: dict = {"md": md}
    exec(example, found)
    time, psi, slowest = map(float, capsys.readouterr().out.split())
    assert time == pytest.approx(12.5)
    assert -0.1 < psi < -0.05
    assert -0.3 < slowest < -0.1
    assert md.Cavity.load("channel.npz").step == 500


class TestFieldsThatAreSet:
    def test_are_taken_and_others_are_kept(self):
        one = cavity(shape=(4, 5), precision="float32")
        one.run(2)
        step, before = one.step, one.p
        u = np.arange(20.0).reshape(4, 5)
        one.set_fields(u=u, v=-u.astype(np.int64))
        assert np.array_equal(one.u, u)
        assert np.array_equal(one.v, -u)
        assert one.u.dtype == np.float32
        assert np.array_equal(one.p, before)
        assert one.step == step

    def test_are_those_of_the_next_step(self):
        one, other = cavity(), cavity(strategy="serial", order="hilbert")
        one.run(7)
        other.set_fields(u=one.u, v=one.v, p=one.p)
        one.run(3)
        other.run(3)
        assert np.array_equal(one.u, other.u)
        assert np.array_equal(one.p, other.p)

    @pytest.mark.parametrize(
        ("values", "error"),
        [
            (np.zeros((5, 4)), ValueError),
            (np.full((4, 5), np.nan), ValueError),
            (np.zeros((4, 5), bool), ValueError),
            ("fast", TypeError),
        ],
    )
    def test_of_another_shape_or_kind_are_refused(self, values, error):
        one = cavity(shape=(4, 5))
        with pytest.raises(error, match="v"):
            one.set_fields(v=values)
        assert not one.v.any()

"""The staggered grid: divergence, walls, order of convergence, independence of the time step, refusals."""

import numpy as np
import pytest

import md
from md.cavity import Inlet, Outlet, Wall
from md.cavity.scheme import Scheme
from md.cavity.sides import Sides
from md.cavity.strategies import Staggered
from md.cavity.validation.centre_lines import extremes
from md.cavity.validation.convergence import extrapolated, observed_order
from md.cavity.validation.references import MARCHI
from md.cavity.validation.steady import errors_of, steady_cavity

ALL_MOVE = Sides(top=Wall(1.0), bottom=Wall(-0.5), left=Wall(0.7), right=Wall(0.3))


def cavity(shape=(17, 17), **options):
    chosen = {"viscosity": 0.01, "grid": "staggered", "pressure": "converged", "backend": "cpu"}
    return md.Cavity(shape, **(chosen | options))


def solver(shape=(9, 14), sides=ALL_MOVE, pressure="converged", dtype="float64"):
    scheme = Scheme(shape, 0.1, 0.01, 2.0, 0.02, 1, sides, dtype, pressure, "staggered")
    return Staggered().build(scheme, "arrays", "row", md.backend.get("cpu"))


@pytest.fixture(scope="module")
def steady():
    """Steady cavities at Re 100 by points a side."""
    return {points: steady_cavity("staggered", 100, points) for points in (17, 33, 65)}


def step_by_definition(u, v, scheme):
    """Tentative velocities of one step, face by face, from means and differences at corners and centres."""
    h, dt, nu = scheme.h, scheme.dt, scheme.viscosity
    new_u, new_v = u.copy(), v.copy()

    def centre_u(j, i):  # of the cell between the faces i and i + 1
        return (u[j, i] + u[j, i + 1]) / 2

    def centre_v(j, i):
        return (v[j, i] + v[j + 1, i]) / 2

    def corner(j, i):  # u v at the point (j, i)
        return (u[j, i] + u[j + 1, i]) / 2 * (v[j, i] + v[j, i + 1]) / 2

    for j in range(1, u.shape[0] - 1):
        for i in range(1, u.shape[1] - 1):
            laplacian = u[j, i - 1] + u[j, i + 1] + u[j - 1, i] + u[j + 1, i] - 4 * u[j, i]
            flux = centre_u(j, i) ** 2 - centre_u(j, i - 1) ** 2 + corner(j, i) - corner(j - 1, i)
            new_u[j, i] += dt * (nu * laplacian / h**2 - flux / h)
    for j in range(1, v.shape[0] - 1):
        for i in range(1, v.shape[1] - 1):
            laplacian = v[j, i - 1] + v[j, i + 1] + v[j - 1, i] + v[j + 1, i] - 4 * v[j, i]
            flux = centre_v(j, i) ** 2 - centre_v(j - 1, i) ** 2 + corner(j, i) - corner(j, i - 1)
            new_v[j, i] += dt * (nu * laplacian / h**2 - flux / h)
    return new_u, new_v


def test_a_step_is_that_of_its_definition():
    """The new velocities are the tentative ones less a gradient, and the gradient is that of p."""
    run = solver()
    run.advance(20)
    tentative_u, tentative_v = step_by_definition(run.u_faces, run.v_faces, run.scheme)
    run.advance(1)
    p = run.differences[1:-1, 1:-1]
    assert np.allclose(run.u_faces[1:-1, 1:-1], tentative_u[1:-1, 1:-1] - np.diff(p, axis=1), atol=1e-14)
    assert np.allclose(run.v_faces[1:-1, 1:-1], tentative_v[1:-1, 1:-1] - np.diff(p, axis=0), atol=1e-14)
    at_points = run.fields()[2]
    unit = run.scheme.density * run.scheme.h / run.scheme.dt
    assert np.allclose(at_points[1, 1], unit * p[:2, :2].mean(), atol=1e-14)
    assert abs(p.mean()) < 1e-15


@pytest.mark.parametrize("steps", [2, 30])
def test_the_divergence_is_that_of_rounding(steps):
    run = solver()
    run.advance(steps)
    assert np.abs(run.u_faces[1:-1]).max() > 0.01
    assert np.abs(run.divergence()).max() < 1e-13
    assert not run.u_faces[1:-1, [0, -1]].any()
    assert not run.v_faces[[0, -1], 1:-1].any()


def test_walls_move_from_the_first_step_on():
    run = solver()
    assert not any(field.any() for field in run.fields())
    run.advance(1)
    collocated = md.Cavity((9, 14), viscosity=0.01, dt=0.02, sides=ALL_MOVE, strategy="numpy", backend="cpu")
    collocated.run(1)
    for found, expected in zip(run.fields()[:2], (collocated.u, collocated.v), strict=True):
        for edge in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
            assert np.allclose(found[edge], expected[edge], rtol=0, atol=1e-15)
    assert np.allclose((run.u_faces[-1] + run.u_faces[-2])[1:-1] / 2, 1.0)
    assert np.allclose((run.v_faces[:, 0] + run.v_faces[:, 1])[1:-1] / 2, 0.7)


def test_a_lid_of_other_direction_gives_the_mirror_image():
    right, left = cavity(lid=1.0), cavity(lid=-1.0)
    for one in (right, left):
        one.run(200)
    assert np.abs(right.u).max() > 0.5
    for name, sign in (("u", -1), ("v", 1), ("p", 1)):
        scale = np.abs(getattr(right, name)).max()
        mirrored = sign * getattr(left, name)[:, ::-1]
        assert np.allclose(getattr(right, name), mirrored, rtol=0, atol=1e-11 * scale)


def test_over_relaxation_takes_the_same_steps():
    direct, relaxed = solver(), solver(pressure="sor")
    for run in (direct, relaxed):
        run.advance(30)
    for one, other in zip(direct.fields(), relaxed.fields(), strict=True):
        assert 0 < np.abs(one - other).max() < 1e-6


def test_float32_is_near_float64():
    single, double = solver(dtype="float32"), solver()
    for run in (single, double):
        run.advance(100)
    for one, other in zip(single.fields(), double.fields(), strict=True):
        assert one.dtype == np.float32
        assert np.abs(one - other).max() < 2e-5 * np.abs(other).max()


def test_a_restored_solver_takes_the_same_steps():
    run, restored = solver(), solver()
    run.advance(10)
    restored.load_state(run.state_dict())
    for steps in (0, 10):
        for one in (run, restored):
            one.advance(steps)
        for one, other in zip(run.fields(), restored.fields(), strict=True):
            assert np.array_equal(one, other)


def test_fields_at_points_become_velocities_without_divergence_a_step_later():
    run = solver((17, 21))
    y, x = np.arange(17.0)[:, None], np.arange(21.0)
    given = 0.01 * (x + 2 * y) + 0.3, 0.02 * (x - y) - 0.1, 0.05 * (3 * x - y)
    run.load(*given)
    inside = np.s_[1:-1, 1:-1]
    u, v, p = run.fields()
    assert np.allclose(u[inside], given[0][inside], atol=1e-14)
    assert np.allclose(v[inside], given[1][inside], atol=1e-14)
    assert np.allclose(p[inside], given[2][inside], atol=1e-14)
    assert not run.u_faces[1:-1, [0, -1]].any()
    assert not run.v_faces[[0, -1], 1:-1].any()
    assert np.abs(run.divergence()).max() > 0.1
    run.advance(1)
    assert np.abs(run.divergence()).max() < 1e-13


def test_extremes_converge_with_the_second_order(steady):
    """To values that solvers of other kinds have found, at Re 100."""
    found = {points: extremes(one) for points, one in steady.items()}
    for name in ("u_min", "v_max", "v_min", "psi"):
        values = [found[points][name] for points in (17, 33, 65)]
        assert observed_order(*values) == pytest.approx(2, abs=0.3)
    for name, value in MARCHI[100].extremes.items():
        assert extrapolated(found[33][name], found[65][name]) == pytest.approx(value, rel=1e-3)


def test_extremes_at_re_100_are_the_published_ones(steady):
    errors = errors_of(steady[65], 100)
    assert [error.quantity for error in errors] == ["u_min", "v_max", "v_min", "psi"]
    assert max(abs(error.relative) for error in errors) < 0.01


def test_half_the_time_step_gives_the_same_steady_state(steady):
    whole = steady[17]
    half = extremes(steady_cavity("staggered", 100, 17, dt=whole.scheme.dt / 2))
    for name, value in extremes(whole).items():
        assert half[name] == pytest.approx(value, rel=1e-4)


def test_a_step_that_is_too_long_ends_in_a_fault():
    with pytest.warns(md.errors.UnstableTimeStep):
        run = cavity(dt=5.0)
    with pytest.raises(md.errors.NonFiniteField) as caught:
        run.run(1000)
    assert caught.value.step == run.step < 1000


@pytest.mark.parametrize(
    ("sides", "found"),
    [
        (
            {"left": Inlet(), "right": Outlet()},
            r"sides\['left'\] = Inlet.*: md.cavity.Wall on all sides",
        ),
        ({"left": Wall(0.0, "dirichlet")}, r"sides\['left'\] = Wall.*allowed: pressure='neumann'"),
        ({"top": Wall(1.0, "dirichlet"), "left": Wall(1.0)}, r"sides\['top'\].*allowed: pressure='neumann'"),
    ],
)
def test_sides_that_it_cannot_have_are_refused(sides, found):
    with pytest.raises(ValueError, match=found):
        cavity(sides=sides)


def test_sweeps_are_refused_by_name():
    with pytest.raises(ValueError, match=r"'staggered' does not support pressure='jacobi'.*converged, sor"):
        cavity(pressure="jacobi", strategy="staggered")


def test_a_checkpoint_resumes_to_the_last_bit(tmp_path):
    run = cavity()
    run.run(20)
    run.save(tmp_path / "staggered.npz")
    loaded = md.Cavity.load(tmp_path / "staggered.npz")
    for one in (run, loaded):
        one.run(20)
    assert loaded.step == 40
    for name in "uvp":
        assert np.array_equal(getattr(loaded, name), getattr(run, name))

"""The pressure equation: the direct solver and over-relaxation against the sweeps of the source's scheme."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.cavity.pressure import poisson
from md.cavity.pressure.poisson import KINDS, DirectPoisson, PressureSides, eigenvalues, inverse, transform
from md.cavity.pressure.products import ProductPoisson
from md.cavity.pressure.sor import CHECK_EVERY, Sor, jacobi_radius
from md.errors import PressureNotConverged

SOURCE = PressureSides("neumann", "neumann", "neumann", "dirichlet")
CLOSED = PressureSides("neumann", "neumann", "neumann", "neumann")
ALL_SIDES = [PressureSides(*kinds) for kinds in product(KINDS, repeat=4)]


def boundary_step(p, sides, values=0.0):
    """Boundary values of the pressure after a sweep, in the order of the source's program."""
    for kind, edge, inner in (
        (sides.right, np.s_[:, -1], np.s_[:, -2]),
        (sides.left, np.s_[:, 0], np.s_[:, 1]),
        (sides.bottom, np.s_[0], np.s_[1]),
        (sides.top, np.s_[-1], np.s_[-2]),
    ):
        p[edge] = p[inner] if kind == "neumann" else values


def sweep(p, source, sides, values=0.0):
    """One Jacobi sweep and its boundary values."""
    new = np.zeros_like(p)
    east_west = p[1:-1, :-2] + p[1:-1, 2:]
    north_south = p[:-2, 1:-1] + p[2:, 1:-1]
    new[1:-1, 1:-1] = (east_west + north_south - source) / 4
    boundary_step(new, sides, values)
    return new


@pytest.fixture(params=ALL_SIDES, ids=lambda sides: "".join(kind[0] for kind in sides))
def sides(request):
    return request.param


def problem(sides, shape=(7, 12), seed=3):
    source = np.random.default_rng(seed).normal(size=shape)
    if sides.singular:
        source -= source.mean()
    return source


@pytest.mark.parametrize("values", [0.0, 0.7])
def test_the_direct_solution_is_the_fixed_point_of_the_sweeps(sides, values):
    source = problem(sides)
    p = np.zeros((9, 14))
    boundary_step(p, sides, values)
    DirectPoisson((7, 12), sides).solve_inside(source, p)
    boundary_step(p, sides, values)
    assert np.abs(p[1:-1, 1:-1]).max() > 1e-4
    change = sweep(p, source, sides, values) - p
    assert np.abs(change).max() < 1e-14 * max(1, np.abs(p).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_give_the_solution_of_the_transforms(sides, dtype):
    source = problem(sides, (13, 9)).astype(dtype)
    expected = DirectPoisson((13, 9), sides, dtype).solve(source)
    found = ProductPoisson((13, 9), sides, dtype, md.backend.get("cpu")).solve(source)
    assert found.dtype == expected.dtype
    assert np.abs(found - expected).max() < 20 * np.finfo(dtype).eps * np.abs(expected).max()


@given(
    rows=st.integers(1, 12), columns=st.integers(1, 12), kinds=st.tuples(*[st.sampled_from(KINDS)] * 4),
    value=st.floats(-5, 5), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_direct_solution_is_a_fixed_point_for_any_shape(rows, columns, kinds, value, seed):
    sides, source = PressureSides(*kinds), np.random.default_rng(seed).normal(size=(rows, columns))
    if sides.singular:
        source -= source.mean()
    p = np.zeros((rows + 2, columns + 2))
    boundary_step(p, sides, value)
    DirectPoisson((rows, columns), sides).solve_inside(source, p)
    boundary_step(p, sides, value)
    change = sweep(p, source, sides, value) - p
    assert np.abs(change).max() < 1e-13 * (1 + np.abs(p).max())


def test_many_sweeps_of_the_source_come_to_the_direct_solution():
    source = problem(SOURCE, (6, 6))
    swept, direct = np.zeros((8, 8)), np.zeros((8, 8))
    for _ in range(2500):
        swept = sweep(swept, source, SOURCE)
    DirectPoisson((6, 6), SOURCE).solve_inside(source, direct)
    boundary_step(direct, SOURCE)
    assert np.abs(swept - direct).max() < 1e-13 * np.abs(direct).max()


@pytest.mark.parametrize("largest", [0, 512], ids=["fft", "matrix"])
@pytest.mark.parametrize("ends", list(product(KINDS, repeat=2)))
def test_the_second_difference_is_diagonal_in_each_basis(ends, largest, monkeypatch):
    monkeypatch.setattr(poisson, "LARGEST_MATRIX", largest)
    n = 7
    matrix = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    matrix[0, 0] -= ends[0] == "neumann"
    matrix[-1, -1] -= ends[1] == "neumann"
    assert np.allclose(np.linalg.eigvalsh(matrix), eigenvalues(n, ends), atol=1e-14)
    for axis in (0, 1):
        x = np.random.default_rng(1).normal(size=(n, n))
        applied = matrix @ x if axis == 0 else x @ matrix
        coefficients = transform(x, axis, ends)
        assert np.allclose(inverse(coefficients, axis, ends), x, atol=1e-14)
        scale = np.expand_dims(eigenvalues(n, ends), 1 - axis)
        assert np.allclose(transform(applied, axis, ends), scale * coefficients, atol=1e-13)
        assert np.allclose((coefficients**2).sum(axis), (x**2).sum(axis), atol=1e-13)


def test_closed_sides_leave_out_the_mean_of_both():
    source = problem(CLOSED)
    solver = DirectPoisson((7, 12), CLOSED)
    p = solver.solve(source)
    assert abs(p.mean()) < 1e-14
    assert np.allclose(solver.solve(source + 5.0), p, atol=1e-14)


def test_float32_stays_float32(sides):
    source = problem(sides)
    single = DirectPoisson(source.shape, sides, np.float32).solve(source.astype(np.float32))
    double = DirectPoisson(source.shape, sides).solve(source)
    assert single.dtype == np.float32
    assert np.abs(single - double).max() < 1e-5 * np.abs(double).max()


def test_a_condition_that_is_none_is_refused_by_side_and_value():
    with pytest.raises(ValueError, match=r"pressure on the top side.*'open'.*neumann, dirichlet"):
        DirectPoisson((4, 4), PressureSides("neumann", "neumann", "neumann", "open"))


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (7, 12), (30, 30)])
def test_over_relaxation_comes_to_the_direct_solution(sides, shape):
    source = problem(sides, shape) + 0.2
    direct, relaxed = np.zeros((2, shape[0] + 2, shape[1] + 2))
    for p in (direct, relaxed):
        boundary_step(p, sides, 0.3)
    DirectPoisson(shape, sides).solve_inside(source, direct)
    relaxation = Sor(shape, sides, tolerance=1e-10)
    assert 1 < relaxation.solve_inside(source, relaxed) < relaxation.most_sweeps
    assert np.abs(relaxed - direct)[1:-1, 1:-1].max() <= 1e-8 * np.abs(direct).max()
    assert relaxation.solve_inside(source, relaxed) == CHECK_EVERY  # from the solution on


def test_the_radius_of_jacobi_is_that_of_its_matrix(sides):
    shape = 4, 5
    cells = np.arange(20).reshape(shape)
    matrix = np.zeros((20, 20))
    along_x = zip(cells[:, 1:].flat, cells[:, :-1].flat, strict=True)
    along_y = zip(cells[1:].flat, cells[:-1].flat, strict=True)
    for a, b in (*along_x, *along_y):
        matrix[a, b] = matrix[b, a] = 1
    diagonal = np.full(shape, 4.0)
    for kind, edge in zip(sides, (np.s_[:, 0], np.s_[:, -1], np.s_[0], np.s_[-1]), strict=True):
        diagonal[edge] -= kind == "neumann"
    values = np.sort(np.linalg.eigvals(matrix / diagonal.reshape(-1, 1)).real)
    largest = values[-2] if sides.singular else values[-1]
    assert jacobi_radius(shape, sides) == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize("case", [SOURCE, CLOSED], ids=["source", "closed"])
def test_the_optimal_factor_needs_the_fewest_sweeps(case):
    source, best = problem(case, (31, 31)), Sor((31, 31), case).relaxation
    counts = []
    for factor in (best - 0.06, best, best + 0.03):
        p = np.zeros((33, 33))
        counts.append(Sor((31, 31), case, relaxation=factor).solve_inside(source, p))
    assert counts[1] < min(counts[0], counts[2])


def test_over_relaxation_that_does_not_converge_is_an_error_with_numbers():
    source = problem(SOURCE, (30, 30))
    with pytest.raises(PressureNotConverged, match=r"residual .* after 9 sweeps; allowed: 1e-08") as caught:
        Sor((30, 30), SOURCE, most_sweeps=9).solve_inside(source, np.zeros((32, 32)))
    assert caught.value.sweeps == 9
    assert caught.value.residual > caught.value.tolerance == 1e-8
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), vars(copy)) == (str(caught.value), vars(caught.value))


def test_over_relaxation_of_a_right_hand_side_of_0_ends_at_rounding_of_the_start():
    solver, start = Sor((30, 30), SOURCE), np.random.default_rng(5).normal(size=(32, 32))
    p = np.zeros((32, 32))
    p[1:-1, 1:-1] = start[1:-1, 1:-1]
    assert solver.solve_inside(np.zeros((30, 30)), p) < solver.most_sweeps
    assert np.abs(p[1:-1, 1:-1]).max() < 1e-9
    p[1:-1, 1:-1] = start[1:-1, 1:-1]
    with pytest.raises(PressureNotConverged, match="where that is 0, of the first pressure") as caught:
        Sor((30, 30), SOURCE, most_sweeps=8).solve_inside(np.zeros((30, 30)), p)
    assert 0.1 < caught.value.residual < 10


def test_over_relaxation_in_float32_ends_at_rounding(sides):
    source = problem(sides, (30, 30))
    single, double = np.zeros((32, 32), np.float32), np.zeros((32, 32))
    Sor((30, 30), sides, np.float32, tolerance=1e-12).solve_inside(source.astype(np.float32), single)
    DirectPoisson((30, 30), sides).solve_inside(source, double)
    assert np.abs(single - double).max() < 3e-4 * np.abs(double).max()


def test_over_relaxation_of_a_field_that_is_not_finite_gives_nan():
    p = np.zeros((6, 6))
    assert Sor((4, 4), SOURCE).solve_inside(np.full((4, 4), np.inf), p) == 0
    assert np.isnan(p[1:-1, 1:-1]).all()


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [("tolerance", 0, "0"), ("tolerance", 1.5, "1"), ("relaxation", 2.0, "2"), ("most_sweeps", 0, "1")],
)
def test_options_of_over_relaxation_out_of_range_are_refused(option, value, allowed):
    with pytest.raises(ValueError, match=rf"{option}.*{value}.*allowed.*{allowed}"):
        Sor((4, 4), SOURCE, **{option: value})


CHANNEL = {"left": md.cavity.Outlet(0.8), "right": md.cavity.Outlet(-0.2)}


@pytest.mark.parametrize("sides", [None, CHANNEL], ids=["lid", "channel"])
@pytest.mark.parametrize(("pressure", "tolerance"), [("converged", 1e-12), ("sor", 1e-6)])
def test_a_step_of_a_cavity_solves_the_pressure(pressure, tolerance, sides):
    """With many sweeps a step of the source's scheme is one with the solution."""
    swept = md.Cavity((9, 9), viscosity=0.1, sweeps=2000, sides=sides, strategy="numpy")
    solved = md.Cavity((9, 9), viscosity=0.1, sides=sides, pressure=pressure, strategy="numpy")
    for cavity in (swept, solved):
        cavity.run(5)
    for name in "uvp":
        one, other = getattr(swept, name), getattr(solved, name)
        assert np.abs(one - other).max() <= tolerance * np.abs(swept.u).max()
    assert np.abs(swept.u[4]).max() > 1e-3


@pytest.mark.parametrize("grid", ["collocated", "staggered"])
def test_a_pressure_that_does_not_converge_ends_a_run_at_its_step(grid, monkeypatch):
    """The cavity stays at the step before."""
    strategy = "numpy" if grid == "collocated" else grid
    options = {"viscosity": 0.1, "pressure": "sor", "strategy": strategy, "grid": grid, "backend": "cpu"}
    cavity, expected = md.Cavity((9, 9), **options), md.Cavity((9, 9), **options)
    expected.run(7)
    solve, calls = Sor.solve_inside, []

    def fail_at_the_eighth(self, source, p):
        calls.append(1)
        if len(calls) == 8:
            raise PressureNotConverged(0.5, 1e-8, 99)
        return solve(self, source, p)

    monkeypatch.setattr(Sor, "solve_inside", fail_at_the_eighth)
    cavity.run(3)
    with pytest.raises(
        PressureNotConverged, match=r"step 8: pressure: residual 0.5 .* after 99 sweeps"
    ) as caught:
        cavity.run(20)
    assert cavity.step == 7
    assert caught.value.step == 8
    assert np.array_equal(cavity.u, expected.u)

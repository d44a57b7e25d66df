"""Strategy "spectral" on the CPU, and its kernel on the host, against the reference."""

import numpy as np
import pytest

import md
from md.cavity.strategies.spectral import operator_of
from tests.md.cavity.strategies.beside_reference import assert_as_reference, cavity
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda
from tests.tiers import full


@pytest.fixture(scope="module")
def device():
    return EmulatedCuda()


@pytest.mark.parametrize(("shape", "sweeps"), [((41, 41), 50), ((12, 23), 7), ((3, 3), 1), ((4, 9), 2)])
def test_the_operator_gives_the_fields_of_the_reference(shape, sweeps):
    assert_as_reference(shape, "spectral", "cpu", sweeps=sweeps, lid=0.7)


def test_float32_gives_the_fields_of_the_reference():
    assert_as_reference((20, 31), "spectral", "cpu", precision="float32")


@pytest.mark.parametrize(
    ("shape", "sweeps", "precision"),
    [
        ((28, 13), 7, "float64"),
        full((41, 41), 50, "float64"),
        full((28, 13), 7, "float32"),
        full((4, 42), 2, "float64"),
    ],
)
def test_the_kernel_gives_the_fields_of_the_reference(device, shape, sweeps, precision):
    assert_as_reference(shape, "spectral", device, sweeps=sweeps, precision=precision, lid=0.7)


def test_the_bases_are_orthonormal():
    operator = operator_of((12, 9), 50)
    for basis in (operator.basis_x, operator.basis_y):
        np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-14)


def test_a_cavity_too_large_for_a_block_is_refused(device):
    with pytest.raises(
        ValueError, match=r"shape=\(43, 41\); allowed: at most 42 points .*; take strategy='cuda'"
    ):
        md.Cavity((43, 41), viscosity=0.1, strategy="spectral", backend=device)


def test_a_pressure_without_its_boundary_values_is_refused():
    made = cavity((9, 8), "spectral", "cpu")
    u, v, p = made.u, made.v, made.p
    p[3, 0] += 1
    with pytest.raises(ValueError, match=r"row 3, column 0; allowed: the boundary value .*strategy='numpy'"):
        made._solver.load(u, v, p)

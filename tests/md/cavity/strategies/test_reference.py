"""The reference takes the steps of the program of the source, which is written here once more."""

import numpy as np
import pytest

import md


def difference(field: np.ndarray, axis: int, h: float) -> np.ndarray:
    found = np.zeros_like(field)
    found[1:-1, 1:-1] = (np.roll(field, -1, axis) - np.roll(field, 1, axis))[1:-1, 1:-1] / (2 * h)
    return found


def laplacian(field: np.ndarray, h: float) -> np.ndarray:
    found = np.zeros_like(field)
    shifted = [np.roll(field, by, axis) for axis in (0, 1) for by in (1, -1)]
    found[1:-1, 1:-1] = (sum(shifted) - 4 * field)[1:-1, 1:-1] / h**2
    return found


def source_program(n, viscosity, density, dt, lid, sweeps, steps):
    """u, v, p after steps of the lid-driven cavity, from the formulas of Vickers' Python program."""
    h = 1.0 / (n - 1)
    u, v, p = np.zeros((3, n, n))
    for _ in range(steps):
        du = viscosity * laplacian(u, h) - u * difference(u, 1, h) - v * difference(u, 0, h)
        dv = viscosity * laplacian(v, h) - u * difference(v, 1, h) - v * difference(v, 0, h)
        ut, vt = u + dt * du, v + dt * dv
        rhs = density / dt * (difference(ut, 1, h) + difference(vt, 0, h))
        for _ in range(sweeps):
            shifted = [np.roll(p, by, axis) for axis in (1, 0) for by in (1, -1)]
            p = (rhs * h**2 - sum(shifted)) * -0.25
            p[:, -1], p[:, 0] = p[:, -2], p[:, 1]
            p[0, :] = p[1, :]
            p[-1, :] = 0.0
        u = ut - dt / density * difference(p, 1, h)
        v = vt - dt / density * difference(p, 0, h)
        u[0, :], u[-1, :], u[:, 0], u[:, -1] = 0.0, lid, 0.0, 0.0
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0.0
    return u, v, p


@pytest.mark.quick
def test_it_is_the_program_of_the_source():
    cavity = md.Cavity(
        (21, 21), viscosity=0.1, density=1.5, dt=0.001, lid=0.8, sweeps=20, strategy="numpy", backend="cpu"
    )
    cavity.run(200)
    for found, expected in zip(
        (cavity.u, cavity.v, cavity.p), source_program(21, 0.1, 1.5, 0.001, 0.8, 20, 200), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.quick
def test_the_lid_moves_only_after_the_first_step():
    cavity = md.Cavity((5, 5), viscosity=0.1, strategy="numpy", backend="cpu")
    assert not cavity.u.any()
    cavity.run(1)
    assert cavity.u[-1].tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert not cavity.u[:-1].any()
    assert not cavity.p.any()

"""Symmetries and balances of the flow."""

import numpy as np
import pytest

import md
from md.cavity import Inlet, Outlet, Wall


def ended(steps: int, shape=(21, 21), **options) -> md.Cavity:
    one = md.Cavity(shape, **{"viscosity": 0.02, "backend": "cpu", "strategy": "serial"} | options)
    one.run(steps)
    return one


def assert_equal_fields(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 1e-3
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(other).max())


@pytest.mark.quick
def test_a_lid_that_moves_the_other_way_mirrors_the_flow():
    right, left = ended(300), ended(300, lid=-1.0)
    mirrored = -right.u[:, ::-1], right.v[:, ::-1], right.p[:, ::-1]
    assert_equal_fields((left.u, left.v, left.p), mirrored)


@pytest.mark.quick
def test_a_wall_that_moves_at_the_bottom_turns_the_flow_upside_down():
    top = ended(300, sides={"top": Wall(1.0, "dirichlet")})
    bottom = ended(300, sides={"bottom": Wall(1.0, "dirichlet")})
    assert_equal_fields((bottom.u, bottom.v, bottom.p), (top.u[::-1], -top.v[::-1], top.p[::-1]))


@pytest.mark.quick
def test_a_wall_that_moves_at_the_left_is_the_cavity_across_its_diagonal():
    bottom = ended(300, sides={"bottom": Wall(1.0, "dirichlet")})
    left = ended(300, sides={"left": Wall(1.0, "dirichlet")})
    inside = np.s_[1:-1, 1:-1]  # corners belong to the sides that come last
    assert_equal_fields((left.u[inside], left.v[inside]), (bottom.v.T[inside], bottom.u.T[inside]))


@pytest.mark.quick
def test_density_scales_the_pressure_alone():
    light, heavy = ended(100), ended(100, density=4.0)
    assert_equal_fields((heavy.u, heavy.v, heavy.p), (light.u, light.v, 4.0 * light.p))


@pytest.mark.quick
def test_without_motion_of_the_sides_fluid_stays_at_rest():
    one = ended(50, lid=0.0)
    for field in (one.u, one.v, one.p):
        assert not field.any()


def channel(n: int) -> md.Cavity:
    """Steady flow from left to right, with Poiseuille's profile and a mean speed of about 1 at the inlet."""
    profile = 6 * np.linspace(0, 1, n) * np.linspace(1, 0, n)
    sides = {"left": Inlet(tuple(profile)), "right": Outlet()}
    steps = 1500 if n < 10 else 3000
    return ended(steps, (n, 2 * n - 1), size=2.0, viscosity=0.1, sides=sides, sweeps=100)


def test_what_flows_in_flows_out_to_second_order():
    # Central differences on one grid of points lose mass at an inlet alone, the less the finer the grid.
    losses = []
    for n in (9, 17):
        one = channel(n)
        flux = one.scheme.h * one.u.sum(axis=0)
        downstream = flux[n - 1 : -n // 4]
        np.testing.assert_allclose(downstream, downstream[0], rtol=1e-4)
        losses.append(1 - downstream[0] / flux[0])
    assert 0.02 < losses[0] < 0.04
    assert losses[1] < 0.32 * losses[0]


def test_the_flow_in_a_channel_is_poiseuilles():
    one = channel(17)
    mean, at_inlet = one.scheme.h * one.u[:, 16].sum(), one.scheme.h * one.u[:, 0].sum()
    np.testing.assert_allclose(one.u[:, 16], mean * one.u[:, 0] / at_inlet, atol=2e-3)
    gradient = (one.p[8, 12] - one.p[8, 20]) / (8 * one.scheme.h)
    assert gradient == pytest.approx(12 * one.scheme.viscosity * mean, rel=0.01)


def test_flow_from_below_leaves_above():
    sides = {"bottom": Inlet(1.0), "top": Outlet()}
    one = ended(2000, (33, 17), viscosity=0.1, sides=sides, sweeps=100)
    flux = one.scheme.h * one.v[:, 1:-1].sum(axis=1)
    assert flux[0] == pytest.approx(15 / 16, rel=1e-12)
    np.testing.assert_allclose(flux[8:], flux[0], rtol=0.02)
    np.testing.assert_allclose(one.v, one.v[:, ::-1], atol=1e-10)

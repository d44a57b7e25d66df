"""Runs of a cavity: Ctrl-C between steps, fields that are set, time steps that are too long for the flow."""

import os
import signal

import numpy as np
import pytest

import md
from md.cavity import Inlet, Outlet
from md.cavity.strategies import Blocked
from tests.tiers import nightly

STAGGERED = {"grid": "staggered", "pressure": "converged"}


def cavity(shape=(9, 9), **options) -> md.Cavity:
    return md.Cavity(shape, **{"viscosity": 0.1, "backend": "cpu", "sweeps": 5} | options)


def pressed_after(function):
    """Function that ends with an interrupt from the keyboard at its second call."""
    calls = []

    def called(*arguments, **others):
        found = function(*arguments, **others)
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return found

    return called


def interrupt(one: md.Cavity, monkeypatch) -> None:
    """Let an interrupt come in the middle of a step, or just after a kernel."""
    solver = one._solver
    if one.strategy.name == "staggered":
        monkeypatch.setattr(solver._poisson, "solve_inside", pressed_after(solver._poisson.solve_inside))
    elif one.strategy.name == "numpy":
        monkeypatch.setattr(solver, "_solve_pressure", pressed_after(solver._solve_pressure))
    else:
        monkeypatch.setattr(solver, "_kernel", pressed_after(solver._kernel))


@pytest.mark.parametrize(
    "options",
    [{"strategy": "numpy"}, nightly({"strategy": "serial"}), {"strategy": Blocked(3)}, STAGGERED],
    ids=["numpy", "serial", "blocked", "staggered"],
)
def test_an_interrupted_run_has_the_fields_of_its_step(options, monkeypatch):
    one, other, whole = cavity(**options), cavity(**options), cavity(**options)
    with monkeypatch.context() as patch:
        interrupt(one, patch)
        with pytest.raises(KeyboardInterrupt):
            one.run(9)
    assert 0 < one.step < 9
    other.run(one.step)
    one_more = 11 - one.step
    for name in "uvp":
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    one.run(one_more)
    whole.run(11)
    for name in "uvp":
        np.testing.assert_array_equal(getattr(one, name), getattr(whole, name))


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "serial", "order": "hilbert"},
        {"strategy": Blocked(3)},
        {"strategy": "spectral"},
        STAGGERED,
    ],
    ids=["serial", "blocked", "spectral", "staggered"],
)
class TestFieldsThatAreNotGiven:
    def test_are_kept_with_every_bit(self, options):
        one = cavity(**options)
        one.run(7)
        before = one._solver.state_dict()
        one.set_fields()
        for name, array in one._solver.state_dict().items():
            np.testing.assert_array_equal(array, before[name])

    def test_are_kept_beside_one_that_is(self, options):
        one, u = cavity(**options), np.linspace(0, 0.1, 81).reshape(9, 9)
        one.run(7)
        v, p, before = one.v, one.p, one._solver.state_dict()
        one.set_fields(u=u)
        np.testing.assert_allclose(one.u[1:-1, 1:-1], u[1:-1, 1:-1], atol=1e-15)
        np.testing.assert_array_equal(one.v, v)
        np.testing.assert_array_equal(one.p, p)
        for name, array in one._solver.state_dict().items():
            if not name.startswith("u"):
                np.testing.assert_array_equal(array, before[name])


@pytest.mark.quick
@pytest.mark.parametrize("options", [{}, STAGGERED])
def test_values_above_the_largest_float32_are_refused(options):
    one = cavity(precision="float32", **options)
    with pytest.raises(ValueError, match=r"u = 1e\+300 at row 2, column 3; .*float32; .*precision='float64'"):
        one.set_fields(u=np.where(np.arange(81).reshape(9, 9) == 21, 1e300, 0.0))
    assert not one.u.any()


TWO_INLETS = {"top": Inlet(1.0), "bottom": Inlet(1.0), "right": Outlet()}


@pytest.mark.quick
def test_a_flow_that_is_faster_than_its_sides_warns_before_it_fails():
    one = cavity((9, 41), size=4.0, viscosity=0.05, sides=TWO_INLETS, sweeps=50)
    with pytest.warns(md.UnstableTimeStep, match=r"speed of .* at step \d+; allowed: up to .*; give dt"):
        one.run(16)
    with pytest.raises(md.NonFiniteField, match="where fluid is faster, give dt below 2 viscosity"):
        one.run(100)  # a second warning would be an error
    assert one.step < 100


@pytest.mark.quick
def test_a_solver_that_lost_its_fields_starts_again_at_step_0(monkeypatch):
    one = cavity()
    one.run(3)

    def lost(steps):
        raise md.BackendUnavailableError("blocks waited too long")

    monkeypatch.setattr(one._solver, "advance", lost)
    with pytest.raises(md.BackendUnavailableError):
        one.run(1)
    assert one.step == 0


@pytest.mark.quick
def test_a_flow_with_a_time_step_for_its_speed_does_not_warn():
    one = cavity((9, 41), size=4.0, viscosity=0.05, sides=TWO_INLETS, sweeps=50, dt=2 * 0.05 / 16**2)
    one.run(300)
    assert 5 < np.abs(one.u).max() < 16

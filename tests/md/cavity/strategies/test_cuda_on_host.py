"""The kernels of strategies "cuda" and "tiled" on the host, against the reference."""

import numpy as np
import pytest

import md
from tests.md.cavity.strategies.beside_reference import assert_as_reference, largest_error
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda
from tests.tiers import full, nightly

CHANNEL = md.cavity.Sides(
    left=md.cavity.Inlet(0.5),
    right=md.cavity.Outlet(0.25),
    top=md.cavity.Wall(1.0),
    bottom=md.cavity.Wall(-0.5),
)


@pytest.fixture(scope="module")
def device():
    return EmulatedCuda()


@pytest.mark.parametrize(
    ("strategy", "shape", "sides", "sweeps", "precision"),
    [
        ("cuda", (3, 4), None, 2, "float32"),
        ("tiled", (41, 37), CHANNEL, 5, "float64"),
        full("cuda", (41, 37), CHANNEL, 5, "float64"),
        full("tiled", (3, 4), None, 2, "float32"),
    ],
)
def test_the_kernels_give_the_fields_of_the_reference(device, strategy, shape, sides, sweeps, precision):
    assert_as_reference(shape, strategy, device, (2, 2), sides=sides, sweeps=sweeps, precision=precision)


@pytest.mark.parametrize(
    ("layout", "order"), [nightly("structs", "row"), ("arrays", "hilbert"), full("structs", "random")]
)
def test_layouts_and_orders_give_the_fields_of_the_reference(device, layout, order):
    found = md.Cavity(
        (16, 16), viscosity=0.1, sides=CHANNEL, sweeps=3, layout=layout, order=order, backend=device
    )
    assert found.strategy.name == "cuda"
    expected = md.Cavity((16, 16), viscosity=0.1, sides=CHANNEL, sweeps=3, strategy="numpy", backend="cpu")
    for one in (found, expected):
        one.run(4)
    assert largest_error(found, expected) < 1e-14


CONVERGED = {
    "channel": (CHANNEL, "arrays", "row", "float64"),
    "closed": (md.cavity.Sides(top=md.cavity.Wall(1.0)), "structs", "hilbert", "float64"),
    "driven": (None, "arrays", "row", "float32"),
}


@pytest.mark.parametrize("case", [nightly("channel"), full("closed"), nightly("driven")])
def test_the_solution_of_the_equation_is_that_of_the_reference(device, case):
    sides, layout, order, precision = CONVERGED[case]
    choices = {"sides": sides, "precision": precision, "pressure": "converged"}
    found = md.Cavity((16, 16), viscosity=0.1, layout=layout, order=order, backend=device, **choices)
    assert found.strategy.name == "cuda"
    expected = md.Cavity((16, 16), viscosity=0.1, strategy="numpy", backend="cpu", **choices)
    for one in (found, expected):
        one.run(5)
    assert np.abs(expected.p).max() > 0.1
    assert largest_error(found, expected) < (1e-13 if precision == "float64" else 2e-6)


@pytest.mark.parametrize("strategy", ["cuda", full("tiled")])
def test_a_field_that_is_not_finite_is_a_fault_at_the_step_of_the_reference(device, strategy):
    steps = []
    for name, backend in ((strategy, device), ("numpy", "cpu")):
        with pytest.warns(md.errors.UnstableTimeStep):
            made = md.Cavity(
                (3, 4), viscosity=1.0, dt=1e9, strategy=name, sweeps=2, precision="float32", backend=backend
            )
        with pytest.raises(md.errors.NonFiniteField) as fault:
            made.run(100)
        steps.append(fault.value.step)
    assert steps[0] == steps[1] > 1

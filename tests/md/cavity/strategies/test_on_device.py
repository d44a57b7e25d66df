"""The device strategies on a device, against the reference."""

import numpy as np
import pytest

import md
from md.backend import why_not
from md.cavity import STRATEGIES
from tests.md.cavity.strategies.beside_reference import cavity, largest_error

pytestmark = pytest.mark.gpu
ON_DEVICE = [name for name, one in STRATEGIES.items() if "cuda" in one.backends]
LARGE = [name for name in ON_DEVICE if name != "spectral"]
FLOAT32 = 2e-6  # of the largest value


@pytest.fixture(autouse=True)
def needs_a_device():
    if reason := why_not():
        pytest.skip(reason)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("strategy", ON_DEVICE)
def test_1000_steps_are_those_of_the_reference(strategy, precision):
    made = [
        md.Cavity(viscosity=0.02, precision=precision, strategy=name, backend=backend)
        for name, backend in ((strategy, "cuda"), ("numpy", "cpu"))
    ]
    for one in made:
        one.run(1000)
    most = STRATEGIES[strategy].tolerance if precision == "float64" else FLOAT32
    assert largest_error(*made) < most


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("strategy", LARGE)
@pytest.mark.parametrize("shape", [(129, 129), (257, 300), (700, 1000), (1000, 19)])
def test_random_fields_of_many_blocks_are_those_of_the_reference(strategy, shape, precision):
    made = [
        cavity(shape, name, backend, precision=precision)
        for name, backend in ((strategy, "cuda"), ("numpy", "cpu"))
    ]
    for pieces in (3, 1, 2):
        for one in made:
            one.run(pieces)
        assert largest_error(*made) < (1e-12 if precision == "float64" else 1e-5)


@pytest.mark.parametrize("shape", [(41, 41), (1000, 1000)])
def test_the_same_run_gives_the_same_bits_again(shape):
    made = [md.Cavity(shape, viscosity=0.1, strategy="persistent", backend="cuda") for _ in range(2)]
    for one in made:
        one.run(20)
    np.testing.assert_array_equal(made[0].p, made[1].p)


@pytest.mark.parametrize("shape", [(60, 90), (515, 700)])
def test_the_solution_of_the_equation_is_that_of_the_reference(shape):
    def ended(strategy, backend, precision):
        made = cavity(shape, strategy, backend, precision=precision, pressure="converged")
        made.run(5)
        return made

    exact = ended("numpy", "cpu", "float64")
    assert largest_error(ended("cuda", "cuda", "float64"), exact) < 1e-12
    of_reference = largest_error(ended("numpy", "cpu", "float32"), exact)
    assert largest_error(ended("cuda", "cuda", "float32"), exact) < of_reference


@pytest.mark.parametrize("strategy", ["cuda", "tiled"])
def test_a_channel_is_that_of_the_reference(strategy):
    sides = {"left": md.cavity.Inlet(0.5), "right": md.cavity.Outlet(0.25), "top": md.cavity.Wall(-0.5)}
    made = [
        cavity((60, 90), name, backend, sides=sides, sweeps=7)
        for name, backend in ((strategy, "cuda"), ("numpy", "cpu"))
    ]
    for one in made:
        one.run(50)
    assert largest_error(*made) < 1e-12

"""The search `tensor` on the tensor cores of a device decides each pair as `coherent` does in float32."""

import numpy as np
import pytest

import md

pytestmark = pytest.mark.gpu
UNIT = 2.0**-8  # of all numbers: sums of them, and squares of distances, are exact in float32
N = 216_000  # at the density of [flock]


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_numbers_that_are_exact_are_equal(device, seed):
    """Some five million pairs, thousands of them nearer to a radius than half precision can tell."""
    generator = np.random.default_rng(seed)
    box = md.Box((120.0,) * 3)
    pos = UNIT * generator.integers(0, 120 / UNIT, (N, 3))
    vel = UNIT * generator.integers(-0.5 / UNIT, 0.5 / UNIT, (N, 3))
    found = []
    for search in ("coherent", "tensor"):
        run = md.Simulation(
            md.State(pos, vel, box), md.laws.Boids(), search=search, integrator=md.integrate.Flight(10.0),
            dt=0.2, backend=device, precision="float32",
        )  # fmt: skip
        assert getattr(run.search, "uses_tensor_cores", True)
        found.append(run.forces())
    assert np.abs(found[0]).max() > 1
    assert np.array_equal(*found)

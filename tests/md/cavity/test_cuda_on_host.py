"""The kernels of strategies "cuda" and "tiled" on the host, against the reference."""

import pytest

import md
from tests.md.cavity.beside_reference import assert_as_reference
from tests.md.cavity.emulated_cuda import EmulatedCuda

CHANNEL = md.cavity.Sides(
    left=md.cavity.Inlet(0.5),
    right=md.cavity.Outlet(0.25),
    top=md.cavity.Wall(1.0),
    bottom=md.cavity.Wall(-0.5),
)


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    return EmulatedCuda(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("strategy", ["cuda", "tiled"])
@pytest.mark.parametrize(
    ("shape", "sides", "sweeps", "precision"),
    [((41, 37), CHANNEL, 5, "float64"), ((3, 4), None, 2, "float32")],
)
def test_the_kernels_give_the_fields_of_the_reference(device, strategy, shape, sides, sweeps, precision):
    assert_as_reference(shape, strategy, device, (1, 2), sides=sides, sweeps=sweeps, precision=precision)

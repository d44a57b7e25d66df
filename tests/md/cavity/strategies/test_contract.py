"""Every strategy takes the steps of the reference: for all layouts, orders, sides and parts."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import md
import sfc
from md.cavity import STRATEGIES, Inlet, Outlet, Wall
from md.cavity.scheme import Scheme
from md.cavity.sides import driven
from md.cavity.strategies import Blocked
from md.cavity.strategies.blocked import _depth
from tests.tiers import full, nightly

PROFILE = tuple(np.sin(np.linspace(0, np.pi, 19)))
SIDES = {  # every kind of side, at rest, moving, with fixed and free pressure
    "driven": None,
    "channel": {"left": Inlet(PROFILE), "right": Outlet(0.1)},
    "mixed": {
        "top": Wall(0.7, "dirichlet", 0.2),
        "bottom": Outlet(tuple(np.linspace(0, 0.3, 23))),
        "left": Wall(-0.3),
        "right": Inlet(0.4, "dirichlet", -0.1),
    },
    "closed": {"top": Wall(1.0), "left": Wall(tuple(np.linspace(-1, 1, 19)))},
}
COLLOCATED = [name for name, one in STRATEGIES.items() if "collocated" in one.grids]
ON_CPU = [name for name in COLLOCATED if "cpu" in STRATEGIES[name].backends]
EXACT = [name for name in ON_CPU if STRATEGIES[name].tolerance == 0 and name != "numpy"]
CURVES = [sfc.curve("hilbert", 2), "gilbert", "random"]


def ended(steps: int, **choices) -> list[np.ndarray]:
    """Fields after steps of a cavity on the CPU, taken in two runs."""
    choices = {"viscosity": 0.02, "backend": "cpu"} | choices
    cavity = md.Cavity(choices.pop("shape", (41, 41)), **choices)
    cavity.run(steps // 3)
    cavity.run(steps - steps // 3)
    return [cavity.u, cavity.v, cavity.p]


@cache
def reference(sides: str = "driven", shape=(41, 41), steps=1000, precision="float64", sweeps=50):
    return ended(steps, shape=shape, sides=SIDES[sides], precision=precision, sweeps=sweeps, strategy="numpy")


def assert_same_bits(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.isfinite(other).all()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [name for name in ON_CPU if name != "numpy"])
def test_1000_steps_are_those_of_the_reference(name):
    found, expected = ended(1000, strategy=name), reference()
    assert np.abs(expected[0][5:-5, 5:-5]).max() > 0.1
    for one, other in zip(found, expected, strict=True):
        most = STRATEGIES[name].tolerance * np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=most)


def kinds() -> Iterator:
    """Strategies of the CPU with the bits of the reference, in all layouts, some orders and all sides."""
    for name in EXACT:
        one = STRATEGIES[name]
        for layout in one.layouts:
            for order in ["row", *(CURVES if one.any_order else [])]:
                for sides in SIDES if one.any_sides else ["driven"]:
                    case = name, layout, order, sides
                    yield case if (name, layout) != ("threads", "structs") else nightly(*case)


@pytest.mark.parametrize(("name", "layout", "order", "sides"), list(kinds()))
def test_all_sides_in_all_layouts_and_orders(name, layout, order, sides):
    found = ended(64, shape=(19, 23), sides=SIDES[sides], sweeps=7, strategy=name, layout=layout, order=order)
    assert_same_bits(found, reference(sides, (19, 23), 64, sweeps=7))


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("depth", [2, 7, full(1), full(5), full(50)])
def test_a_pass_of_any_depth(depth, sides):
    found = ended(64, shape=(19, 23), sides=SIDES[sides], sweeps=7, strategy=Blocked(depth))
    assert_same_bits(found, reference(sides, (19, 23), 64, sweeps=7))


def test_a_grid_that_does_not_fit_into_the_cache_is_swept_in_passes(monkeypatch):
    def solver():
        return md.Cavity((41, 41), viscosity=0.1, strategy="blocked", backend="cpu")._solver

    assert solver()._depth == 1
    monkeypatch.setattr("md.cavity.strategies.blocked.CACHE", 3 * 41 * 41 * 8 - 1)
    assert solver()._depth == 10
    assert_same_bits(ended(64, strategy="blocked"), reference(steps=64))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shape", "sweeps", "precision", "parts", "depth"),
    [
        ((1000, 1000), 50, "float64", 1, 10),
        ((1000, 1000), 52, "float64", 1, 9),  # six passes in any case
        ((1000, 1000), 50, "float64", 2, 10),
        ((1000, 1000), 50, "float64", 16, 7),  # blocks of 62 rows
        ((4096, 4096), 50, "float64", 1, 8),
        ((4, 200_000), 50, "float64", 1, 1),
        ((1000, 1000), 3, "float64", 1, 3),
    ],
)
def test_the_depth_of_a_pass_follows_from_cache_and_blocks(shape, sweeps, precision, parts, depth):
    scheme = Scheme(shape, 0.1, 0.1, 1.0, 0.01, sweeps, driven(1.0), precision)
    assert _depth(scheme, parts) == depth


@pytest.mark.parametrize("shape", [(3, 3), (3, 7), (6, 3), (4, 40)])
@pytest.mark.parametrize("strategy", ["serial", "threads", Blocked(3)])
def test_the_smallest_grids(strategy, shape):
    assert_same_bits(ended(20, shape=shape, strategy=strategy), reference("driven", shape, 20))


@pytest.mark.parametrize("precision", ["float64", nightly("float32")])
@pytest.mark.parametrize("strategy", ["serial", Blocked(2)])
def test_rows_of_any_length(strategy, precision):
    for nx in range(3, 36):  # up to two whole vectors in float32
        options = {"precision": precision, "sweeps": 3}
        found = ended(4, shape=(4, nx), strategy=strategy, **options)
        assert_same_bits(found, reference("driven", (4, nx), 4, **options))


@pytest.mark.parametrize(
    ("name", "order"),
    [("threads", "hilbert"), full("threads", "row"), full("blocked", "row"), nightly("serial", "row")],
)
def test_float32(name, order):
    found = ended(200, strategy=name, order=order, precision="float32")
    assert found[0].dtype == np.float32
    assert_same_bits(found, reference("driven", (41, 41), 200, "float32"))


def test_float32_is_near_float64():
    for one, other in zip(reference("driven", (41, 41), 1000, "float32"), reference(), strict=True):
        assert 0 < np.abs(one - other).max() < 1e-6 * np.abs(other).max()


@pytest.mark.split
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("strategy", ["threads", Blocked(3)])
def test_two_parts(strategy, sides):
    found = ended(64, shape=(19, 23), sides=SIDES[sides], sweeps=7, strategy=strategy)
    assert_same_bits(found, reference(sides, (19, 23), 64, sweeps=7))


@pytest.mark.split
@pytest.mark.parametrize("parts", [3, 17])
def test_parts_as_thin_as_a_row(parts, monkeypatch):
    monkeypatch.setattr("md.backend.cpu.thread_count", lambda: parts)
    for strategy in ("threads", Blocked(4)):
        found = ended(30, shape=(19, 23), sweeps=7, strategy=strategy)
        assert_same_bits(found, reference("driven", (19, 23), 30, sweeps=7))

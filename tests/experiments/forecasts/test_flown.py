"""Gases that have flown since they were sorted: their paths, their copies, and their memory order."""

import numpy as np
import pytest

import md
from experiments.forecasts import flown
from experiments.forecasts.flown import BOX, CUBE, DT, aged_gases, copies_of, fly, flying, in_order
from experiments.prediction.memory_orders import Order, slots
from md.particles.cell_grid import CellGrid
from tests.tiers import full


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Copies of few spheres, and boxes that are not shaken for long."""
    monkeypatch.setattr(flown, "SIDE", 8.0)
    monkeypatch.setattr(flown, "SHAKES", 0)


def gas(n: int = 400) -> md.State:
    return md.preparation.granular_gas(0.2, md.scenes.box_for(n, 0.2), seed=3, backend="cpu")


@pytest.mark.parametrize("path", [0.0, 0.01, 0.05])
def test_spheres_fly_a_path_and_less_than_a_step_more(path):
    one = flying(CUBE, gas(), "linked", "float64", "cpu")
    each = flown.speed(one) * DT[CUBE]
    length, steps = fly(CUBE, [one], path)
    assert path <= length < path + each
    assert steps == one.step == round(length / each)


def test_all_simulations_take_the_steps_of_the_first():
    one, other = (flying(CUBE, gas(), "linked", "float64", "cpu") for _ in range(2))
    other.run(3)
    _, steps = fly(CUBE, [one, other], 0.03)
    assert (one.step, other.step) == (steps, steps + 3)


def test_in_the_box_the_speed_is_read_again_and_again(monkeypatch):
    class Slowing:
        """Spheres that fly 0.01 d a step, and half as far after each piece."""

        def __init__(self):
            self.pieces = []

        def run(self, steps, phases):
            self.pieces.append(steps)

    one = Slowing()
    monkeypatch.setattr(flown, "speed", lambda simulation: 0.01 / DT[BOX] / 2 ** len(simulation.pieces))
    monkeypatch.setattr(flown, "PIECE", 10)
    length, steps = fly(BOX, [one], 0.16)
    assert one.pieces == [10, 10, 4]  # 0.1, 0.05 and what lacks, by the speed of each
    assert steps == 24
    assert length == pytest.approx(0.16)


@pytest.mark.parametrize(("scene", "n"), [(CUBE, 3200), full(BOX, 1600)])
def test_a_gas_has_copies_that_fly_alike(scene, n, monkeypatch):
    monkeypatch.setattr(flown, "LEAST_COPY", 300)
    count, copies, side = copies_of(scene, n, 0.2)
    assert np.prod(copies) > 1
    paths = (0.0, 0.1, 0.2)
    found = list(aged_gases(scene, n, 0.2, paths, seed=1))
    assert [one.path >= path for one, path in zip(found, paths, strict=True)] == [True] * 3
    assert found[0].steps == 0 < found[1].steps < found[2].steps
    last = found[-1]
    m = len(last.now) // np.prod(copies)
    assert m == pytest.approx(count, abs=2)
    assert last.now.box.lengths[0] == pytest.approx(side * copies[0])
    assert last.now.box.periodic == (True, True, scene == CUBE)
    sides = np.array(last.now.box.lengths) / copies
    offset = (last.now.pos[m : 2 * m] - last.now.pos[:m]) / sides
    assert np.allclose(offset, np.round(offset), atol=1e-9)
    assert np.abs(np.round(offset)).max() == 1
    moved = np.linalg.norm(last.now.box.nearest(last.now.pos - last.start.pos), axis=1)
    most = last.path * (1.01 if scene == CUBE else 1.05)  # in the box the speed changes within a piece
    assert 0.5 * last.path < moved.mean() <= most  # spheres fly on lines between few collisions


def test_a_path_that_leads_half_through_a_copy_is_refused(monkeypatch):
    monkeypatch.setattr(flown, "LEAST_COPY", 300)
    found = aged_gases(CUBE, 3200, 0.05, (0.5, 10.0), seed=1)
    assert len(next(found).now) == 3200
    with pytest.raises(
        ValueError, match=r"path 10 d in copies of side 16.1 d: .* 50% of it; allowed: up to 45%"
    ):
        next(found)
    monkeypatch.setattr(flown, "LEAST_COPY", 3200)  # one copy
    assert [one.path >= 10 for one in aged_gases(CUBE, 3200, 0.05, (0.5, 10.0), seed=1)] == [False, True]


def test_a_copy_of_a_cube_has_its_share_of_the_spheres():
    n = 8 * 2**15
    assert copies_of(CUBE, n, 0.2) == (
        2**15,
        (2, 2, 2),
        pytest.approx((2**15 * np.pi / 6 / 0.2) ** (1 / 3)),
    )


@pytest.mark.parametrize("ordering", ["hilbert", "row", "shuffled"])
def test_a_gas_that_has_flown_is_in_the_order_of_its_start(ordering, monkeypatch):
    monkeypatch.setattr(flown, "LEAST_COPY", 300)
    _, last = aged_gases(CUBE, 400, 0.2, (0.0, 0.3), seed=1)
    one = in_order(CUBE, last, ordering, "linked", "float64", seed=5)
    grid = CellGrid(last.start.box, 1.0, np.dtype("float64"), md.backend.get("cpu"))
    expected = slots(Order(ordering), last.start.pos, np.arange(len(last.now)), grid, 5)
    assert np.array_equal(one.state.id, expected)
    assert np.allclose(one.state.pos, last.now.pos[expected])
    assert not np.array_equal(expected, slots(Order(ordering), last.now.pos, np.arange(400), grid, 6))

"""Tuning a parameter by the times of a run, and the skin of neighbour lists by it."""

from itertools import product

import numpy as np
import pytest

import md
from md.particles.cell_grid import CellGrid
from md.search.lists.skin import RATIO, SETTLE, TRIAL, HillClimb, Skin
from md.search.lists.step_costs import StepCosts

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT


def cost(value: float, best: float) -> float:
    """Of lists with a skin, in kind: they grow with it and are made less often."""
    return 1 + 0.3 * (value / best) ** 2 + 0.6 * best / value


def tried(tuner: HillClimb, time, times: int) -> list[float]:
    values = []
    for _ in range(times):
        values.append(tuner.value)
        tuner.measured(time(tuner.value))
    return values


@pytest.mark.parametrize("best", [0.04, 0.12, 0.2, 0.3, 0.45, 0.9])
def test_the_fastest_value_is_found_and_kept(best):
    tuner = HillClimb(0.3, 0.02, 1.5)
    values = tried(tuner, lambda value: cost(value, best), 40)
    assert max(tuner.best / best, best / tuner.best) < RATIO
    assert values[-20:] == [tuner.best] * 20


def test_an_end_of_the_range_is_kept_where_beyond_it_would_be_faster():
    for best, end in ((0.01, 0.1), (9.0, 0.5)):
        tuner = HillClimb(0.3, 0.1, 0.5)
        values = tried(tuner, lambda value, best=best: cost(value, best), 30)
        assert tuner.value == end
        assert min(values) >= 0.1
        assert max(values) <= 0.5


def test_a_run_that_has_changed_is_tuned_again():
    tuner = HillClimb(0.3, 0.02, 1.5, stay=10)
    tried(tuner, lambda value: cost(value, 0.3), 30)
    tried(tuner, lambda value: cost(value, 0.1), 40)
    assert max(tuner.best / 0.1, 0.1 / tuner.best) < RATIO


def test_what_is_hardly_faster_is_not_followed():
    tuner = HillClimb(0.3, 0.02, 1.5)
    values = tried(tuner, lambda value: 1 - 1e-3 * value, 20)
    assert tuner.best == 0.3
    assert len(set(values)) == 3


@pytest.mark.parametrize(
    ("first", "least", "most"), [(0.3, 0.4, 1), (2, 0.1, 1), (0.3, 0, 1), (0.3, 0.1, np.inf)]
)
def test_a_range_that_is_none_is_refused(first, least, most):
    with pytest.raises(ValueError, match=rf"first = {first}; allowed: {least} .. {most}"):
        HillClimb(first, least, most)


def grid(lengths=(20.0, 20, 20), periodic=True) -> CellGrid:
    return CellGrid(md.Box(lengths, periodic), 1.0, np.float64, md.backend.get("cpu"))


def test_steps_just_after_a_change_are_not_timed():
    skin = Skin("auto", grid())
    for _ in range(SETTLE // 50):
        skin.timed(1e9, 50)
    for _ in range(TRIAL // 50):
        assert skin.proposed is None
        skin.timed(50.0, 50)
    assert skin.proposed == pytest.approx(0.3 * RATIO)
    skin.change()
    assert (skin.proposed, skin.width) == (None, pytest.approx(0.3 * RATIO))
    skin.timed(1e9, SETTLE)
    skin.timed(0.5 * TRIAL, TRIAL)
    assert skin.proposed == pytest.approx(0.3 * RATIO**2)


def test_no_skin_is_tried_that_the_box_is_too_narrow_for():
    skin = Skin("auto", grid((2.7, 9, 9)))
    for _ in range(30):
        skin.timed(1e9, SETTLE)
        skin.timed(TRIAL / skin.width, TRIAL)
        if skin.proposed is not None:
            skin.change()
    assert skin.width == pytest.approx(0.35)
    assert not Skin("auto", grid((2.0, 9, 9))).tunes


def cheap_launches(monkeypatch) -> None:
    """Let the default skin of few particles be that of many: between the ends of the range."""
    for name in ("STEP_LAUNCH", "BUILD_LAUNCHES", "PRUNING_LAUNCHES"):
        monkeypatch.setattr(StepCosts, name, 0.0)


@pytest.mark.parametrize("fused", [False, True])
def test_a_run_whose_skin_changes_misses_no_pair(backend, fused, monkeypatch):
    monkeypatch.setattr(md.search.lists.skin, "SETTLE", 3)
    monkeypatch.setattr(md.search.lists.skin, "TRIAL", 10)
    cheap_launches(monkeypatch)
    state = md.scenes.benchmark_gas(1000, 0.3)
    options = {"dt": DT, "backend": backend, "fused": fused}
    tuned = md.Simulation(state, LAW, search=md.search.Verlet(skin="auto"), **options)
    plain = md.Simulation(state, LAW, search="linked", **options)
    skins = {tuned.search.skin.width}
    for _ in range(12):
        for simulation in (tuned, plain):
            simulation.run(25, phases=False)
        skins.add(tuned.search.skin.width)
        assert np.array_equal(tuned.pairs(), plain.pairs())
    assert len(skins) > 1
    np.testing.assert_allclose(tuned.state.by_id().pos, plain.state.by_id().pos, atol=1e-8)


class Ahead(md.backend.Cpu):
    """A backend that runs ahead, as a device does."""

    runs_ahead = True


def gas_skin(filling, n=2**21, choice=None, cutoff=1.0, stride=0.0095, **options) -> Skin:
    """The skin of n spheres on a device; they move 0.0095 d in a step of the benchmark gas."""
    side = (n * np.pi / 6 / filling) ** (1 / 3)
    of_box = CellGrid(md.Box((side,) * 3), cutoff, np.dtype(np.float32), Ahead())
    skin = Skin(choice, of_box, n, **options)
    skin.choose(stride, prunes=True)
    return skin


def test_the_default_on_a_device_is_wider_in_a_dilute_gas_a_small_and_a_slow_one():
    widths = [gas_skin(filling).width for filling in (0.5, 0.2, 0.05, 0.01)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 4
    inner = [gas_skin(filling).inner for filling in (0.5, 0.2, 0.05, 0.01)]
    assert inner == sorted(inner)
    assert gas_skin(0.2, 2**14).width > gas_skin(0.2).width
    assert gas_skin(0.2, stride=1e-4).width < gas_skin(0.2).width  # few builds in any case
    assert gas_skin(0.2).inner < gas_skin(0.2).width
    assert (
        gas_skin(0.2, stride=0.0).width
        == gas_skin(0.2, stride=np.nan).width
        == gas_skin(0.2, stride=0.01).width
    )


def test_the_default_is_the_fastest_of_all_widths_by_the_model():
    for filling, n in product((0.02, 0.2, 0.5), (2**14, 2**23)):
        skin = gas_skin(filling, n)
        costs = StepCosts(n, filling / (np.pi / 6), 1.0, 3)
        widths = np.linspace(0.02, 1.5, 300)
        narrow = np.minimum(widths[None], widths[:, None])
        has_room = (narrow == widths[:, None]) | (costs._partners(narrow) <= costs.MOST_KEPT)
        least = costs.time(widths[:, None], narrow, 0.0095)[has_room].min()
        assert costs.time(skin.width, skin.inner, 0.0095) < 1.05 * least


def test_a_width_that_is_given_is_taken():
    assert gas_skin(0.2, choice=0.4).width == 0.4
    assert gas_skin(0.2, choice=0.4).inner <= 0.4
    assert gas_skin(0.2, choice=0.4, inner=0.1).inner == 0.1
    assert gas_skin(0.2, choice=0.4, inner=0.4).inner == 0.4
    assert gas_skin(0.2, inner=0.1).width > 0.1
    plain = gas_skin(0.2)
    plain.choose(0.0095, prunes=False)
    assert plain.inner == plain.width < gas_skin(0.2).width
    narrow = CellGrid(md.Box((2.5, 9, 9)), 1, np.dtype(np.float32), Ahead())
    assert Skin(None, narrow, 4).width == 0.25
    on_cpu = CellGrid(md.Box((20,) * 3), 1, np.dtype(np.float32), md.backend.Cpu())
    assert (Skin(None, on_cpu, 100).width, Skin(None, on_cpu, 100).inner) == (0.3, 0.3)


@pytest.mark.parametrize("inner", [0.0, 0.1, 0.25])
@pytest.mark.parametrize(("n", "stride"), [(300, 0.0095), (2**21, 0.05), (2**21, 1e-5)])
def test_an_inner_width_that_is_given_is_taken_whatever_it_costs(inner, n, stride):
    skin = gas_skin(0.2, n, choice=0.4, inner=inner, stride=stride)
    assert (skin.width, skin.inner) == (0.4, inner)
    assert gas_skin(0.2, n, inner=inner, stride=stride).width >= inner == gas_skin(0.2, n, inner=inner).inner


@pytest.mark.parametrize("filling", [0.4, 0.6])
@pytest.mark.parametrize("n", [1000, 2**21])
def test_pruned_lists_of_the_default_have_room(filling, n):
    skin = gas_skin(filling, n)
    partners = filling / (np.pi / 6) * 4 / 3 * np.pi * (1 + skin.inner) ** 3
    assert partners < 9.1 or skin.inner == skin.width


@pytest.mark.parametrize("cutoff", [0.5, 3.0])
def test_the_width_of_any_cutoff_can_be_tuned(cutoff):
    skin = gas_skin(0.02, 1000, choice="auto", cutoff=cutoff)
    assert skin.tunes
    assert skin.proposed is None
    assert 0 < skin.width <= 1.5 * cutoff


@pytest.mark.parametrize(
    ("inner", "error"), [(-0.1, ValueError), (np.nan, ValueError), ("x", TypeError), (0.5, ValueError)]
)
def test_an_invalid_inner_skin_is_refused(inner, error):
    with pytest.raises(error, match=r"inner_skin of Verlet = .*; allowed: "):
        md.search.Verlet(skin=0.4, inner_skin=inner)

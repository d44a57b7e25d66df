"""Times of a use in memory orders, foreseen for a machine that is not there."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial import cKDTree

import sfc
from experiments.advice import forecast
from experiments.advice.forecast import error_of, foreseen, machine_of, sentence
from experiments.advice.uses import CELLS, COMPILED, CUTOFF, MATRIX, NEIGHBOURS, OWN, TRACE, Use
from experiments.core.settings import UsageError
from sfc.cache.core.processor import FOLDER as CPU_FOLDER
from sfc.cache.core.processor import KNOWN as CPUS
from sfc.cache.machine import FOLDER as GPU_FOLDER
from sfc.cache.machine import KNOWN as GPUS

N, SIDE = 4096, 16
KINDS = (CUTOFF, NEIGHBOURS, CELLS, MATRIX, TRACE)
BOTH = ("h200", "epyc_genoa")
SMALL = {"l1_bytes": 4096, "l2_bytes": 16384, "l3_bytes": 32768}  # caches of a CPU


def use_of(kind: str, n: int = N) -> Use:
    """Use of points in no order."""
    random = np.random.default_rng(0)
    points = random.random((n, 3))
    near = np.sort(cKDTree(points).query(points, 5)[1])
    ends = np.arange(0, 5 * n + 1, 5)
    options: dict[str, Any] = {
        CUTOFF: {"reach": 1.2 * n ** (-1 / 3)}, NEIGHBOURS: {"reach": 4}, CELLS: {"cells": near},
        MATRIX: {"matrix": scipy.sparse.csr_array((np.ones(5 * n), near.ravel(), ends))},
        TRACE: {"trace": near[sfc.argsort(points, "hilbert")].ravel(), "item_bytes": 8},
    }[kind]  # fmt: skip
    return Use(kind, COMPILED, n, points=points, **options)


@pytest.fixture(scope="module")
def small_cpu(tmp_path_factory) -> str:
    """File of a CPU with caches that hold less than the points of the tests."""
    text = (CPU_FOLDER / "epyc_genoa.toml").read_text(encoding="utf-8")
    for name, size in SMALL.items():
        text = re.sub(rf"^{name} = .*$", f"{name} = {size}", text, flags=re.MULTILINE)
    path = tmp_path_factory.mktemp("machine") / "small.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
def test_points_in_no_order_take_longer_on_a_small_cpu(kind, small_cpu):
    use = use_of(kind)
    found = foreseen(use, {"given": None, "hilbert": sfc.argsort(use.points, "hilbert")}, small_cpu)
    assert found["given"] > 1.05 * found["hilbert"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_points_in_no_order_take_longer_on_a_gpu(kind):
    use = use_of(kind, 2**16)
    found = foreseen(use, {"given": None, "hilbert": sfc.argsort(use.points, "hilbert")}, "h200")
    assert found["given"] > 1.05 * found["hilbert"] > 0


@pytest.mark.parametrize("machine", BOTH)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != CELLS])
def test_the_order_given_and_the_same_permutation_take_as_long(kind, machine):
    found = foreseen(use_of(kind), {"given": None, "same": np.arange(N)}, machine)
    assert found["given"] == found["same"]


def test_cells_are_sorted_by_their_first_items_if_they_are_put_in_order(small_cpu):
    # cells in no order of points in order
    cells = np.random.default_rng(0).permutation(2**16)[:, None] + np.arange(3)
    use = Use(CELLS, COMPILED, 2**16 + 2, cells=cells)
    found = foreseen(use, {"given": None, "same": np.arange(2**16 + 2)}, small_cpu)
    assert found["given"] > 1.5 * found["same"]


@pytest.mark.parametrize("machine", BOTH)
@pytest.mark.parametrize("kind", KINDS)
def test_items_that_are_numbered_in_another_way_take_as_long_in_the_same_order(kind, machine):
    use, named = use_of(kind), np.random.default_rng(1).permutation(N)  # item i is now item named[i]
    other: dict[str, Any] = {"points": use.points[np.argsort(named)], "reach": use.reach}
    other["item_bytes"] = use.item_bytes
    if kind == CELLS:
        other["cells"] = named[use.cells]
    elif kind == MATRIX:
        back = np.argsort(named)
        other["matrix"] = scipy.sparse.csr_array(use.matrix)[back][:, back]
    elif kind == TRACE:
        other["trace"] = named[use.trace]
    order = sfc.argsort(use.points, "hilbert")
    first = foreseen(use, {"hilbert": order}, machine)
    second = foreseen(Use(kind, COMPILED, N, **other), {"hilbert": named[order]}, machine)
    # points within the cutoff are counted for other ones
    assert first["hilbert"] == pytest.approx(second["hilbert"], rel=0.01)


@pytest.mark.parametrize("machine", BOTH)
@pytest.mark.parametrize("kind", [TRACE, CELLS])
def test_larger_items_take_longer(kind, machine):
    read = np.random.default_rng(0).integers(0, N, (2**16, 1))
    what: dict[str, Any] = {"trace": read.ravel()} if kind == TRACE else {"cells": read}
    times = [
        foreseen(Use(kind, COMPILED, N, item_bytes=size, **what), {"given": None}, machine)["given"]
        for size in (8, 24, 64, 256)
    ]
    assert times == sorted(set(times))


@pytest.mark.parametrize("periodic", [False, True])
def test_as_many_points_are_listed_as_there_are_within_the_cutoff(periodic):
    side = np.arange(SIDE) + 0.0
    points = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    box = {"lengths": np.full(3, float(SIDE)), "periodic": (True,) * 3} if periodic else {}
    points[0] = -1e-20 if periodic else 0.0  # moved into the box it is at its end, by rounding
    listed = forecast._listed(Use(CUTOFF, COMPILED, SIDE**3, points=points, reach=1.01, **box), 0)
    assert listed.shape == (SIDE**3, 6)
    apart = np.abs(points[listed] - points[:, None])
    apart = np.minimum(apart, SIDE - apart) if periodic else apart
    assert (np.linalg.norm(apart, axis=2).max() < 1.01) == periodic  # at open sides others are listed


@pytest.mark.parametrize(("reach", "near"), [(1e-3, 1), (10.0, forecast.MOST_NEAR)])
def test_lists_have_a_point_at_least_and_some_at_most(reach, near):
    points = np.random.default_rng(0).random((200, 2))
    use = Use(CUTOFF, COMPILED, 200, points=points, reach=reach)
    assert forecast._listed(use, 0).shape == (200, near)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_foreseen_to_take_its_share_of_the_time_of_all(kind, small_cpu, monkeypatch):
    use = use_of(kind, 2**14)
    orders = {"given": None, "hilbert": sfc.argsort(use.points, "hilbert")}
    whole = foreseen(use, orders, small_cpu)
    monkeypatch.setattr(forecast, "_most", lambda chip: 2**15)
    parts = forecast._indices(use, forecast._listed(use, 0), None, machine_of(small_cpu))
    assert all(1.5 < one.share < 12 for one in parts)
    assert foreseen(use, orders, small_cpu) == pytest.approx(whole, rel=0.12)


def test_a_part_runs_once_if_the_whole_does_not_fit_the_last_cache(small_cpu, monkeypatch):
    seen, foresee = [], forecast.foresee_on_core

    def noted(*arguments):
        seen.append(arguments[-1])
        return foresee(*arguments)

    monkeypatch.setattr(forecast, "foresee_on_core", noted)
    foreseen(use_of(NEIGHBOURS), {"given": None}, small_cpu)
    monkeypatch.setattr(forecast, "_most", lambda chip: N)
    foreseen(use_of(NEIGHBOURS), {"given": None}, small_cpu)
    foreseen(use_of(NEIGHBOURS), {"given": None}, "epyc_genoa")
    assert seen == [2, 1, 2]


def test_cells_are_gathered_and_then_scattered_to():
    use, chip = use_of(CELLS), machine_of("h200")
    every = [*forecast._indices(use, None, None, chip)]
    assert [one.kernel for one in every] == ["gather", "scatter"]
    pieces = every[0].found.reshape(*use.cells.shape, 2)  # of 16 bytes: three coordinates and a number
    np.testing.assert_array_equal(pieces, use.cells[:, :, None] * 2 + [0, 1])
    one = Use(CELLS, COMPILED, use.items, cells=use.cells)
    np.testing.assert_array_equal(next(forecast._indices(one, None, None, chip)).found, use.cells)
    np.testing.assert_array_equal(every[1].found, use.cells.ravel())
    assert foreseen(use, {"given": None}, "h200")["given"] == sum(
        forecast._time(one, chip, 0) for one in every
    )


def test_rows_and_columns_of_a_matrix_are_put_in_order():
    use, order = use_of(MATRIX, 64), np.random.default_rng(2).permutation(64)
    found = forecast._product(use, order, 10**6).found
    np.testing.assert_array_equal(found.toarray(), use.matrix.toarray()[np.ix_(order, order)])


def test_the_middle_has_the_rows_of_so_many_entries():
    begin = np.array([0, 1, 2, 50, 51, 60, 100])
    assert forecast._middle(begin, 100) == (slice(0, 6), 1.0)
    part, share = forecast._middle(begin, 20)
    assert (part, share) == (slice(2, 5), 100 / 58)
    assert forecast._middle(np.array([0, 100, 101]), 10) == (slice(0, 1), 1.01)


def test_a_function_of_the_users_is_refused():
    use = Use(OWN, OWN, 9, function=len, arrays=(np.zeros(9),))
    with pytest.raises(UsageError, match="--machine h200 beside a function of your own"):
        foreseen(use, {"given": None}, "h200")


def test_more_loads_than_an_index_names_are_refused(small_cpu):
    use = Use(TRACE, "numpy", 2**28, trace=np.arange(10), item_bytes=1024)
    with pytest.raises(ValueError, match=r"4,294,967,296 loads of 64; allowed: up to 2\^31"):
        foreseen(use, {"given": np.broadcast_to(0, 2**28)}, small_cpu)


def test_wrong_orders_and_single_items_are_told():
    with pytest.raises(ValueError, match="order 'short' has 5 items; allowed: 4,096"):
        foreseen(use_of(NEIGHBOURS), {"short": np.arange(5)}, "h200")
    with pytest.raises(ValueError, match="items = 1"):
        foreseen(Use(TRACE, COMPILED, 1, trace=np.zeros(3, int)), {"given": None}, "h200")


@pytest.mark.parametrize("name", ["h300", "README.md"])
def test_an_unknown_machine_is_told_with_those_known(name):
    with pytest.raises(UsageError, match=f"--machine {name}: .*allowed: .*h200.*epyc_genoa.*or a file"):
        machine_of(name)


@pytest.mark.parametrize("folder", [GPU_FOLDER, CPU_FOLDER])
def test_a_file_of_a_machine_is_as_good_as_its_name(folder):
    for file in Path(folder).glob("*.toml"):
        assert machine_of(str(file)) == machine_of(file.stem)


def test_errors_are_those_of_the_kernel_and_the_machine(small_cpu):
    assert error_of("h200", NEIGHBOURS) == "model: gather; its gains were foreseen a third too large"
    assert "gather and scatter" in error_of("h100", CELLS)
    assert error_of(str(GPU_FOLDER / "h200.toml"), MATRIX).endswith("at worst, on other GPUs")
    assert "wrong by 7 % in the median" in error_of("epyc_genoa", TRACE)
    assert "wrong by 7 to 16 % in the median, by 68 % at worst, on other CPUs" in error_of(small_cpu, TRACE)
    assert error_of("epyc_genoa", MATRIX).endswith("compiled loops were up to 3 times as large")
    for kind in KINDS:
        assert all(len(error_of(name, kind)) < 170 for name in (*GPUS, *CPUS))


def test_the_sentence_has_the_largest_gain_first():
    gains = {"given": 1.0, "row": 2.04, "hilbert": 3.1, "shuffled": 0.62}
    found = sentence(gains, "h200", "model: gather")
    assert found == "Foreseen on h200: hilbert 3.1, row 2.0, shuffled 0.6 (model: gather)."

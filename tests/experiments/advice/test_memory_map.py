"""The map of memory: its dots are those of the data, at their places, and are drawn from its table alone."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.spatial import cKDTree

import sfc
from experiments.advice import memory_map
from experiments.advice.candidates import GIVEN
from experiments.advice.memory_map import MOST, draw, rows_of_map, title_of, without_map
from experiments.advice.uses import CELLS, CUTOFF, MATRIX, NEIGHBOURS, OWN, TRACE, Use

N = 4000
ORDER = np.random.default_rng(7).permutation(N)
PLACES = np.argsort(ORDER)  # of the items


def use_of(kind: str) -> Use:
    random = np.random.default_rng(3)
    points = random.random((N, 3)) * 10
    options = {
        CUTOFF: {"points": points, "reach": 0.5}, NEIGHBOURS: {"points": points[:, :2], "reach": 4},
        OWN: {"points": points, "function": len, "arrays": (points,)},
        CELLS: {"cells": random.integers(0, N, (5000, 3))},
        MATRIX: {"matrix": scipy.sparse.random_array((N, N), density=1e-3, rng=random, format="csr")},
        TRACE: {"trace": random.integers(0, N, 9000)},
    }[kind]  # fmt: skip
    return Use(kind, "own" if kind == OWN else "compiled", N, **options)


def maps_of(use: Use, order=ORDER) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a map, as given and in another order."""
    table = pd.DataFrame(rows_of_map(use, "other", order))
    return tuple(table[table["order"] == name].reset_index(drop=True) for name in (GIVEN, "other"))


def items_at(places: pd.Series) -> np.ndarray:
    return np.rint(places * N).astype(int).to_numpy()


@pytest.fixture
def drawn(monkeypatch):
    """The figure that is drawn, and its title, by `drawn(table, folder)`; it is not written."""
    kept: list = []
    monkeypatch.setattr(memory_map.figures, "titled", lambda figure, title, *_: kept.append((figure, title)))

    def once(table, folder):
        draw(table, folder)
        return kept.pop() if kept else None

    yield once
    plt.close("all")


@pytest.mark.parametrize("kind", [CUTOFF, NEIGHBOURS, OWN, CELLS, MATRIX, TRACE])
def test_both_orders_show_the_same_items_at_their_places(kind):
    given, other = maps_of(use_of(kind))
    assert 100 < len(given) == len(other) <= MOST
    np.testing.assert_array_equal(items_at(other["place"]), PLACES[items_at(given["place"])])
    assert len({*given["what"], *other["what"]}) == 1


@pytest.mark.parametrize(("kind", "axes"), [(NEIGHBOURS, [0, 1]), (CUTOFF, [0, 2]), (OWN, [0, 2])])
def test_points_are_where_they_are(kind, axes):
    use = use_of(kind)
    given, other = maps_of(use)
    for dots in (given, other):
        np.testing.assert_array_equal(dots[["x", "y"]], use.points[items_at(given["place"])][:, axes])
    assert given["across"][0] + given["up"][0] == " (unit of the data)".join(["x", "xyz"[axes[1]], ""])


def test_points_of_a_cube_are_a_slab_around_the_middle_across_y():
    use = use_of(CUTOFF)
    off = np.abs(use.points[:, 1] - np.median(use.points[:, 1]))
    shown = np.zeros(N, bool)
    shown[items_at(maps_of(use)[0]["place"])] = True
    assert off[shown].max() < off[~shown].min()


@pytest.mark.parametrize(("flat", "seen"), [(0, "yz"), (1, "xz"), (2, "xy")])
def test_points_of_a_flat_cloud_are_seen_from_its_thin_side_at_any_height(flat, seen):
    use = use_of(CUTOFF)
    use.points[:, flat] *= 0.1
    dots = maps_of(use)[0]
    assert dots["across"][0][0] + dots["up"][0][0] == seen
    shown = use.points[items_at(dots["place"]), flat]
    assert np.ptp(shown) == pytest.approx(np.ptp(use.points[:, flat]), rel=0.01)


def test_a_stray_point_does_not_decide_what_is_seen(drawn, tmp_path):
    use = use_of(NEIGHBOURS)
    use.points[5] = 1e30
    figure, _ = drawn(pd.DataFrame(rows_of_map(use, "other", ORDER)), tmp_path)
    for low, high in (figure.axes[0].get_xlim(), figure.axes[1].get_ylim()):
        assert low == pytest.approx(0, abs=0.2)
        assert high == pytest.approx(10, abs=0.2)


def test_neighbours_are_as_far_apart_in_memory_as_it_says():
    use = use_of(NEIGHBOURS)
    use.points[::2] = use.points[1::2] + 20 * np.arange(1, N // 2 + 1)[:, None]
    use.points[1::2] = use.points[::2]  # twins: each is the nearest of the other
    chosen = items_at(maps_of(use)[0]["place"])
    near = cKDTree(use.points).query(use.points, 2)[1]
    nearest = np.where(near[:, 0] == np.arange(N), near[:, 1], near[:, 0])[chosen]
    assert (np.abs(nearest - chosen) == 1).all()
    for dots, at in zip(maps_of(use), (np.arange(N), PLACES), strict=True):
        assert set(dots["apart"]) == {np.median(np.abs(at[chosen] - at[nearest]))}


def test_dots_of_a_matrix_are_its_entries_with_rows_upwards():
    use = use_of(MATRIX)
    dense = use.matrix.toarray()
    given, other = maps_of(use)
    assert given["up"][0].startswith("row")
    assert (dense[items_at(given["y"]), items_at(given["x"])] != 0).all()
    assert (dense[ORDER][:, ORDER][items_at(other["y"]), items_at(other["x"])] != 0).all()
    assert len(given.drop_duplicates(["x", "y"])) == len(given) == MOST
    assert other["apart"][0] == pytest.approx(N * np.median(np.abs(other["x"] - other["y"])), abs=0.1)


def test_dots_of_cells_are_pairs_of_different_items_of_a_cell():
    use = use_of(CELLS)
    use.cells[:] = np.arange(3 * len(use.cells)).reshape(-1, 3) % (N - N % 3)
    given, _ = maps_of(use)
    x, y = items_at(given["x"]), items_at(given["y"])
    np.testing.assert_array_equal(x // 3, y // 3)
    assert {*(x - y)} == {-2, -1, 1, 2}  # each pair of corners, both ways round


def test_dots_of_a_trace_are_its_reads():
    use = use_of(TRACE)
    given, other = maps_of(use)
    turns = given["x"].astype(int)
    np.testing.assert_array_equal(items_at(given["place"]), use.trace[turns])
    assert given["y"].equals(given["place"])
    steps = np.abs(PLACES[use.trace[turns]] - PLACES[use.trace[turns + 1]])
    assert other["apart"][0] == np.median(steps)


@pytest.mark.parametrize("use", [
    Use(CELLS, "numpy", N, cells=np.arange(N)[:, None]), Use(CELLS, "numpy", N, cells=np.empty((0, 4), int)),
    Use(MATRIX, "scipy", N, matrix=scipy.sparse.csr_array((N, N))),
    Use(TRACE, "numpy", N, trace=np.array([3])), Use(OWN, "own", N),
], ids=["vertices", "no cells", "no entries", "one read", "no points"])  # fmt: skip
def test_there_is_no_map_where_nothing_is_used_together(use):
    assert rows_of_map(use, "other", ORDER) == []


def test_equal_data_has_an_equal_map():
    assert rows_of_map(use_of(MATRIX), "a", ORDER) == rows_of_map(use_of(MATRIX), "a", ORDER)


@pytest.mark.parametrize(("name", "order", "message"), [
    (GIVEN, ORDER, "name = 'given'; allowed"), ("a", ORDER[1:], "order of 3,999 items; .* all 4,000"),
])  # fmt: skip
def test_what_is_no_other_order_is_refused(name, order, message):
    with pytest.raises(ValueError, match=message):
        rows_of_map(use_of(TRACE), name, order)


def test_the_title_says_how_far_apart_items_lie():
    rows = pd.DataFrame({"form": "points", "order": [GIVEN, "row"], "apart": [1234.0, 1.5]})
    said = "A point and its nearest neighbour lie 1,234 items apart as given, 1.50 along row (median)"
    assert title_of(rows) == said
    assert " lie 1 item apart as given, 2 along row (" in title_of(rows.assign(apart=[1.0, 2.0]))


def test_a_good_order_brings_neighbours_together():
    use = use_of(CUTOFF)
    given, other = maps_of(use, sfc.argsort(use.points, "hilbert"))
    assert other["apart"][0] < given["apart"][0] / 20


def test_a_map_is_drawn_from_the_table_of_a_run_beside_its_times(tmp_path):
    times = pd.DataFrame({"ordering": [GIVEN, "row"], "round": 0, "time_ms": [2.0, 1.0]})
    table = pd.concat([times, pd.DataFrame(rows_of_map(use_of(CUTOFF), "row", ORDER))], ignore_index=True)
    table.to_parquet(tmp_path / "table.parquet")
    draw(pd.read_parquet(tmp_path / "table.parquet"), tmp_path)
    assert (tmp_path / "map.png").exists()
    assert without_map(table)[[*times]].astype(times.dtypes).equals(times)
    assert without_map(times) is times


@pytest.mark.parametrize("kind", [CUTOFF, CELLS, MATRIX, TRACE])
def test_panels_hold_the_dots_of_the_first_run_with_names_of_axes(drawn, tmp_path, kind):
    rows = pd.DataFrame(rows_of_map(use_of(kind), "hilbert", ORDER))
    figure, title = drawn(pd.concat([rows.assign(run=1, x=0.5), rows.assign(run=0)]), tmp_path)
    assert title == title_of(rows)
    given, other, *bars = figure.axes
    assert [panel.get_title() for panel in (given, other)] == ["as given", "along hilbert"]
    assert [bar.get_ylabel() for bar in bars] == ["place in memory (share)"] * (kind == CUTOFF)
    for panel, (_, dots) in zip((given, other), rows.groupby("order", sort=False), strict=True):
        (shown,) = panel.collections
        np.testing.assert_array_equal(shown.get_offsets(), dots[["x", "y"]])
        assert panel.get_xlabel() == rows["across"][0]
        if kind == CUTOFF:
            np.testing.assert_array_equal(shown.get_array(), dots["place"])
            assert shown.get_clim() == (0, 1)
    assert given.get_ylabel() == rows["up"][0]
    assert given.yaxis_inverted() == (kind in (CELLS, MATRIX))


@pytest.mark.parametrize("table", [
    pd.DataFrame({"time_ms": [1.0]}), pd.DataFrame({"what": ["time"], "time_ms": [1.0]}),
])  # fmt: skip
def test_a_table_without_a_map_gives_no_picture(drawn, tmp_path, table):
    assert drawn(table, tmp_path) is None


def test_points_at_one_place_are_drawn(drawn, tmp_path):
    use = Use(NEIGHBOURS, "numpy", N, points=np.ones((N, 2)), reach=2)
    figure, _ = drawn(pd.DataFrame(rows_of_map(use, "other", ORDER)), tmp_path)
    assert figure.axes[0].get_xlim() == (0.5, 1.5)

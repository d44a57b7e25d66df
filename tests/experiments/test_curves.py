"""experiments.curves: its rows are the measures of sfc.locality, its figures every ordering named."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

import sfc
from experiments import curves
from experiments.core import main
from experiments.drawing.charts import draw
from experiments.results.published_dilation import LIMITS

AXES = ["--backend", "cpu", "--size", "1", "3", "15x10", "8x8x4", "2x2x2x2"]
AXES += ["--ordering", "hilbert-2d", "row-2d", "peano-2d", "pancake-3d", "random-3d", "hilbert-4d"]


def run(tmp_path, *arguments) -> Path:
    main(curves.Config, curves.measure, curves.VIEWS, curves.QUICK, [*arguments, "--results", str(tmp_path)])
    return next((tmp_path / "curves").iterdir())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(tmp_path_factory.mktemp("curves"), *AXES)


@pytest.fixture
def table(folder):
    return pd.read_parquet(folder / "table.parquet").set_index(["ordering", "size"])


def test_a_row_is_one_ordering_at_one_size_that_it_has(table):
    expected = {(name, size) for name in ("hilbert-2d", "row-2d", "peano-2d") for size in ("15x10",)}
    expected |= {(name, size) for name in ("hilbert-2d", "peano-2d", "hilbert-4d") for size in ("1", "3")}
    expected |= {("pancake-3d", "8x8x4"), ("random-3d", "8x8x4"), ("hilbert-4d", "2x2x2x2")}
    assert set(table.index) == expected
    assert len(table) == len(expected)


def test_sizes_are_columns_of_numbers(table):
    sides = table[["nx", "ny", "nz", "nw"]]
    assert sides.loc[("peano-2d", "3")].tolist() == [27, 27, 1, 1]
    assert sides.loc[("pancake-3d", "8x8x4")].tolist() == [8, 8, 4, 1]
    assert (table["cells"] == sides.prod(axis=1)).all()
    assert table.loc[("hilbert-2d", "3"), "order"] == 3
    assert math.isnan(table.loc[("hilbert-2d", "15x10"), "order"])


def test_steps_and_states_are_the_curve_s(table):
    assert table.loc[("hilbert-2d", "3"), ["base", "states", "longest_step_cells"]].tolist() == [2, 4, 1]
    assert table["is_continuous"].to_dict() == {
        (name, size): name in ("pancake-3d", "hilbert-4d", "peano-2d", "hilbert-2d") and size != "15x10"
        for name, size in table.index
    }
    assert table.loc[("row-2d", "15x10"), "longest_step_cells"] == 15
    assert table.loc[("hilbert-4d", "1"), "is_closed"]
    assert not table.loc[("hilbert-2d", "3"), "is_closed"]


@pytest.mark.parametrize("place", [("hilbert-2d", "15x10"), ("pancake-3d", "8x8x4"), ("random-3d", "8x8x4")])
def test_measures_are_those_of_sfc_locality(table, place):
    row = table.loc[place]
    name, shape = place[0][:-3], tuple(map(int, place[1].split("x")))
    ordering = sfc.covering(name, shape, **({"seed": 0} if name == "random" else {}))
    for norm, column in ((1, "1"), (2, "2"), (math.inf, "max")):
        found = sfc.locality.dilation(ordering, norm)
        assert row[f"dilation_{column}_mean"] == pytest.approx(found.mean)
        assert row[f"dilation_{column}_worst"] == pytest.approx(float(found.worst))
    for column, found, unit in (
        ("bounding_box", sfc.locality.bounding_box(ordering), ""),
        ("clusters_2", sfc.locality.clusters(ordering, 2), ""),
        ("clusters_4", sfc.locality.clusters(ordering, 4), ""),
        ("edge_stretch", sfc.locality.edge_stretch(ordering), "_cells"),
    ):
        assert row[f"{column}_mean{unit}"] == pytest.approx(found.mean)
        assert row[f"{column}_worst{unit}"] == pytest.approx(float(found.worst))
        assert row[f"{column}_exact"] == found.exact
        assert row[f"{column}_mean_error{unit}"] == pytest.approx(found.error)
    cut = sfc.locality.partition_cut(ordering, 8)
    for column, value in (("cut_faces", cut.cut), ("surface", cut.surface), ("share_error", cut.error)):
        assert row[f"partition_cut_8_{column}"] == pytest.approx(value), column
    assert row["partition_cut_8_share"] == pytest.approx(cut.share)


def test_a_box_too_small_for_a_measure_has_none_of_it(table):
    row = table.loc[("hilbert-2d", "1")]
    assert row[["clusters_4_mean", "clusters_4_worst", "partition_cut_8_share"]].isna().all()
    assert row["clusters_2_mean"] == 1


def test_the_dilation_of_each_limit_is_beside_the_published_one(folder, table):
    compared = pd.read_csv(folder / "dilation.csv", dtype={"norm": str})
    assert compared[["name", "norm"]].to_numpy().tolist() == [
        [name, norm] for name in ("hilbert", "peano") for norm in ("1", "2", "max")
    ]
    assert compared["computed"].tolist() == pytest.approx([9, 6, 6, 32 / 3, 8, 8], rel=1e-6)
    assert compared["published"].tolist() == ["9", "6", "6", "32/3", "8", "8"]
    assert compared["equal"].all()
    assert table.loc[("hilbert-4d", "1"), list(LIMITS.values())].isna().all()
    assert table.loc[("row-2d", "15x10"), list(LIMITS.values())].isna().all()


def test_every_figure_is_there(folder):
    names = {
        *("hilbert-2d", "peano-2d"),
        *("grammar_hilbert-2d", "grammar_peano-2d"),
        *("orderings_15x10", "orderings_8x8x4", "pancake_8x8x4"),
        *("measures", "measures_boxes"),
    }
    assert {path.stem for path in folder.glob("*.png")} == names


@pytest.mark.full
def test_replot_draws_the_same_figures_again(tmp_path, with_contents):
    folder = run(tmp_path / "first", *AXES)
    table = pd.read_parquet(folder / "table.parquet")
    expected_message = json.loads((folder / "provenance.json").read_text())
    del expected_message["table_crc32"]  # of the whole table
    copy = tmp_path / "again" / folder.parent.name / folder.name  # the name of a run is in its figures
    copy.mkdir(parents=True)
    (copy / "provenance.json").write_text(json.dumps(expected_message))
    few = table[(table["ordering"] == "hilbert-2d") & table["order"].notna()]
    few.to_parquet(copy / "table.parquet")
    with pytest.raises(SystemExit) as stop:
        main(curves.Config, curves.measure, curves.VIEWS, curves.QUICK, ["--replot", str(copy)])
    assert stop.value.code == 0
    assert (copy / "hilbert-2d.png").read_bytes() == (folder / "hilbert-2d.png").read_bytes()


def test_the_measures_compared_are_a_table_too(folder, table):
    compared = pd.read_csv(folder / "measures.csv").set_index(["ordering", "size"])
    assert set(compared.index) == {place for place in table.index if "x" in place[1]}
    for column in curves.COMPARED:
        assert compared[column].to_numpy() == pytest.approx(
            table.loc[compared.index, column].to_numpy(float), nan_ok=True
        )


def test_by_default_all_is_measured_but_curves_with_too_many_cells():
    assert set(curves.known()) - set(curves.Config().ordering) == {"peano-4d"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"ordering": ("hilbrt-2d",)},
            "unknown ordering 'hilbrt-2d'; allowed: one of .*gilbert-2d, .*hilbert-3d",
        ),
        ({"ordering": ("butz-2d",)}, "unknown ordering 'butz-2d'"),
        ({"size": ("0",)}, "--size 0; allowed: an order from 1, or a box of 2 to 4 sides"),
        ({"size": ("4x",)}, "--size 4x; allowed"),
        ({"size": ("4x-4",)}, "--size 4x-4; allowed"),
        ({"size": ("2x2x2x2x2",)}, "--size 2x2x2x2x2; allowed: .* of 2 to 4 sides"),
        ({"ordering": ("hilbert-2d",), "size": ("11",)}, "hilbert-2d has 4,194,304 cells; .*up to 1,048,576"),
        ({"size": ("2000x2000",)}, "--size 2000x2000 of .*-2d has 4,000,000 cells; .*smaller size"),
        ({"size": ("9" * 5000,)}, "allowed: an order from 1"),
        (
            {"ordering": ("hilbert-2d",), "size": ("99999999999",)},
            "order .* = 99999999999; allowed",
        ),
        ({"seed": -1}, "--seed = -1; allowed: an integer of at least 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        curves.Config(**change)


def test_the_heat_map_marks_what_is_sampled():
    rows = pd.DataFrame({"dilation_2_exact": [True, False], "edge_stretch_exact": [False, True]})
    assert curves._signs(rows, "dilation_2_mean") == ["", "≈"]
    assert curves._signs(rows, "dilation_2_worst") == ["", "≥"]
    assert curves._signs(rows, "edge_stretch_worst_cells") == ["≥", ""]


def test_only_a_pancake_of_whole_cubes_is_drawn_and_what_is_not_is_said(tmp_path, capsys):
    arguments = ["--ordering", "pancake-3d", "hilbert-2d", "--size", "3x3x2", "40x40"]
    folder = run(tmp_path, *arguments)
    assert {path.stem for path in folder.glob("*.png")} == {
        *("orderings_3x3x2", "grammar_hilbert-2d", "measures", "measures_boxes")
    }
    assert "measured, not drawn: hilbert-2d, size 40x40, 1,600 cells" in capsys.readouterr().err


def test_a_sampled_worst_is_shown_as_a_bound_and_never_as_the_best(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(curves.style, "save", lambda figure, out, name, *_: drawn.append(figure))
    rows = list(curves.measure(curves.Config(ordering="row-2d", size="256x160")))
    table = pd.DataFrame([{"ordering": "row-2d", "size": "256x160", **row} for row in rows])
    assert not table["dilation_2_exact"].any()
    draw(curves.VIEWS, table, tmp_path)
    (figure,) = drawn
    weights = {text.get_text(): text.get_weight() for text in figure.axes[0].texts}
    bounds = {text for text in weights if text.startswith("≥")}
    assert bounds
    assert all(weights[text] == "normal" for text in bounds)
    assert any(text.startswith("≈") and weights[text] == "bold" for text in weights)

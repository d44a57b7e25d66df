"""Charts, colours, pictures and numbers of the page."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from experiments import timing
from experiments.results.baselines import LATTICE, SHUFFLED
from experiments.results.charts import Chart
from experiments.results.claims.queries import number
from experiments.results.page import build as page
from experiments.results.page import charts, numbers, pictures, runs, screen_colours, specs
from experiments.results.page.chart_list import CHARTS, chart_of, on

pytestmark = pytest.mark.quick
EXPERIMENTS = (
    "cache_hit", "cavity", "decay", "encode", "flocking", "interval", "ladder", "reorder_cost", "searches",
    "surface", "timing",
)  # fmt: skip


def test_a_chart_of_an_unknown_run_is_refused():
    with pytest.raises(ValueError, match=r"timing/h200_three_runs.*allowed"):
        charts.rows(CHARTS["worth"], {})


def test_points_of_the_page_are_those_of_an_experiment_on_a_kept_run():
    gain = chart_of(timing.VIEWS, "gain_n")
    points = on(gain, "timing/h100", "ordering != 'row'", over=("lattice",))
    assert points.where == f"{gain.measures[0].where} and ordering != 'row'"
    assert (points.run, points.over, points.value) == ("timing/h100", ("lattice",), "time_ms")
    # what tells figures, panels and points apart
    assert points.each == ("n", "search", "precision", "fused", "filling_fraction", "ordering")


def test_charts_of_the_page_are_charts_of_experiments():
    views = [view for name in EXPERIMENTS for view in import_module(f"experiments.{name}").VIEWS]
    drawn = {
        (points.value, points.form) for view in views if isinstance(view, Chart) for points in view.measures
    }
    for chart in CHARTS.values():
        assert {points.run.partition("/")[0] for points in chart.measures} <= {*EXPERIMENTS, "speed_up"}
        for points in chart.measures:  # but for the age of the box, whose windows have a sum
            assert (points.value, points.form) in drawn or points.form == "gain of sums", chart.name


def test_parts_of_a_bar_lie_one_behind_the_other():
    chart = CHARTS["phases"]
    kept = {run.name: run for run in runs.kept()}
    rows = charts.rows(replace(chart, points=chart.points[:1]), kept)
    assert {row["phase"] for row in rows} == {"force", "build"}  # a fused step
    first = charts.chosen(chart, rows)
    specified = specs.specification(chart, rows)
    (bars,) = specified["layer"]
    assert bars["mark"]["type"] == "bar"
    assert bars["encoding"]["x"]["stack"] == "zero"
    assert specs.picture(specified, first).count('aria-roledescription="bar"') == len(first)


@pytest.mark.parametrize(("name", "form"), [("surface", "~g"), ("sizes", "~s"), ("box", "%")])
def test_an_axis_has_parts_of_a_cache_counts_or_percent(name, form):
    chart = CHARTS[name]
    run = {one.name: one for one in runs.kept()}
    specified = specs.specification(chart, charts.rows(replace(chart, points=chart.points[:1]), run))
    assert f"'format': '{form}'" in str(specified)


def test_values_are_shown_as_readers_know_them():
    assert charts.shown("filling_fraction", 0.05) == "5 %"
    assert charts.shown("n", 2**21) == "2^21"
    assert charts.shown("n", np.int64(10_000)) == "10,000"
    assert charts.shown("speed", 0.008) == "0.008"
    assert charts.shown("ordering", "row") == "row"


def test_first_choices_of_each_chart_show_six_series_or_fewer():
    kept = {run.name: run for run in runs.kept()}
    for name in ("cost", "flock", "searches"):
        chart = CHARTS[name]
        rows = charts.rows(chart, kept)
        first = charts.chosen(chart, rows)
        assert 1 <= len({row[chart.series] for row in first}) <= 6
        specified = specs.specification(chart, rows)
        assert specified["layer"][-1]["name"] == "points"
        assert specs.picture(specified, first).startswith("<svg")


@pytest.mark.full
def test_no_point_of_a_chart_is_drawn_twice():
    kept = {run.name: run for run in runs.kept()}
    for chart in CHARTS.values():
        places = [tuple(row[name] for name in ("at", *chart.columns)) for row in charts.rows(chart, kept)]
        twice = {place for place in places if places.count(place) > 1}
        assert not twice, chart.name


def test_colours_of_orders_stand_out_from_both_pages_and_from_each_other():
    names = ["row", "morton", "peano", "hilbert", LATTICE, SHUFFLED]  # of the charts
    colours, shapes = screen_colours.of_orders(names)
    for colour in colours:
        for back in (screen_colours.LIGHT, screen_colours.DARK):
            assert screen_colours.contrast(colour, back) >= 3
    assert len(set(zip(colours, shapes, strict=True))) == len(names)
    css = (page.HERE / "page.css").read_text()
    assert f"--panel: {screen_colours.LIGHT};" in css
    assert f"--panel: {screen_colours.DARK};" in css


def test_shapes_are_those_of_the_figures():
    assert screen_colours.shape("o") == "circle"
    assert screen_colours.shape("s") == "M-1,1L1,1L1,-1L-1,-1Z"
    assert screen_colours.shape("^").startswith("M0,-1L")  # its point is at the top
    assert len({screen_colours.shape(marker) for marker in "osDdv^<>pPX*h8"}) == 14


def test_contrast_is_that_of_the_standard():
    assert screen_colours.contrast("#ffffff", "#000000") == pytest.approx(21)
    assert screen_colours.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_large_pictures_are_made_small(tmp_path):
    Image.new("RGB", (3000, 600), "red").save(tmp_path / "wide.png")
    held = pictures.embed(tmp_path, "wide.png")
    assert (held.width, held.height) == (pictures.WIDEST, 240)
    assert held.data.startswith("data:image/webp;base64,")


def test_a_picture_that_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.png cannot be read.*allowed"):
        pictures.embed(tmp_path, "none.png")


def test_a_heading_that_is_missing_is_named(tmp_path):
    (tmp_path / "README.md").write_text("# Results\n\n## Here\n\ntext with [a link](details/gas.md)\n")
    assert page.part_of(tmp_path / "README.md", "Here") == "<p>text with a link</p>\n"
    with pytest.raises(ValueError, match=r"no heading '## There'; allowed"):
        page.part_of(tmp_path / "README.md", "There")
    with pytest.raises(ValueError, match=r"none\.md cannot be read"):
        page.part_of(tmp_path / "none.md", "There")


def test_a_sentence_that_the_tables_contradict_is_named():
    rule = "trees.value > 1e9"
    with pytest.raises(ValueError, match=rf"need '{rule}'; found: trees = 65,500 \(one gas\); allowed"):
        numbers.of_page({"trees": number("fence/cpu", "n > 0", "n")}, (rule,))


def test_a_query_of_a_sentence_that_cannot_be_answered_is_named():
    with pytest.raises(ValueError, match=r"query gain: where = 'nothing == 1'.*allowed"):
        numbers.of_page({"gain": number("fence/cpu", "nothing == 1", "n")})

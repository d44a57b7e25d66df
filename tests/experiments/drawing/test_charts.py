"""Figures of charts: their points, names, titles and files."""

from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from experiments.drawing import style
from experiments.drawing.charts import draw, draw_chart, drawer
from experiments.results.charts import (
    BARS,
    DOTS,
    FIRST,
    GAINS,
    LINES,
    ORDERS,
    PARTICLES,
    STAR,
    Chart,
    Layer,
    Marks,
    Points,
    Scale,
    Summary,
    estimates,
)

pytestmark = pytest.mark.quick
TIMES = {"shuffled": 6.0, "row": 2.0, "hilbert": 3.0, "row again": 2.2}
MS = Scale("time (ms)", log=10)
COST = Chart("cost", "{best} takes {value} ms", LINES, Points("time_ms"), PARTICLES, MS, "ordering", "order")
BOTH = Points("time_ms", over=("shuffled", "row"), compared="ordering")
GAIN = Chart("gain", "{best}: {value}", DOTS, BOTH, ORDERS, GAINS, panels="n")


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {"n": n, "fused": fused, "ordering": name, "run": run, "round": 0, "what": "whole",
         "time_ms": ms * n * (1 + 0.1 * run), "floor": float(n)}
        for n in (1, 4)
        for fused in (False, True)
        for name, ms in TIMES.items()
        for run in range(2)
    )  # fmt: skip


@pytest.fixture
def drawn(monkeypatch):
    """Name of each figure that is saved -> the figure."""
    found: dict = {}
    monkeypatch.setattr(style, "save", lambda figure, out, name, rows: found.update({name: figure}))
    yield found
    plt.close("all")


def heights(panel) -> dict[str, list[float]]:
    return {one.get_label(): list(one[0].get_ydata()) for one in panel.containers}


def test_lines_have_the_estimates_and_their_names_at_their_ends(table, drawn, tmp_path):
    draw_chart(COST, table, tmp_path)
    (panel,) = drawn["cost"].axes
    found = estimates(table, COST.points, COST.each).set_index("ordering")["value"]
    assert heights(panel) == {name: found[name].tolist() for name in ("shuffled", "row", "hilbert")}
    assert {"shuffled", "row", "hilbert"} <= {text.get_text() for text in panel.texts}
    assert panel.get_xscale() == panel.get_yscale() == "log"
    assert drawn["cost"].get_suptitle().splitlines()[0].startswith("row takes 8.")
    assert drawn["cost"].get_suptitle().splitlines()[1] == "mean over 2 runs and its 95 % interval"


def test_lines_over_a_single_number_are_rows_of_dots(table, drawn, tmp_path):
    draw_chart(COST, table[table["n"] == 1], tmp_path)
    (panel,) = drawn["cost"].axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["shuffled", "row", "hilbert"]


def test_a_legend_of_rows_of_dots_without_a_series_names_bounds_alone(table, drawn, tmp_path):
    floor, table = Points("floor", statistic="middle", label="floor of memory"), table[table["n"] == 1]
    chart, table = replace(COST, series="search"), table.rename(columns={"ordering": "search"})
    draw_chart(replace(chart, bounds=(floor,)), table, tmp_path)
    legend = drawn["cost"].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["floor of memory"]
    assert legend.get_title().get_text() == ""
    draw_chart(chart, table, tmp_path)
    assert drawn["cost"].axes[0].get_legend() is None


def test_each_baseline_has_a_line_of_panels_without_its_own_row(table, drawn, tmp_path):
    draw_chart(GAIN, table, tmp_path)
    figure = drawn["gain"]
    rows = [[label.get_text() for label in panel.get_yticklabels()] for panel in figure.axes[::2]]
    assert rows == [["row", "hilbert"], ["shuffled", "hilbert"]]
    labels = [panel.get_xlabel() for panel in figure.axes[::2]]
    assert labels == ["gain of a step over\nshuffled memory", "gain of a step over\nrow"]
    assert "grey: noise" in figure.get_suptitle()


def test_a_band_has_the_gains_that_noise_alone_gives(table, drawn, tmp_path):
    for form, axis in ((DOTS, "x"), (LINES, "y")):
        changed = {"panels": ""} if form == DOTS else {"names": PARTICLES, "series": "ordering", "panels": ""}
        draw_chart(replace(GAIN, name=form, form=form, **changed), table, tmp_path)
        panel = drawn[form].axes[0]
        (band,) = (one for one in panel.patches if one.get_zorder() == 0)
        ends = getattr(band.get_extents().transformed(panel.transData.inverted()), f"interval{axis}")
        assert sorted(ends) == pytest.approx([1 / 1.1, 1.1])  # a row again: 2.2 after 2.0


def test_without_a_baseline_other_points_are_drawn_and_the_sentence_is_left_out(table, drawn, tmp_path):
    other = replace(GAIN, points=Points("time_ms", over=("lattice",), compared="ordering"))
    draw_chart(other, table, tmp_path)
    assert drawn == {}
    draw_chart(replace(other, otherwise=Points("time_ms", values=MS)), table, tmp_path)
    assert drawn["gain"].axes[0].get_xlabel() == "time (ms)"
    assert drawn["gain"].get_suptitle().startswith("mean over")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"name": "a{fused}", "files": ("what",)}, {"a", "a_fused"}),
        ({"name": "a_{n}", "names": ORDERS, "form": DOTS, "series": ""}, {"a_1", "a_4"}),
        ({"files": ("n", "what"), "names": ORDERS, "form": DOTS, "series": ""}, {"cost_1", "cost_4"}),
        ({"varying": ("what",)}, set()),
        ({"single": ("n",)}, set()),
        ({"single": ("what",), "varying": ("n",)}, {"cost"}),
    ],
)
def test_figures_are_named_by_the_columns_that_tell_them_apart(table, drawn, tmp_path, changes, names):
    draw_chart(replace(COST, **changes), table, tmp_path)
    assert set(drawn) == names


def test_published_marks_are_drawn_in_the_figures_they_are_of(table, drawn, tmp_path):
    published = pd.DataFrame({"n": [1, 4], "gain": [5.0, 7.0]})
    marked = replace(COST, name="cost{fused}", marks=(Marks("[thesis]", published, "gain", "not fused"),))
    draw_chart(marked, table, tmp_path)
    lines = {name: [line.get_label() for line in figure.axes[0].lines] for name, figure in drawn.items()}
    assert "[thesis]" in lines["cost"]
    assert "[thesis]" not in lines["cost_fused"]


def test_a_bound_is_a_dotted_line_of_all_series(table, drawn, tmp_path):
    draw_chart(replace(COST, bounds=(Points("floor", statistic="middle", label="floor"),)), table, tmp_path)
    panel = drawn["cost"].axes[0]
    (bound,) = (line for line in panel.lines if line.get_label() == "floor")
    assert list(bound.get_ydata()) == [1.0, 4.0]
    assert panel.get_ylim()[0] < 1


def test_at_most_six_series_are_drawn_and_the_title_names_the_others(drawn, tmp_path):
    rows = pd.DataFrame(
        {"n": n, "search": f"s{k}", "run": 0, "round": 0, "time_ms": float(10 - k)}
        for n in (1, 2)
        for k in range(8)
    )
    draw_chart(replace(COST, series="search", fastest=True), rows, tmp_path)
    assert list(heights(drawn["cost"].axes[0])) == [f"s{k}" for k in range(2, 8)]
    assert drawn["cost"].get_suptitle().endswith("the fastest; in the table: s1, s0")


def test_parts_that_do_not_add_up_to_the_whole_are_not_drawn(drawn, tmp_path):
    rows = pd.DataFrame(
        {"ordering": name, "phase": phase, "run": 0, "round": 0, "time_ms": ms}
        for name, whole in (("shuffled", 10.0), ("row", 3.0))
        for phase, ms in (("force", 2.0), ("build", 1.0), ("step", whole))
    )
    bars = Chart("phases", "{best} {value}", BARS, Points("time_ms"), ORDERS, Scale("ms"), "phase",
                 order=("force", "build"), whole="step")  # fmt: skip
    draw_chart(bars, rows, tmp_path)
    widths = [bar.get_width() for bar in drawn["phases"].axes[0].patches]
    assert widths == [0, 2, 0, 1]
    assert "no parts where they differ from the whole by over 15%" in drawn["phases"].get_suptitle()
    assert drawn["phases"].get_suptitle().startswith("row 3.00")


def test_a_chart_that_does_not_fit_its_table_names_itself(table, tmp_path):
    with pytest.raises(ValueError, match=r"chart cost: .*no word for size; allowed: fields"):
        draw_chart(replace(COST, title="{size}"), table, tmp_path)
    with pytest.raises(ValueError, match=r"chart cost: .*absent"):
        draw_chart(replace(COST, series="absent"), table, tmp_path)


def test_views_are_charts_summaries_and_functions(table, drawn, tmp_path):
    seen = []
    draw((COST, Summary(("n", "fused"), "ordering"), lambda *given: seen.append(given)), table, tmp_path)
    assert list(drawn) == ["cost"]
    assert len(pd.read_csv(tmp_path / "summary.csv")) == 12
    assert [out for _, out in seen] == [tmp_path]


def test_one_function_draws_as_before():
    assert drawer(print) is print
    with pytest.raises(TypeError, match="draw = "):
        drawer("draw")
    with pytest.raises(TypeError, match=r"view = 3 .*charts, summaries, tables, and functions"):
        drawer((COST, 3))


def test_a_logarithmic_axis_may_begin_at_zero(table, drawn, tmp_path):
    steps = Scale("steps", "n", log=10, from_zero=True)
    draw_chart(replace(COST, names=steps), table.assign(n=table["n"] - 1), tmp_path)
    panel = drawn["cost"].axes[0]
    assert panel.get_xscale() == "symlog"
    assert panel.get_xlim()[0] == 0


def test_a_view_is_of_the_tables_with_the_column_that_it_needs(table, drawn, tmp_path):
    views = (replace(COST, needs="what"), replace(COST, name="other", needs="part"))
    draw((*views, Summary(("n",), "ordering", needs="part")), table, tmp_path)
    assert set(drawn) == {"cost"}
    assert not list(tmp_path.iterdir())


def test_lines_of_too_many_series_are_rows_of_dots_with_axes_of_their_own(table, drawn, tmp_path):
    more = pd.concat([table, table[table["ordering"] == "row"].assign(ordering="morton")])
    draw_chart(replace(COST, most=2), table, tmp_path)  # row and hilbert, the baseline is not counted
    assert len(drawn["cost"].axes) == 1
    draw_chart(replace(COST, most=2), more, tmp_path)
    small, large = drawn["cost"].axes  # of n = 1 and 4
    names = [label.get_text() for label in small.get_yticklabels()]
    assert names == ["shuffled", "row", "hilbert", "morton"]
    assert small.get_xlim()[1] < large.get_xlim()[1]


def test_baselines_need_not_be_drawn(table, drawn, tmp_path):
    draw_chart(replace(COST, without=("shuffled",)), table, tmp_path)
    assert set(heights(drawn["cost"].axes[0])) == {"row", "hilbert"}
    draw_chart(replace(GAIN, without=("shuffled", "row")), table, tmp_path)
    assert {label.get_text() for panel in drawn["gain"].axes for label in panel.get_yticklabels()} == {
        "hilbert"
    }


def test_a_bound_is_in_the_panels_of_its_axis(table, drawn, tmp_path):
    ratio = Points("time_ms / floor", values=Scale("time over the floor"))
    floor = Points("floor", statistic="middle", label="floor")
    draw_chart(replace(COST, points=(ratio, COST.points), bounds=(floor,)), table, tmp_path)
    shown = [[line.get_label() for line in panel.lines] for panel in drawn["cost"].axes]
    assert ["floor" in labels for labels in shown] == [False, True]


def test_marks_may_be_of_a_baseline(table, drawn, tmp_path):
    marks = pd.DataFrame({"n": [1, 4], "gain": [7.0, 8.0], "over": "row"})
    lines = Chart(
        "gain", "{best}", LINES, BOTH, PARTICLES, GAINS, "ordering", marks=(Marks("paper", marks, "gain"),)
    )
    draw_chart(lines, table, tmp_path)
    drawn_marks = [
        [list(x.get_ydata()) for x in panel.lines if x.get_label() == "paper"] for panel in drawn["gain"].axes
    ]
    assert drawn_marks == [[[]], [[7.0, 8.0]]]


def test_layers_lie_over_the_lines_in_the_colours_of_their_series(table, drawn, tmp_path):
    rows = pd.concat([
        table.assign(where=1.0),
        table[table["ordering"] == "row"].assign(what="model", time_ms=lambda rows: 2 * rows["time_ms"]),
        table[(table["ordering"] == "row") & (table["n"] == 1)].assign(what="best", where=3.0),
        table[(table["ordering"] == "hilbert") & (table["n"] == 1)].assign(what="best", where=float("nan")),
    ])  # fmt: skip
    whole = Points("time_ms", "what == 'whole'")
    model = Layer(Points("time_ms", "what == 'model'", FIRST, each=("run",)))
    star = Layer(Points("time_ms", "what == 'best'", across="where"), STAR)
    draw_chart(replace(COST, points=whole, layers=(model, star)), rows, tmp_path)
    (panel,) = drawn["cost"].axes
    dashed = [line for line in panel.lines if line.get_linestyle() == "--" and line.get_marker() == "None"]
    assert [list(line.get_xdata()) for line in dashed] == [[1, 4], [1, 4]]  # of both runs
    assert {line.get_color() for line in dashed} == {style.look("row").colour}
    assert [line.get_ydata()[0] for line in dashed] == pytest.approx([4.0, 4.4])
    (marked,) = (one for one in panel.containers if one[0].get_marker() == "*")  # the other has no place
    assert list(marked[0].get_xdata()) == [3.0]


def test_panels_that_share_a_linear_axis_show_all_their_points(table, drawn, tmp_path):
    linear = replace(COST, values=Scale("time (ms)", ends=(0, None)), panels="fused")
    rows = table.assign(time_ms=table["time_ms"] * (1 + 9 * table["fused"]))
    draw_chart(linear, rows, tmp_path)
    for panel in drawn["cost"].axes:
        assert panel.get_ylim()[1] > rows["time_ms"].max()


def test_numbers_at_the_ends_of_axes_are_apart_from_the_next_panel(as_published, table, drawn, tmp_path):
    style.use()
    ending = replace(COST, form=DOTS, names=ORDERS, series="", values=Scale("share (%)", ends=(0, 1000)))
    draw_chart(replace(ending, panels="n"), table, tmp_path)
    left, right = drawn["cost"].axes
    drawn["cost"].draw_without_rendering()
    last, first = left.get_xticklabels()[-1], right.get_xticklabels()[0]
    assert (last.get_text(), first.get_text()) == ("1000", "0")
    apart = (first.get_window_extent().x0 - last.get_window_extent().x1) / drawn["cost"].dpi
    assert apart > 0.2  # inches; a layout that counted fewer numbers has half of that left


def test_numbers_of_a_series_go_from_dark_to_light(table, drawn, tmp_path):
    by_size = replace(
        COST, points=Points("time_ms", "ordering == 'row'"), names=Scale("floor", "floor"), series="n"
    )
    draw_chart(by_size, table.iloc[::-1], tmp_path)
    assert list(heights(drawn["cost"].axes[0])) == ["1", "4"]

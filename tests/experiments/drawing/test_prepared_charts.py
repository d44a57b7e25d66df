"""Charts of prepared tables: given intervals, means, bounds of an axis, hollow markers, many panels."""

import numpy as np
import pandas as pd
import pytest

from experiments.drawing import charts, film, style
from experiments.results.charts import (
    DOTS,
    FIRST,
    GIVEN,
    HOLLOW,
    LINES,
    MEAN,
    Chart,
    Layer,
    Marks,
    Points,
    Scale,
    Table,
    estimates,
)

X, Y = Scale("x", "x"), Scale("y", line=5.0)
OTHER = Scale("other")


def gases(**columns) -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 2, 3], "y": [1.0, 2.0, 4.0], "repeat": 0} | columns)


@pytest.fixture
def drawn(monkeypatch):
    figures = {}
    monkeypatch.setattr(style, "save", lambda figure, out, name, rows: figures.setdefault(name, figure))
    style.use()
    return figures


def panels(drawn, chart, table):
    charts.draw((chart,), table, None)
    return drawn[chart.name].axes


def test_a_mean_has_twice_its_standard_error():
    table = gases(x=1)
    (row,) = estimates(table, Points("y", statistic=MEAN), ["x"]).to_dict("records")
    assert row["value"] == table["y"].mean()
    assert row["value_high"] - row["value"] == pytest.approx(2 * table["y"].std() / np.sqrt(3))


@pytest.mark.parametrize("name", ["gain", "gain_median_of_rounds"])
def test_given_intervals_are_drawn_as_they_are(name, drawn):
    ends = ("_low", "_high") if name == "gain" else None
    names = [name, *(name + end for end in ends)] if ends else [
        "gain_median_of_rounds", "gain_lowest_round", "gain_highest_round"
    ]  # fmt: skip
    table = pd.DataFrame([[2.0, 1.5, 3.0]], columns=names).assign(case="a", runs=3, rounds=1, noise_floor=1.2)
    (row,) = estimates(table, Points("gain", statistic=GIVEN), ["case"]).to_dict("records")
    assert (row["value"], row["value_low"], row["value_high"], row["noise_floor"]) == (2.0, 1.5, 3.0, 1.2)
    points, axis = Points("gain", statistic=GIVEN), Scale("gain", log=10)
    (panel,) = panels(drawn, Chart("gains", "", DOTS, points, Scale("", "case"), axis), table)
    every = [path.vertices[:, 0] for shape in panel.collections for path in shape.get_paths()]
    assert any(1.2 in vertices for vertices in every)  # the noise


def test_a_bound_is_in_the_panel_of_its_axis_and_a_linear_axis_shows_its_line(drawn):
    points = Points("y"), Points("2 * y", values=OTHER)
    chart = Chart("y", "", LINES, points, X, Y, bounds=(Points("3 * y", statistic=FIRST, values=OTHER),))
    first, second = panels(drawn, chart, gases())
    dotted = [[line.get_linestyle() for line in panel.lines].count(":") for panel in (first, second)]
    assert dotted == [0, 1]
    assert first.get_ylim()[1] > 5


def test_panels_that_share_an_axis_show_all_their_points(drawn):
    table = pd.concat([gases(side="left"), gases(side="right", y=[10.0, 20.0, 30.0])])
    for panel in panels(drawn, Chart("y", "", LINES, Points("y"), X, Scale("y"), panels="side"), table):
        assert panel.get_ylim()[0] < 1 < 30 < panel.get_ylim()[1]


def test_five_measures_are_in_lines_of_three_and_whole_numbers_have_whole_ticks(drawn):
    points = tuple(Points(f"{k} * y", values=Scale(f"y {k}")) for k in range(1, 6))
    found = panels(drawn, Chart("y", "", LINES, points, X, Y), gases())
    assert len(found) == 5
    assert len({round(panel.get_position().x0, 2) for panel in found}) == 3
    assert all(tick == int(tick) for tick in found[0].get_xticks())


def test_hollow_markers_have_the_look_of_their_series_and_sources_have_shapes(drawn):
    table = pd.concat([gases(name="a", check=False), gases(name="a", check=True, y=2.0)])
    marks = tuple(Marks(label, gases(), "y") for label in ("one", "two"))
    chart = Chart("y", "", LINES, Points("y", "not check"), X, Scale("y"), "name", marks=marks,
                  layers=(Layer(Points("y", "check"), HOLLOW),))  # fmt: skip
    (panel,) = panels(drawn, chart, table)
    line, hollow, *sources = panel.lines
    assert hollow.get_markerfacecolor() == "none"
    assert (hollow.get_color(), hollow.get_marker()) == (line.get_color(), line.get_marker())
    assert list(hollow.get_ydata()) == [2.0] * 3
    assert len({source.get_marker() for source in sources}) == 2


def test_a_table_without_rows_is_not_written(tmp_path):
    charts.draw(
        (Table("all", lambda table: table), Table("none", lambda table: table[:0])), gases(), tmp_path
    )
    assert [path.name for path in tmp_path.iterdir()] == ["all.csv"]


def test_without_an_encoder_the_last_picture_is_shown(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(film, "can_film", lambda: False)
    shown = []
    film.film_or_say(None, (shown.append(k) for k in range(3)), tmp_path / "film.mp4")
    assert shown == [0, 1, 2]
    assert film.WITHOUT in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_bound_of_a_series_that_is_not_drawn_is_left_out(drawn):
    table = pd.concat([gases(name=f"series {k}") for k in range(style.MOST_LINES + 1)])
    chart = Chart("y", "", LINES, Points("y"), X, Scale("y"), "name", bounds=(Points("y + 1"),))
    (panel,) = panels(drawn, chart, table)
    dotted = [line for line in panel.lines if line.get_linestyle() == ":"]
    assert len(dotted) == style.MOST_LINES


def test_a_word_of_a_title_is_the_one_that_is_known(drawn):
    table = pd.concat([gases(name="a", model=None), gases(name="b", model="block")])
    chart = Chart("y", "model {model}", LINES, Points("y"), X, Scale("y"), "name")
    (panel,) = panels(drawn, chart, table)
    assert panel.figure.get_suptitle().splitlines()[0] == "model block"


def test_what_a_chart_has_no_look_for_is_refused():
    fields = ("y", "", LINES, Points("y"), X, Scale("y"))
    with pytest.raises(ValueError, match=r"number of bounds.*4.*at most 3"):
        Chart(*fields, bounds=(Points("y"),) * 4)
    assert Chart(*fields, bounds=(*[Points("y")] * 3, Points("y", values=OTHER)))  # of other panels
    with pytest.raises(ValueError, match=r"number of marks.*at most 3"):
        Chart(*fields, marks=(Marks("one", gases(), "y"),) * 4)
    with pytest.raises(ValueError, match=r"series.*colours the layers"):
        Chart(*fields, layers=(Layer(Points("y")),))

"""What figures have in common: frames that wide intervals leave, axes of gains, legends of several panels."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments.drawing import figures, style


@pytest.fixture
def panel():
    figure, panel = plt.subplots()
    yield panel
    plt.close(figure)


def gains(centres, low, high) -> pd.DataFrame:
    return pd.DataFrame({"gain": centres, "gain_low": low, "gain_high": high}, dtype=float)


def test_an_axis_of_gains_holds_narrow_intervals_one_and_the_noise(panel):
    figures.whole_centres_on_log(
        panel, gains([2.0, 3.0], [1.9, 2.8], [2.1, 3.3]), "gain", [1.0, 1.1, 1 / 1.1]
    )
    low, high = panel.get_ylim()
    assert panel.get_yscale() == "log"
    assert 0.8 < low < 1 / 1.1
    assert 3.3 < high < 4


def test_wide_intervals_leave_the_frame(panel):
    figures.whole_centres_on_log(panel, gains([2.0, 3.0], [1e-6, 2.8], [2.1, 1e9]), "gain", [1.0])
    low, high = panel.get_ylim()
    assert 0.8 < low < 1
    assert 3.0 < high < 6


@pytest.mark.parametrize("highest", [1.02, 1.3, 3, 15, 200, 30000])
def test_ticks_of_gains_are_plain_numbers(panel, highest):
    figures.whole_centres_on_log(panel, gains([1.0, highest], [1.0, highest], [1.0, highest]), "gain", [1.0])
    low, high = panel.get_ylim()
    panel.figure.canvas.draw()
    message = [
        tick.label1.get_text()
        for tick in panel.yaxis.get_major_ticks()
        if low <= tick.get_loc() <= high and tick.label1.get_text()
    ]
    assert 2 <= len(message) <= 10
    assert all(np.isfinite(float(text)) and "$" not in text for text in message)
    assert len(panel.yaxis.get_minorticklocs()) == 0


def test_an_axis_of_gains_may_be_the_horizontal_one_and_hold_more(panel):
    figures.whole_centres_on_log(panel, gains([2.0], [2.0], [2.0]), "gain", [9.0], horizontal=True)
    assert panel.get_xscale() == "log"
    assert panel.get_xlim()[1] > 9


def test_no_gains_have_an_axis_with_one(panel):
    figures.whole_centres_on_log(panel, gains([], [], []), "gain", [1.0])
    low, high = panel.get_ylim()
    assert low < 1 < high


def test_times_on_a_logarithmic_axis(panel):
    times = pd.DataFrame({"time_ms": [1.0, 4.0], "time_ms_low": [1e-9, 3.0], "time_ms_high": [1.1, 1e9]})
    figures.whole_centres_on_log(panel, times, "time_ms", others=(0.2,))
    low, high = panel.get_ylim()
    assert 0.15 < low < 0.2
    assert 4 < high < 8


def test_intervals_up_to_a_factor_of_two_and_a_half_are_in_the_frame(panel):
    figures.whole_centres_on_log(panel, gains([2.0, 3.0], [0.81, 2.8], [2.1, 7.4]), "gain", [1.0])
    low, high = panel.get_ylim()
    assert low < 0.81
    assert 7.4 < high < 9


def test_a_legend_of_several_panels_has_each_name_once():
    figure, panels = plt.subplots(1, 2)
    for panel, names in zip(panels, ("ab", "bc"), strict=True):
        for name in names:
            panel.plot([0], [0], label=name)
    figures.legend_outside(panels[1], "order", panels)
    assert [text.get_text() for text in panels[1].get_legend().get_texts()] == list("abc")
    figures.legend_outside(panels[1], "order")
    assert [text.get_text() for text in panels[1].get_legend().get_texts()] == list("bc")
    plt.close(figure)


def test_a_file_name_has_the_values_that_vary():
    table = pd.DataFrame({"n": [1, 1], "phi": [0.1, 0.2], "search": ["a", "b"]})
    assert figures.file_name("gain", table, ["n", "phi", "search"], (1, 0.2, "b")) == "gain_0_2_b"
    assert figures.file_name("gain", table, ["n"], (1,)) == "gain"


def test_error_bars_reach_from_the_centre_to_the_ends_and_never_beyond():
    ends = pd.DataFrame({"centre": [2.0, 3.0], "low": [1.5, 3.1], "high": [4.0, 3.0]})
    assert figures.error_bars(ends).tolist() == [[0.5, 0.0], [2.0, 0.0]]


def looks(names: str) -> dict:
    return style.lines_in_turn(list(names), "name")


def test_a_line_with_intervals_is_broken_where_another_has_a_point(panel):
    found = pd.DataFrame({"x": [1, 2, 3, 1, 3], "name": list("aaabb"), "gain": [1.0, 2, 3, 5, 6]})
    found = found.assign(gain_low=found["gain"], gain_high=found["gain"])
    figures.lines(panel, found, "x", "gain", looks("ab"))
    ends = [np.asarray(container[0].get_ydata(), float) for container in panel.containers]
    assert np.isnan(ends[1][1])
    assert not np.isnan(ends[0]).any()


def test_dots_by_order_have_the_looks_and_the_places_of_their_orders(panel):
    found = gains([1.0, 2.0], [0.9, 1.8], [1.1, 2.2]).assign(ordering=["row", "hilbert"])
    figures.dots_by_order(panel, found, ["hilbert", "peano", "row"], "gain")
    hilbert, _, row = (container[0] for container in panel.containers)
    assert (hilbert.get_xdata()[0], hilbert.get_ydata()[0]) == (2.0, 0)
    assert (row.get_xdata()[0], row.get_ydata()[0]) == (1.0, 2)
    assert hilbert.get_color() == style.look("hilbert").colour
    (interval,) = panel.containers[0].lines[2][0].get_segments()
    assert interval[:, 0] == pytest.approx([1.8, 2.2])
    assert [label.get_text() for label in panel.get_yticklabels()] == ["hilbert", "peano", "row"]
    low, high = panel.get_ylim()
    assert low > high  # the first at the top


@pytest.mark.parametrize("high", [0.15, 0.1, 20.0])
def test_ticks_of_a_horizontal_axis_do_not_overlap(high):
    figure, panel = plt.subplots(figsize=(2.1, 1.5))
    panel.set(xscale="log", xlim=(0.01, high))
    figures.plain_log_ticks(panel, horizontal=True)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in panel.get_xticklabels() if label.get_text()]
    inside = [box for box in boxes if panel.bbox.x0 <= (box.x0 + box.x1) / 2 <= panel.bbox.x1]
    assert all(one.x1 < two.x0 for one, two in itertools.pairwise(inside))
    plt.close(figure)


def test_ticks_of_large_numbers_are_few(panel):
    panel.set(yscale="log", ylim=(1.2e5, 3.4e5))
    figures.plain_log_ticks(panel)
    panel.figure.canvas.draw()
    shown = [tick.label1.get_text() for tick in panel.yaxis.get_major_ticks()]
    assert "200,000" in shown


def test_values_stand_beside_points_and_above_where_the_line_falls(panel):
    found = gains([3.14159, 1.0, 2.0], 0.0, 9.0).assign(x=[3, 1, 2])
    figures.values_at_points(panel, found.assign(gain=[1.5, 1.0, 2.0]), "x", "gain")
    assert [text.get_text() for text in panel.texts] == ["1", "2", "1.5"]
    assert [text.get_ha() for text in panel.texts] == ["right", "right", "center"]


def test_the_value_of_a_near_point_stands_at_the_other_side(panel):
    found = gains([1.0, 1.1, 2.0], 0.0, 9.0).assign(x=[0.01, 0.05, 0.4])
    figures.values_at_points(panel, found, "x", "gain")
    assert [text.get_ha() for text in panel.texts] == ["right", "left", "right"]

"""Names at the ends of lines do not overlap, and lie as near to their lines as that allows."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.drawing import figures, style
from experiments.drawing.style.labels import settle, spread
from tests.tiers import examples

pytestmark = pytest.mark.quick

PLACES = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(wanted=PLACES)
def test_places_are_apart_within_the_panel_and_in_order(wanted):
    found = spread(np.array(wanted), 0.15, 0.0, 1.0)
    assert np.diff(np.sort(found)).min(initial=1) >= 0.15 - 1e-9
    assert found.min() >= -1e-9
    assert found.max() <= 1 + 1e-9
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(found[order]) > 0).all()


@examples(15)
@given(wanted=PLACES)
def test_no_others_are_nearer(wanted):
    wanted = np.sort(np.array(wanted))
    found = spread(wanted, 0.15, 0.0, 1.0)
    best = ((found - wanted) ** 2).sum()
    generator = np.random.default_rng(0)
    for moved in found + generator.normal(0, 0.05, (200, len(found))):
        if np.diff(moved).min(initial=1) >= 0.15 and moved.min() >= 0 and moved.max() <= 1:
            assert ((moved - wanted) ** 2).sum() >= best - 1e-9


def test_places_that_are_apart_stay():
    assert spread(np.array([0.9, 0.1, 0.5]), 0.2, 0, 1) == pytest.approx([0.9, 0.1, 0.5])


def test_too_many_places_begin_at_the_lowest():
    assert spread(np.zeros(4), 0.5, 0, 1) == pytest.approx([0, 0.5, 1, 1.5])
    assert len(spread(np.array([]), 0.5, 0, 1)) == 0


@pytest.fixture
def panel(as_published):
    style.use()
    figure, panel = plt.subplots(figsize=(4, 2))
    yield panel
    plt.close(figure)


def test_names_of_lines_that_end_at_one_point_do_not_overlap(panel):
    for name in "abcd":
        panel.plot([0, 1, 2], [0, 1, np.nan], label=name)
    figures.name_lines(panel, "order")
    settle(panel.figure)
    panel.figure.draw_without_rendering()
    names = [text for text in panel.texts if text.get_text() in "abcd"]
    assert {tuple(name.xy) for name in names} == {(1.0, 1.0)}
    boxes = sorted(plt.Text.get_window_extent(name).bounds for name in names)
    boxes.sort(key=lambda box: box[1])
    assert all(low[1] + low[3] <= high[1] for low, high in itertools.pairwise(boxes))
    assert min(box[0] for box in boxes) > panel.bbox.x1


def test_leaders_cross_no_other_name(panel):
    for name in "abcd":
        panel.plot([0, 1], [0, 1], label=name * 9)
    figures.name_lines(panel, None)
    settle(panel.figure)
    panel.figure.draw_without_rendering()
    leaders = [name.arrow_patch.get_window_extent().x1 for name in panel.texts]
    names = [plt.Text.get_window_extent(name).x0 for name in panel.texts]
    assert max(leaders) <= min(names)


def test_a_name_has_the_colour_of_its_line(panel):
    panel.errorbar([0, 1], [1, 2], [0.1, 0.1], color="#123456", label="a")
    figures.name_lines(panel, None)
    (name,) = panel.texts
    assert (name.get_text(), name.get_color()) == ("a", "#123456")


@pytest.mark.parametrize("case", ["too many", "missing", "no points"])
def test_a_legend_is_drawn_where_ends_cannot_be_named(panel, case):
    for name in "abcdefg" if case == "too many" else "ab":
        panel.plot([0, 1], [np.nan, np.nan] if case == "no points" else [0, 1], label=name)
    before = panel.figure.add_subplot(label="before")
    before.plot([0], [0], label="c" if case == "missing" else "a")
    figures.name_lines(panel, "order", [before, panel])
    assert panel.get_legend() is not None
    assert not panel.texts

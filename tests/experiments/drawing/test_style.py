"""The look of an ordering: its own, and the same in every figure."""

from collections import defaultdict

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from experiments.drawing import style
from experiments.timing import BASELINES

pytestmark = pytest.mark.quick

NAMES = sorted({*BASELINES, *(name for dim in (2, 3, 4) for name in sfc.orderings(dim))})


def look(name: str) -> tuple[str, str]:
    return style.colour(name), style.marker(name)


def test_every_ordering_has_a_colour_and_a_marker_that_together_no_other_has():
    looks = defaultdict(list)
    for name in NAMES:
        looks[look(name)].append(name)
    assert [names for names in looks.values() if len(names) > 1] == []


@pytest.mark.parametrize(
    ("name", "colour", "marker"),
    [
        ("hilbert", "#0072B2", "o"),
        ("morton", "#D55E00", "s"),
        ("row", "#009E73", "^"),
        ("zigzag", "#CC79A7", "D"),
        ("lattice", "#E69F00", "v"),
        ("shuffled", "#56B4E9", "P"),
        ("random", "#000000", "X"),
        ("peano", "#0072B2", "*"),
    ],
)
def test_a_name_keeps_the_look_it_has_in_the_stored_figures(name, colour, marker):
    assert look(name) == (colour, marker)


@given(name=st.text().filter(lambda name: name not in style._KNOWN))
def test_a_curve_of_one_s_own_never_looks_as_a_known_one(name):
    assert look(name) not in {look(known) for known in style._KNOWN}


def test_the_look_of_a_curve_of_one_s_own_is_the_same_in_every_process():
    assert look("coil") == ("#D55E00", "^")


def test_lines_give_each_name_its_look():
    given = style.lines(["row", "coil"])
    for name in ("row", "coil"):
        assert (given["palette"][name], given["markers"][name]) == look(name)


def test_a_figure_is_sharp_and_its_pdf_has_truetype_fonts(as_published, tmp_path):
    style.use()
    figure, panel = plt.subplots(figsize=(2, 1))
    panel.set_xlabel("time of a step (ms)")
    png, pdf = style.save(figure, tmp_path, "figure")
    assert plt.imread(png).shape[:2] == (200, 400)
    assert b"/Subtype /CIDFontType2" in pdf.read_bytes()
    assert b"/Subtype /Type3" not in pdf.read_bytes()

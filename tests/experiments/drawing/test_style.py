"""The look of a memory order: its own, and the same in every figure; files with their origin."""

import string
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

import sfc
from experiments.core import main
from experiments.drawing import style
from experiments.drawing.style import FAMILIES, Origin, look
from experiments.results import reliability
from experiments.results.baselines import AGED, LATTICE
from experiments.timing import BASELINES
from tests.experiments import toy
from tests.tiers import examples

pytestmark = pytest.mark.quick

NAMES = sorted({*BASELINES, *(name for dim in (2, 3, 4) for name in sfc.orderings(dim))})
KNOWN = [name for family in FAMILIES.values() for name in family.members]


def test_every_ordering_is_of_a_family():
    assert set(NAMES) <= set(KNOWN)


def test_every_ordering_is_told_apart_without_colour():
    looks = defaultdict(list)
    for name in NAMES:
        looks[look(name).marker, look(name).dash].append(name)
    assert [names for names in looks.values() if len(names) > 1] == []


def test_a_family_has_its_own_dashes():
    dashes = [family.dash for family in FAMILIES.values()]
    assert len(set(dashes)) == len(dashes)
    assert {look(name).dash for name in ("hilbert", "gilbert", "butz")} == {()}


def test_aged_memory_looks_as_the_lattice_in_whose_order_it_was():
    assert look(AGED) == look(LATTICE)


@examples(10)
@given(
    name=st.text(string.ascii_letters + string.digits + "_-").filter(lambda name: name not in {*KNOWN, AGED})
)
def test_a_curve_of_one_s_own_never_looks_as_a_known_one(name):
    own = look(name)
    assert own.colour not in {look(known).colour for known in KNOWN}
    assert own.dash not in {look(known).dash for known in KNOWN}


def test_the_look_of_a_curve_of_one_s_own_is_the_same_in_every_process():
    assert look("coil")[:2] == ("#DAABD1", "D")


def test_lines_give_each_name_its_look():
    given = style.lines(["row", "coil"])
    for name in ("row", "coil"):
        assert (given["palette"][name], given["markers"][name]) == look(name)[:2]
        assert given["dashes"][name] == look(name).dash


@pytest.mark.parametrize("make", [style.lines_in_turn, style.steps_in_turn])
def test_other_names_differ_in_colour_and_marker(make):
    given = make(list("abcdef"), "search")
    assert len(set(given["palette"].values())) == len(set(given["markers"].values())) == 6


def test_few_takes_one_order_of_each_family_and_keeps_the_order_of_the_names():
    names = ["moore", "gilbert", "hilbert", "row", "zigzag", "gray", "morton", "peano", "tiled", "shuffled"]
    shown = style.few(names)
    assert shown == ["hilbert", "row", "morton", "peano", "tiled", "shuffled"]


@given(names=st.lists(st.sampled_from(NAMES), unique=True), most=st.integers(6, 9))
def test_few_takes_as_many_as_are_allowed_and_no_family_less(names, most):
    shown = style.few(names, most)
    assert len(shown) == min(most, len(names))
    assert shown == [name for name in names if name in shown]
    families = [{*names} & {*family.members} for family in FAMILIES.values()]
    assert all({*shown} & family for family in families if family)


@pytest.fixture
def origin():
    yield style.Origin("a device | n = 8 | run toy/one | commit 0123456")
    style.use()


def test_a_figure_is_sharp_and_its_pdf_has_truetype_fonts(as_published, tmp_path, origin):
    style.use(pdf=True)
    figure, panel = plt.subplots(figsize=(2, 1))
    panel.set_xlabel("time of a step (ms)")
    png, pdf = style.save(figure, tmp_path, "figure")
    assert plt.imread(png).shape[:2] == (130, 260)
    assert b"/Subtype /CIDFontType2" in pdf.read_bytes()
    assert b"/Subtype /Type3" not in pdf.read_bytes()


def test_the_origin_is_below_a_figure_and_in_its_metadata(as_published, tmp_path, origin):
    style.use("Warning: a busy machine", origin, pdf=True)
    figure, _ = plt.subplots(figsize=(4, 2))
    png, pdf = style.save(figure, tmp_path, "figure")
    assert [text.get_text() for text in figure.texts] == [origin.text, "Warning: a busy machine"]
    assert figure.get_figheight() > 2.2  # the panels are not smaller than without it
    with Image.open(png) as picture:
        assert picture.text["Description"] == origin.text
    assert b"run toy/one | commit 0123456" in pdf.read_bytes()
    assert b"CreationDate" not in pdf.read_bytes()


def test_a_figure_has_the_sizes_and_the_warnings_of_its_rows(as_published, tmp_path):
    table = pd.DataFrame({"n": [8, 16], "run": 0, "warning": [reliability.BUSY, reliability.CLOCK]})
    style.use(reliability.footer(table), style.Origin("a device", "8; 16", "run toy/one"))
    for rows, texts in (
        (table[table["n"] == 16], ["a device | n = 16 | run toy/one", f"Warning: {reliability.CLOCK}"]),
        (table[["run"]], ["a device | n = 8; 16 | run toy/one", reliability.footer(table)]),
        (table.assign(warning=""), ["a device | n = 8; 16 | run toy/one"]),
    ):
        figure, _ = plt.subplots(figsize=(6, 2))
        (png,) = style.save(figure, tmp_path, "figure", rows)
        assert [text.get_text() for text in figure.texts] == texts
        with Image.open(png) as picture:
            assert picture.text["Description"] == texts[0]
    style.use()


@pytest.mark.parametrize("layout", ["constrained", "none"])
def test_a_footer_lies_below_all_panels(as_published, tmp_path, origin, layout):
    style.use(origin=origin)
    figure, panel = plt.subplots(figsize=(4, 2), layout=layout)
    panel.set_xlabel("x")
    if layout == "none":
        figure.subplots_adjust(bottom=0.3)
    style.add_footer(figure)
    figure.draw_without_rendering()
    (line,) = figure.texts
    below = min(part.get_window_extent().y0 for part in (panel.xaxis.label, *panel.get_xticklabels()))
    assert line.get_window_extent().y1 < below
    assert panel.get_position().height * figure.get_figheight() > 1  # of 2 inches, with or without it


def test_a_long_title_is_broken_to_the_width(as_published, tmp_path):
    figure, _ = plt.subplots(figsize=(3, 2))
    figure.suptitle("median and range over the rounds of one run; " * 2 + "end\nsecond")
    style.save(figure, tmp_path, "figure")
    lines = figure.get_suptitle().splitlines()
    assert len(lines) > 3
    assert lines[-1] == "second"
    assert max(map(len, lines)) <= 42


@pytest.mark.parametrize("last", ["one run", "GB/s"])
def test_the_lines_of_a_broken_title_are_about_as_long(as_published, tmp_path, last):
    figure, _ = plt.subplots(figsize=(3, 2))
    figure.suptitle(f"mean and interval, which is a long line {last}")
    style.save(figure, tmp_path, "figure")
    first, second = figure.get_suptitle().splitlines()
    assert len(first) < 1.5 * len(second)


def drawn_with_legend(place: str, origin: Origin) -> tuple[Figure, Axes, Bbox]:
    """A figure with a warning in its footer, its panel, and the frame of its legend."""
    style.use(warnings="Warning: a busy machine", origin=origin)
    figure, panel = plt.subplots(figsize=(4, 2))
    panel.plot([0, 1], label="a")
    panel.set(title="title", xlabel="x")
    legend = figure.legend(*panel.get_legend_handles_labels(), loc=place)
    style.add_footer(figure)
    figure.draw_without_rendering()
    return figure, panel, legend.get_window_extent()


def test_a_legend_above_the_panels_lies_above_their_titles(as_published, origin):
    _, panel, box = drawn_with_legend("outside upper center", origin)
    assert box.y0 >= panel.title.get_window_extent().y1


def test_a_legend_below_the_panels_lies_above_the_footer(as_published, origin):
    figure, panel, box = drawn_with_legend("outside lower center", origin)
    assert box.y0 >= max(line.get_window_extent().y1 for line in figure.texts)
    assert box.y1 <= panel.xaxis.label.get_window_extent().y0


def test_two_looks_of_a_figure_are_the_same_file(as_published, tmp_path, origin):
    style.use(origin=origin, pdf=True)
    found = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        figure, panel = plt.subplots(figsize=(2, 1))
        panel.plot([0, 1], [0, 1])
        found.append([path.read_bytes() for path in style.save(figure, tmp_path / folder, "figure")])
    assert found[0] == found[1]


@pytest.mark.parametrize("flags", [[], ["--pdf"]])
def test_a_figure_is_written_as_pdf_on_demand_alone(tmp_path, origin, flags):
    def draw(table, out):
        style.save(plt.figure(figsize=(1, 1)), out, "toy")

    arguments = ["--size", "1", "--colour", "red", "--results", str(tmp_path), *flags]
    main(toy.Config, toy.measure, draw, {}, arguments)
    (run,) = tmp_path.glob("toy/*")
    names = {"toy.png", *(["toy.pdf"] if flags else [])}
    assert {path.name for path in run.glob("toy.*")} == names
    (run / "toy.png").unlink()
    with pytest.raises(SystemExit):
        main(toy.Config, toy.measure, draw, {}, ["--replot", str(run), "--out", str(tmp_path), *flags])
    assert {path.name for path in tmp_path.glob("toy.*")} == names


@pytest.mark.parametrize("kind", ["few colours", "many colours", "transparent"])
def test_a_png_has_few_colours_that_are_near_and_loses_no_line(as_published, tmp_path, kind):
    style.use()
    plt.rcParams["figure.constrained_layout.use"] = False
    figure = plt.figure(figsize=(2, 2))
    if kind != "few colours":
        pixels = np.random.default_rng(0).random((200, 200, 3)) * [1, 1, 0.5]
        figure.add_axes((0, 0, 0.8, 1)).imshow(pixels, aspect="auto", interpolation="nearest")
    if kind == "transparent":
        figure.patch.set_alpha(0.5)
    figure.add_artist(plt.Line2D([0.9, 0.9], [0, 1], color="black", antialiased=False))
    figure.savefig(tmp_path / "whole.png", dpi=130)
    style.write_figure(figure, tmp_path / "few.png")
    plt.close(figure)
    with Image.open(tmp_path / "few.png") as few, Image.open(tmp_path / "whole.png") as whole:
        assert few.info["dpi"] == pytest.approx((130, 130), rel=1e-3)
        after, before = (np.asarray(picture.convert("RGBA")).astype(int) for picture in (few, whole))
        colours = len(np.unique(after.reshape(-1, 4), axis=0))
    assert np.array_equal(after[:, 215:], before[:, 215:])  # the line and the paper
    assert np.array_equal(after, before) == (kind != "many colours")
    if kind == "many colours":
        assert 64 < colours <= style.saving.COLOURS
        assert np.abs(after - before).mean() < 8
        assert (tmp_path / "few.png").stat().st_size < 0.6 * (tmp_path / "whole.png").stat().st_size

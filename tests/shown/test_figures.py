"""The record of a figure: each change that a reader can see is in it, and an artist's choice is not."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from matplotlib.table import table as add_table

from tests.shown import catching, figures
from tests.shown.arrays import MOST_VALUES, digest
from tests.shown.comparing import coarse, differences, digests, to_digits

X, GAINS = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.25, 3.125])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def chart():
    """A figure with every artist that results have: series, intervals, bars, a map, names, a legend."""
    figure, panels = plt.subplots(1, 3)
    figure.suptitle("gain by size")
    left, middle, right = panels
    left.errorbar(X, GAINS, yerr=0.25, label="hilbert", marker="o", capsize=2)
    left.plot(X, GAINS - 1, label="row")
    left.axhline(1.0, color="grey")
    left.fill_between(X, GAINS - 1.2, GAINS - 0.8, color="red", alpha=0.5)
    left.annotate("hilbert", (4.0, 3.125), (1.03, 0.5), "data", "axes fraction")
    left.set(xlabel="n", ylabel="gain", xscale="log")
    left.legend(title="order")
    middle.scatter(GAINS, range(3), label="points")
    middle.barh(range(3), GAINS, label="bars", color="blue")
    middle.set_yticks(range(3), ["hilbert", "row", "peano"])
    right.imshow(np.arange(6.0).reshape(2, 3))
    right.text(0.5, 0.5, "a cell")
    return figure


def row(panel):
    """The series of that name."""
    return panel.lines[-2]


CHANGES = {
    "a point": ("1 / marks / line row", lambda a, b, c: row(a).set_ydata(np.nextafter(GAINS - 1, 9))),
    "a dropped series": ("1 / marks / line row", lambda a, b, c: row(a).remove()),
    "a hidden series": ("1 / marks / line row", lambda a, b, c: row(a).set_visible(False)),
    "a colour": ("1 / marks / line row / look", lambda a, b, c: row(a).set_color("black")),
    "a marker": ("1 / marks / line row / look", lambda a, b, c: row(a).set_marker("^")),
    "the name of a series": ("1 / marks / line row", lambda a, b, c: row(a).set_label("rows")),
    "the end of an interval": (
        "1 / marks / segments hilbert / points",
        lambda a, b, c: a.containers[0][2][0].set_segments([[(x, 1), (x, 2)] for x in X]),
    ),
    "a line of reference": ("1 / marks / line #808080ff", lambda a, b, c: a.lines[-1].set_ydata([2, 2])),
    "a band": ("1 / marks / areas", lambda a, b, c: a.collections[-1].set_verts([[(1, 1), (2, 2)]])),
    "a limit": ("1 / x / limits", lambda a, b, c: a.set_xlim(0.5, 8)),
    "a scale": ("1 / x / scale", lambda a, b, c: a.set_xscale("linear")),
    "a form of numbers": ("1 / y / written", lambda a, b, c: a.yaxis.set_major_formatter("{x:.0%}")),
    "a title of an axis": ("1 / y / label", lambda a, b, c: a.set_ylabel("time")),
    "a title of a panel": ("1 / title", lambda a, b, c: a.set_title("5 %")),
    "a title": ("title", lambda a, b, c: a.figure.suptitle("gain")),
    "a line below": ("texts", lambda a, b, c: a.figure.text(0, 0, "one run")),
    "a legend": ("1 / legend", lambda a, b, c: a.get_legend().remove()),
    "a name in a legend": ("1 / legend / labels", lambda a, b, c: a.get_legend().texts[0].set_text("x")),
    "a text": ("3 / marks / text", lambda a, b, c: c.texts[0].set_text("no cell")),
    "the place of a text": ("3 / marks / text", lambda a, b, c: c.texts[0].set_x(1.0)),
    "what a name is at": ("1 / marks / text hilbert / of", lambda a, b, c: setattr(a.texts[0], "xy", X)),
    "a name of a tick": ("2 / y / ticks", lambda a, b, c: b.set_yticklabels(["a", "row", "peano"])),
    "a marker's point": ("2 / marks / markers", lambda a, b, c: b.collections[0].set_offsets([(1, 1)] * 3)),
    "a bar": ("2 / marks / area bars", lambda a, b, c: b.patches[0].set_width(9)),
    "a cell of a map": ("3 / marks / picture", lambda a, b, c: c.images[0].set_data(np.zeros((2, 3)))),
    "the colours of a map": ("3 / marks / picture / look", lambda a, b, c: c.images[0].set_clim(0, 9)),
    "a panel": ("panel 3", lambda a, b, c: c.remove()),
    "an empty panel": ("3 / is_shown", lambda a, b, c: c.axis("off")),
}  # fmt: skip


def test_equal_figures_have_equal_records():
    assert list(differences(figures.record(chart()), figures.record(chart()))) == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_figure_is_seen_at_its_place(name):
    place, change = CHANGES[name]
    changed = chart()
    change(*changed.axes)
    found = [where for where, _ in differences(figures.record(chart()), figures.record(changed))]
    assert any(place in where for where in found), found


def test_a_number_that_moves_by_its_last_bit_is_seen_but_has_the_same_digest():
    changed = chart()
    changed.axes[0].lines[-2].set_ydata(np.nextafter(GAINS - 1, 9))
    one, other = figures.record(chart()), figures.record(changed)
    assert any("-> [1.0, 0.5000000000000001]" in what for _, what in differences(one, other))
    assert digest(one) == digest(other)
    changed.axes[0].lines[-2].set_ydata((GAINS - 1) * (1 + 1e-5))
    before, now = (digests({"figures": {"f": of}}) for of in (one, figures.record(changed)))
    assert {place for place in before if before[place] != now[place]} == {"f, panel 1"}


def test_of_many_points_the_bytes_count():
    numbers = np.linspace(0, 1, MOST_VALUES)
    records = []
    for last in (1.0, np.nextafter(1.0, 0), 0.999):
        numbers[-1] = last
        figure, panel = plt.subplots()
        panel.plot(numbers)
        records.append(figures.record(figure)["panels"]["panel 1"]["marks"])
    first, bit, moved = records
    assert any("differ beyond 7 digits" in what for _, what in differences(first, bit))
    assert any("differ in 7 digits" in what for _, what in differences(first, moved))
    assert digest(first) == digest(bit) != digest(moved)


def drawn(figure) -> dict:
    return coarse({"figures": {"f": figures.record(figure)}})["figures"]["f"]["panel 1"]


def otherwise(shift: float = 0.0, end: float = 0.25):
    """The series of `chart` as another library draws them: other artists, order, looks and names."""
    figure, panel = plt.subplots()
    for x, y in zip(X, GAINS - 1, strict=True):
        panel.plot(x, y + shift, "s", color="black", label=f"row {x}")
    panel.vlines(X, GAINS - 0.25, GAINS + end)
    panel.scatter(X[::-1], GAINS[::-1])
    panel.fill_between(X, GAINS - 1.2, GAINS - 0.8)
    panel.axvline(2.0)
    return figure


def test_the_points_are_the_same_whatever_draws_them():
    whole = chart()
    whole.axes[0].set_xlabel("another")
    assert drawn(otherwise()) == drawn(whole)
    assert drawn(otherwise(shift=1e-15)) != drawn(whole)
    assert drawn(otherwise(end=0.26)) != drawn(whole)


def test_what_a_library_rounds_is_forgiven_where_digits_are_given():
    one, other = drawn(chart()), drawn(otherwise(shift=1e-15))
    assert to_digits(one, 12) == to_digits(other, 12)
    assert to_digits(one, 12) != to_digits(drawn(otherwise(shift=1e-9)), 12)


def test_points_beside_names_have_the_name_and_bars_their_ends():
    points = figures.record(chart())["panels"]["panel 2"]["drawn"]["points"]
    assert points == [[1.5, "hilbert"], [2.25, "row"], [3.125, "peano"]]


def test_an_artist_without_a_record_is_refused():
    figure, panel = plt.subplots()
    add_table(panel, [["a"]])
    with pytest.raises(figures.UnknownArtistError, match="no record of Table; add one"):
        figures.record(figure)


def test_figures_are_caught_without_pixels_and_by_the_names_of_their_files(tmp_path):
    with catching.catching() as caught:
        figure = chart()
        figure.savefig(tmp_path / "gain.png")
        figure.suptitle("another")
        with open(tmp_path / "gain.pdf", "wb") as file:
            figure.savefig(file, format="pdf")
        figure.savefig(tmp_path / "again.png")
    first, pdf, again = (caught.of_file(tmp_path / name) for name in ("gain.png", "gain.pdf", "again.png"))
    assert first["title"] == "gain by size" == pdf["title"]
    assert again["title"] == "another"
    assert (tmp_path / "gain.png").stat().st_size < 100
    (tmp_path / "other.png").write_bytes(b"pixels")
    with pytest.raises(catching.NothingShownError, match="was not written by savefig"):
        caught.of_file(tmp_path / "other.png")


def test_every_picture_of_a_film_is_caught(tmp_path):
    films = []
    for last in (3.0, 4.0):
        with catching.catching() as caught:
            figure, panel = plt.subplots()
            (line,) = panel.plot([0, 1])
            writer = FFMpegWriter()
            with writer.saving(figure, str(tmp_path / "film.mp4"), dpi=50):
                for height in (1.0, last, 2.0):
                    line.set_ydata([0, height])
                    writer.grab_frame()
        films.append(caught.of_file(tmp_path / "film.mp4"))
    assert films[0]["pictures"] == 3
    assert [place for place, _ in differences(*films)] == ["every / bytes / 2"]


def test_a_table_is_recorded_by_its_bytes_and_its_numbers(tmp_path):
    path = tmp_path / "summary.csv"
    records = []
    for gain in ("1.5", "1.50", "1.25"):
        path.write_text(f"order,gain\nhilbert,{gain}\nrow,\n")
        records.append(catching.table(path))
    assert records[0]["columns"]["order"] == ["hilbert", "row"]
    assert records[0]["columns"]["gain"]["values"] == [1.5, "nan"]
    assert [place for place, _ in differences(records[0], records[1])] == ["bytes"]
    assert digest(records[0]) == digest(records[1]) != digest(records[2])

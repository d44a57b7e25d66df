"""Forms of airfoil files: sections written in a drawn form are read back, damaged files are refused."""

import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, sampled_from

import md
from md.boundaries.airfoil_file import read_airfoil
from tests.md.boundaries.test_airfoil_file import surfaces

TITLES = "NACA 2412", "2412", "# MH 150  23.89%", "T-section", "Göttingen 398 (1919), 2,5 % camber"
MORE = (
    "Airfoil of the year",
    "data from http://example.org/1.0/?p=2",
    "% made 26/10/2001 1.000733 --> 1.0",
    "-----",
)
ORDERS = (
    "selig", "reversed", "leading", "heading", "both headed", "lednicer", "lower first", "trailing",
    "uncounted",
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """How a section is written."""

    decimals: int = 6
    number: str = "f"  # f, e, d (as e, in Fortran) or . (f without the zero ahead)
    scale: float = 1.0
    gap: str = " "
    comma: bool = False
    bracket: str = "{}"
    third: str = ""  # a constant column (front, middle, last), or the number of the line (index)
    order: str = "selig"
    name: str = "NACA 2412"
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()
    tags: bool = False
    blanks: int = 0
    end: str = "\n"
    coding: str = "utf-8"

    def numbers(self, value: float) -> str:
        """Write a number."""
        kind = "e" if self.number in "ed" else "f"
        text = f"{value * self.scale:.{self.decimals}{kind}}"
        text = text.replace("e", "D") if self.number == "d" else text
        text = re.sub(r"^(-?)0\.", r"\1.", text) if self.number == "." else text
        return text.replace(".", ",") if self.comma else text

    def point(self, k: int, x: float, y: float) -> str:
        """Write a line of a point."""
        words = [self.bracket.format(self.numbers(x)), self.bracket.format(self.numbers(y))]
        z = self.numbers(0.0)
        extra = {"front": (0, z), "middle": (1, z), "last": (2, z), "index": (0, str(k + 1))}
        if self.third:
            words.insert(*extra[self.third])
        return self.gap.join(words)

    def lines(self, upper: np.ndarray, lower: np.ndarray) -> list[str]:
        """Write the lines of two surfaces, each from leading to trailing edge."""
        dot = "" if self.comma else "."
        first, second, middle, counts = {
            "selig": (upper[::-1], lower[1:], [], []),
            "reversed": (lower[::-1], upper[1:], [], []),
            "leading": (upper, lower[::-1], [], []),
            "heading": (upper[::-1], lower, ["Lower surface"], []),
            "lednicer": (upper, lower, [""], [f" {len(upper)}{dot} {len(lower)}{dot} "]),
            "lower first": (lower, upper, [], [f"{len(lower)} {len(upper)}"]),
            "trailing": (upper[::-1], lower[::-1], [], [f"{len(upper)} {len(lower)}"]),
            "uncounted": (upper, lower, [], []),
            "both headed": (upper, lower, ["lower"], ["upper"]),
        }[self.order]
        points = [self.point(k, *point) for k, point in enumerate(np.concatenate([first, second]))]
        points[len(first) : len(first)] = middle
        points = [f"{point}<br/>" if self.tags else point for point in points]
        spaced = [line for point in points for line in (point, *[""] * self.blanks)]
        around = ["<html><pre>"] if self.tags else []
        title = [self.name] if self.name else []
        return [
            *around,
            *title,
            *self.head,
            *counts,
            *spaced,
            *self.foot,
            *(["</pre></html>"] if around else []),
        ]

    def raw(self, upper: np.ndarray, lower: np.ndarray) -> bytes:
        """Write a file."""
        return self.end.join(self.lines(upper, lower)).encode(self.coding)


@st.composite
def sections(draw) -> tuple[np.ndarray, np.ndarray]:
    """Draw upper and lower surface from leading to trailing edge, with both edges, joined there or not."""
    points = draw(integers(9, 25))
    if draw(booleans()):
        digits = draw(sampled_from(("0012", "2412", "4415", "6409", "1230")))
        return surfaces(md.naca(digits, points, draw(booleans())))
    x = (1 - np.cos(np.linspace(0, np.pi, points))) / 2
    thickness, camber, edge = (
        draw(sampled_from((0.1, 0.3))),
        draw(st.floats(-0.2, 0.2)),
        draw(booleans()) * 0.01,
    )
    half = thickness * np.sqrt(x) * (1 - x) + edge * x
    middle = camber * x * (1 - x) * (1.5 - x)
    return np.column_stack([x, middle + half]), np.column_stack([x, middle - half])


@st.composite
def forms(draw) -> Form:
    """Draw a form in which a section has one meaning."""
    comma, order = draw(booleans()), draw(sampled_from(ORDERS))
    third = draw(sampled_from(("", "", "front", "middle", "last", "index")))
    name = draw(sampled_from((*TITLES, "")))
    counted = order in ("lednicer", "lower first", "trailing")
    head = list(draw(st.lists(sampled_from(MORE), max_size=2))) if name else []
    if not (comma or third or counted or order == "both headed"):
        head.append(draw(sampled_from(("", "x/c;y/c", "-2.0 3.0 -2.5 3.5"))))
    return Form(
        draw(integers(5, 9)),
        draw(sampled_from("fed.")),
        draw(sampled_from((1.0, 1.0, 100.0, 250.0))),
        draw(sampled_from((" ", "\t", ";", " ; ", "|") if comma else (" ", "\t", ",", ", ", ";", "   "))),
        comma,
        draw(sampled_from(("{}", "{}", "({})", '"{}"'))),
        third,
        order,
        name,
        tuple(filter(None, head)),
        tuple(draw(st.lists(sampled_from(MORE), max_size=3))),
        draw(booleans()),
        draw(sampled_from((0, 0, 1))),
        draw(sampled_from(("\n", "\r\n", "\r"))),
        draw(sampled_from(("utf-8", "utf-8-sig", "utf-16", "latin-1"))),
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("airfoils") / "section.dat"


def read(file, raw: bytes) -> md.Airfoil:
    file.write_bytes(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", md.SkippedText)
        return read_airfoil(file)


def refused(file, raw: bytes, message: str) -> None:
    file.write_bytes(raw)
    with pytest.raises(ValueError, match=rf"section\.dat.*{message}"):
        read_airfoil(file)


def distance(points: np.ndarray, others: np.ndarray) -> float:
    """Return the largest distance of a point from the nearest other one."""
    return np.abs(points[:, None] - others).max(axis=2).min(axis=1).max()


class TestSection:
    @given(sections(), forms())
    def test_is_the_same_in_every_form(self, file, surfaces, form):
        found = read(file, form.raw(*surfaces))
        upper, lower = surfaces
        expected = np.concatenate([upper[::-1], lower[1:]])
        if form.scale != 1:
            expected = (expected - (expected[:, 0].min(), 0)) / np.ptp(expected[:, 0])
        same = np.array_equal(upper[-1], lower[-1])
        tolerance = 3 * 10.0**-form.decimals
        assert len(found.outline) == len(expected) - same
        assert distance(expected, found.outline) < tolerance
        area = md.Airfoil("expected", expected[: len(expected) - same]).area
        assert found.area == pytest.approx(area, abs=2 * tolerance)
        assert found.name == form.name.lstrip("# ") or ("upper" if form.order == "both headed" else "section")

    @given(sections(), forms(), st.data())
    def test_with_a_damaged_line_is_refused(self, file, surfaces, form, data):
        form = replace(form, tags=False, bracket="{}", third="")
        lines = form.lines(*surfaces)
        pair, gap = r"[-+.,0-9eD]+[\s;,|]+[-+.,0-9eD]+", form.gap
        points = [
            k for k, line in enumerate(lines) if re.fullmatch(pair, line) and re.search("[.,][0-9]", line)
        ]
        k = data.draw(sampled_from(points))
        x, y = re.split(r"[\s;|]+" if form.comma else r"[\s;,|]+", lines[k])
        others = gap + y, f"{x}{gap}nan", f"-inf{gap}{y}", f"{x}{gap}{y}x", f"{x}{gap}***", f"{x}{gap}1e999"
        damage = (x, *others, f"{x}{gap}{y}{gap}{y}")
        lines[k] = data.draw(sampled_from(damage))
        messages = [
            rf"line {k + 1}: .*(among the points|points follow|a damaged line of numbers)",
            r"line \d: '\d+\.? \d+\.?', but .* points follow",  # those that a line ahead states
        ]
        if k == points[0]:  # the line ahead of it, of four numbers, is then not the last one of the head
            messages.append("line .: '-2.0 3.0 -2.5 3.5': a damaged line of numbers")
        if k == points[-1]:  # of three numbers, as many as the other lines should have
            messages.append("line .: .* among the points; allowed there: 3 finite numbers")
        refused(file, form.end.join(lines).encode(form.coding), f"({'|'.join(messages)})")

    @given(sections(), st.data())
    def test_cut_short_is_refused(self, file, surfaces, data):
        lines = Form().lines(*surfaces)
        x = surfaces[1][1:, 0]  # of the last lines
        left = data.draw(integers(0, int(np.flatnonzero(x < 0.7)[-1])))
        refused(file, "\n".join(lines[: len(lines) - len(x) + left]).encode(), "line ")

    @given(sections(), st.data())
    def test_with_text_in_a_surface_is_refused(self, file, surfaces, data):
        lines = Form().lines(*surfaces)
        inner = [k for k, line in enumerate(lines[1:], 1) if 0.15 < float(line.split()[0]) < 0.85]
        lines.insert(data.draw(sampled_from(inner)), "corrected")
        refused(file, "\n".join(lines).encode(), "'corrected' does not divide the points")

    @given(sections(), st.data())
    def test_that_crosses_itself_is_refused(self, file, surfaces, data):
        upper, lower = (surface.copy() for surface in surfaces)
        k = data.draw(integers(3, len(upper) - 4))
        upper[k, 1], lower[k, 1] = lower[k, 1] - 0.01, upper[k, 1] + 0.01
        refused(file, Form().raw(upper, lower), "crosses or touches itself: the segment .* of lines")


SELIG = Form().lines(*surfaces(md.naca("2412", 12)))
POINTS = SELIG[1:]
UPPER, LOWER = POINTS[:12], POINTS[11:]


def skipped(file, lines: list[str]) -> str:
    """Read lines with a warning of skipped text; return what was skipped."""
    file.write_text("\n".join(lines))
    with pytest.warns(md.SkippedText, match=r"section\.dat: skipped: .*; the outline of .* check") as caught:
        found = read_airfoil(file)
    assert found.outline == pytest.approx(md.naca("2412", 12).outline, abs=1e-6)
    assert caught[0].filename == __file__
    return re.search(r"skipped: (.*); the outline", str(caught[0].message))[1]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["name", "by an author", *POINTS], "line 2 ('by an author')"),
        (["name", "", "a", "", "b", *POINTS, "", "c"], "lines 3 to 5 ('a', ...); line 30 ('c')"),
        ([*UPPER, "lower", *LOWER], "line 13 ('lower')"),
        (["1.000000 ......", *POINTS], "line 1 ('1.000000 ......')"),
        ([*UPPER[:-1], "0.000000  ....", *LOWER], "line 12 ('0.000000  ....')"),
        ([*POINTS, "999.0 999.0"], "line 24 ('999.0 999.0')"),
        ([*POINTS[:3], POINTS[3] + " ! sic", *POINTS[4:]], "line 4 ('! sic')"),
        ([line + " 0.0" for line in POINTS], "lines 1 to 23 ('column 3', ...)"),
        ([*POINTS, "", "0.12 is the station of the flap"], "line 25 ('0.12 is the station of the flap')"),
    ],
)
def test_what_is_skipped_is_named(file, lines, expected):
    assert skipped(file, lines) == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["name", "23", *POINTS], ""),
        (["23", *POINTS], ""),
        (["x, y", *POINTS], ""),
        (["X(mm) Y(mm)", *POINTS], ""),
        (["name", "-2.0 3.0 -2.5 3.5", *POINTS], ""),
        (["name", "0.5 3.0 -2.5 3.5", "text", *POINTS], "line 2: .* damaged line of numbers"),
        (["name", "22", *POINTS], "line 2: '22', but 23 points follow"),
        (["1", *POINTS], "line 1: '1', but 23 points follow"),
        (["0.0", *POINTS[1:]], "line 1: .0.0., but 22 points follow"),
        (["nan inf", *POINTS], "line 1: 'nan inf': a damaged line"),
        (["24 12", *POINTS], "line 1: '24 12', but 23 points follow"),
        (["0012 0.5", *POINTS], "line 1: '0012 0.5': a point far from all others"),
        ([*POINTS, "10000 0.0"], "line 24: '10000 0.0': a point far from all others"),
        ([*POINTS[:5], "0.65 5.2", *POINTS[5:]], "line 6: '0.65 5.2': a point far from all others"),
        (["0.5 ......", *POINTS], "line 1: .* a point without y"),
        ([*POINTS, "999.0 999.0", *POINTS], "line 24: '999.0 999.0' separates elements"),
        ([*POINTS, "with a flap", *POINTS], "line 24: 'with a flap' does not divide the points"),
        ([*UPPER, "lower", *LOWER[:4], "more", *LOWER[4:]], "line 18: 'more' among the points"),
        ([*UPPER, "upper", *UPPER], "crosses or touches itself"),
        (UPPER, "line 12: .* after one surface"),
        (
            [line + " 0.1" if k else line for k, line in enumerate(POINTS)],
            "line 1: .* 3 finite numbers a line",
        ),
        ([f"{line} {line.split()[1]}" for line in POINTS], "three columns, of which 0 are constant"),
        ([f"{k} {k} {k % 3}" for k in range(9)], "three columns, of which 2 are constant"),
        ([" ".join(line.split()[::-1]) for line in POINTS], "chords high"),
        ([f"{100 * float(x)} {y}" for x, y in map(str.split, POINTS)], r"is 0\.0012 chords thick"),
        ([*POINTS[:-1], "1,000000 0,000000"], "line 23: '1,000000 0,000000': a damaged line of numbers"),
        ([*POINTS[:-1], "1.000000 0.000000 \N{DEGREE SIGN}"], "line 23: .* a damaged line of numbers"),
        (["1 0.001", "0 0.05", "0.5 -0.1", "0.3 -0.2", "0.6 -0.3", "1 0"], "line 3: .* turns back along x"),
        (["0.5 0", "0.5 1", "0.5 2"], "line 3: .* all points are at one x"),
    ],
)
def test_one_meaning_or_none(file, lines, message):
    raw = "\n".join(lines).encode()
    if message:
        refused(file, raw, message)
    else:
        file.write_bytes(raw)
        found = read_airfoil(file)
        assert found.name == (lines[0] if lines[0] == "name" else "section")
        assert found.outline == pytest.approx(md.naca("2412", 12).outline, abs=1e-6)


def test_two_bodies_with_open_edges_are_not_one_outline(file):
    foil = md.naca("0012", 12, closed=False).outline * 0.5
    lines = [f"{x} {y}" for x, y in np.concatenate([foil, foil + np.array([0.55, 0])])]
    refused(file, "\n".join(lines).encode(), "line 40: '0.7644.* from here on a surface turns back along x")


def test_a_section_is_at_least_half_a_percent_thick(file):
    """Thinner ones have x in percent, say, and y in chords."""
    foil = md.naca("4412")
    for thickness, message in (
        (0.00501, ""),
        (0.00499, "the section is 0.00499 chords thick; allowed: from 0.005"),
    ):
        points = foil.outline * (1, thickness / foil.thickness)
        raw = "\n".join(f"{x} {y}" for x, y in points).encode()
        if message:
            refused(file, raw, message)
        else:
            assert read(file, raw).thickness == pytest.approx(thickness)


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe1", "\n".join(POINTS).encode("utf-16-le"), "\n".join(POINTS).encode("utf-32")]
)
def test_bytes_that_are_no_text(file, raw):
    refused(file, raw, "allowed: text in UTF-8, in Windows-1252, or in UTF-16 with a byte order mark")


def test_html_is_left_out(file):
    lines = ["<html><!-- page --><pre>NACA&nbsp;2412", *[f"{line}<br />" for line in POINTS], "</pre>"]
    assert read(file, "\n".join(lines).encode()).name == "NACA 2412"


@pytest.mark.parametrize("gap", ["{};{}", "{} {}", "{}\t{}", "{} ; {};", "[{} | {}],", "'{}' '{}'"])
def test_commas_are_decimal_marks_beside_other_separators(file, gap):
    lines = [
        gap.format(x, y) for x, y in (("100", "0"), ("50", "7,5"), ("25", "6"), ("0", "-0,"), ("50", "-,5"))
    ]
    found = read(file, "\n".join(lines).encode()).outline
    assert found.tolist() == [[1, 0], [0.5, 0.075], [0.25, 0.06], [0, 0], [0.5, -0.005]]


@pytest.mark.parametrize(
    "gap", ["{},{}", "{}, {}", "{} , {},", "[{} {}];", "({};{})", '"{}","{}",', "{{{}, {}}},"]
)
def test_points_are_decimal_marks(file, gap):
    lines = [gap.format(x, y) for x, y in (("1", "0"), ("0.5", "0.1"), ("0", "0"), (".5", "-1e-1"))]
    found = read(file, "\n".join(lines).encode()).outline
    assert found.tolist() == [[1, 0], [0.5, 0.1], [0, 0], [0.5, -0.1]]

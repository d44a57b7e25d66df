"""Airfoils from files: both formats, units, repeated points, and errors."""

import numpy as np
import pytest

from md.boundaries.airfoil import Airfoil, naca
from md.boundaries.airfoil_file import read_airfoil


def refused(message: str, error: type[Exception] = ValueError):
    return pytest.raises(error, match=message)


def surfaces(airfoil: Airfoil) -> tuple[np.ndarray, np.ndarray]:
    """Return the upper and lower surface of a NACA section, from leading to trailing edge, both included."""
    k, outline = len(airfoil.outline) // 2 + 1, airfoil.outline
    closed = k * 2 - 2 == len(outline)
    return outline[:k][::-1], np.concatenate([outline[k - 1 :], outline[: 1 if closed else 0]])


def selig(airfoil: Airfoil) -> list[str]:
    """Write the lines of points in Selig's format, with both edges repeated."""
    upper, lower = surfaces(airfoil)
    return [f"  {x:.6f}\t{y:.6f}  " for x, y in np.concatenate([upper[::-1], lower])]


def lednicer(airfoil: Airfoil) -> list[str]:
    """Write the lines in Lednicer's format: numbers of points, and points of both surfaces."""
    upper, lower = ([f" {x:.6f} {y:.6f}" for x, y in points] for points in surfaces(airfoil))
    return [f"  {len(upper)}.     {len(lower)}.", "", *upper, "", *lower]


FORMATS = pytest.mark.parametrize("written", [selig, lednicer])


class TestFile:
    @pytest.fixture
    def read(self, tmp_path):
        def read(lines, end: str = "\n", coding: str = "utf-8") -> Airfoil:
            (tmp_path / "section.dat").write_bytes(end.join([*lines, ""]).encode(coding))
            return read_airfoil(tmp_path / "section.dat")

        return read

    @FORMATS
    @pytest.mark.parametrize("closed", [True, False])
    @pytest.mark.parametrize("digits", ["0012", "2412", "4415", "0006"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r"])
    def test_gives_back_the_outline(self, read, written, digits, closed, end):
        expected = naca(digits, 30, closed)
        found = read([f" Some section, {digits}\t", *written(expected)], end)
        assert found.name == f"Some section, {digits}"
        assert found.outline.shape == expected.outline.shape
        assert found.outline == pytest.approx(expected.outline, abs=0.51e-6)

    @FORMATS
    def test_without_a_name_has_the_files(self, read, written):
        found = read(["", *written(naca("2412", 30))])
        assert found.name == "section"
        assert found.outline == pytest.approx(naca("2412", 30).outline, abs=0.51e-6)

    @FORMATS
    def test_is_read_by_the_name_of_its_path_too(self, tmp_path, written):
        (tmp_path / "a.b.dat").write_text("\n".join(written(naca("0012", 30))))
        assert read_airfoil(str(tmp_path / "a.b.dat")).name == "a.b"

    @pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
    def test_may_name_göttingen(self, read, coding):
        assert read(["Göttingen", *selig(naca("0012", 30))], coding=coding).name == "Göttingen"

    def test_may_have_no_blank_line_between_surfaces(self, read):
        found = read(["name", *filter(None, lednicer(naca("2412", 30)))])
        assert found.outline == pytest.approx(naca("2412", 30).outline, abs=0.51e-6)

    def test_may_have_the_lower_surface_first(self, read):
        found = read(["name", *selig(naca("2412", 30))[::-1]])
        assert found.outline == pytest.approx(naca("2412", 30).outline, abs=0.51e-6)

    def test_may_have_surfaces_of_different_numbers_of_points(self, read):
        upper, lower = surfaces(naca("2412", 30))[0], surfaces(naca("2412", 20))[1]
        lines = [f"{x} {y}" for x, y in upper], [f"{x} {y}" for x, y in lower]
        found = read(["name", "30 20", *lines[0], "", *lines[1]])
        assert found.outline.tolist() == [*upper[::-1].tolist(), *lower[1:-1].tolist()]

    def test_repeated_points_are_dropped(self, read):
        found = read(["name", "1 0", "1 0", "0.5 0.1", "0 0", "0.0 -0", "0e0 0", "0.5 -0.1", "1. 0.", "1 0"])
        assert found.outline.tolist() == [[1, 0], [0.5, 0.1], [0, 0], [0.5, -0.1]]

    def test_points_equal_but_for_rounding_are_dropped(self, read):
        found = read(
            ["name", "1 0", "0.5 0.1", "0 0", "3e-10 -9e-10", "0.5 -0.1", "0.9999999999999998 -4e-17"]
        )
        assert found.outline.tolist() == [[1, 0], [0.5, 0.1], [0, 0], [0.5, -0.1]]

    @pytest.mark.parametrize(("last", "joined"), [("1.00001 -0.00000", True), ("1.00002 -0.00001", False)])
    def test_ends_one_unit_of_the_fifth_decimal_apart_are_joined(self, read, last, joined):
        expected = [[1, 0], [0.9, 0.04], [0, 0], [0.9, 0.01], *([] if joined else [[1.00002, -1e-5]])]
        assert read(["name", "1.00000 0.0", "0.9 0.04", "0 0", "0.9 0.01", last]).outline.tolist() == expected

    @pytest.mark.parametrize("edges", [(-0.0099, 1.0), (0.0099, 1.0), (0.0, 1.0099), (0.0, 0.9901)])
    def test_a_chord_within_a_hundredth_is_left(self, read, edges):
        found = read(["name", f"{edges[1]} 0.03", "0.5 0.1", f"{edges[0]} 0.02", "0.5 -0.1"])
        assert found.outline.tolist() == [[edges[1], 0.03], [0.5, 0.1], [edges[0], 0.02], [0.5, -0.1]]

    @pytest.mark.parametrize(
        "edges", [(0.0, 100.0), (-0.0101, 1.0), (0.0101, 1.0), (0.0, 1.0101), (0.0, 0.9899), (7.0, 9.0)]
    )
    def test_another_chord_is_normalised(self, read, edges):
        (low, high), expected = edges, naca("2412", 30).outline
        found = read(
            [f"{low + x * (high - low)!r} {y * (high - low)!r}" for x, y in expected.tolist()]
        ).outline
        shift, chord = expected[:, 0].min(), np.ptp(expected[:, 0])
        assert (found[:, 0].min(), found[:, 0].max()) == (0, 1)
        assert found == pytest.approx((expected - (shift, 0)) / chord, abs=1e-12)

    @pytest.mark.parametrize(
        "line", ["0.5", "0.5 0.1 0.2", "nan 0.1", "0.5 inf", "0.5 1e999", "0.5,,0.1", "0.5 0.1x", "half 0.1"]
    )
    def test_with_a_line_that_is_no_pair(self, read, line):
        message = "does not divide the points into two" if "half" in line else "among the points; allowed"
        with refused(rf"section\.dat, line 4: '{line}' {message}.* correct the line or leave it out"):
            read(["name", "1 0", "", f"\t{line} ", "0.5 0.1", "0 0", "0.5 -0.1", "1 0"])

    @pytest.mark.parametrize(
        ("counts", "blank", "found"),
        [
            ("30 31", True, "30 and 30"),
            ("29 31", True, "30 and 30"),
            ("29. 30.", False, "60"),
            ("300 300", False, "60"),
        ],
    )
    def test_with_other_numbers_of_points(self, read, counts, blank, found):
        lines = lednicer(naca("0012", 30))[2:]
        lines = lines if blank else [*filter(None, lines)]
        with refused(
            rf"section\.dat, line 2: '{counts}', but {found} points follow; allowed: how many .*; correct"
        ):
            read(["name", counts, *lines])

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([], "line 1: '' ends the file without a point"),
            (["name"], "line 1: 'name' ends the file without a point"),
            (["name", "1 0 0 0", "0 0 0 0"], "line 3: '0 0 0 0' ends the file without a point"),
            (["name", "1 0", "0 0", ""], "line 3: '0 0' ends the file after 2 different points"),
            (["1 0", "0 0", "", "1 0"], "line 4: '1 0' ends the file after 2 different points"),
            (["1 0", "1 0"], "line 2: '1 0' ends the file after 1 different points"),
        ],
    )
    def test_with_too_few_points(self, read, lines, message):
        with refused(rf"section\.dat, {message}; allowed: "):
            read(lines)

    def test_with_too_many_points(self, read):
        with refused(r"section\.dat has 20002 points; allowed: up to 20000"):
            read(["1 0", "0.5 0.1"] * 10001)

    def test_with_an_outline_that_crosses_itself(self, read):
        with refused(
            r"section\.dat: .* of 'name' crosses .* of lines 2 and 3, and that of lines 5 and 7; .*correct"
        ):
            read(["name", "1 0", "0.5 0.1", "0 0", "0.25 -0.1", "", "0.75 0.1", "1 0"])

    def test_that_is_not_there(self, tmp_path):
        with refused(r"No such file.*nothing\.dat", FileNotFoundError):
            read_airfoil(tmp_path / "nothing.dat")


@pytest.mark.parametrize("path", [1, True, None])
def test_another_class_than_a_path_is_refused(path):
    with refused("path = .*; allowed: a path", TypeError):
        read_airfoil(path)


def test_a_file_without_an_end_is_refused():
    with refused("/dev/zero has more than 10000000 bytes; allowed: a file of coordinates"):
        read_airfoil("/dev/zero")

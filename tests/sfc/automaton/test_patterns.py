"""Patterns become the automaton of the curve that they describe, or are refused."""

import numpy as np
import pytest

import sfc
from sfc.automaton.patterns import curve_from_patterns

HILBERT = {"h": ("00 h yx", "01 h xy", "11 h xy", "10 h YX")}
PATH = sfc.curve("hilbert", 2).traversal(4)


def test_hilbert_s_curve_in_patterns_is_that_of_its_grammar():
    curve = curve_from_patterns("mine", 2, 2, HILBERT, "h xy")
    assert np.array_equal(curve.traversal(4), PATH)
    assert (curve.name, curve.base, len(curve.rank)) == ("mine", 2, 4)


@pytest.mark.parametrize(
    ("start", "path"),
    [
        ("h yx", PATH[:, ::-1]),
        ("h Xy", PATH * [-1, 1] + [15, 0]),
        ("h yX", PATH[:, ::-1] * [1, -1] + [0, 15]),
        ("h xy~", PATH[::-1]),
        ("h Yx~", (PATH[:, ::-1] * [-1, 1] + [15, 0])[::-1]),
    ],
)
def test_a_start_is_rotated_mirrored_and_reversed(start, path):
    assert np.array_equal(curve_from_patterns("mine", 2, 2, HILBERT, start).traversal(4), path)


def test_equivalent_placements_are_one_state():
    """A copy of Hilbert's pattern, traversed backwards and mirrored, is the pattern itself."""
    twice = {
        "h": ("00 g yx", "01 h Xy~", "11 g xy", "10 h YX"),
        "g": ("00 h yx", "01 g xy", "11 h Xy~", "10 g Yx~"),
    }
    curve = curve_from_patterns("mine", 2, 2, twice, "h xy")
    assert len(curve.rank) == 4
    assert np.array_equal(curve.traversal(4), PATH)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("02 h yx", r"cell of '02 h yx'; allowed: 2 digits from 0 to 1"),
        ("000 h yx", r"cell of '000 h yx'; allowed: 2 digits"),
        ("h yx", r"cell of 'h yx'; allowed: 2 digits"),
        ("00 k yx", r"placement 'k yx'; allowed: one of h, and each of x, y once, with ~ if backwards"),
        ("00 h xx", r"placement 'h xx'; allowed: one of h, and each of x, y once"),
        ("00 h xyz", r"placement 'h xyz'; allowed"),
        ("00 h", r"placement 'h'; allowed"),
        ("01 h yx", r"rank\[0\] = .* does not visit every cell digit once"),
    ],
)
def test_a_line_of_another_form_is_refused(line, message):
    with pytest.raises(ValueError, match=rf"mine.*{message}"):
        curve_from_patterns("mine", 2, 2, {"h": (line, *HILBERT["h"][1:])}, "h xy")


def test_a_pattern_with_too_few_lines_is_refused():
    with pytest.raises(ValueError, match="does not visit every cell digit once"):
        curve_from_patterns("mine", 2, 2, {"h": HILBERT["h"][:3]}, "h xy")

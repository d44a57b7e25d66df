"""The dilation of the limit of a curve: published values, the orders below it, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfc
from sfc.automaton.patterns import curve_from_patterns
from sfc.locality import limit_dilation
from tests.strategies import CURVES
from tests.tiers import full, nightly

NORMS = (1, 2, math.inf)

# Haverkort and van Walderveen, Computational Geometry 43 (2010) 131; as fractions, the repository of Malykhin
# and Shchepin, Discrete Comput. Geom. 70 (2023) 189: github.com/malykhin-yuri/peano.
PLANE = {
    "hilbert": (9, 6, 6),
    "betaomega": (9, 5, 5),
    "ar2w2": (12, Fraction(260, 43), Fraction(27, 5)),
    "meander": (Fraction(32, 3), Fraction(20, 3), Fraction(20, 3)),
    "peano": (Fraction(32, 3), 8, 8),
}


@pytest.mark.parametrize("name", PLANE)
def test_the_curves_of_the_plane_have_the_published_dilation(name):
    found = [limit_dilation(sfc.curve(name, 2), norm) for norm in NORMS]
    assert found == pytest.approx([float(value) for value in PLANE[name]], rel=1e-6)


# Haverkort, arXiv:1109.2323 (2011); of Butz's curve, as Tokarev's, Korneev and Shchepin (2018). Both from the
# repository named above.
@pytest.mark.parametrize(
    ("name", "norm", "published"),
    [
        ("haverkort_a26", 1, 99 + 5 / 9),
        ("haverkort_a26", math.inf, 12 + 4 / 9),
        ("haverkort_f", math.inf, 14),
        ("butz", math.inf, 896 / 37),
        ("butz", 2, (8694 / 2753) * math.sqrt(69)),
    ],
)
def test_curves_of_space_have_the_published_dilation(name, norm, published):
    assert limit_dilation(sfc.curve(name, 3), norm) == pytest.approx(published, rel=1e-6)


def test_curve_f_has_the_published_digits():
    found = [round(limit_dilation(sfc.curve("haverkort_f", 3), norm), 1) for norm in NORMS]
    assert found == [89.8, 18.6, 14.0]


FINITE = [(name, dim) for name, dim in CURVES if dim < 4 and name not in ("gray", "morton")]


@pytest.mark.parametrize("norm", [2, full(1), full(math.inf)])
@pytest.mark.parametrize(("name", "dim"), FINITE)
def test_every_order_is_below_the_limit_and_approaches_it(name, dim, norm):
    curve = sfc.curve(name, dim)
    finest = max(k for k in range(1, 7) if curve.base ** (dim * k) <= sfc.locality.PAIR_CELLS // 16)
    worst = [
        sfc.locality.dilation(sfc.ordering(name, (curve.base**k,) * dim), norm).worst
        for k in range(1, finest + 1)
    ]
    limit = limit_dilation(curve, norm)
    below = limit - np.array(worst)
    assert (below > 0).all()
    assert (below[1:] < 0.9 * below[:-1]).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "dim"), [("morton", 2), ("morton", 3), ("gray", 2), nightly("gray", 3)])
def test_a_curve_that_jumps_has_none(name, dim, norm):
    assert limit_dilation(sfc.curve(name, dim), norm) == math.inf


def test_a_rotated_mirrored_or_reversed_curve_has_the_same():
    patterns = {"h": ("00 h yx", "01 h xy", "11 h xy", "10 h YX")}
    for start in ("h xy", "h yX", "h Xy~"):
        curve = curve_from_patterns("turned", 2, 2, patterns, start)
        assert limit_dilation(curve) == pytest.approx(6, rel=1e-6)


def test_states_that_do_not_follow_from_the_start_do_not_count():
    hilbert, morton = sfc.curve("hilbert", 2), sfc.curve("morton", 2)
    rank = np.vstack([hilbert.rank, morton.rank])
    next = np.vstack([hilbert.next, np.full((1, 4), len(hilbert.rank))])
    assert limit_dilation(sfc.Curve("both", 2, 2, rank, next)) == pytest.approx(6, rel=1e-6)
    assert limit_dilation(sfc.Curve("both", 2, 2, rank, next, start=len(hilbert.rank))) == math.inf


def test_on_a_line_it_is_one():
    assert limit_dilation(sfc.Curve("line", 1, 2, [[0, 1]], [[0, 0]])) == 1
    assert limit_dilation(sfc.Curve("jumps", 1, 3, [[0, 2, 1]], [[0, 0, 0]])) == math.inf


@pytest.mark.parametrize("tolerance", [1e-9, 1e-3, 0.1])
def test_the_result_is_below_the_supremum_by_the_tolerance_at_most(tolerance):
    found = limit_dilation(sfc.curve("butz", 3), math.inf, tolerance)
    assert 896 / 37 / (1 + tolerance) * (1 - 1e-12) <= found <= 896 / 37 * (1 + 1e-12)


@pytest.mark.parametrize("wrong", ["hilbert", None, sfc.ordering("hilbert", (4, 4)), 3])
def test_what_is_no_curve_is_refused(wrong):
    with pytest.raises(TypeError, match=r"curve = .* of class .*; allowed: an sfc.Curve; make one with"):
        limit_dilation(wrong)


@pytest.mark.parametrize(
    ("norm", "error"),
    [(0, ValueError), (3, ValueError), (math.nan, ValueError), ("2", TypeError), (True, TypeError)],
)
def test_another_norm_is_refused(norm, error):
    with pytest.raises(error, match=r"norm = .*; allowed: 1, 2 or math.inf"):
        limit_dilation(sfc.curve("hilbert", 2), norm)


@pytest.mark.parametrize(
    ("tolerance", "error"),
    [(0, ValueError), (1e-10, ValueError), (2, ValueError), (math.nan, ValueError), ("1", TypeError)],
)
def test_another_tolerance_is_refused(tolerance, error):
    with pytest.raises(error, match=r"tolerance = .*; allowed"):
        limit_dilation(sfc.curve("hilbert", 2), 2, tolerance)

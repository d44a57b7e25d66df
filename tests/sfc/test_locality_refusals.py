"""What no measure can be taken of, or from, is refused with the remedy."""

import math

import pytest

import sfc
from sfc import locality
from tests.sfc.test_locality import MEASURES, every_measure


@every_measure
@pytest.mark.parametrize("samples", [0, -3, 2.0, True, "all"])
def test_samples_that_are_no_count_are_refused(measure, samples):
    with pytest.raises(ValueError, match=rf"samples {samples!r}; allowed: an integer of at least 1, or None"):
        measure(sfc.ordering("row", (4, 4)), samples=samples)


@pytest.mark.parametrize("norm", [0, 3, True, "2", math.nan, None])
def test_another_norm_is_refused(norm):
    with pytest.raises(ValueError, match=rf"norm {norm!r}; allowed: 1, 2 or math.inf"):
        locality.dilation(sfc.ordering("row", (4, 4)), norm)


@pytest.mark.parametrize("window", [0, 5, 2.0, True, (2, 5), (2, 0), (2,), (2, 2, 2), (), "ab"])
def test_a_window_that_does_not_fit_is_refused(window):
    with pytest.raises(ValueError, match=r"window .*; allowed: one integer or 2, each .* the box, \(6, 4\)"):
        locality.clusters(sfc.ordering("row", (6, 4)), window)


@pytest.mark.parametrize("pieces", [0, -1, 17, 2.0, True])
def test_more_pieces_than_cells_or_none_are_refused(pieces):
    with pytest.raises(ValueError, match=rf"{pieces} pieces; allowed: an integer from 1 to the 16 cells"):
        locality.partition_cut(sfc.ordering("row", (4, 4)), pieces)


def test_gaps_in_a_box_too_large_to_list_are_refused_with_the_remedy():
    gaps = sfc.ordering("hilbert", (2**13, 2**13 - 1))
    message = r"hilbert of 8192 x 8191 cells> have gaps; allowed .* 16777216 .*own cube or a smaller box"
    for measure in (m for name, m in MEASURES.items() if name != "bounding box"):
        with pytest.raises(ValueError, match=message):
            measure(gaps)
    with pytest.raises(ValueError, match=message):
        locality.partition_cut(gaps, 4)


def test_what_must_be_listed_and_is_too_large_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"window 512 of 134217728 cells; allowed: up to 16777216.*smaller"):
        locality.clusters(sfc.ordering("hilbert", (2**20,) * 3), 512)
    with pytest.raises(ValueError, match=r"hilbert of 8192 x 8192.*67108864 cells; allowed: .*smaller box"):
        locality.bounding_box(sfc.ordering("hilbert", (2**13, 2**13)))


@pytest.mark.parametrize("side", [2**32, 2**32 - 1])
def test_more_cells_than_positions_count_are_refused_with_the_remedy(side):
    huge = sfc.ordering("hilbert", (side, side))
    message = rf"a box of {side**2} cells; allowed: less than 2\*\*63, .*; take a smaller box"
    for measure in (*MEASURES.values(), lambda ordering: locality.partition_cut(ordering, 4)):
        with pytest.raises(ValueError, match=message):
            measure(huge)


@every_measure
@pytest.mark.parametrize("seed", [-1, 1.5, None, True, "0"])
def test_a_seed_that_is_none_is_refused(measure, seed):
    with pytest.raises(ValueError, match=rf"seed {seed!r}; allowed: an integer of at least 0"):
        measure(sfc.ordering("row", (4, 4)), samples=5, seed=seed)

"""What no measure can be taken of, or from, is refused with the remedy."""

import math

import numpy as np
import pytest

import sfc
from sfc import locality
from tests.sfc.locality.test_measures import MEASURES

every_ordered = pytest.mark.parametrize(
    "measure",
    [*MEASURES.values(), lambda ordering, **more: locality.partition_cut(ordering, 4, **more)],
    ids=[*MEASURES, "partition cut"],
)


@every_ordered
@pytest.mark.parametrize("wrong", ["hilbert", None, (4, 4), sfc.curve("hilbert", 2), sfc.Ordering, 3])
def test_what_is_no_ordering_is_refused(measure, wrong):
    with pytest.raises(
        TypeError, match=r"ordering = .* of class .*; allowed: an sfc.Ordering; make one with sfc"
    ):
        measure(wrong)


@every_ordered
@pytest.mark.parametrize(
    ("samples", "error"),
    [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError), ("all", TypeError)],
)
def test_samples_that_are_no_count_are_refused(measure, samples, error):
    with pytest.raises(error, match=rf"samples = {samples!r}.*; allowed: an integer of at least 1; or None"):
        measure(sfc.ordering("row", (4, 4)), samples=samples)


@every_ordered
def test_samples_that_no_memory_holds_are_refused_before_they_are_drawn(measure):
    with pytest.raises(
        ValueError, match=rf"{2**60} samples: [\d,]+ bytes .*; allowed: up to .*take fewer samples"
    ):
        measure(sfc.ordering("row", (4, 4)), samples=2**60)


@pytest.mark.parametrize(
    ("norm", "error"),
    [(0, ValueError), (3, ValueError), (math.nan, ValueError), (1.5, ValueError)]
    + [(wrong, TypeError) for wrong in (True, "2", None, 2j, [2], np.array([1, 2]), np.timedelta64(2, "s"))],
)
def test_another_norm_is_refused(norm, error):
    with pytest.raises(error, match=r"norm = .*; allowed: 1, 2 or math.inf"):
        locality.dilation(sfc.ordering("row", (4, 4)), norm)


@pytest.mark.parametrize("window", [0, 7, (2, 5), (2, 0), (2,), (2, 2, 2), ()])
def test_a_window_that_does_not_fit_is_refused(window):
    with pytest.raises(ValueError, match=r"window.* = .*; allowed: .*at most the side of the box, \(6, 4\)"):
        locality.clusters(sfc.ordering("row", (6, 4)), window)


@pytest.mark.parametrize("window", [5, np.int8(5)])
def test_a_window_longer_than_one_side_is_refused(window):
    with pytest.raises(
        ValueError, match=r"window = .*5.*; allowed: 2 integers, each at most the side of the box"
    ):
        locality.clusters(sfc.ordering("row", (6, 4)), window)


@pytest.mark.parametrize("window", [2.0, True, "ab", None, (2, 2.0), np.timedelta64(2, "s"), {2: 2}])
def test_a_window_of_a_wrong_class_is_refused(window):
    with pytest.raises(
        TypeError, match=r"window(\[1\])? = .* of class .*; allowed: an integer of at least 1"
    ):
        locality.clusters(sfc.ordering("row", (6, 4)), window)


def test_places_of_a_window_that_no_memory_holds_are_refused_before_they_are_made():
    with pytest.raises(
        ValueError, match=rf"{2**60} places of a window: {2**63:,} bytes .*; allowed: .*one cell"
    ):
        locality.clusters(sfc.ordering("row", (1,) * 60), 1)


@pytest.mark.parametrize(
    ("pieces", "error"),
    [(0, ValueError), (-1, ValueError), (17, ValueError), (2.0, TypeError), (True, TypeError)],
)
def test_more_pieces_than_cells_or_none_are_refused(pieces, error):
    with pytest.raises(error, match=rf"pieces = {pieces}.*; allowed: an integer of at least 1, up to 16"):
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


@every_ordered
@pytest.mark.parametrize("samples", [None, 5])
@pytest.mark.parametrize(
    ("seed", "error"),
    [(-1, ValueError), (1.5, TypeError), (None, TypeError), (True, TypeError), ("0", TypeError)],
)
def test_a_seed_that_is_none_is_refused(measure, seed, error, samples):
    with pytest.raises(error, match=rf"seed = {seed!r}.*; allowed: an integer of at least 0"):
        measure(sfc.ordering("row", (4, 4)), samples=samples, seed=seed)

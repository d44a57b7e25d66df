"""Measures of sections of an order: their extent in space."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sfc.compile import in_parts, kernel
from sfc.locality.measure import (
    LISTED_CELLS,
    PAIR_CELLS,
    Measure,
    cells_at,
    checked_norm,
    draws_for,
    estimate,
    exact_measure,
)
from sfc.orderings.ordering import Ordering

MANY_ROWS = 2**8  # positions whose sections are worth the start of threads


def dilation(ordering: Ordering, norm: float = 2, *, samples: int | None = None, seed: int = 0) -> Measure:
    """Measure the distance in space between cells that are near along the order.

    For positions i < j of cells c: |c_j - c_i|**dim / (j - i). `worst` is the worst-case dilation (WL). The
    mean is over all pairs with equal weight. Half of a sample is drawn with a preference for small lags,
    where a bad order has its worst pairs, and is weighted for it.

    Args:
        ordering: of a box.
        norm: of c_j - c_i: 1 (sum), 2 (Euclid) or math.inf (largest).
        samples: pairs to draw; None for all of them up to `PAIR_CELLS` cells.
        seed: of the draw.

    Returns:
        The measure, a pure number: cells of volume per cell of length.

    Raises:
        TypeError: no ordering, or a norm, samples or a seed that are no number.
        ValueError: another norm, bad samples, or a sampled ordering with gaps that is too large to list.

    Gotsman and Lindenbaum, IEEE Trans. Image Processing 5 (1996) 794; Niedermeier, Reinhardt and Sanders,
    Discrete Applied Mathematics 117 (2002) 211; Haverkort and van Walderveen, Computational Geometry 43
    (2010) 131.
    """
    draws, rng = draws_for(ordering, samples, seed, PAIR_CELLS)
    code = 0 if checked_norm(norm) == math.inf else int(norm)
    if not draws:
        order = ordering.traversal()
        totals, largest = _from_each(lambda *rows: _all_dilations(order, code, *rows), len(order))
        return exact_measure(totals, largest, math.comb(ordering.size, 2))
    first, last, weight = _draw_pairs(ordering.size, draws, rng)
    cells = cells_at(ordering)
    given, values = (cells(first), cells(last), last - first), np.empty(draws)
    in_parts(lambda part: _dilations(*(of[part] for of in given), code, values[part]), draws)
    mean, error = estimate(values * weight)
    return Measure(mean, float(values.max()), error, False, draws)


def bounding_box(ordering: Ordering, *, samples: int | None = None, seed: int = 0) -> Measure:
    """Measure the volume of the bounding box of a section of the order over that of the section.

    For positions i < j: volume of the bounding box of cells i .. j over their number, j - i + 1. `worst` is
    the worst-case bounding-box volume (WBV; area, WBA, in 2D). The mean is over all sections of two cells or
    more.

    Args:
        ordering: of a box; to be sampled, of at most `LISTED_CELLS` cells.
        samples: sections to draw; None for all of them up to `PAIR_CELLS` cells.
        seed: of the draw.

    Returns:
        The measure, a pure number of at least 1.

    Raises:
        TypeError: no ordering, or samples or a seed that are no integer.
        ValueError: bad samples, or a box too large to list.

    Haverkort and van Walderveen, Computational Geometry 43 (2010) 131.
    """
    draws, rng = draws_for(ordering, samples, seed, PAIR_CELLS)
    if ordering.size > LISTED_CELLS:
        raise ValueError(
            f"bounding boxes of {ordering!r} with {ordering.size} cells; allowed: up to {LISTED_CELLS}, as "
            f"every cell of a section counts; take a smaller box"
        )
    cells = ordering.traversal()
    if not draws:
        totals, largest = _from_each(lambda *rows: _all_boxes(cells, *rows), len(cells))
        return exact_measure(totals, largest, math.comb(ordering.size, 2))
    first, last, weight = _draw_pairs(ordering.size, draws, rng)
    width = math.isqrt(ordering.size)
    starts = np.arange(0, ordering.size, width)
    low, high = np.minimum.reduceat(cells, starts), np.maximum.reduceat(cells, starts)
    given, values = (cells, low, high, width), np.empty(draws)
    in_parts(lambda part: _boxes(*given, first[part], last[part], values[part]), draws, MANY_ROWS)
    mean, error = estimate(values * weight)
    return Measure(mean, float(values.max()), error, False, draws)


def _from_each(measure: Callable[..., None], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the sum and the largest value over the sections from each of n positions, on all threads.

    Args:
        measure: called with begin, end and the two arrays; fills them at positions begin .. end - 1 and at
            as many from the end: long rows with short ones, so that threads have equal work.
        n: number of positions.

    Returns:
        totals, largest: (n,) float64.
    """
    totals, largest = np.empty(n), np.empty(n)
    in_parts(lambda part: measure(part.start, part.stop, totals, largest), (n + 1) // 2, MANY_ROWS)
    return totals, largest


def _draw_pairs(size: int, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw positions first < last, and weights for the mean over uniform pairs.

    One half is drawn uniformly, which bounds the weight by 2, the other with log-uniform lag: the balance
    heuristic of Veach and Guibas, SIGGRAPH (1995) 419.
    """
    one, other = rng.integers(size, size=draws), rng.integers(size - 1, size=draws)
    other += other >= one
    short = np.minimum(float(size) ** rng.random(draws), size - 1).astype(np.int64)
    lag = np.where(rng.random(draws) < 0.5, np.abs(one - other), short)
    first = rng.integers(size - lag)
    uniform = (size - lag) / float(math.comb(size, 2))
    short_lag = np.log1p(1 / lag) / math.log(size)
    return first, first + lag, 2 * uniform / (uniform + short_lag)


@kernel
def _dilation(a, i, b, j, lag, norm):
    """Compute |b[j] - a[i]|**dim / lag in norm 1, 2 or 0 (largest)."""
    dim = a.shape[1]
    square = total = largest = 0.0
    for k in range(dim):
        apart = float(abs(b[j, k] - a[i, k]))
        square += apart * apart
        total += apart
        largest = max(largest, apart)
    if norm != 2:
        square = total * total if norm == 1 else largest * largest
    power = math.sqrt(square) if dim % 2 else 1.0
    for _ in range(dim // 2):
        power *= square
    return power / lag


@kernel
def _dilations(first, last, lag, norm, values):
    for i in range(len(first)):
        values[i] = _dilation(first, i, last, i, lag[i], norm)


@kernel
def _all_dilations(cells, norm, begin, end, totals, largest):
    """Compute the sum and the largest value over the later positions, for the positions of `_from_each`."""
    for i in range(begin, end):
        for at in (i, len(cells) - 1 - i):
            total = worst = 0.0
            for j in range(at + 1, len(cells)):
                value = _dilation(cells, at, cells, j, j - at, norm)
                total += value
                worst = max(worst, value)
            totals[at], largest[at] = total, worst


@kernel
def _all_boxes(cells, begin, end, totals, largest):
    """Compute the sum and the largest value over the sections from the positions of `_from_each`."""
    for i in range(begin, end):
        for at in (i, len(cells) - 1 - i):
            totals[at], largest[at] = _boxes_from(cells, at)


@kernel
def _boxes_from(cells, i):
    low, high = cells[i].copy(), cells[i].copy()
    total = worst = 0.0
    for j in range(i + 1, len(cells)):
        volume = 1
        for k in range(len(low)):
            low[k], high[k] = min(low[k], cells[j, k]), max(high[k], cells[j, k])
            volume *= high[k] - low[k] + 1
        value = volume / (j - i + 1)
        total += value
        worst = max(worst, value)
    return total, worst


@kernel
def _boxes(cells, low, high, width, first, last, values):
    """Compute box over section for sections first .. last, from the extremes of each `width` positions."""
    for i in range(len(first)):
        volume = 1
        for k in range(cells.shape[1]):
            least = most = cells[first[i], k]
            at = first[i]
            while at <= last[i]:
                if at % width == 0 and at + width <= last[i] + 1:
                    least, most = min(least, low[at // width, k]), max(most, high[at // width, k])
                    at += width
                else:
                    least, most = min(least, cells[at, k]), max(most, cells[at, k])
                    at += 1
            volume *= most - least + 1
        values[i] = volume / (last[i] - first[i] + 1)

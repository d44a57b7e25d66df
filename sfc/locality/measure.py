"""Result of a locality measure, random draws, and look-up of single cells in an ordering."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfc import checks
from sfc.orderings.ordering import Ordering

PAIR_CELLS = 2**14  # exact measures of all pairs: about 10**8 of them
LISTED_CELLS = 2**24  # of the largest box that is listed
SAMPLES = 2**16  # drawn by default
WORDS = 4  # of 64 bits per sample and axis, at least


@dataclass(frozen=True)
class Measure:
    """Result of a locality measure.

    Attributes:
        mean: over all pairs, sections, windows or edges; if sampled, an estimate without bias.
        worst: the largest value; if sampled, a lower bound.
        error: standard error of `mean`: 0 if exact, NaN from a single sample.
        exact: whether all were measured.
        samples: number of pairs, sections, windows or edges measured.
    """

    mean: float
    worst: float
    error: float
    exact: bool
    samples: int


def checked_norm(norm: float) -> float:
    """Check the norm of a dilation; return it.

    Raises:
        TypeError: no number.
        ValueError: another norm than 1, 2 and math.inf.
    """
    if not checks.is_number(norm):
        raise checks.refuse_class("norm", norm, "1, 2 or math.inf")
    if norm not in (1, 2, math.inf):
        raise checks.refuse_value("norm", norm, "1, 2 or math.inf")
    return norm


def draws_for(
    ordering: Ordering, samples: int | None, seed: int, limit: int
) -> tuple[int, np.random.Generator]:
    """Choose the number of draws, and make the random generator.

    Returns:
        The number, 0 to measure all (always in a box of one cell); and the generator.

    Raises:
        TypeError: no ordering, or samples or a seed that are no integer.
        ValueError: samples below 1 or too many for memory, a negative seed, or a box of 2**63 cells or more.
    """
    checks.instance(
        "ordering", ordering, Ordering, "an sfc.Ordering", "make one with sfc.ordering(order, shape)"
    )
    if samples is not None:
        remedy = f"or None for all up to {limit} cells, and {SAMPLES} above"
        samples = checks.integer("samples", samples, 1, remedy=remedy)
        checks.require_allocatable(
            f"{samples} samples", WORDS * 8 * ordering.dim * samples, "take fewer samples"
        )
    generator = np.random.default_rng(checks.integer("seed", seed, 0))
    size = ordering.size
    if size >= 2**63:
        raise ValueError(
            f"a box of {size} cells; allowed: less than 2**63, as positions are signed 64-bit numbers; take "
            f"a smaller box"
        )
    if samples is None:
        return 0 if size <= limit else SAMPLES, generator
    return samples if size > 1 else 0, generator


def exact_measure(totals: np.ndarray, largest: np.ndarray, count: int) -> Measure:
    """Make an exact measure from sums and largest values of parts of all values; NaN without values."""
    if not count:
        return Measure(math.nan, math.nan, 0.0, True, 0)
    return Measure(float(totals.sum() / count), float(largest.max()), 0.0, True, count)


def estimate(values: np.ndarray) -> tuple[float, float]:
    """Compute the mean of independent values and its standard error, NaN for a single value."""
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), float(error)


def _require_listable(ordering: Ordering) -> None:
    if ordering.size > LISTED_CELLS:
        raise ValueError(
            f"the ranks of {ordering!r} have gaps; allowed in a sampled measure: none, or a box of up "
            f"to {LISTED_CELLS} cells to list; take the curve's own cube or a smaller box"
        )


def cells_at(ordering: Ordering) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function (n,) positions -> (n, dim) cells."""
    if ordering.is_dense:
        return ordering.cells
    _require_listable(ordering)
    return ordering.traversal().__getitem__


def position_of(ordering: Ordering) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function (n, dim) cells -> (n,) int64 positions."""
    if ordering.is_dense:
        return lambda cells: ordering.rank(cells).astype(np.int64)
    _require_listable(ordering)
    table = ordering.dense_ranks().astype(np.int64).reshape(ordering.shape, order="F")
    return lambda cells: table[tuple(cells.T)]

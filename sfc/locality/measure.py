"""What a measure returns, what it may draw, and how it asks an ordering for single cells."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfc import checks
from sfc.orderings.ordering import Ordering

PAIR_CELLS = 2**14  # exact measures of all pairs: about 10**8 of them
LISTED_CELLS = 2**24  # largest box whose cells are listed
SAMPLES = 2**16  # drawn where no number is given
WORDS = 4  # of 64 bits that a sample takes for each axis, at least


@dataclass(frozen=True)
class Measure:
    """What a measure found.

    Attributes:
        mean: over all that the measure looks at; estimated without bias where sampled.
        worst: the largest found: a lower bound where sampled.
        error: standard error of `mean`: 0 where exact, NaN from a single sample.
        exact: whether everything was looked at.
        samples: number of pairs, sections, windows or edges looked at.
    """

    mean: float
    worst: float
    error: float
    exact: bool
    samples: int


def draws_for(
    ordering: Ordering, samples: int | None, seed: int, limit: int
) -> tuple[int, np.random.Generator]:
    """How many to draw, 0 to look at everything, as always in a box of one cell; and the generator.

    Raises:
        TypeError: no ordering, or samples or a seed that are no integer.
        ValueError: samples below 1 or of more bytes than memory holds, a negative seed, or a box of more
            cells than can be drawn from.
    """
    checks.instance(
        "ordering", ordering, Ordering, "an sfc.Ordering", "make one with sfc.ordering(order, shape)"
    )
    if samples is not None:
        remedy = f"or None for all up to {limit} cells, and {SAMPLES} above"
        samples = checks.integer("samples", samples, 1, remedy=remedy)
        checks.room(f"{samples} samples", WORDS * 8 * ordering.dim * samples, "take fewer samples")
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
    """From sums and largest values of parts of all `count` values; NaN where there is none."""
    if not count:
        return Measure(math.nan, math.nan, 0.0, True, 0)
    return Measure(float(totals.sum() / count), float(largest.max()), 0.0, True, count)


def estimate(values: np.ndarray) -> tuple[float, float]:
    """Mean of independent values and its standard error, NaN of a single one."""
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), float(error)


def _refuse_gaps(ordering: Ordering) -> None:
    if ordering.size > LISTED_CELLS:
        raise ValueError(
            f"the ranks of {ordering!r} have gaps; allowed in a sampled measure: none, or a box of up "
            f"to {LISTED_CELLS} cells to list; take the curve's own cube or a smaller box"
        )


def cells_at(ordering: Ordering) -> Callable[[np.ndarray], np.ndarray]:
    """(n,) positions -> (n, dim) cells."""
    if ordering.is_dense:
        return ordering.cells
    _refuse_gaps(ordering)
    return ordering.traversal().__getitem__


def position_of(ordering: Ordering) -> Callable[[np.ndarray], np.ndarray]:
    """(n, dim) cells -> (n,) int64 positions."""
    if ordering.is_dense:
        return lambda cells: ordering.rank(cells).astype(np.int64)
    _refuse_gaps(ordering)
    table = ordering.dense_ranks().astype(np.int64).reshape(ordering.shape, order="F")
    return lambda cells: table[tuple(cells.T)]

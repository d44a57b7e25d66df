"""What a measure returns, what it may draw, and how it asks an ordering for single cells."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfc.ordering import Ordering
from sfc.points import is_integer

PAIR_CELLS = 2**14  # exact measures of all pairs: about 10**8 of them
LISTED_CELLS = 2**24  # largest box whose cells are listed
SAMPLES = 2**16  # drawn where no number is given


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


def draws_for(samples: int | None, size: int, limit: int) -> int:
    """How many to draw; 0 to look at everything, as always in a box of one cell.

    Raises:
        ValueError: samples that are no integer of at least 1, or a box of more cells than can be drawn from.
    """
    if samples is not None and (not is_integer(samples) or samples < 1):
        raise ValueError(
            f"samples {samples!r}; allowed: an integer of at least 1, or None for all up to {limit} cells"
        )
    if size >= 2**63:
        raise ValueError(
            f"a box of {size} cells; allowed: less than 2**63, as positions are signed 64-bit numbers; take "
            f"a smaller box"
        )
    if samples is None:
        return 0 if size <= limit else SAMPLES
    return int(samples) if size > 1 else 0


def drawing(seed: int) -> np.random.Generator:
    """The generator of a measure's draw.

    Raises:
        ValueError: a seed that is no integer of at least 0.
    """
    if not is_integer(seed) or seed < 0:
        raise ValueError(f"seed {seed!r}; allowed: an integer of at least 0")
    return np.random.default_rng(seed)


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

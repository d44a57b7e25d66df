"""Measures of neighbourhoods in space: their spread along an order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap

import numpy as np

from sfc import checks
from sfc.compile import kernel
from sfc.locality.measure import (
    LISTED_CELLS,
    Measure,
    draws_for,
    estimate,
    exact_measure,
    position_of,
)
from sfc.orderings.ordering import Ordering


@dataclass(frozen=True)
class Clusters(Measure):
    """Result of `clusters`: a `Measure` with the distribution over windows.

    Attributes:
        counts: (worst + 1,) int64; number of measured windows with 0, 1, ... clusters.
    """

    counts: np.ndarray = field(compare=False)


@dataclass(frozen=True)
class Partition:
    """Result of `partition_cut`: the faces between the pieces of an order.

    Attributes:
        cut: pairs of face-adjacent cells in different pieces; estimated if sampled.
        share: `cut` over all pairs of face-adjacent cells.
        surface: mean faces of a piece towards others, over the faces of a cube of its volume.
        error: standard error of `share`, 0 if exact; one cut and one uncut pair are added to a sample, so
            that it is above 0 even if no cut pair was drawn.
        exact: whether every pair was measured.
        samples: pairs measured.
    """

    cut: int
    share: float
    surface: float
    error: float
    exact: bool
    samples: int


def clusters(
    ordering: Ordering, window: int | Sequence[int] | np.ndarray, *, samples: int | None = None, seed: int = 0
) -> Clusters:
    """Count the contiguous runs of the order inside a window: the seeks of a range query.

    A cluster is a maximal run of consecutive positions with all cells in the window; every place of the
    window inside the box counts once. All are counted in O(size * 2**dim): a window has as many clusters as
    cells, less one for each step of the order with both ends in it.

    Args:
        ordering: of a box.
        window: cells along every axis, or along each axis.
        samples: windows to draw; None for all of them up to `LISTED_CELLS` cells.
        seed: of the draw.

    Returns:
        The measure, with the number of windows of each number of clusters.

    Raises:
        TypeError: no ordering, or a window, samples or a seed that are no integers.
        ValueError: a window that is empty, larger than the box or, sampled, too large to list; bad samples; a
            sampled ordering with gaps that is too large to list; more places than fit in memory.

    Moon, Jagadish, Faloutsos and Saltz, IEEE Trans. Knowledge and Data Engineering 13 (2001) 124.
    """
    draws, rng = draws_for(ordering, samples, seed, LISTED_CELLS)
    sides = _checked_window(window, ordering.shape)
    places = np.array(ordering.shape) - sides + 1
    volume = math.prod(sides.tolist())
    if draws and volume > LISTED_CELLS:
        raise ValueError(
            f"window {window!r} of {volume} cells; allowed: up to {LISTED_CELLS} if windows are sampled; "
            f"take a smaller one"
        )
    if draws:
        found = _draw_windows(ordering, sides, places, draws, rng)
        mean, error = estimate(found)
    else:
        count = math.prod((places + 1).tolist())
        checks.require_allocatable(f"{count} places of a window", 8 * count, "leave out axes of one cell")
        joined = np.zeros(tuple(places + 1), np.int64)
        strides = np.array(joined.strides) // joined.itemsize
        _add_steps(ordering.traversal(), sides, places, strides, joined.reshape(-1))
        for axis in range(ordering.dim):
            np.cumsum(joined, axis=axis, out=joined)
        found = (volume - joined[(slice(-1),) * ordering.dim]).ravel()
        mean, error = float(found.mean()), 0.0
    counts = np.bincount(found)
    return Clusters(mean, float(len(counts) - 1), error, not draws, len(found), counts)


def edge_stretch(ordering: Ordering, *, samples: int | None = None, seed: int = 0) -> Measure:
    """Measure the distance along the order between cells that are neighbours in space.

    For face-adjacent cells a and b: |position of a - position of b|. The mean is over all such pairs. Along a
    curve a few long ones dominate it: a sample of fewer pairs than a side has cells may miss them, and then
    `error` is too small as well.

    Args:
        ordering: of a box.
        samples: pairs to draw; None for all of them up to `LISTED_CELLS` cells.
        seed: of the draw.

    Returns:
        The measure, in positions.

    Raises:
        TypeError: no ordering, or samples or a seed that are no integer.
        ValueError: bad samples, or a sampled ordering with gaps that is too large to list.

    Mitchison and Durbin, SIAM J. Algebraic and Discrete Methods 7 (1986) 571, on the order of least mean. The
    largest value is the bandwidth of the grid under this order.
    """
    draws, rng = draws_for(ordering, samples, seed, LISTED_CELLS)
    pairs = _neighbours(ordering, draws, rng)
    if draws:
        found = _stretches(*next(pairs))
        mean, error = estimate(found)
        return Measure(mean, float(found.max()), error, False, draws)
    along_axes = [(found.sum(), found.max(initial=0)) for found in starmap(_stretches, pairs)]
    totals, largest = np.array(along_axes).T
    return exact_measure(totals, largest, sum(_edges(ordering.shape)))


def partition_cut(ordering: Ordering, pieces: int, *, samples: int | None = None, seed: int = 0) -> Partition:
    """Measure the faces between consecutive pieces of the order, which is what pieces exchange.

    The order is cut into `pieces` runs with sizes that differ by one cell at most. `cut` counts the pairs of
    face-adjacent cells in different pieces. `surface` is the mean number of faces of a piece towards others,
    2 cut / pieces, over the faces of a cube of its volume, 2 dim (size / pieces)**((dim - 1) / dim): about 1
    for many cubes, less for few, because faces on the wall of the box do not count.

    Args:
        ordering: of a box.
        pieces: from 1 to the number of cells.
        samples: pairs of adjacent cells to draw; None for all of them up to `LISTED_CELLS` cells.
        seed: of the draw.

    Returns:
        The cut; its share is NaN in a box of one cell.

    Raises:
        TypeError: no ordering, or pieces, samples or a seed that are no integer.
        ValueError: pieces out of range, bad samples, or a sampled ordering with gaps that is too large to
            list.

    Pilkington and Baden, IEEE Trans. Parallel and Distributed Systems 7 (1996) 288; Zumbusch, Z. Angew. Math.
    Mech. 81 (2001) S25, for the surface.
    """
    draws, rng = draws_for(ordering, samples, seed, LISTED_CELLS)
    pieces = checks.integer("pieces", pieces, 1, ordering.size, unit="at most the cells of the box")
    short, longer = divmod(ordering.size, pieces)  # the first `longer` pieces have one cell more
    border = longer * (short + 1)

    def piece(rank: np.ndarray) -> np.ndarray:
        return np.where(rank < border, rank // (short + 1), longer + (rank - border) // short)

    edges, error = sum(_edges(ordering.shape)), 0.0
    pairs = _neighbours(ordering, draws, rng)
    cut = sum(int(np.count_nonzero(piece(a) != piece(b))) for a, b in pairs)
    share = cut / (draws or edges) if edges else math.nan
    if draws:
        likely = (cut + 1) / (draws + 2)
        cut, error = round(share * edges), math.sqrt(likely * (1 - likely) / draws)
    cube = 2 * ordering.dim * (ordering.size / pieces) ** (1 - 1 / ordering.dim)
    return Partition(cut, share, 2 * cut / pieces / cube, error, not draws, draws or edges)


def _stretches(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    apart = other - one
    return np.abs(apart, out=apart)


def _checked_window(window: object, shape: tuple[int, ...]) -> np.ndarray:
    remedy = f"at most the side of the box, {shape}"
    sides = checks.per_axis("window", window, len(shape), 1, max(shape), remedy=remedy)
    if any(side > most for side, most in zip(sides, shape, strict=True)):
        raise checks.refuse_value("window", window, f"{len(shape)} integers, each {remedy}")
    return np.array(sides, np.int64)


def _draw_windows(
    ordering: Ordering, sides: np.ndarray, places: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Count the clusters in windows at random places: (draws,) int64."""
    position = position_of(ordering)
    inside = np.stack([axis.ravel() for axis in np.indices(tuple(sides))], axis=1)
    corners = rng.integers(places, size=(draws, ordering.dim))
    found = []
    parts = min(draws, math.ceil(draws * len(inside) / 2**22))  # bounds the memory
    for some in np.array_split(corners, parts):
        cells = (some[:, None] + inside).reshape(-1, ordering.dim)
        positions = np.sort(position(cells).reshape(len(some), -1), axis=1)
        found.append(1 + (np.diff(positions, axis=1) > 1).sum(axis=1))
    return np.concatenate(found)


def _edges(shape: tuple[int, ...]) -> list[int]:
    """Count the pairs of face-adjacent cells along each axis."""
    return [math.prod(shape) // side * (side - 1) for side in shape]


def _neighbours(
    ordering: Ordering, draws: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Iterate over positions of face-adjacent pairs: all, axis by axis, or one set of random ones."""
    if draws:
        edges = _edges(ordering.shape)
        axes = rng.choice(ordering.dim, draws, p=np.array(edges, float) / sum(edges))
        step = np.eye(ordering.dim, dtype=np.int64)[axes]
        cells = rng.integers(np.array(ordering.shape) - step)
        position = position_of(ordering)
        yield position(cells), position(cells + step)
        return
    table = ordering.dense_ranks().astype(np.int64).reshape(ordering.shape, order="F")
    for axis in range(ordering.dim):
        along = np.moveaxis(table, axis, 0)
        yield along[:-1], along[1:]


@kernel
def _add_steps(cells, sides, places, strides, joined):
    """Add one to a difference array for each step and each place of the window that contains both ends."""
    n, dim = cells.shape
    bounds = np.empty((dim, 2), np.int64)
    for i in range(n - 1):
        meets = True
        for k in range(dim):
            least, most = min(cells[i, k], cells[i + 1, k]), max(cells[i, k], cells[i + 1, k])
            bounds[k, 0], bounds[k, 1] = max(most - sides[k] + 1, 0), min(least + 1, places[k])
            meets &= bounds[k, 0] < bounds[k, 1]
        for corner in range(2**dim if meets else 0):
            at, sign = 0, 1
            for k in range(dim):
                upper = corner >> k & 1
                at += bounds[k, upper] * strides[k]
                sign = -sign if upper else sign
            joined[at] += sign

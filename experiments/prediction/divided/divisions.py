"""Divisions of the cells of a box among ranks: chunks of an order, bricks, bisection, a graph partitioner.

Each is a function for `md.Division(owners=)`: shape, box, weights and ranks -> the rank of each cell, by
row-major number, axis 0 the fastest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module, util
from itertools import product
from typing import NamedTuple

import numpy as np

import md
import sfc
from md.domain.partition import Owners, chunks

BRICKS, BISECTION, METIS = "bricks", "bisection", "metis"
OTHERS = (BRICKS, BISECTION, METIS)  # divisions that are no chunks of an order
FINEST = 1000  # integer weight of an average cell in a graph
MANY_RANKS, MANY_CELLS = 512, 30  # a side; chunks of a curve are no cubes of these
EDGES_PER_CELL = 10  # weight of a cell over that of an edge between two such cells, times two
METIS_TRIES = 1  # of which METIS takes the best cut


def known() -> tuple[str, ...]:
    """List the divisions: the orderings of `sfc`, and `OTHERS`."""
    return (*sfc.orderings(3), *OTHERS)


def has_metis() -> bool:
    """Return whether pymetis is installed."""
    return util.find_spec("pymetis") is not None


def owners_of(name: str) -> Owners:
    """Return the function that divides the cells.

    Args:
        name: one of `known`.
    """
    return {BRICKS: bricks, BISECTION: bisection, METIS: metis}.get(name) or Chunks(name)


@dataclass(frozen=True)
class Chunks:
    """Division into chunks of about the same weight along an order.

    Args:
        order: a name of `sfc.orderings`.
    """

    order: str

    def __call__(self, shape: tuple[int, ...], box: md.Box, weights: np.ndarray, ranks: int) -> np.ndarray:
        """Return the (cells,) int32 rank of each cell."""
        return chunks(_place(self.order, shape), weights, ranks)


@lru_cache(maxsize=64)
def _place(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the place of each cell along an order."""
    return sfc.covering(name, shape).dense_ranks().astype(np.int64)


def bricks(shape: tuple[int, ...], box: md.Box, weights: np.ndarray, ranks: int) -> np.ndarray:
    """Divide the cells into boxes of as many cells, whatever they weigh.

    Args:
        shape: cells along each axis.
        box: of the cells.
        weights: (cells,) of each; not read.
        ranks: number of boxes.

    Returns:
        (cells,) int32 rank of each cell.

    Raises:
        ValueError: no factors of the number of ranks are within the cells along the axes.
    """
    parts = factors(shape, ranks)
    along = [np.arange(count) * part // count for count, part in zip(shape, parts, strict=True)]
    owner = np.zeros((1,) * len(shape), np.int64)
    for axis in reversed(range(len(shape))):  # axis 0 is the last of the array
        where = [1] * len(shape)
        where[len(shape) - 1 - axis] = -1
        owner = owner * parts[axis] + along[axis].reshape(where)
    return np.broadcast_to(owner, shape[::-1]).reshape(-1).astype(np.int32)


def factors(shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    """Return the numbers of boxes along the axes, with the least faces, of which the product is the ranks.

    Args:
        shape: cells along each axis.
        ranks: number of boxes.

    Raises:
        ValueError: none fits.
    """
    divisors = [part for part in range(1, ranks + 1) if ranks % part == 0]
    found = [
        parts for parts in product(divisors, repeat=len(shape))
        if math.prod(parts) == ranks and all(part <= count for part, count in zip(parts, shape, strict=True))
    ]  # fmt: skip
    if not found:
        raise ValueError(
            f"{ranks} ranks as bricks of {' x '.join(map(str, shape))} cells; allowed: a product of "
            "numbers up to those of cells; take other ranks, or more particles"
        )
    return min(found, key=lambda parts: sum(part / count for part, count in zip(parts, shape, strict=True)))


def bisection(shape: tuple[int, ...], box: md.Box, weights: np.ndarray, ranks: int) -> np.ndarray:
    """Divide the cells in two along their longest axis, and each part again, by weight.

    Args:
        shape: cells along each axis.
        box: of the cells.
        weights: (cells,) of each, 0 or more.
        ranks: number of parts.

    Returns:
        (cells,) int32 rank of each cell. Parts are boxes of whole layers of cells.

    Raises:
        ValueError: a part has fewer cells than ranks.

    Berger and Bokhari, IEEE Trans. Computers C-36 (1987) 570.
    """
    of_cell = np.asarray(weights, float).reshape(shape[::-1])
    owner = np.zeros(shape[::-1], np.int32)
    parts = [(tuple(slice(0, count) for count in of_cell.shape), 0, ranks)]
    while parts:
        place, first, count = parts.pop()
        owner[place] = first
        if count == 1:
            continue
        inside = of_cell[place]
        axis = int(np.argmax(inside.shape))
        layers, others = inside.shape[axis], inside.size // inside.shape[axis]
        lower = count // 2
        least, most = -(-lower // others), layers - -(-(count - lower) // others)  # room for a cell of each
        if least > most:
            raise ValueError(
                f"{count} ranks by bisection of {inside.size} cells; allowed: up to as many as layers hold; "
                "take fewer ranks, or more particles"
            )
        summed = np.cumsum(inside.sum(axis=tuple(set(range(inside.ndim)) - {axis})))
        middles = np.append(0.0, summed)
        at = int(np.argmin(np.abs(middles - middles[-1] * lower / count)[least : most + 1])) + least
        start = place[axis].start
        halves = (start, start + at), (start + at, start + layers)
        for (begin, end), rank, ranks_of in zip(
            halves, (first, first + lower), (lower, count - lower), strict=True
        ):
            part = (*place[:axis], slice(begin, end), *place[axis + 1 :])
            parts.append((part, rank, ranks_of))
    return owner.reshape(-1)


def metis(shape: tuple[int, ...], box: md.Box, weights: np.ndarray, ranks: int) -> np.ndarray:
    """Divide the graph of the cells, with edges to all neighbours weighed by the particles, by METIS.

    So it cuts where few particles are. Recursively it leaves more even parts than in k ways at once.

    Args:
        shape: cells along each axis.
        box: of the cells; neighbours wrap around where it is periodic.
        weights: (cells,) of each, 0 or more.
        ranks: number of parts.

    Returns:
        (cells,) int32 rank of each cell. A part that METIS leaves empty gets a cell of the largest one.

    Raises:
        ImportError: pymetis is not installed.

    Karypis and Kumar, SIAM J. Scientific Computing 20 (1998) 359.
    """
    pymetis = import_module("pymetis")
    whole = np.rint(np.asarray(weights, float) * (FINEST / max(np.mean(weights), 1e-300))).astype(np.int64)
    first, neighbours = neighbours_of(tuple(shape), tuple(box.periodic))
    cells = np.repeat(np.arange(len(whole)), np.diff(first))
    edges = 1 + (whole[cells] + whole[neighbours]) // EDGES_PER_CELL
    _, found = pymetis.part_graph(
        ranks, pymetis.CSRAdjacency(first, neighbours), vweights=whole, eweights=edges, recursive=True,
        options=pymetis.Options(seed=0, ncuts=METIS_TRIES),
    )  # fmt: skip
    owner = np.asarray(found, np.int32)
    for rank in np.flatnonzero(np.bincount(owner, minlength=ranks) == 0):
        largest = np.flatnonzero(owner == np.bincount(owner, minlength=ranks).argmax())
        owner[largest[np.argmin(whole[largest])]] = rank
    return owner


@lru_cache(maxsize=8)
def neighbours_of(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """List the neighbours of each cell on its faces, edges and corners.

    Args:
        shape: cells along each axis.
        periodic: by axis.

    Returns:
        (cells + 1,) first neighbour of each cell, and the (edges,) neighbours, each once.
    """
    sizes = np.array(shape)
    cells = np.stack(np.unravel_index(np.arange(sizes.prod()), shape, order="F"), axis=1)
    pairs = []
    for step in product((-1, 0, 1), repeat=len(shape)):
        other = cells + step
        wrapped = np.where(periodic, np.mod(other, sizes), other)
        inside = ((wrapped >= 0) & (wrapped < sizes)).all(axis=1)
        numbers = np.ravel_multi_index(tuple(wrapped[inside].T), shape, order="F")
        pairs.append(np.stack([np.flatnonzero(inside), numbers], axis=1))
    every = np.unique(np.concatenate(pairs), axis=0)
    every = every[every[:, 0] != every[:, 1]]
    counts = np.bincount(every[:, 0], minlength=sizes.prod())
    return np.concatenate([[0], np.cumsum(counts)]), every[:, 1].copy()


def cut_faces(owner: np.ndarray, shape: tuple[int, ...]) -> int:
    """Count the pairs of face-adjacent cells of different ranks, as `sfc.locality.partition_cut` does.

    Args:
        owner: (cells,) rank of each cell, by row-major number.
        shape: cells along each axis.
    """
    of_cell = np.asarray(owner).reshape(shape[::-1])
    return sum(int(np.count_nonzero(np.diff(of_cell, axis=axis))) for axis in range(of_cell.ndim))


class ManyRanks(NamedTuple):
    """Counts of a division on many ranks, as means over ranks.

    Attributes:
        peers: ranks with adjacent cells.
        ghosts: cells of other ranks that are adjacent to own ones, over those.
    """

    peers: float
    ghosts: float


@cache
def on_many_ranks(name: str) -> ManyRanks:
    """Count peers and ghost cells of `MANY_RANKS` ranks in a periodic cube of equal cells.

    Args:
        name: one of `known`.
    """
    shape, box = (MANY_CELLS,) * 3, md.Box((2.0 * MANY_CELLS,) * 3)
    owner = owners_of(name)(shape, box, np.ones(MANY_CELLS**3), MANY_RANKS)
    first, neighbours = neighbours_of(shape, box.periodic)
    own = np.repeat(owner, np.diff(first)).astype(np.int64)
    others = own != owner[neighbours]
    own, ghosts = own[others], neighbours[others]
    cells = np.unique(own * len(owner) + ghosts)
    peers = np.unique(own * MANY_RANKS + owner[ghosts])
    return ManyRanks(len(peers) / MANY_RANKS, len(cells) / len(owner))


@dataclass(frozen=True)
class Remembered:
    """Division that is computed once for the same weights: ranks in turn ask for the same one after another.

    Args:
        name: one of `known`.
    """

    name: str

    def __call__(self, shape: tuple[int, ...], box: md.Box, weights: np.ndarray, ranks: int) -> np.ndarray:
        """Return the (cells,) int32 rank of each cell."""
        of_cells = np.asarray(weights, float).tobytes()
        return _remembered(self.name, tuple(shape), tuple(box.lengths), tuple(box.periodic), of_cells, ranks)


@lru_cache(maxsize=8)
def _remembered(
    name: str,
    shape: tuple[int, ...],
    lengths: tuple[float, ...],
    periodic: tuple[bool, ...],
    of_cells: bytes,
    ranks: int,
) -> np.ndarray:
    return owners_of(name)(shape, md.Box(lengths, periodic), np.frombuffer(of_cells), ranks)

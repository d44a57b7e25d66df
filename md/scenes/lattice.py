"""Lattices that fill a box with a given number of sites at the largest spacing."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from md.checks import instance, integer, require_allocatable
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES

# Sites of one cell in fractions of the cell, and proportions of the cell with all neighbours at one distance.
# A body-centred cell of these proportions is the face-centred cubic lattice turned by 45 degrees about its
# long axis: another way to fit into a box, above all a flat one.
_FACES = (0.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5)
_CENTRED = (0.0, 0.0, 0.0), (0.5, 0.5, 0.5)
_LONG = math.sqrt(2)
Basis = tuple[tuple[float, ...], ...]
LATTICES: dict[int, dict[str, tuple[Basis, tuple[float, ...]]]] = {
    2: {"square": (((0.0, 0.0),), (1.0, 1.0)), "hexagonal": (((0.0, 0.0), (0.5, 0.5)), (1.0, math.sqrt(3)))},
    3: {
        "simple cubic": (((0.0, 0.0, 0.0),), (1.0, 1.0, 1.0)),
        "face-centred cubic": (_FACES, (1.0, 1.0, 1.0)),
        "body-centred, long along axis 0": (_CENTRED, (_LONG, 1.0, 1.0)),
        "body-centred, long along axis 1": (_CENTRED, (1.0, _LONG, 1.0)),
        "body-centred, long along axis 2": (_CENTRED, (1.0, 1.0, _LONG)),
    },
}


BYTES = 200  # of a particle while a scene is made, approximately: 90 to 300 were measured


def require_room(n: int) -> None:
    """Raise an error if there is not enough memory on the host to make a scene of n particles.

    Raises:
        ValueError: not enough memory.
    """
    remedy = "take fewer: a lower filling fraction, or a smaller box"
    require_allocatable(f"a scene of {n} particles", BYTES * n, remedy)


def lattice_sites(box: Box, n: int) -> tuple[np.ndarray, float]:
    """Make at least n sites with the largest spacing over the known lattices and cell counts.

    Args:
        box: the box; sites keep half a diameter from walls (axes that are not periodic).
        n: least number of sites, at least 1.

    Returns:
        (m, dim) float64 sites with m >= n, axis 0 fastest, and the least distance between two, in d.

    Raises:
        TypeError: an argument of another class.
        ValueError: n below 1, more than the largest number of particles of a state, or too little memory.
    """
    instance("box", box, Box, "an md.Box")
    n = integer("n", n, 1, MAX_PARTICLES, unit="sites")
    require_room(n)
    candidates = (
        (np.array(basis), counts)
        for basis, proportions in LATTICES[box.dim].values()
        for counts in _cell_counts(box, math.ceil(n / len(basis)), proportions)
    )
    basis, counts = max(candidates, key=lambda lattice: _spacing(box, *lattice))  # the first of equal ones
    return _sites(box, basis, counts), _spacing(box, basis, counts)


def _cell_counts(box: Box, cells: int, proportions: Sequence[float]) -> Iterator[tuple[int, ...]]:
    """Generate counts along the axes with a product of at least `cells`, near the lattice's proportions.

    The shortest axis, where whole cells fit worst, is divided first. The other axes compensate, and the last
    has the least number of cells that is enough.
    """
    sides = np.array(box.lengths) / proportions
    axes = np.argsort(sides, kind="stable")
    divided: list[tuple[int, ...]] = [()]  # counts along the first of these axes
    for k in range(box.dim - 1):
        rest, shorter, divided = sides[axes[k:]], divided, []
        for counts in shorter:
            ideal = rest[0] * (cells / math.prod(counts) / np.prod(rest)) ** (1 / len(rest))
            near = range(max(1, math.floor(ideal) - 2), math.ceil(ideal) + 4)
            divided += [(*counts, count) for count in near]
    for counts in divided:
        whole = *counts, -(-cells // math.prod(counts))  # rounded up
        yield tuple(whole[k] for k in np.argsort(axes))


def _cell_sides(box: Box, basis: np.ndarray, counts: Sequence[int]) -> np.ndarray:
    """Compute the sides of a cell in d.

    Between walls the outermost sites are half a diameter from the walls, without an image beyond.
    """
    lengths, along = np.array(box.lengths), np.array(counts)
    between_walls = (lengths - 1) / np.maximum(along - 1 + basis.max(axis=0), 0.5)
    return np.where(box.periodic, lengths / along, between_walls)


def _spacing(box: Box, basis: np.ndarray, counts: Sequence[int]) -> float:
    """Compute the least distance between two sites, images included; minus infinity for a negative side."""
    sides = _cell_sides(box, basis, counts)
    if (sides < 0).any():
        return -math.inf
    repeats = np.array(box.periodic) | (np.array(counts) > 1)
    offsets = np.array(list(itertools.product(*[(-1, 0, 1) if more else (0,) for more in repeats])))
    between = (basis[:, None, None] - basis[:, None] + offsets) * sides
    distances = np.sqrt(np.square(between).sum(axis=-1))
    return float(distances[distances > 0].min(initial=math.inf))


def _sites(box: Box, basis: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Make the sites of a lattice, sorted with axis 0 fastest: (m, dim) float64 in d."""
    # Bases consist of halves, so that twice a fractional coordinate is an integer and sites sort exactly.
    fine = 2 * np.array(counts)
    cells = np.column_stack(np.unravel_index(np.arange(math.prod(counts)), counts, order="F"))
    halves = (2 * cells[:, None, :] + (2 * basis).astype(np.int64)).reshape(-1, box.dim)
    halves = halves[np.argsort(np.ravel_multi_index(tuple(halves.T), fine, order="F"))]
    origin = [0.0 if periodic else 0.5 for periodic in box.periodic]
    return halves * (_cell_sides(box, basis, counts) / 2) + origin

"""Lattices that fill a box with a given number of sites as far apart as they can be."""

import itertools
import math

import numpy as np

from md.box import Box

# Sites of one cell, in fractions of it, and the cell's proportions for which neighbours are equally far.
LATTICES = {
    2: {
        "square": (((0.0, 0.0),), (1.0, 1.0)),
        "hexagonal": (((0.0, 0.0), (0.5, 0.5)), (1.0, math.sqrt(3))),
    },
    3: {
        "simple cubic": (((0.0, 0.0, 0.0),), (1.0, 1.0, 1.0)),
        "face-centred cubic": (
            ((0.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5)),
            (1.0, 1.0, 1.0),
        ),
    },
}


def lattice_sites(box: Box, n: int) -> tuple[np.ndarray, float]:
    """At least n sites with the widest spacing over the known lattices and cell counts.

    Args:
        box: the box; walls (axes that are not periodic) are kept half a diameter away.
        n: sites wanted, at least 1.

    Returns:
        (m, dim) float64 sites with m >= n, axis 0 running fastest, and the least distance between two, in d.
    """
    best = None
    for basis, proportions in LATTICES[box.dim].values():
        basis = np.array(basis)
        for counts in _cell_counts(box, math.ceil(n / len(basis)), proportions):
            spacing = _spacing(box, basis, counts)
            if best is None or spacing > best[0]:
                best = (spacing, basis, counts)
    spacing, basis, counts = best
    return _sites(box, basis, counts), spacing


def _cell_counts(box: Box, cells: int, proportions) -> list[tuple[int, ...]]:
    """Counts along the axes with a product of at least `cells`, near the lattice's own proportions."""
    sides = np.array(box.lengths) / proportions
    ideal = sides * (cells / np.prod(sides)) ** (1 / box.dim)
    ranges = [range(max(1, math.floor(x) - 1), math.ceil(x) + 3) for x in ideal]
    if min(ideal) < 1:  # a flat box: the other axes must make up for the layers that do not fit
        thin = int(np.argmin(ideal))
        wide = ideal * math.sqrt(min(ideal)) if box.dim == 3 else ideal * min(ideal)
        ranges = [
            range(1, 3) if k == thin else range(max(1, math.floor(wide[k]) - 1), math.ceil(ideal[k]) + 3)
            for k in range(box.dim)
        ]
    return [counts for counts in itertools.product(*ranges) if math.prod(counts) >= cells]


def _cell_sides(box: Box, basis: np.ndarray, counts) -> np.ndarray:
    """Sides of a cell.

    Between walls the outermost sites stand half a diameter inside; no image follows them.
    """
    sides = []
    for axis, count in enumerate(counts):
        if box.periodic[axis]:
            sides.append(box.lengths[axis] / count)
        else:
            sides.append((box.lengths[axis] - 1) / max(count - 1 + basis[:, axis].max(), 0.5))
    return np.array(sides)


def _spacing(box: Box, basis: np.ndarray, counts) -> float:
    """Least distance between two sites, images included."""
    sides = _cell_sides(box, basis, counts)
    least = math.inf
    reach = [
        (-1, 0, 1) if periodic or count > 1 else (0,)
        for periodic, count in zip(box.periodic, counts, strict=True)
    ]
    for offset in itertools.product(*reach):
        for a, b in itertools.product(basis, basis):
            distance = float(np.linalg.norm((a - b + offset) * sides))
            if distance > 0:
                least = min(least, distance)
    return least if all(side >= 0 for side in sides) else -math.inf


def _sites(box: Box, basis: np.ndarray, counts) -> np.ndarray:
    # Twice the fractional place is an integer (bases hold halves), so sites sort by whole numbers.
    fine = 2 * np.array(counts)
    cells = np.column_stack(np.unravel_index(np.arange(math.prod(counts)), counts, order="F"))
    halves = (2 * cells[:, None, :] + (2 * basis).astype(np.int64)).reshape(-1, box.dim)
    halves = halves[np.argsort(np.ravel_multi_index(tuple(halves.T), fine, order="F"))]
    origin = [0.0 if periodic else 0.5 for periodic in box.periodic]
    return halves * (_cell_sides(box, basis, counts) / 2) + origin

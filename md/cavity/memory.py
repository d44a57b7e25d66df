"""Fields of a cavity in memory: an array a field or an array of records, row by row or along an ordering."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from md.backend.base import Array
from sfc import Curve, ordering
from sfc.cache import AccessStream

Order = str | Curve
FIELDS = ("u", "v", "p", "u_next", "v_next", "p_next", "source")
CELL = (  # numbers of a cell of the source's program (NavierStokesCell.h), in its order
    "u", "v", "p", "du_dx", "du_dy", "dv_dx", "dv_dy", "u_laplacian", "v_laplacian", "du_dt", "dv_dt",
    "source", "u_next", "v_next", "p_next", "du_next_dx", "dv_next_dy", "dp_dx", "dp_dy", "u_boundary",
    "v_boundary", "p_boundary",
)  # fmt: skip
FLAGS = ("u_boundary_set", "v_boundary_set", "p_boundary_set")


class Fields(NamedTuple):
    """Fields that a step reads and writes.

    Attributes:
        u, v, p: velocities and pressure.
        u_next, v_next: tentative velocities.
        p_next: pressure of every other sweep.
        source: right-hand side of the equation of the pressure, times h^2.
    """

    u: np.ndarray
    v: np.ndarray
    p: np.ndarray
    u_next: np.ndarray
    v_next: np.ndarray
    p_next: np.ndarray
    source: np.ndarray


class Stencil(NamedTuple):
    """Values of a field at the points inside and at their neighbours, or the places of these in memory.

    Attributes:
        centre: at the points inside.
        west, east, south, north: at their neighbours along -x, +x, -y, +y.
    """

    centre: np.ndarray
    west: np.ndarray
    east: np.ndarray
    south: np.ndarray
    north: np.ndarray


def cell_dtype(dtype: np.dtype) -> np.dtype:
    """Return the record of a cell with all that the source's program stores in it: 184 bytes in float64.

    Steps use the numbers of `Fields` only; the others fill the same bytes as in that program.
    """
    return np.dtype([(name, dtype) for name in CELL] + [(name, bool) for name in FLAGS], align=True)


def zeros(
    points: int, dtype: np.dtype, layout: str, allocate: Callable[[int, np.dtype], Array] = np.zeros
) -> tuple[Fields, int]:
    """Allocate the fields, all 0.

    Args:
        points: of each field.
        dtype: of the numbers.
        layout: "arrays", or "structs" for views of one array of records (`cell_dtype`).
        allocate: makes an array of so many zeros.

    Returns:
        (points,) fields, and how many numbers apart their values are.
    """
    if layout == "arrays":
        return Fields(*(allocate(points, dtype) for _ in FIELDS)), 1
    spacing = cell_dtype(dtype).itemsize // dtype.itemsize
    cells = allocate(points * spacing, dtype)
    return Fields(*(cells[CELL.index(name) :: spacing] for name in FIELDS)), spacing


def needed_bytes(shape: tuple[int, int], dtype: np.dtype, layout: str, order: Order) -> int:
    """Return the bytes that the fields need, and the tables of neighbours unless the points lie row by row.

    Args:
        shape: (ny, nx).
        dtype: of the numbers.
        layout: "arrays" or "structs".
        order: a name of `sfc.orderings(2)`, or a curve.
    """
    point = cell_dtype(dtype).itemsize if layout == "structs" else len(FIELDS) * dtype.itemsize
    tables = 0 if isinstance(order, str) and order == "row" else 4 * (1 + len(Stencil._fields))
    return shape[0] * shape[1] * (point + tables)


def places(order: Order, shape: tuple[int, int]) -> np.ndarray:
    """Return the place in memory of each point: (ny, nx) int32, a permutation of 0 .. ny nx - 1.

    Args:
        order: a name of `sfc.orderings(2)`, or a curve.
        shape: (ny, nx).
    """
    return ordering(order, shape[::-1]).dense_ranks().astype(np.int32).reshape(shape)


def around(field: np.ndarray) -> Stencil:
    """Return the (ny - 2, nx - 2) views of a (ny, nx) field at the points inside and at their neighbours."""
    return Stencil(field[1:-1, 1:-1], field[1:-1, :-2], field[1:-1, 2:], field[:-2, 1:-1], field[2:, 1:-1])


def stencil(place: np.ndarray) -> Stencil:
    """Return the places of the points inside and of their neighbours: (m,) int32, by increasing place.

    Args:
        place: (ny, nx) of `places`.
    """
    views = around(place)
    by_place = np.argsort(views.centre, axis=None)
    return Stencil(*(view.ravel()[by_place] for view in views))


def sweep_accesses(order: Order, shape: tuple[int, int]) -> AccessStream:
    """Return the pressures that a sweep reads: four neighbours of each point inside, in order of memory.

    Args:
        order: a name of `sfc.orderings(2)`, or a curve.
        shape: (ny, nx).
    """
    centre, *neighbours = stencil(places(order, shape))
    return AccessStream(4 * np.arange(len(centre) + 1), np.column_stack(neighbours).ravel(), centre)

"""Boundary conditions as tables: for each boundary point a fixed value, or the inner point to copy from.

The sides of a cavity overwrite the corners in a fixed order (`md.cavity.scheme`). The tables hold the result,
so that a kernel can set all boundary points in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from md.cavity.scheme import Scheme
from md.cavity.sides import Conditions

PRESSURE_ORDER = ("right", "left", "bottom", "top")
VELOCITY_ORDER = ("bottom", "top", "left", "right")
EDGE: dict[str, Any] = {"bottom": 0, "top": -1, "left": np.s_[:, 0], "right": np.s_[:, -1]}
BESIDE: dict[str, Any] = {"bottom": 1, "top": -2, "left": np.s_[:, 1], "right": np.s_[:, -2]}


class BoundaryTable(NamedTuple):
    """Condition for one field at all boundary points.

    Attributes:
        points: (m,) int32 numbers of the boundary points, row by row: point (row, column) is row nx + column.
        sources: (m,) int32 numbers of the inner points to copy from; -1 for a fixed value.
        values: (m,) fixed values, in the precision of the scheme; 0 where a point is copied.
    """

    points: np.ndarray
    sources: np.ndarray
    values: np.ndarray


def apply(field: np.ndarray, name: str, conditions: Mapping[str, Conditions]) -> None:
    """Set the boundary values of a field, side by side.

    Args:
        field: (ny, nx), changed in place.
        name: of the field: "u", "v" or "p".
        conditions: of each side, `Scheme.conditions`.
    """
    for side in PRESSURE_ORDER if name == "p" else VELOCITY_ORDER:
        fixed = getattr(conditions[side], name)
        field[EDGE[side]] = field[BESIDE[side]] if fixed is None else fixed


def boundary_table(scheme: Scheme, name: str) -> BoundaryTable:
    """Return the table of one field.

    Args:
        scheme: the discretised problem.
        name: of the field: "u", "v" or "p".
    """
    conditions = scheme.conditions
    marked = {
        side: np.full(1, -1.0) if getattr(one, name) is not None else None for side, one in conditions.items()
    }
    numbers = np.arange(scheme.shape[0] * scheme.shape[1], dtype=np.float64).reshape(scheme.shape)
    sources, values = numbers.copy(), np.zeros(scheme.shape)
    apply(sources, name, {side: Conditions(one, one, one) for side, one in marked.items()})
    apply(values, name, conditions)
    edge = np.ones(scheme.shape, bool)
    edge[1:-1, 1:-1] = False
    return BoundaryTable(
        numbers[edge].astype(np.int32), sources[edge].astype(np.int32), values[edge].astype(scheme.dtype)
    )


def require_boundary_values(p: np.ndarray, scheme: Scheme, other: str) -> None:
    """Check that a pressure has its boundary values, for solvers that do not store them.

    Args:
        p: (ny, nx) pressure.
        scheme: the discretised problem.
        other: a strategy that stores them, for the message.

    Raises:
        ValueError: a boundary point with another value.
    """
    expected = p.astype(scheme.dtype)
    apply(expected, "p", scheme.conditions)
    wrong = ~((expected == p) | np.isnan(p))
    if wrong.any():
        row, column = np.unravel_index(wrong.argmax(), p.shape)
        raise ValueError(
            f"p = {p[row, column]} at row {row}, column {column}; allowed: the boundary value "
            f"{expected[row, column]}; give a pressure with its boundary values, or take strategy={other!r}"
        )

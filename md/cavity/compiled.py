"""Solver with compiled kernels on the CPU, for both layouts and any order of the points."""

from __future__ import annotations

from typing import Any

import numpy as np

from md.cavity import row_kernels, table_kernels
from md.cavity.base import Order, Solver, Values
from md.cavity.boundary import BoundaryTable, boundary_table
from md.cavity.memory import Fields, places, stencil, zeros
from md.cavity.scheme import Scheme


class CompiledSolver(Solver):
    """Fields in memory, advanced by a compiled kernel: over rows, or with the neighbours in tables.

    Args:
        scheme: the discretised problem.
        layout: "arrays" or "structs".
        order: "row", or any other order of the points.
        parts: parts into which the rows are cut, at most one for each thread; 1 for one thread.
        depth: most sweeps of a pass over the rows; above 1 for the layout "arrays" and the order "row" only.
    """

    def __init__(self, scheme: Scheme, layout: str, order: Order, parts: int, depth: int = 1):
        super().__init__(scheme)
        by_row = isinstance(order, str) and order == "row"
        self._place = None if by_row else places(order, scheme.shape).ravel()
        fields, _ = zeros(scheme.shape[0] * scheme.shape[1], scheme.dtype, layout)
        self._fields = Fields(*(field.reshape(scheme.shape) for field in fields)) if by_row else fields
        self._depth = depth
        self._rows, self._at = self._fields.p, 0
        if by_row and layout == "arrays":  # both pressures, and the ring of each part, are rows of one array
            ny, nx = scheme.shape
            self._rows = np.zeros((2 * ny + parts * 3 * (depth - 1), nx), scheme.dtype)
            self._fields = self._fields._replace(p=self._rows[:ny], p_next=self._rows[ny : 2 * ny])
        kernel: Any = row_kernels.advance if by_row else table_kernels.advance
        self._kernel = kernel if parts > 1 else kernel.alone
        self._tables, self._parts = self._make_tables(), parts

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields; see `Solver.load`."""
        for field, values in zip(self._fields, (u, v, p), strict=False):
            if values is None:
                continue
            if self._place is None:
                field[...] = values
            else:
                field[self._place] = values.ravel()

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of u, v and p, row by row."""
        if self._place is None:
            u, v, p = (np.ascontiguousarray(field).copy() for field in self._fields[:3])
        else:
            u, v, p = (field[self._place].reshape(self.scheme.shape) for field in self._fields[:3])
        return u, v, p

    def advance(self, steps: int) -> int:
        """Take steps, until a field is not finite; see `Solver.advance`."""
        fields, sweeps = self._fields, self.scheme.sweeps
        given = (self._depth, self._parts, fields, self._rows, self._at) if self._place is None else (fields,)
        taken: int = self._kernel(steps, sweeps, *given, self.scheme.coefficients, *self._tables)
        if abs(taken) * -(-sweeps // self._depth) % 2:
            self._fields = fields._replace(p=fields.p_next, p_next=fields.p)
            self._at = self.scheme.shape[0] - self._at
        return taken

    def _make_tables(self) -> tuple[Any, ...]:
        """Return what the kernel takes beside the fields."""
        if self._place is None:
            return tuple(row_kernels.edges(self.scheme, name) for name in "uvp")
        place = self._place

        def in_memory(table: BoundaryTable) -> BoundaryTable:
            sources = np.where(table.sources < 0, -1, place[table.sources]).astype(np.int32)
            return table._replace(points=place[table.points], sources=sources)

        tables = (in_memory(boundary_table(self.scheme, name)) for name in "uvp")
        return stencil(place.reshape(self.scheme.shape)), *tables

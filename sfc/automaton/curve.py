"""Class `Curve`: a space-filling curve as the tables of a finite automaton.

Contract. A curve of order `k` visits every cell of a cube of `base**k` cells a side once. To encode a cell,
its coordinates are read digit by digit from the most significant one. In each state, `rank[state]` maps the
cell digit to the next digit of the index along the curve, and `next[state]` maps it to the next state. A cell
digit combines one digit of each coordinate, with axis 0 the least significant:
`digit = d0 + base * (d1 + base * d2)`. All curves with tables therefore share one encoder and one decoder,
and a device needs only the tables.

As automata: Butz, IEEE Trans. Computers C-20 (1971) 424; Bader, Space-Filling Curves (2013), ch. 3 and 4.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sfc import checks
from sfc.any_curve import AnyCurve, Grammar
from sfc.automaton import walk
from sfc.automaton.tables import reached, tables
from sfc.compile import LazyModule
from sfc.points import as_words, first_outside

if TYPE_CHECKING:
    from sfc.automaton import registers
else:
    registers = LazyModule("sfc.automaton.registers")  # it extends Numba, so it imports Numba

Pair = tuple[int, int, tuple[int, ...]]  # two successive states, and the step between them


class Curve(AnyCurve):
    """Space-filling curve in `dim` dimensions, given by the tables of its automaton.

    Args:
        name: its name in tables and figures.
        dim: dimensions, 1 or more.
        base: each refinement divides a cube into base**dim cubes.
        rank: (states, base**dim) integers; position along the curve of each cell digit. Every row is a
            permutation.
        next: (states, base**dim) integers; state inside the sub-cube of each cell digit.
        start: the state of the whole cube.
        grammar: an L-system of the same curve, for drawings; None if there is none.

    Attributes:
        cell: (states, base**dim) uint16; the inverse of `rank`: cell digit of each position.
        succ: (states, base**dim) uint16; state inside the sub-cube at each position.

    The four tables are copies, and read-only.

    Raises:
        TypeError: a name that is no str, a dim, base or start that is no integer, or a grammar of another
            class.
        ValueError: tables that are no automaton of base**dim cells (the message names the row), a base over
            64, or more than 2**16 states or cells of a state.
    """

    def __init__(
        self,
        name: str,
        dim: int,
        base: int,
        rank: ArrayLike,
        next: ArrayLike,
        start: int = 0,
        grammar: Grammar | None = None,
    ):
        self.name = checks.text("name", name, "it is what tables and figures call the curve")
        self.grammar = checks.instance(
            "grammar", grammar, (Grammar, type(None)), "an sfc.automaton.Grammar, or None"
        )
        made = tables(f"curve {self.name!r}", dim, base, rank, next, start)
        self.dim, self.base, self.start = int(dim), int(base), int(start)
        self.rank, self.next, self.cell, self.succ = made
        self._merged_tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._tables_of_order: dict[int, walk.MergedTables] = {}
        self._register_tables: dict[int, registers.RegisterTables | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Curve, (self.name, self.dim, self.base, self.rank, self.next, self.start, self.grammar)

    def __repr__(self) -> str:
        return f"<Curve {self.name} {self.dim}D, base {self.base}, {len(self.rank)} states>"

    def _encode_into(self, cells: np.ndarray, order: int, index: np.ndarray) -> int:
        tables = self._in_registers(order, len(cells))
        if tables is None:
            return super()._encode_into(cells, order, index)
        if registers.encode(np.ascontiguousarray(cells), order, tables, index):
            return len(cells)
        return first_outside(as_words(cells), (self.base**order,) * self.dim)

    def _encode_words(self, cells: np.ndarray, order: int, index: np.ndarray) -> int:
        return walk.encode(cells, self._merged(order), index)

    def _decode_into(self, index: np.ndarray, order: int, cells: np.ndarray) -> int:
        tables = self._in_registers(order, len(index))
        if tables is None:
            return super()._decode_into(index, order, cells)
        if registers.decode(np.ascontiguousarray(index), order, tables, cells):
            return len(index)
        return int(((index < 0) | (index >= self.base ** (self.dim * order))).argmax())

    def _decode_words(self, index: np.ndarray, order: int, cells: np.ndarray) -> int:
        return walk.decode(index, self._merged(order), cells)

    def _in_registers(self, order: int, n: int) -> registers.RegisterTables | None:
        """Return the tables in registers for an order; None for few points, or if host or curve has none."""
        if n < registers.FEWEST or self.base != 2 or order == 0 or not registers.instructions():
            return None
        if order not in self._register_tables:
            self._register_tables[order] = registers.tables(self.cell, self.succ, self.dim, self.start, order)
        return self._register_tables[order]

    def _merged(self, order: int) -> walk.MergedTables:
        """Return the tables in memory for an order."""
        if order not in self._tables_of_order:
            levels = walk.levels_at_once(self.dim, self.base, len(self.rank))
            for count in (order % levels, levels):
                if count not in self._merged_tables:
                    self._merged_tables[count] = walk.merged(self.cell, self.succ, self.dim, self.base, count)
            made = self._merged_tables[order % levels], self._merged_tables[levels]
            tables = walk.MergedTables(self.dim, self.base, order, self.start, levels, *made)
            self._tables_of_order[order] = tables
        return self._tables_of_order[order]

    @cached_property
    def is_continuous(self) -> bool:
        """Whether every step, at every order, is one cell along one axis. Exact: by the tables."""
        return self.first_jump() is None

    @cached_property
    def is_closed(self) -> bool:
        """Whether, at every order, the last cell is one step from the first. Exact: by the tables."""
        first, last = self._corner(self.start, 0), self._corner(self.start, -1)
        step = first - last
        if np.abs(step).sum() != 1:
            return False
        pair = (int(self.succ[self.start, -1]), int(self.succ[self.start, 0]), tuple(step.tolist()))
        return self._first_open_pair({pair: (self.start, -1)}) is None

    def first_jump(self) -> tuple[int, int] | None:
        """Find the first step that is not a unit step at some order.

        A step inside a state must be a unit vector. Refined, it joins the last cell of one sub-cube to the
        first of the next, which is again a pair of states and a direction. There are finitely many such
        pairs, so following them until no new one appears decides all orders.

        Returns:
            None for a continuous curve, else (state, position): the step from that position to the next is
            not a unit step.
        """
        states = np.sort(reached(self.start, lambda state: self.next[state].tolist()))
        digits = np.arange(self.base**self.dim)[:, None] // self.base ** np.arange(self.dim) % self.base
        steps = np.diff(digits.astype(np.int8)[self.cell[states]], axis=1)
        jumps = np.argwhere(np.abs(steps).sum(axis=2) != 1)
        if len(jumps):
            return int(states[jumps[0, 0]]), int(jumps[0, 1])
        a, b = (self.succ[states][:, part].astype(np.int64) for part in (slice(-1), slice(1, None)))
        axis, is_up = np.abs(steps).argmax(axis=2), steps.sum(axis=2) > 0
        numbers = ((a * len(self.succ) + b) * self.dim + axis) * 2 + is_up  # one for each pair
        pairs: dict[Pair, tuple[int, int]] = {}
        for first in np.unique(numbers, return_index=True)[1]:
            state, position = divmod(int(first), steps.shape[1])
            pair = int(a[state, position]), int(b[state, position]), tuple(steps[state, position].tolist())
            pairs[pair] = int(states[state]), position
        return self._first_open_pair(pairs)

    def _first_open_pair(self, pairs: dict[Pair, tuple[int, int]]) -> tuple[int, int] | None:
        """Find a pair of states between which the refined curve jumps; return its origin.

        Args:
            pairs: (state, next state, step) -> origin, the (state, position) that leads to it; extended.
        """
        pending = list(pairs.items())
        while pending:
            (a, b, step), origin = pending.pop()
            crossing = self._corner(b, 0) + self.base * np.array(step) - self._corner(a, -1)
            if tuple(crossing.tolist()) != step:
                return origin
            child = (int(self.succ[a, -1]), int(self.succ[b, 0]), step)
            if child not in pairs:
                pairs[child] = origin
                pending.append((child, origin))
        return None

    def _corner(self, state: int, position: int) -> np.ndarray:
        digit = int(self.cell[state, position])
        return np.array([digit // self.base**k % self.base for k in range(self.dim)])

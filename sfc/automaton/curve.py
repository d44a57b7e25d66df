"""Class `Curve`: a space-filling curve as the tables of a finite automaton.

Contract. A curve of order `k` visits every cell of a cube of `base**k` cells a side once. To encode a cell,
its coordinates are read digit by digit from the most significant one. In each state, `rank[state]` maps the
cell digit to the next digit of the index along the curve, and `next[state]` maps it to the next state. A cell
digit combines one digit of each coordinate, with axis 0 the least significant:
`digit = d0 + base * (d1 + base * d2)`. All curves therefore share one encoder and one decoder, and a device
needs only the tables.

As automata: Butz, IEEE Trans. Computers C-20 (1971) 424; Bader, Space-Filling Curves (2013), ch. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sfc import checks
from sfc.automaton import walk
from sfc.automaton.tables import tables
from sfc.compile import LazyModule
from sfc.points import as_words, cells_of, first_outside, numbers_of, output

if TYPE_CHECKING:
    from sfc.automaton import registers
else:
    registers = LazyModule("sfc.automaton.registers")  # it extends Numba, so it imports Numba

Pair = tuple[int, int, tuple[int, ...]]  # two successive states, and the step between them
MergedTables = tuple[np.ndarray, np.ndarray]  # for encoding, for decoding
CHUNK = 2**18  # cells per `decode` call of a traversal


class Grammar(NamedTuple):
    """L-system of a curve, in the form that `sfc.automaton.lsystem` reads.

    Attributes:
        axiom: the starting string.
        rules: symbol -> its pattern.
    """

    axiom: str
    rules: Mapping[str, str]


class Curve:
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
        self._merged_tables: dict[int, MergedTables] = {}
        self._register_tables: dict[int, registers.RegisterTables | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Curve, (self.name, self.dim, self.base, self.rank, self.next, self.start, self.grammar)

    def __repr__(self) -> str:
        return f"<Curve {self.name} {self.dim}D, base {self.base}, {len(self.rank)} states>"

    @cached_property
    def max_order(self) -> int:
        """Largest order with an index of up to 64 bits and a side below 2**63."""
        order = 0
        while self.base ** (self.dim * (order + 1)) <= 2**64 and self.base ** (order + 1) < 2**63:
            order += 1
        return order

    def side(self, order: int) -> int:
        """Return the cells along each axis of the grid of an order: base**order.

        Raises:
            TypeError: an order that is no integer.
            ValueError: a negative order, or one with an index over 64 bits.
        """
        where = f"order of {self.name} in {self.dim}D"
        remedy = "take a lower order, so that an index fits 64 bits"
        return self.base ** checks.integer(where, order, 0, self.max_order, remedy=remedy)

    def encode(self, cells: ArrayLike, order: int, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the index of each cell along the curve.

        Args:
            cells: (n, dim) integers of any integer dtype, 0 <= cell < base**order.
            order: recursion depth; the grid has base**order cells along each axis.
            out: (n,) integers of any dtype that holds the largest index, filled; None for a new array. It is
                fastest if contiguous, of the fewest bytes. After an error its contents mean nothing.

        Returns:
            (n,) uint64, in [0, base**(dim * order)); or `out`.

        Raises:
            TypeError: cells that make no array, or an order that is no integer.
            ValueError: wrong shape or dtype, a cell outside the grid, or an index over 64 bits. Points of
                floats have keys instead: `sfc.keys`.
        """
        side = self.side(order)
        cells = cells_of(cells, (side,) * self.dim)
        index = output(out, (len(cells),), side**self.dim - 1, np.uint64)
        bad = self.encode_to(cells, int(order), index)
        if bad < len(cells):
            raise ValueError(
                f"cell {cells[bad].tolist()} in row {bad} is outside the grid of order {order}; "
                f"allowed: 0 <= cell < {side}; raise the order or check the cells"
            )
        return index

    def encode_to(self, cells: np.ndarray, order: int, index: np.ndarray) -> int:
        """Compute the index of each cell without checking the arguments.

        For callers that have checked them, or that raise a different error.

        Args:
            cells: (n, dim) integers.
            order: an integer from 0 to `max_order`.
            index: (n,) integers of enough bits, filled.

        Returns:
            The first row outside the grid; n if there is none. Then the contents of `index` mean nothing.
        """
        tables = self._in_registers(order, len(cells))
        if not index.flags.c_contiguous or not index.dtype.isnative or np.may_share_memory(cells, index):
            own = np.empty(len(index), np.uint64)
            bad = self.encode_to(cells, order, own)
            if bad == len(cells):  # or else the caller's message reads the cells, which may be in `index`
                index[:] = own
            return bad
        if tables is not None and registers.encode(np.ascontiguousarray(cells), order, tables, index):
            return len(cells)
        if tables is not None:
            return int(first_outside(as_words(cells), np.full(self.dim, self.base**order, np.uint64)))
        own = index.view(np.uint64) if index.itemsize == 8 else np.empty(len(index), np.uint64)
        levels, first, table = self._merged(order)
        bad = walk.encode(as_words(cells), order, self.base, levels, first[0], table[0], self.start, own)
        if index.itemsize < 8:
            index[:] = own
        return bad

    def decode(self, index: ArrayLike, order: int, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the cell at each index along the curve; the inverse of `encode`.

        Args:
            index: (n,) integers of any integer dtype, 0 <= index < base**(dim * order).
            order: recursion depth.
            out: (n, dim) integers of any dtype that holds the largest coordinate, filled; None for a new
                array. It is fastest if contiguous, of the fewest bytes. After an error its contents mean
                nothing.

        Returns:
            (n, dim) int64 cells; or `out`.

        Raises:
            TypeError: indices that make no array, or an order that is no integer.
            ValueError: wrong shape or dtype, an index past the end of the curve, or an order over 64 bits.
        """
        length = self.side(order) ** self.dim
        order, index = int(order), numbers_of("index", index, length)
        cells = output(out, (len(index), self.dim), self.base**order - 1, np.int64)
        bad = self._decode_to(index, order, cells, length)
        if bad < len(index):
            where = "is negative" if index[bad] < 0 else f"is past the end of the curve of order {order}"
            raise ValueError(f"index {int(index[bad])} in row {bad} {where}; allowed: 0 <= index < {length}")
        return cells

    def _decode_to(self, index: np.ndarray, order: int, cells: np.ndarray, length: int) -> int:
        """Compute cells; return the first row past the end, or negative."""
        tables = self._in_registers(order, len(index))
        if not cells.flags.c_contiguous or not cells.dtype.isnative or np.may_share_memory(cells, index):
            own = np.empty(cells.shape, np.int64)
            bad = self._decode_to(index, order, own, length)
            if bad == len(index):
                cells[:] = own
            return bad
        if tables is not None:
            if registers.decode(np.ascontiguousarray(index), order, tables, cells):
                return len(index)
            return int(((index < 0) | (index >= length)).argmax())
        own = cells.view(np.int64) if cells.itemsize == 8 else np.empty(cells.shape, np.int64)
        levels, first, table = self._merged(order)
        bad = walk.decode(as_words(index), order, self.base, levels, first[1], table[1], self.start, own)
        if length > 2**63 and index.dtype.kind == "i" and (index < 0).any():
            bad = int((index < 0).argmax())  # as unsigned 64 bits it is a valid index of the longest curve
        if cells.itemsize < 8:
            cells[:] = own
        return bad

    def _in_registers(self, order: int, n: int) -> registers.RegisterTables | None:
        """Return the tables in registers for an order; None for few points, or if host or curve has none."""
        if n < registers.FEWEST or self.base != 2 or order == 0 or not registers.instructions():
            return None
        if order not in self._register_tables:
            self._register_tables[order] = registers.tables(self.cell, self.succ, self.dim, self.start, order)
        return self._register_tables[order]

    def _merged(self, order: int) -> tuple[int, MergedTables, MergedTables]:
        """Return the levels per look-up, and the (encode, decode) tables of the top levels and of blocks."""
        levels = walk.levels_at_once(self.dim, self.base, len(self.rank))
        for count in (order % levels, levels):
            if count not in self._merged_tables:
                self._merged_tables[count] = walk.merged(self.cell, self.succ, self.dim, self.base, count)
        return levels, self._merged_tables[order % levels], self._merged_tables[levels]

    def traversal(self, order: int) -> np.ndarray:
        """List every cell of the grid, in the order of the curve.

        Args:
            order: recursion depth.

        Returns:
            (base**(dim * order), dim) int64 cells.

        Raises:
            TypeError: an order that is no integer.
            ValueError: an order with an index over 64 bits, or more cells than fit in memory.
        """
        length = self.side(order) ** self.dim
        where = f"traversal of {self.name} in {self.dim}D at order {order}, {length} cells"
        checks.room(where, 8 * self.dim * length, "stream them with sfc.ordering(...).chunks()")
        cells = np.empty((length, self.dim), np.int64)
        for start in range(0, length, CHUNK):
            stop = min(start + CHUNK, length)
            cells[start:stop] = self.decode(np.arange(start, stop, dtype=np.uint64), order)
        return cells

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
        pairs: dict[Pair, tuple[int, int]] = {}
        for state in self._reachable():
            for position in range(self.base**self.dim - 1):
                step = self._corner(state, position + 1) - self._corner(state, position)
                if np.abs(step).sum() != 1:
                    return state, position
                a, b = self.succ[state, position], self.succ[state, position + 1]
                pairs.setdefault((int(a), int(b), tuple(step.tolist())), (state, position))
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

    def _reachable(self) -> list[int]:
        seen, pending = {self.start}, [self.start]
        while pending:
            for state in set(self.next[pending.pop()].tolist()) - seen:
                seen.add(state)
                pending.append(state)
        return sorted(seen)

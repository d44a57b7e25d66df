"""A space-filling curve is data: the tables of a finite automaton.

Contract. A curve of order `k` visits every cell of a cube of `base**k` cells a side once. Reading the cell's
coordinates digit by digit from the top, the automaton is in a state, looks the cell digit up in
`rank[state]` to find the next digit of the index along the curve, and moves to `next[state]`. A cell digit
packs one digit of each coordinate with axis 0 the least significant: `digit = d0 + base * (d1 + base * d2)`.
Every curve therefore shares one encoder and one decoder, and a device needs nothing but the tables.

As automata: Butz, IEEE Trans. Computers C-20 (1971) 424; Bader, Space-Filling Curves (2013), ch. 3 and 4.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.automaton import walk
from sfc.automaton.tables import tables
from sfc.points import as_words, cells_of, numbers_of

CHUNK = 2**18  # cells of a traversal decoded at a time


class Grammar(NamedTuple):
    """An L-system of a curve, as `sfc.automaton.lsystem` reads it.

    Attributes:
        axiom: the starting string.
        rules: pattern of each symbol.
    """

    axiom: str
    rules: Mapping[str, str]


class Curve:
    """A curve in `dim` dimensions given by its tables.

    Args:
        name: what to call it in tables and figures.
        dim: dimensions, 1 or more.
        base: each refinement cuts a cube into base**dim cubes.
        rank: (states, base**dim) integers; position along the curve of each cell digit. Every row is a
            permutation.
        next: (states, base**dim) integers; state inside the sub-cube of each cell digit.
        start: the state of the whole cube.
        grammar: an L-system of the same curve, for pictures; None where none is known.

    Attributes:
        cell: (states, base**dim) uint16; the inverse of `rank`: cell digit of each position.
        succ: (states, base**dim) uint16; state inside the sub-cube at each position.

    Raises:
        TypeError: a name that is no str, a dim, base or start that is no integer, or a grammar of another
            class.
        ValueError: tables that are no automaton of base**dim cells, naming the row at fault; a base over
            64, or more than 2**16 states or cells of a state.

    The four tables are copies, and read-only.
    """

    def __init__(
        self, name: str, dim: int, base: int, rank, next, start: int = 0, grammar: Grammar | None = None
    ):
        self.name = checks.text("name", name, "it is what tables and figures call the curve")
        self.grammar = checks.instance(
            "grammar", grammar, (Grammar, type(None)), "an sfc.automaton.Grammar, or None"
        )
        made = tables(f"curve {self.name!r}", dim, base, rank, next, start)
        self.dim, self.base, self.start = int(dim), int(base), int(start)
        self.rank, self.next, self.cell, self.succ = made
        self._merged_tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __reduce__(self):
        return Curve, (self.name, self.dim, self.base, self.rank, self.next, self.start, self.grammar)

    def __repr__(self) -> str:
        return f"<Curve {self.name} {self.dim}D, base {self.base}, {len(self.rank)} states>"

    @cached_property
    def max_order(self) -> int:
        """The largest order whose index fits 64 bits (and whose side fits a signed 64-bit coordinate)."""
        order = 0
        while self.base ** (self.dim * (order + 1)) <= 2**64 and self.base ** (order + 1) < 2**63:
            order += 1
        return order

    def side(self, order: int) -> int:
        """Cells along each axis of the grid of an order: base**order.

        Raises:
            TypeError: an order that is no integer.
            ValueError: a negative order, or one whose index would not fit 64 bits.
        """
        where = f"order of {self.name} in {self.dim}D"
        remedy = "take a lower order, so that an index fits 64 bits"
        return self.base ** checks.integer(where, order, 0, self.max_order, remedy=remedy)

    def encode(self, cells, order: int) -> np.ndarray:
        """Index of each cell along the curve.

        Args:
            cells: (n, dim) integers of any integer dtype, 0 <= cell < base**order.
            order: recursion depth; the grid has base**order cells a side.

        Returns:
            (n,) uint64, in [0, base**(dim * order)).

        Raises:
            TypeError: cells that make no array, or an order that is no integer.
            ValueError: wrong shape or dtype, a cell outside the grid, or an index over 64 bits.
        """
        side = self.side(order)
        cells = cells_of(cells, (side,) * self.dim)
        index, bad = self.encode_words(as_words(cells), int(order))
        if bad < len(cells):
            raise ValueError(
                f"cell {cells[bad].tolist()} in row {bad} is outside the grid of order {order}; "
                f"allowed: 0 <= cell < {side}; raise the order or check the cells"
            )
        return index

    def encode_words(self, words: np.ndarray, order: int) -> tuple[np.ndarray, int]:
        """`encode` without its checks, for callers that have made them or word a refusal of their own.

        Args:
            words: (n, dim) contiguous uint64 cells.
            order: an integer from 0 to `max_order`.

        Returns:
            (n,) uint64, and the first row outside the grid (n where there is none).
        """
        index = np.empty(len(words), np.uint64)
        levels, first, table = self._merged(order)
        return index, walk.encode(words, order, self.base, levels, first[0], table[0], self.start, index)

    def decode(self, index, order: int) -> np.ndarray:
        """Cell at each index along the curve; the inverse of `encode`.

        Args:
            index: (n,) integers of any integer dtype, 0 <= index < base**(dim * order).
            order: recursion depth.

        Returns:
            (n, dim) int64 cells.

        Raises:
            TypeError: indices that make no array, or an order that is no integer.
            ValueError: wrong shape or dtype, an index past the end of the curve, or an order over 64 bits.
        """
        length = self.side(order) ** self.dim
        order, index = int(order), numbers_of("index", index, length)
        cells = np.empty((len(index), self.dim), np.int64)
        levels, first, table = self._merged(order)
        words = as_words(index)
        bad = walk.decode(words, order, self.base, levels, first[1], table[1], self.start, cells)
        if length > 2**63 and index.dtype.kind == "i" and (index < 0).any():
            bad = int((index < 0).argmax())  # as 64 bits without sign it is on the longest curve
        if bad < len(index):
            where = "is negative" if index[bad] < 0 else f"is past the end of the curve of order {order}"
            raise ValueError(f"index {int(index[bad])} in row {bad} {where}; allowed: 0 <= index < {length}")
        return cells

    def _merged(self, order: int):
        """Levels at a look-up, and the (encode, decode) tables of the top levels and of the blocks below."""
        levels = walk.levels_at_once(self.dim, self.base, len(self.rank))
        for count in (order % levels, levels):
            if count not in self._merged_tables:
                self._merged_tables[count] = walk.merged(self.cell, self.succ, self.dim, self.base, count)
        return levels, self._merged_tables[order % levels], self._merged_tables[levels]

    def traversal(self, order: int) -> np.ndarray:
        """Every cell of the grid in visiting order.

        Args:
            order: recursion depth.

        Returns:
            (base**(dim * order), dim) int64 cells.

        Raises:
            TypeError: an order that is no integer.
            ValueError: an order whose index would not fit 64 bits, or more cells than memory holds.
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
        """Whether every step, at every order, is one cell along one axis. Exact: decided on the tables."""
        return self.first_jump() is None

    @cached_property
    def is_closed(self) -> bool:
        """Whether, at every order, the last cell is one step from the first. Exact: decided on the tables."""
        first, last = self._corner(self.start, 0), self._corner(self.start, -1)
        step = first - last
        if np.abs(step).sum() != 1:
            return False
        pair = (int(self.succ[self.start, -1]), int(self.succ[self.start, 0]), tuple(step.tolist()))
        return self._first_open_pair({pair: (self.start, -1)}) is None

    def first_jump(self) -> tuple[int, int] | None:
        """The first step that is not a unit step at some order.

        A step inside a state must be a unit vector; refined, it joins the last cell of one sub-cube to the
        first of the next, which is again a pair of states and a direction. There are finitely many, so
        following them until nothing new appears decides all orders at once.

        Returns:
            None for a continuous curve, else (state, position): the step leaving that position jumps.
        """
        pairs = {}
        for state in self._reachable():
            for position in range(self.base**self.dim - 1):
                step = self._corner(state, position + 1) - self._corner(state, position)
                if np.abs(step).sum() != 1:
                    return state, position
                a, b = self.succ[state, position], self.succ[state, position + 1]
                pairs.setdefault((int(a), int(b), tuple(step.tolist())), (state, position))
        return self._first_open_pair(pairs)

    def _first_open_pair(self, pairs: dict) -> tuple[int, int] | None:
        """Origin of a pair of states whose common face the curve does not cross by one step, if any."""
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

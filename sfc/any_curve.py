"""Class `AnyCurve`: what all space-filling curves have in common, however they compute an index.

Contract. A curve of order `k` visits every cell of a cube of `base**k` cells a side once. It refines itself,
unless `refines` is False: the cells of order `k` divided by the base are those of order `k - 1`. Arguments
are checked here, with the same errors for every curve. A subclass computes the indices of (n, dim) 64-bit
words, and the cells of (n,) words.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sfc import checks
from sfc.points import as_words, cells_of, numbers_of, output, refuse_cell, refuse_index

KEY_BITS = 64  # of an index, at most
CHUNK = 2**18  # cells per `decode` call of a traversal
Compute = Callable[[np.ndarray, int, np.ndarray], int]  # (given, order, filled) -> first row out of range


class Grammar(NamedTuple):
    """L-system of a curve, in the form that `sfc.automaton.lsystem` reads.

    Attributes:
        axiom: the starting string.
        rules: symbol -> its pattern.
    """

    axiom: str
    rules: Mapping[str, str]


class AnyCurve(ABC):
    """Space-filling curve: encodes cells of a cube, and decodes indices along the curve.

    Made by `sfc.curve`. A `sfc.Curve` is given by the tables of an automaton, a `sfc.bitwise.BitwiseCurve` is
    computed by operations on bits.

    Attributes:
        name: its name in tables and figures.
        dim: dimensions, 1 or more.
        base: each refinement divides a cube into base**dim cubes.
        grammar: an L-system of the same curve, for drawings; None if there is none.
        refines: whether each order refines the one before.
    """

    name: str
    dim: int
    base: int
    grammar: Grammar | None = None
    refines: bool = True

    @property
    @abstractmethod
    def is_continuous(self) -> bool:
        """Whether every step, at every order, is one cell along one axis."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether, at every order, the last cell is one step from the first."""

    @abstractmethod
    def _encode_words(self, cells: np.ndarray, order: int, index: np.ndarray) -> int:
        """Compute (n,) uint64 indices of (n, dim) uint64 cells; return the first row outside, or n."""

    @abstractmethod
    def _decode_words(self, index: np.ndarray, order: int, cells: np.ndarray) -> int:
        """Compute (n, dim) int64 cells of (n,) uint64 indices; return the first row past the end, or n."""

    @cached_property
    def max_order(self) -> int:
        """Largest order with an index of up to 64 bits and a side below 2**63."""
        order = 0
        while self.base ** (self.dim * (order + 1)) <= 2**KEY_BITS and self.base ** (order + 1) < 2**63:
            order += 1
        return order

    def side(self, order: int | None = None, *, bits: int | None = None) -> int:
        """Return the cells along each axis of the grid of an order: base**order.

        Args:
            order: recursion depth.
            bits: another name of `order`.

        Raises:
            TypeError: an order that is no integer, or none.
            ValueError: a negative order, or one with an index over 64 bits; bits beside another order.
        """
        order = one_of(order, bits)
        where = f"order of {self.name} in {self.dim}D"
        remedy = "take a lower order, so that an index fits 64 bits"
        return self.base ** checks.integer(where, order, 0, self.max_order, remedy=remedy)

    def encode(
        self,
        cells: ArrayLike,
        order: int | None = None,
        out: np.ndarray | None = None,
        *,
        bits: int | None = None,
    ) -> np.ndarray:
        """Compute the index of each cell along the curve.

        Args:
            cells: (n, dim) integers of any integer dtype, 0 <= cell < base**order.
            order: recursion depth; the grid has base**order cells along each axis.
            out: (n,) integers of any dtype that holds the largest index, filled; None for a new array. It is
                fastest if contiguous, of the fewest bytes. After an error its contents mean nothing.
            bits: another name of `order`.

        Returns:
            (n,) uint64, in [0, base**(dim * order)); or `out`.

        Raises:
            TypeError: cells that make no array, or an order that is no integer, or none.
            ValueError: wrong shape or dtype, a cell outside the grid, or an index over 64 bits; bits beside
                another order. Points of floats have keys instead: `sfc.keys`.
        """
        order = one_of(order, bits)
        side = self.side(order)
        cells = cells_of(cells, (side,) * self.dim)
        index = output(out, (len(cells),), side**self.dim - 1, np.uint64)
        bad = _apart(self._encode_into, cells, int(order), index, np.uint64)
        if bad < len(cells):
            raise refuse_cell(cells, bad, f"the grid of order {order}", side, "raise the order")
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
        return _apart(self._encode_into, cells, order, index, np.uint64)

    def _encode_into(self, cells: np.ndarray, order: int, index: np.ndarray) -> int:
        """Compute indices into a contiguous array of any integer dtype, apart from the cells."""
        own = index.view(np.uint64) if index.itemsize == 8 else np.empty(len(index), np.uint64)
        bad = self._encode_words(as_words(cells), order, own)
        if index.itemsize < 8:
            index[:] = own
        return bad

    def decode(
        self,
        index: ArrayLike,
        order: int | None = None,
        out: np.ndarray | None = None,
        *,
        bits: int | None = None,
    ) -> np.ndarray:
        """Compute the cell at each index along the curve; the inverse of `encode`.

        Args:
            index: (n,) integers of any integer dtype, 0 <= index < base**(dim * order).
            order: recursion depth.
            out: (n, dim) integers of any dtype that holds the largest coordinate, filled; None for a new
                array. It is fastest if contiguous, of the fewest bytes. After an error its contents mean
                nothing.
            bits: another name of `order`.

        Returns:
            (n, dim) int64 cells; or `out`.

        Raises:
            TypeError: indices that make no array, or an order that is no integer, or none.
            ValueError: wrong shape or dtype, an index past the end of the curve, an order over 64 bits, or
                bits beside another order.
        """
        order = one_of(order, bits)
        length = self.side(order) ** self.dim
        order, index = int(order), numbers_of("index", index, length)
        cells = output(out, (len(index), self.dim), self.base**order - 1, np.int64)
        bad = _apart(self._decode_into, index, order, cells, np.int64)
        if bad < len(index):
            raise refuse_index(index, bad, order, length)
        return cells

    def _decode_into(self, index: np.ndarray, order: int, cells: np.ndarray) -> int:
        """Compute cells into a contiguous array of any integer dtype, apart from the indices."""
        own = cells.view(np.int64) if cells.itemsize == 8 else np.empty(cells.shape, np.int64)
        bad = self._decode_words(as_words(index), order, own)
        if self.base ** (self.dim * order) > 2**63 and index.dtype.kind == "i" and (index < 0).any():
            bad = int((index < 0).argmax())  # as unsigned 64 bits it is a valid index of the longest curve
        if cells.itemsize < 8:
            cells[:] = own
        return bad

    def traversal(self, order: int | None = None, *, bits: int | None = None) -> np.ndarray:
        """List every cell of the grid, in the order of the curve.

        Args:
            order: recursion depth.
            bits: another name of `order`.

        Returns:
            (base**(dim * order), dim) int64 cells.

        Raises:
            TypeError: an order that is no integer, or none.
            ValueError: an order with an index over 64 bits, or more cells than fit in memory; bits beside
                another order.
        """
        order = one_of(order, bits)
        length = self.side(order) ** self.dim
        where = f"traversal of {self.name} in {self.dim}D at order {order}, {length} cells"
        checks.require_allocatable(
            where, 8 * self.dim * length, "stream them with sfc.ordering(...).chunks()"
        )
        cells = np.empty((length, self.dim), np.int64)
        for start in range(0, length, CHUNK):
            stop = min(start + CHUNK, length)
            cells[start:stop] = self.decode(np.arange(start, stop, dtype=np.uint64), order)
        return cells


def one_of(order: Any, bits: Any) -> int:
    """Return the levels of a curve that were given as `order`, as `bits`, or as both; not checked further.

    It is None for neither, which the check of the levels refuses.

    Args:
        order: integer or None.
        bits: integer or None.

    Raises:
        TypeError: both, and one that is no integer.
        ValueError: both, and different.
    """
    if order is None or bits is None:
        return bits if order is None else order
    if checks.integer("order", order, 0) != checks.integer("bits", bits, 0):
        found = f"order = {checks.shown(order)} beside bits = {checks.shown(bits)}"
        raise ValueError(f"{found}; allowed: one of them; both are the levels of the curve")
    return order


def _apart(compute: Compute, given: np.ndarray, order: int, out: np.ndarray, kind: type) -> int:
    """Encode or decode into a contiguous array apart from the one given; return the first row out of range.

    Args:
        compute: `AnyCurve._encode_into` or `AnyCurve._decode_into`.
        given: cells or indices.
        order: recursion depth.
        out: indices or cells, filled; by a copy if it is not contiguous or may overlap with `given`.
        kind: dtype of the copy.
    """
    if out.flags.c_contiguous and out.dtype.isnative and not np.may_share_memory(given, out):
        return compute(given, order, out)
    own: np.ndarray = np.empty(out.shape, kind)
    bad = compute(given, order, own)
    if bad == len(given):  # or else the caller's message reads what was given, which may be in `out`
        out[:] = own
    return bad

"""Compiled encoding and decoding on the host: merged tables of several levels, and the loops over points.

Contract. A merged table of `levels` levels has a row for each state, as long as the power of two that holds
`base**(dim * levels)` entries, one for each block of that many levels. An entry is the next state shifted
left over a code. To encode, the code is the block's position along the curve, and the row is addressed by the
block's number: digits of `base**levels`, axis 0 the least significant. To decode, the row is addressed by
position, and the code has each coordinate in a separate bit field, axis 0 lowest. Where the base is a power
of two the two numbers of a block are one. A walk takes the top `order % levels` levels from a separate table,
then whole blocks. A loop is compiled once for each dim, or for each dim, base and levels if its divisors
depend on them: `axes`, `base` and `levels` are tuples of those lengths, which are constants for the compiler.
"""

from typing import Any, NamedTuple

import numpy as np

from sfc.compile import first_in_parts, kernel

CELLS = 3**6  # in a block, at most; larger tables do not fit in the L1 cache


def levels_at_once(dim: int, base: int, states: int) -> int:
    """Return how many levels to merge: up to CELLS entries a state, and 2**16 entries in all."""
    levels = 1
    while base ** (dim * (levels + 1)) <= CELLS and states * base ** (dim * (levels + 1)) <= 2**16:
        levels += 1
    return levels


def merged(
    cell: np.ndarray, succ: np.ndarray, dim: int, base: int, levels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merge the tables of several levels into one table for encoding and one for decoding.

    Args:
        cell: (states, base**dim) cell digit of each position.
        succ: (states, base**dim) state inside each position.
        dim: dimensions.
        base: of a digit.
        levels: how many to merge, 0 or more.

    Returns:
        encode, decode: (states * row,) uint32, entries of positions by block and of blocks by position;
        `row` is the power of two that holds base**(dim * levels).
    """
    states, width = cell.shape
    cells = width**levels
    position = np.tile(np.arange(cells, dtype=np.int64), states)
    origin = np.repeat(np.arange(states), cells)
    state, block = origin, np.zeros((states * cells, dim), np.int64)
    for level in range(levels):
        step = position // width ** (levels - 1 - level) % width
        digit = cell[state, step].astype(np.int64)
        for k in range(dim):
            block[:, k] += digit // base**k % base * base ** (levels - 1 - level)
        state = succ[state, step].astype(np.int64)
    bits, field = (cells - 1).bit_length(), (base**levels - 1).bit_length()
    encode, decode = np.zeros((2, states << bits), np.uint32)
    number = block @ base ** (levels * np.arange(dim))
    encode[(origin << bits) | number] = (state << bits) | position
    fields = (block << field * np.arange(dim)).sum(axis=1)
    decode[(origin << bits) | position] = (state << field * dim) | fields
    return encode, decode


class MergedTables(NamedTuple):
    """Merged tables of a curve for one order.

    Attributes:
        dim: dimensions.
        base: of a digit.
        order: of the curve.
        start: state of the whole cube.
        levels: per look-up.
        first: tables of the top `order % levels` levels, for encoding and for decoding.
        table: tables of `levels` levels, for encoding and for decoding.
    """

    dim: int
    base: int
    order: int
    start: int
    levels: int
    first: tuple[np.ndarray, np.ndarray]
    table: tuple[np.ndarray, np.ndarray]


def encode(cells: np.ndarray, curve: MergedTables, index: np.ndarray) -> int:
    """Compute the index of each cell along the curve, with merged tables.

    Args:
        cells: (n, dim) uint64.
        curve: its tables.
        index: (n,) uint64, filled.

    Returns:
        The first row outside the grid, or n if there is none.
    """
    side = curve.base**curve.order
    return _walk((_encode_bits, _encode_digits), cells, side, curve, 0, index)


def decode(index: np.ndarray, curve: MergedTables, cells: np.ndarray) -> int:
    """Compute the cell at each index along the curve, with merged tables.

    Args:
        index: (n,) uint64.
        curve: its tables.
        cells: (n, dim) int64, filled.

    Returns:
        The first row past the end of the curve, or n if there is none.
    """
    last = curve.base ** (curve.dim * curve.order) - 1
    return _walk((_decode_bits, _decode_digits), index, last, curve, 1, cells)


def _walk(
    loops: tuple[Any, Any], given: np.ndarray, bound: int, curve: MergedTables, which: int, out: np.ndarray
) -> int:
    """Run the first loop for a base that is a power of two, the second one for another base.

    Args:
        loops: kernels.
        given: cells or indices.
        bound: side of the grid, or last index of the curve.
        curve: its tables.
        which: 0 for those to encode, 1 for those to decode.
        out: indices or cells, filled.
    """
    dim, base, order, start, levels = curve[:5]
    bits = base.bit_length() - 1
    numbers: tuple[Any, ...] = order * bits, levels * bits
    loop = loops[0]
    if base != 1 << bits:
        loop = loops[1]
        numbers = order // levels, _top(dim, order, base, levels), (0,) * base, (0,) * levels
    walk = np.uint64(bound), *numbers, curve.first[which], curve.table[which], (0,) * dim, start
    return first_in_parts(lambda part: loop(given[part], *walk, out[part]), len(given))


def _top(dim: int, order: int, base: int, levels: int) -> tuple[np.uint64, ...]:
    """Compute the side of a block of the top levels, and the bits of its number and coordinates."""
    side = base ** (order % levels)
    return tuple(np.uint64(n) for n in (side, (side**dim - 1).bit_length(), (side - 1).bit_length()))


@kernel
def _encode_bits(cells, side, order, levels, first, table, axes, start, index):
    """Compute indices in a base that is a power of two; `order` and `levels` in bits of a coordinate."""
    n, dim = len(cells), len(axes)
    bad = n
    rest = order % levels
    for i in range(n):
        any_bits = np.uint64(0)
        for k in range(dim):
            any_bits |= cells[i, k]
        if any_bits < side:
            row = np.uint64(i)
            state, code, shift = np.uint64(start), np.uint64(0), np.uint64(order)
            for _ in range(rest > 0):
                shift -= np.uint64(rest)
                state, code = _gather(cells, row, axes, shift, rest, first, state, code)
            for _ in range(order // levels):
                shift -= np.uint64(levels)
                state, code = _gather(cells, row, axes, shift, levels, table, state, code)
            index[i] = code
        else:
            bad = min(bad, i)
    return bad


@kernel
def _gather(cells, i, axes, shift, levels, table, state, code):
    dim = len(axes)
    width = np.uint32(levels * dim)
    block = np.uint32(0)
    for k in range(dim):
        digits = (cells[i, k] >> shift) & np.uint64((1 << levels) - 1)
        block |= np.uint32(digits) << np.uint32(k * levels)
    entry = table[(state << width) | block]
    position = entry & np.uint32((1 << (levels * dim)) - 1)
    return entry >> width, (code << np.uint64(width)) | np.uint64(position)


@kernel
def _decode_bits(index, last, order, levels, first, table, axes, start, cells):
    n, dim = len(index), len(axes)
    bad = n
    rest = order % levels
    for i in range(n):
        if index[i] <= last:
            row = np.uint64(i)
            state, shift = np.uint64(start), np.uint64(order * dim)
            for k in range(dim):
                cells[i, k] = 0
            for _ in range(rest > 0):
                shift -= np.uint64(rest * dim)
                state = _scatter(index[i] >> shift, cells, row, axes, rest, first, state)
            for _ in range(order // levels):
                shift -= np.uint64(levels * dim)
                state = _scatter(index[i] >> shift, cells, row, axes, levels, table, state)
        else:
            bad = min(bad, i)
    return bad


@kernel
def _scatter(code, cells, i, axes, levels, table, state):
    dim = len(axes)
    width = np.uint32(levels * dim)
    position = np.uint32(code & np.uint64((1 << (levels * dim)) - 1))
    entry = table[(state << width) | position]
    for k in range(dim):
        digits = (entry >> np.uint32(k * levels)) & np.uint32((1 << levels) - 1)
        cells[i, k] = (cells[i, k] << np.int64(levels)) | np.int64(digits)
    return entry >> width


@kernel
def _power(base, exponent):
    """Compute base**exponent by a loop, which the compiler removes if both are constants."""
    power = np.uint64(1)
    for _ in range(exponent):
        power *= base
    return power


@kernel
def _bits(count):
    """Count the bits of 0 .. count - 1 by a loop, which the compiler removes if count is a constant."""
    bits = np.uint64(0)
    while np.uint64(1) << bits < count:
        bits += np.uint64(1)
    return bits


@kernel
def _encode_digits(cells, side, steps, top, base, levels, first, table, axes, start, index):
    n, dim = len(cells), len(axes)
    bad = n
    for i in range(n):
        inside = True
        for k in range(dim):
            inside &= cells[i, k] < side
        if inside:
            row = np.uint64(i)
            index[i] = _position(cells, row, steps, top, base, levels, first, table, axes, start)
        else:
            bad = min(bad, i)
    return bad


@kernel
def _position(cells, i, steps, top, base, levels, first, table, axes, start):
    dim = len(axes)
    block_side = _power(np.uint64(len(base)), np.int64(len(levels)))
    block_cells = _power(block_side, np.int64(dim))
    top_side, bits, _ = top
    stacked, block = np.uint64(0), np.uint64(0)  # the blocks, the top one lowest; and the digits above them
    for k in range(dim - 1, -1, -1):
        digits, above = np.uint64(0), cells[i, k]
        for _ in range(steps):
            digits = digits * block_cells + above % block_side
            above //= block_side
        stacked = stacked * block_side + digits
        block = block * top_side + above
    entry = np.uint64(first[(np.uint64(start) << bits) | block])
    state, code = entry >> bits, entry & ((np.uint64(1) << bits) - np.uint64(1))
    bits = _bits(block_cells)
    for _ in range(steps):
        entry = np.uint64(table[(state << bits) | (stacked % block_cells)])
        stacked //= block_cells
        state, code = entry >> bits, code * block_cells + (entry & ((np.uint64(1) << bits) - np.uint64(1)))
    return code


@kernel
def _decode_digits(index, last, steps, top, base, levels, first, table, axes, start, cells):
    n = len(index)
    bad = n
    for i in range(n):
        if index[i] <= last:
            row = np.uint64(i)
            _place(index[i], steps, top, base, levels, first, table, axes, start, cells, row)
        else:
            bad = min(bad, i)
    return bad


@kernel
def _place(above, steps, top, base, levels, first, table, axes, start, cells, i):
    dim = len(axes)
    block_side = _power(np.uint64(len(base)), np.int64(len(levels)))
    block_cells = _power(block_side, np.int64(dim))
    top_side, bits, field = top
    stacked = np.uint64(0)
    for _ in range(steps):
        stacked = stacked * block_cells + above % block_cells
        above //= block_cells
    entry = np.uint64(first[(np.uint64(start) << bits) | above])
    for k in range(dim):
        cells[i, k] = 0
    entry = _put(entry, field, top_side, cells, i, axes)
    bits, field = _bits(block_cells), _bits(block_side)
    for _ in range(steps):
        entry = np.uint64(table[(entry << bits) | (stacked % block_cells)])
        stacked //= block_cells
        entry = _put(entry, field, block_side, cells, i, axes)


@kernel
def _put(entry, field, side, cells, i, axes):
    """Append the coordinates of a block to those of a cell; return the next state."""
    for k in range(len(axes)):
        digits = (entry >> (np.uint64(k) * field)) & ((np.uint64(1) << field) - np.uint64(1))
        cells[i, k] = cells[i, k] * np.int64(side) + np.int64(digits)
    return entry >> (np.uint64(len(axes)) * field)
